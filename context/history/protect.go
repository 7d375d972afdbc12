package history

import (
	"slices"

	"github.com/loom-bridge/loom-bridge/context/step"
)

// DefaultProtectLast is how many of the failures before a preset's boundary keep
// their lines, whatever is left out.
const DefaultProtectLast = 10

// split parts steps at a boundary: those shown as lines, and those in full.
// Pinned ones stay in full, wherever they stand.
func split(steps []step.Step, older int) (lines, full []step.Step) {
	older = min(max(older, 0), len(steps))
	pinned := func(s step.Step) bool { return s.Pinned }
	if !slices.ContainsFunc(steps[:older], pinned) {
		return steps[:older], steps[older:]
	}
	for i, s := range steps {
		if i < older && !pinned(s) {
			lines = append(lines, s)
		} else {
			full = append(full, s)
		}
	}
	return lines, full
}

// protected are the newest failures among steps, in order: as many of the last
// ones as the preset protects.
func (c *Compactor) protected(steps []step.Step) []step.Step {
	var failed []step.Step
	for _, s := range slices.Backward(steps) {
		if len(failed) == c.preset.ProtectLast {
			break
		}
		if s.Outcome == step.Failed {
			failed = append(failed, s)
		}
	}
	slices.Reverse(failed)
	return failed
}

// Fit is Render in about budget tokens: while the text takes more, the oldest
// step in full that still shows its result loses it, but for pinned ones. What
// is left out can be read by the step's id. It may stay over its budget.
func (c *Compactor) Fit(steps []step.Step, older, budget int) string {
	text := c.Render(steps, older)
	if c.count(text) <= budget {
		return text
	}
	short := slices.Clone(steps)
	older = min(max(older, 0), len(steps))
	for i := older; i < len(short); i++ {
		if short[i].Pinned || short[i].Inline == "" || c.hides(short[i]) {
			continue
		}
		short[i].Inline = ""
		if text = c.Render(short, older); c.count(text) <= budget {
			break
		}
	}
	return text
}
