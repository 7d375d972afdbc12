package fold

import (
	"slices"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/excerpt"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/window"
	"github.com/loom-bridge/loom-bridge/context/working"
)

// renewed is the conversation in a fresh window: the handoff, and the most valuable part of
// the history. If that is too much, texts are cut, too; then more than history must be
// dropped.
func (p *pressed) renewed(d *Draft, state window.State, mark history.Mark, size int) ([]pairing.Item, error) {
	c := p.c
	snapshot := p.snapshot(&state, size)
	after := state.Press(window.Renewal, p.units, snapshot.Goal)
	after.Sprint, after.Handoff, after.Memory = snapshot.Sprint, snapshot.Handoff(), c.ask.Window.Memory
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
	after.Turn, after.Level, after.Overflow = c.ask.Turn, window.Renewal, ""
	d.Mark, d.Saved = mark, p.whole-shorter
	d.Mark.Window = after.Encode()
	d.Batch = &Batch{Reason: history.ByBudget, Level: window.Renewal, Refs: p.refs(&state, &after), Before: size, After: shorter}
	if c.ask.Window.Forced {
		d.Batch.Reason = history.ByCaller
	}
	d.Renewal = &session.Renewal{Snapshot: snapshot, Before: c.ask.Window.Working, Swapped: c.ask.Window.Swapped, Preset: c.Name, Mark: d.Mark}
	c.Misses = p.pressure(shorter) >= 1
	return items, fits(p.budget-1, shorter, items)
}

// snapshot is what the agent is at as its window ends.
func (p *pressed) snapshot(state *window.State, size int) working.Snapshot {
	c := p.c
	figures := c.ask.Window.Figures
	figures.Pressure = p.pressure(size)
	figures.Budget = max(c.ask.MaxTokens-p.beside-size, 0)
	return working.Snapshot{
		Sprint: c.moment.Sprint + 1, Time: c.ask.Window.Now, Figures: figures, Working: c.ask.Window.Working.Taken(),
		Goal: p.goal(c.ask.Goal), Artifacts: p.artifacts(state.Since),
	}
}

// maxNeeded bounds the names in a handoff other than results. Names used by calls of the
// sprint count lateNeed times as much as names used by earlier calls.
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
func handoff(state *window.State) []pairing.Item {
	if state.Handoff == "" {
		return nil
	}
	return []pairing.Item{{Label: pairing.LabelHandoff, Message: session.Message{Role: session.User, Content: state.Handoff}}}
}
