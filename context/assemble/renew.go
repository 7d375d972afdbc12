package assemble

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/excerpt"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/window"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// ErrNoRenewal: the policy of the session never renews its window.
var ErrNoRenewal = errors.New("assemble: the policy has no renewal")

// RenewRequest asks to begin a session's window anew.
type RenewRequest struct {
	Scope kv.Scope
	// SessionID is the session; empty is the default session.
	SessionID string
	// TurnID names the turn, as that of a Request does.
	TurnID string
	// Goal is as in a Request.
	Goal string
	// RequestID makes the call safe to repeat.
	RequestID string
}

// Renewed says what a session's last renewal left.
type Renewed struct {
	// Sprint is the number of the last renewal; 0 for a session that was never renewed.
	Sprint int
	// Batch is what this call left out of the history; nil where the turn had a renewal, or
	// another level, before.
	Batch *Batch
	// Snapshot is what the agent was at.
	Snapshot working.Snapshot
}

// Renew begins a session's window anew, whatever its pressure. A turn that had a renewal,
// or another level, is left as it is. A session whose policy has no renewal is
// ErrNoRenewal; a window that would not fit even then is an *OverflowError, and changes
// nothing.
func (a *Assembler) Renew(ctx context.Context, r RenewRequest) (Renewed, error) {
	log, ok := a.log.(*session.Log)
	if !ok {
		return Renewed{}, ErrNoRenewal
	}
	out := Renewed{}
	var err error
	if out.Sprint, ok, err = log.Renewed(ctx, r.Scope, r.SessionID, r.RequestID); err == nil && !ok {
		for range maxRaces {
			if out, err = a.renew(ctx, r); !errors.Is(err, session.ErrFoldsChanged) {
				break
			}
		}
	}
	if err == nil && out.Sprint > 0 {
		out.Snapshot, err = log.Snapshot(ctx, r.Scope, r.SessionID, out.Sprint)
	}
	return out, err
}

func (a *Assembler) renew(ctx context.Context, r RenewRequest) (Renewed, error) {
	t, err := a.newTask(ctx, Request{Scope: r.Scope, SessionID: r.SessionID, TurnID: r.TurnID, Goal: r.Goal}, true)
	if err != nil {
		return Renewed{}, err
	}
	defer t.moment.Close()
	if !t.renews() {
		return Renewed{}, fmt.Errorf("%w: it is %s", ErrNoRenewal, t.name)
	}
	t.forced, t.requestID = true, r.RequestID
	if err := t.prepare(ctx); err != nil {
		return Renewed{}, err
	}
	s, err := t.read(ctx)
	if err != nil {
		return Renewed{}, err
	}
	d, err := t.drafted(ctx, s)
	if err != nil {
		return Renewed{}, err
	}
	if d.renewal == nil {
		return Renewed{Sprint: t.moment.Sprint}, nil
	}
	if err := t.store(ctx, s, d); err != nil {
		return Renewed{}, err
	}
	t.tell(ctx, d.batch, nil)
	return Renewed{Sprint: d.renewal.Snapshot.Sprint, Batch: d.batch}, nil
}

// renews tells whether the policy renews windows.
func (t *task) renews() bool {
	return t.policy == session.PolicyLedger || t.policy == session.PolicyPreset && t.preset.Style == history.StyleLevels
}

// renewed is the conversation in a fresh window: the handoff, and what is worth most of the
// history. Where that is too much, texts are cut, too; drafted does the rest.
func (p *pressed) renewed(d *draft, state window.State, mark history.Mark, size int) ([]pairing.Item, error) {
	t := p.t
	snapshot := p.snapshot(&state, size)
	after := state.Press(window.Renewal, p.units, snapshot.Goal)
	after.Sprint, after.Handoff, after.Memory = snapshot.Sprint, snapshot.Handoff(), 0
	if t.trimmed {
		after.Memory = t.memory + 1
	}
	items, shorter, err := p.show(after)
	if err == nil && p.pressure(shorter) >= 1 {
		after = after.Press(window.Reactive, p.units, snapshot.Goal)
		items, shorter, err = p.show(after)
	}
	for err == nil && p.pressure(shorter) >= 1 && snapshot.Shorten() {
		after.Handoff = snapshot.Handoff()
		items, shorter, err = p.show(after)
	}
	if err != nil {
		return nil, err
	}
	after.Turn, after.Level, after.Overflow = t.turn(), window.Renewal, ""
	d.mark, d.saved = mark, p.whole-shorter
	d.mark.Window = after.Encode()
	d.batch = &Batch{Reason: history.ByBudget, Level: window.Renewal, Refs: p.refs(&state, &after), Before: size, After: shorter}
	if t.forced {
		d.batch.Reason = history.ByCaller
	}
	d.renewal = &session.Renewal{Snapshot: snapshot, Before: t.before, Swapped: t.swapped, Preset: t.name, Mark: d.mark}
	t.evicts = p.pressure(shorter) >= 1
	return items, p.fitsIn(p.budget-1, shorter, items)
}

// snapshot is what the agent is at as its window ends.
func (p *pressed) snapshot(state *window.State, size int) working.Snapshot {
	t := p.t
	figures := t.figures
	figures.Pressure = p.pressure(size)
	figures.Budget = max(t.r.MaxTokens-p.beside-size, 0)
	return working.Snapshot{
		Sprint: t.moment.Sprint + 1, Time: t.a.clock(), Figures: figures, Working: t.before.Taken(),
		Goal: p.goal(t.r.Goal), Artifacts: p.artifacts(state.Since),
	}
}

// maxNeeded bounds the names in a handoff that are no results. Those that the calls of the
// sprint used count lateNeed times as much as those of calls before.
const (
	maxNeeded = 192
	lateNeed  = 3
)

// artifacts name what the sprint brought forth: the results that can be read by a name, and
// the names that its calls used most.
func (p *pressed) artifacts(since uint64) []string {
	var refs []string
	needed := excerpt.NewRanking()
	for _, g := range p.groups {
		lately := g.First() >= since
		weight := 1
		if lately {
			weight = lateNeed
		}
		for _, t := range g.Turns {
			for i := range t.Calls {
				excerpt.EachIdentifier(t.Calls[i].Wish.Arguments, func(id string) {
					needed.AddOne(excerpt.Identifier{Class: excerpt.Symbol, Text: id, Score: weight})
				})
			}
		}
		if !lately {
			continue
		}
		for _, d := range p.done(g, p.outputs(g)) {
			if path := d.act.OutcomePath; path != "" && len(path) <= working.MaxArtifactBytes && !slices.Contains(refs, path) {
				refs = append(refs, path)
			}
		}
	}
	refs = refs[max(len(refs)-(working.MaxArtifacts-maxNeeded), 0):]
	n := 0
	for _, id := range needed.Best() {
		if len(id.Text) > working.MaxArtifactBytes || slices.Contains(refs, id.Text) {
			continue
		}
		if n++; n > maxNeeded {
			break
		}
		refs = append(refs, id.Text)
	}
	return refs
}

// handoff is the message that a renewed history begins with.
func (p *pressed) handoff(state *window.State) []pairing.Item {
	if state.Handoff == "" {
		return nil
	}
	return []pairing.Item{{Label: pairing.LabelHandoff, Message: session.Message{Role: session.User, Content: state.Handoff}}}
}

// windowState reads what a renewal before left to prompts beside the history.
func (t *task) windowState() error {
	t.before = t.working
	if !t.renews() {
		return nil
	}
	state, err := window.Decode(t.moment.Folds.Marks[t.name].Window)
	if err != nil {
		return fmt.Errorf("assemble: %w", err)
	}
	if state.Memory > 0 {
		t.trimmed, t.memory = true, state.Memory-1
	}
	return nil
}

// evict makes room in a fresh window whose history is as short as it can be: first skills
// are shown by their names, then what is known of the user and the task gives way, what is
// worth least first. False where nothing is left to evict.
func (t *task) evict(over int) (bool, error) {
	if !t.evicts {
		return false, nil
	}
	t.evicts, t.evicting = false, true
	if active := t.active(); len(active) > 0 {
		t.swapped = append(t.swapped, active...)
		t.working = t.working.With(working.Change{Deactivate: active}, t.a.clock())
		return true, t.rearranged()
	}
	shown := t.memoryTokens()
	if shown == 0 {
		return false, nil
	}
	t.trimmed, t.memory = true, shown
	// A section takes more than its cap counts, by what begins its message, and is cut
	// between its parts: the first cap below what is shown may change nothing.
	for less := max(over, 1); ; less *= 2 {
		t.memory = max(t.memory-less, 0)
		if err := t.rearranged(); err != nil {
			return false, err
		}
		if t.memory == 0 || t.memoryTokens() < shown {
			return t.memoryTokens() < shown, nil
		}
	}
}

// rearranged lays out again what is not history.
func (t *task) rearranged() (err error) {
	reads := slices.Contains(t.skillTools, step.ToolReadFile)
	if t.skillTools = t.skillsTools(); reads && !slices.Contains(t.skillTools, step.ToolReadFile) {
		t.skillTools = append(t.skillTools, step.ToolReadFile) // references need it
	}
	t.r.Tools = t.ownTools
	t.r.Tools = t.offered()
	t.textTools()
	if t.tools, err = t.a.toolset(t.r); err != nil {
		return err
	}
	t.arrange()
	return t.err
}

// isMemory tells whether a section is of what is known of the user and the task.
func isMemory(name string, phase inject.Phase) bool {
	return phase == inject.UserContext && name != settings.SkillTexts && name != settings.Working &&
		name != settings.Tasks && name != settings.Events && name != settings.Messages
}

// memoryTokens is what the prompt shows of what is known.
func (t *task) memoryTokens() int {
	n := 0
	for i := range t.prepared.Arranged.Pieces {
		if p := &t.prepared.Arranged.Pieces[i]; isMemory(p.Name, p.Phase) {
			n += p.Tokens
		}
	}
	return n
}

// trim caps the sections of what is known so that together they take what is left to them,
// the last of them first.
func (t *task) trim(all []inject.Injection) []inject.Injection {
	if !t.trimmed {
		return all
	}
	left := t.memory
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
			left -= min(in.MaxTokens, t.count(in.Text)+t.count(strings.Join(in.Parts, "\n")))
		}
		out = append(out, in)
	}
	return out
}
