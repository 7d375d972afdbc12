package assemble

import (
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// maxHeld bounds the turns of steps that a message right behind them may ask
// for: as many as one message can ask for.
const maxHeld = session.MaxToolCalls

// maxAwaited bounds the turns of steps at the end of the log that are not folded
// because the message that asks for them may still come: more than models ask
// for at once, and few enough for agents that never record such a message.
const maxAwaited = 8

// pairer brings calls and results together: it puts entries into groups, in
// order.
type pairer struct {
	groups []*group
	// last is the group that the next entry may join; nil after a fold.
	last *group
	// held are groups of steps right before last, each with a call id, so that a
	// message that follows may still ask for them.
	held []*group
	// previous is the position of the entry before. gap is that of the first entry
	// behind a gap, while all behind it are steps that a message may still ask
	// for, else 0.
	previous, gap uint64
	// earlier returns the groups of steps in the gap before a position that a
	// message may still ask for; nil looks for none.
	earlier func(position uint64) ([]*group, error)
}

// cut ends what is open: a fold stands here.
func (p *pairer) cut() { p.last, p.held = nil, nil }

// done returns the groups. The last one is open if its calls wait, and the last
// steps are awaited if the message that asks for them may still come.
func (p *pairer) done() []*group {
	if t := p.last.asks(); t != nil {
		p.last.open = slices.ContainsFunc(t.calls, func(c call) bool { return c.waits() })
	}
	run := p.asked()
	for i, g := range slices.Backward(run) {
		if len(run)-i > maxAwaited || g.turns[0].turnID != p.last.turns[0].turnID {
			break
		}
		g.awaited = true
	}
	return p.groups
}

// asked returns the groups of steps right before that a message may ask for.
func (p *pairer) asked() []*group {
	if !p.last.steps() || p.last.turns[0].calls[0].id == "" {
		return nil
	}
	return append(slices.Clone(p.held), p.last)
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
	if e.Position != p.previous+1 {
		p.gap = e.Position
	}
	p.previous = e.Position
	if e.Step != nil {
		p.step(e)
		if len(p.asked()) == 0 {
			p.gap = 0
		}
		return nil
	}
	defer func() { p.gap = 0 }()
	if e.Message == nil {
		return fmt.Errorf("entry %d holds neither a message nor a step", e.Position)
	}
	if e.Message.Role == session.User {
		if e.Message = inject.StripMessage(e.Message); e.Message == nil {
			return nil // it was the goal of an earlier prompt, and nothing else
		}
	}
	return p.message(e)
}

func (p *pairer) message(e session.Entry) error {
	m := e.Message
	switch {
	case m.Role == session.Tool:
		p.toolMessage(e)
	case m.Observation:
		p.observation(e)
	case m.Role == session.User && p.answeredWithin(e):
	case len(m.ToolCalls) > 0:
		return p.asking(e, m.ToolCalls, false)
	default:
		if wishes := callsWithin(m); len(wishes) > 0 {
			return p.asking(e, wishes, true)
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
	if p.last.steps() && s.TurnID != "" && p.last.turns[0].turnID == s.TurnID && p.last.turns[0].takes(s.Thought) {
		p.last.turns[0].calls = append(p.last.turns[0].calls, callOf(e))
		p.last.turns[0].thoughts.add(s.Thought)
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
	t := &turn{label: c.label, turnID: s.TurnID, calls: []call{c}}
	t.thoughts.add(s.Thought)
	p.next(e, alone, t)
}

// toolMessage puts a result that the caller recorded where it belongs. A second
// result of a call is not shown, unless it is pinned. One that nothing waits for becomes text, because
// a provider takes results nowhere else.
func (p *pairer) toolMessage(e session.Entry) {
	m, asked := e.Message, p.last.asks()
	if c := asked.waiting(m.ToolCallID); c != nil {
		c.result, c.blocks, c.extra, c.label = e.Position, m.BlocksJSON, m.ExtraJSON, messageLabel(e)
		p.last.add(e, answer)
		return
	}
	known := p.known(m.ToolCallID)
	if known && !m.Pinned {
		p.last.add(e, again)
		return
	}
	late := &turn{label: messageLabel(e), output: e.Position, said: &session.Message{
		Role: session.User, Content: fmt.Sprintf("Result of the call %s:\n", m.ToolCallID),
	}}
	if asked != nil && (known || slices.ContainsFunc(asked.calls, func(c call) bool { return c.waits() })) {
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
	if g := p.last; g != nil && g.asks() == nil && g.members[0].speaks() && len(g.members) <= maxObserved {
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
func (p *pairer) asking(e session.Entry, wishes []session.ToolCall, within bool) error {
	t := &turn{label: messageLabel(e), said: e.Message}
	for _, wish := range wishes {
		t.calls = append(t.calls, call{id: wish.ID, wish: wish, label: t.label, within: within})
	}
	if err := p.askEarlier(t); err != nil {
		return err
	}
	var before []*group
	if p.last.steps() {
		before = append(slices.Clone(p.held), p.last)
	}
	joins := len(before)
	for i, g := range before {
		if g.give(t) {
			joins = min(joins, i)
		}
	}
	p.begin(e, spoken, t)
	p.join(before[joins:])
	return nil
}

// askEarlier gives a turn the names of results that were recorded before it, and
// were folded since.
func (p *pairer) askEarlier(t *turn) error {
	if p.gap == 0 || p.earlier == nil || t.calls[0].within {
		return nil
	}
	groups, err := p.earlier(p.gap)
	if err != nil {
		return err
	}
	for _, g := range groups {
		for _, done := range g.turns[0].calls {
			if c := t.waiting(done.id); c != nil {
				c.folded = g.stepAt(done.result).ID()
			}
		}
	}
	return nil
}

// stepAt returns the step at a position of the group.
func (g *group) stepAt(position uint64) *step.Step {
	at := slices.IndexFunc(g.members, func(m member) bool { return m.entry.Position == position })
	return g.members[at].entry.Step
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
