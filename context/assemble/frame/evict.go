package frame

import (
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/working"
)

// Evict makes room in a fresh window whose history is as short as it can be: first skills
// are reduced to their names, then knowledge about the user and the task is dropped, least
// valuable first. False where nothing is left to evict.
func (f *Framing) Evict(over int) (bool, error) {
	f.Evicting = true
	if active := f.active(); len(active) > 0 {
		f.Swapped = append(f.Swapped, active...)
		f.Working = f.Working.With(working.Change{Deactivate: active}, f.stage.Clock(), 0)
		return true, f.Arrange()
	}
	shown := memoryTokens(&f.prepared)
	if shown == 0 {
		return false, nil
	}
	// A section takes more than its cap counts, by what begins its message, and is cut
	// between its parts: the first cap below what is shown may change nothing.
	memory := shown
	for less := max(over, 1); ; less *= 2 {
		memory = max(memory-less, 0)
		f.Memory = memory + 1
		if err := f.Arrange(); err != nil {
			return false, err
		}
		if left := memoryTokens(&f.prepared); memory == 0 || left < shown {
			return left < shown, nil
		}
	}
}

// Arrange lays out again what is not history.
func (f *Framing) Arrange() error {
	reads := slices.Contains(f.skillTools, step.ToolReadFile)
	if f.skillTools = skillsTools(f.Settings.Skills, f.active()); reads && !slices.Contains(f.skillTools, step.ToolReadFile) {
		f.skillTools = append(f.skillTools, step.ToolReadFile) // references need it
	}
	if err := f.offer(); err != nil {
		return err
	}
	f.Layout()
	return f.Tally.Err
}

// isMemory reports whether a section holds knowledge about the user and the task.
func isMemory(name string, phase inject.Phase) bool {
	return phase == inject.UserContext && name != settings.SkillTexts && name != settings.Working &&
		name != settings.Tasks && name != settings.Events && name != settings.Messages
}

// memoryTokens returns the tokens of the knowledge sections.
func memoryTokens(p *inject.Prepared) int {
	n := 0
	for i := range p.Pieces {
		if piece := &p.Pieces[i]; isMemory(piece.Name, piece.Phase) {
			n += piece.Tokens
		}
	}
	return n
}

// trim caps the knowledge sections, the last one first, so that together they fit into
// their budget.
func trim(all []inject.Injection, memory int, count func(string) int) []inject.Injection {
	if memory == 0 {
		return all
	}
	left := memory - 1
	out := all[:0:0]
	for i := range all {
		in := all[i]
		if isMemory(in.Name, in.Phase) {
			if left <= 0 {
				continue
			}
			if in.MaxTokens == 0 || in.MaxTokens > left {
				in.MaxTokens = left
			}
			left -= min(in.MaxTokens, count(in.Text)+count(strings.Join(in.Parts, "\n")))
		}
		out = append(out, in)
	}
	return out
}
