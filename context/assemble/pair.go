package assemble

import (
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/session"
)

// maxHeld bounds the turns of steps that a message right behind them may ask
// for: as many as one message can ask for.
const maxHeld = session.MaxToolCalls

// pairer brings calls and results together: it puts entries into groups, in
// order.
type pairer struct {
	groups []*group
	// last is the group that the next entry may join; nil after a fold.
	last *group
	// held are groups of steps right before last, each with a call id, so that a
	// message that follows may still ask for them.
	held []*group
}

// cut ends what is open: a fold stands here.
func (p *pairer) cut() { p.last, p.held = nil, nil }

// done returns the groups. The last one is open if its calls wait.
func (p *pairer) done() []*group {
	if t := p.last.asks(); t != nil {
		p.last.open = slices.ContainsFunc(t.calls, func(c call) bool { return c.waits() })
	}
	return p.groups
}

// begin opens a group with one turn.
func (p *pairer) begin(e session.Entry, u use, t *turn) {
	p.held = nil
	p.next(e, u, t)
}

func (p *pairer) next(e session.Entry, u use, t *turn) {
	p.last = &group{turns: []*turn{t}}
	p.last.add(e, u)
	p.groups = append(p.groups, p.last)
}

func (p *pairer) entry(e session.Entry) error {
	switch {
	case e.Step != nil:
		p.step(e)
		return nil
	case e.Message == nil:
		return fmt.Errorf("entry %d holds neither a message nor a step", e.Position)
	}
	m := e.Message
	switch {
	case m.Role == session.Tool:
		p.toolMessage(e)
	case m.Observation:
		p.observation(e)
	case m.Role == session.User && p.answeredWithin(e):
	case len(m.ToolCalls) > 0:
		p.asking(e, m.ToolCalls, false)
	default:
		if wishes := callsWithin(m); len(wishes) > 0 {
			p.asking(e, wishes, true)
			return nil
		}
		p.begin(e, spoken, &turn{label: messageLabel(e), said: m})
	}
	return nil
}

// step is the result of a call that waits for it, or a call of its own.
func (p *pairer) step(e session.Entry) {
	s := e.Step
	if c := p.last.asks().waiting(s.CallID); c != nil {
		c.result, c.label = e.Position, stepLabel(s)
		p.last.add(e, answer)
		return
	}
	if p.last.steps() && s.TurnID != "" && p.last.turns[0].turnID == s.TurnID {
		p.last.turns[0].calls = append(p.last.turns[0].calls, callOf(e))
		p.last.add(e, alone)
		return
	}
	if p.last.steps() && p.last.turns[0].calls[0].id != "" {
		p.held = append(p.held, p.last)
		p.held = p.held[max(len(p.held)-maxHeld, 0):]
	} else {
		p.held = nil
	}
	c := callOf(e)
	p.next(e, alone, &turn{label: c.label, turnID: s.TurnID, calls: []call{c}})
}

// toolMessage puts a result that the caller recorded where it belongs. A second
// result of a call is not shown. One that nothing waits for becomes text, because
// a provider takes results nowhere else.
func (p *pairer) toolMessage(e session.Entry) {
	m, asked := e.Message, p.last.asks()
	if c := asked.waiting(m.ToolCallID); c != nil {
		c.result, c.blocks, c.label = e.Position, m.BlocksJSON, messageLabel(e)
		p.last.add(e, answer)
		return
	}
	if p.known(m.ToolCallID) {
		p.last.add(e, again)
		return
	}
	late := &turn{label: messageLabel(e), output: e.Position, said: &session.Message{
		Role: session.User, Content: fmt.Sprintf("Result of the call %s:\n", m.ToolCallID),
	}}
	if asked != nil && slices.ContainsFunc(asked.calls, func(c call) bool { return c.waits() }) {
		// The turn goes on: other results may follow.
		p.last.turns = append(p.last.turns, late)
		p.last.add(e, stray)
		return
	}
	p.begin(e, stray, late)
}

// known tells whether a call that may still get results, or one of the steps
// right before, has an id.
func (p *pairer) known(id string) bool {
	if t := p.last.asks(); t != nil {
		return t.has(id)
	}
	if !p.last.steps() {
		return false
	}
	has := func(g *group) bool { return g.turns[0].has(id) }
	return has(p.last) || slices.ContainsFunc(p.held, has)
}

// observation belongs to the words right before it.
func (p *pairer) observation(e session.Entry) {
	m := *e.Message
	t := &turn{label: messageLabel(e), said: &m}
	if len(m.BlocksJSON) == 0 {
		m.Content, t.output = "", e.Position
	}
	if g := p.last; g != nil && g.asks() == nil && g.members[0].speaks() {
		g.turns = append(g.turns, t)
		g.add(e, observed)
		return
	}
	p.begin(e, observed, t)
}

// speaks tells whether a member is what the model said.
func (m member) speaks() bool {
	return m.use == spoken && m.entry.Message.Role == session.Assistant
}

// asking opens a group with a message that asks for calls. Steps right before
// it that it asks for become its results, and whatever stands between goes with
// them.
func (p *pairer) asking(e session.Entry, wishes []session.ToolCall, within bool) {
	t := &turn{label: messageLabel(e), said: e.Message}
	for _, wish := range wishes {
		t.calls = append(t.calls, call{id: wish.ID, wish: wish, label: t.label, within: within})
	}
	var before []*group
	if p.last.steps() {
		before = append(p.held, p.last)
	}
	joins := len(before)
	for i, g := range before {
		if g.give(t) {
			joins = min(joins, i)
		}
	}
	p.begin(e, spoken, t)
	p.join(before[joins:])
}

// give hands the results that a turn asks for over to it.
func (g *group) give(t *turn) (given bool) {
	own := g.turns[0]
	own.calls = slices.DeleteFunc(own.calls, func(done call) bool {
		c := t.waiting(done.id)
		if c == nil {
			return false
		}
		c.result, c.label, given = done.result, done.label, true
		for i := range g.members {
			if g.members[i].entry.Position == done.result {
				g.members[i].use = answer
			}
		}
		return true
	})
	return given
}

// join puts groups right before the last one into it.
func (p *pairer) join(before []*group) {
	if len(before) == 0 {
		return
	}
	all := &group{}
	for _, g := range append(slices.Clone(before), p.last) {
		all.members = append(all.members, g.members...)
		for _, t := range g.turns {
			if t.said != nil || len(t.calls) > 0 {
				t.relabel()
				all.turns = append(all.turns, t)
			}
		}
	}
	p.groups = append(p.groups[:len(p.groups)-1-len(before)], all)
	p.last = all
}

// relabel names a turn of steps for the first that is left.
func (t *turn) relabel() {
	if t.said == nil {
		t.label = t.calls[0].label
	}
}
