package pairing

import (
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/guard"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// MaxHeld bounds the turns of steps that a message right behind them may ask
// for: as many as one message can ask for.
const MaxHeld = session.MaxToolCalls

// maxAwaited bounds the turns of steps at the end of the log that are not folded
// because the message that asks for them may still come: more than models ask
// for at once, and few enough for agents that never record such a message.
const maxAwaited = 8

// Pairer brings calls and results together: it puts entries into groups, in
// order.
type Pairer struct {
	// Groups are those so far, in order.
	Groups []*Group
	// last is the group that the next entry may join; nil after a fold.
	last *Group
	// held are groups of steps right before last, each with a call id, so that a
	// message that follows may still ask for them.
	held []*Group
	// cut is how many groups stand before the last fold: what follows joins none of them.
	cut int
	// previous is the position of the entry before. gap is that of the first entry
	// behind a gap, while all behind it are steps that a message may still ask
	// for, else 0.
	previous, gap uint64
	// Earlier returns the groups of steps in the gap before a position that a
	// message may still ask for; nil looks for none.
	Earlier func(position uint64) ([]*Group, error)
	// Reader is what the prompt calls fs:read_file; needed with Earlier.
	Reader string
}

// Cut closes the open group: a fold stands here.
func (p *Pairer) Cut() { p.last, p.held, p.cut = nil, nil, len(p.Groups) }

// Done returns the groups. The last one is open if its calls wait, and the last
// steps are awaited if the message that asks for them may still come.
func (p *Pairer) Done() []*Group {
	if p.last != nil {
		p.last.Open = slices.ContainsFunc(p.last.Turns, (*Turn).waits)
	}
	run := p.Asked()
	for i, g := range slices.Backward(run) {
		if len(run)-i > maxAwaited || g.Turns[0].turnID != p.last.Turns[0].turnID {
			break
		}
		g.Awaited = true
	}
	return p.Groups
}

// Asked returns the groups of steps right before that a message may ask for.
func (p *Pairer) Asked() []*Group {
	if !p.last.Steps() || p.last.Turns[0].Calls[0].ID == "" {
		return nil
	}
	return append(slices.Clone(p.held), p.last)
}

// begin opens a group with one turn.
func (p *Pairer) begin(e session.Entry, u Use, t *Turn) {
	p.held = nil
	p.next(e, u, t)
}

func (p *Pairer) next(e session.Entry, u Use, t *Turn) {
	p.last = &Group{Turns: []*Turn{t}}
	p.last.add(e, u)
	p.Groups = append(p.Groups, p.last)
}

// Add puts the next entry of the log into a group.
func (p *Pairer) Add(e session.Entry) error {
	if e.Position != p.previous+1 {
		p.gap = e.Position
	}
	p.previous = e.Position
	if e.Step != nil {
		p.step(e)
		if len(p.Asked()) == 0 {
			p.gap = 0
		}
		return nil
	}
	defer func() { p.gap = 0 }()
	if e.Message == nil {
		return fmt.Errorf("entry %d holds neither a message nor a step", e.Position)
	}
	e.Message = sound(e.Message)
	if e.Message.Role == session.User {
		// What is nothing but a goal block may be the user's own words, and stays.
		if short := inject.StripMessage(e.Message); short != nil {
			e.Message = short
		}
	}
	return p.message(e)
}

func (p *Pairer) message(e session.Entry) error {
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
		wishes, unnamed := callsWithin(m)
		if unnamed {
			e.Message = identified(m, e.Position)
			wishes, _ = callsWithin(e.Message)
		}
		if m = e.Message; len(wishes) > 0 {
			return p.asking(e, wishes, true)
		}
		if t := (&Turn{Label: MessageLabel(e), Said: m}); !p.joins(e, t) {
			p.begin(e, Spoken, t)
		}
	}
	return nil
}

// step is the result of a call that waits for it, or its own call.
func (p *Pairer) step(e session.Entry) {
	s := e.Step
	_, c := p.late(s.CallID, true)
	if s.CallID == "" {
		c = p.last.Asks().unnamed(CalledName(s), true)
	}
	if c != nil {
		c.Result, c.label = e.Position, stepLabel(s)
		p.last.add(e, answer)
		return
	}
	if p.last.Steps() && s.TurnID != "" && p.last.Turns[0].turnID == s.TurnID && p.last.Turns[0].takes(s.Thought) {
		p.last.Turns[0].Calls = append(p.last.Turns[0].Calls, callOf(e))
		p.last.Turns[0].thoughts.add(s.Thought)
		p.last.add(e, Alone)
		return
	}
	if p.last.Steps() && p.last.Turns[0].Calls[0].ID != "" {
		p.held = append(p.held, p.last)
		p.held = p.held[max(len(p.held)-MaxHeld, 0):]
	} else {
		p.held = nil
	}
	own := callOf(e)
	t := &Turn{Label: own.label, turnID: s.TurnID, Calls: []Call{own}}
	t.thoughts.add(s.Thought)
	p.next(e, Alone, t)
}

// toolMessage puts a result that the caller recorded where it belongs. A second
// result of a call is not shown, unless it is pinned. One that nothing waits for becomes text, because
// a provider takes results nowhere else.
func (p *Pairer) toolMessage(e session.Entry) {
	m, asked := e.Message, p.last.Asks()
	_, c := p.late(m.ToolCallID, false)
	if m.ToolCallID == "" {
		c = asked.unnamed(m.Name, false)
	}
	if c != nil {
		blocks := m.BlocksJSON
		if forges(content.Parse(blocks)) {
			blocks = content.WithTexts(blocks, guard.Output)
		}
		c.Result, c.Blocks, c.extra, c.label = e.Position, blocks, m.ExtraJSON, MessageLabel(e)
		p.last.add(e, answer)
		return
	}
	known := p.known(m.ToolCallID)
	if known && !m.Pinned {
		p.last.add(e, Again)
		return
	}
	late := &Turn{Label: MessageLabel(e), Output: e.Position, Said: &session.Message{
		Role: session.User, Content: fmt.Sprintf("Result of the call %s:\n", m.ToolCallID),
	}}
	if asked != nil && (known || slices.ContainsFunc(asked.Calls, func(c Call) bool { return c.Waits() })) {
		// The turn goes on: other results may follow.
		p.last.Turns = append(p.last.Turns, late)
		p.last.add(e, Stray)
		return
	}
	p.begin(e, Stray, late)
}

// known reports whether a call that may still get results, or one of the steps
// right before, has an id.
func (p *Pairer) known(id string) bool {
	if t := p.last.Asks(); t != nil {
		return t.has(id)
	}
	if !p.last.Steps() {
		return false
	}
	has := func(g *Group) bool { return g.Turns[0].has(id) }
	return has(p.last) || slices.ContainsFunc(p.held, has)
}

// observation belongs to the words right before it.
func (p *Pairer) observation(e session.Entry) {
	m := *e.Message
	m.BlocksJSON = content.WithTexts(m.BlocksJSON, guard.Text)
	t := &Turn{Label: MessageLabel(e), Said: &m}
	if len(m.BlocksJSON) == 0 {
		m.Content, t.Output = "", e.Position
	}
	if g := p.last; g != nil && g.Asks() == nil && g.Members[0].Speaks() && len(g.Members) <= maxObserved {
		g.Turns = append(g.Turns, t)
		g.add(e, Observed)
		return
	}
	p.begin(e, Observed, t)
}

// Speaks reports whether a member is what the model said.
func (m Member) Speaks() bool {
	return m.Use == Spoken && m.Entry.Message.Role == session.Assistant
}

// asking opens a group with a message that asks for calls. Steps right before
// it that it asks for become its results, and whatever stands between goes with
// them.
func (p *Pairer) asking(e session.Entry, wishes []session.ToolCall, within bool) error {
	t := &Turn{Label: MessageLabel(e), Said: e.Message}
	for i, wish := range wishes {
		c := Call{ID: wish.ID, Wish: wish, label: t.Label, within: within}
		if wish.ID == "" {
			c.Wish.ID = madeID(e.Position, i)
		}
		t.Calls = append(t.Calls, c)
	}
	if p.joins(e, t) {
		return nil
	}
	if err := p.askEarlier(t); err != nil {
		return err
	}
	var before []*Group
	if p.last.Steps() {
		before = append(slices.Clone(p.held), p.last)
	}
	joins := len(before)
	for i, g := range before {
		if g.give(t) {
			joins = min(joins, i)
		}
	}
	p.begin(e, Spoken, t)
	p.join(before[joins:])
	return nil
}

// askEarlier gives a turn the names of results that were recorded before it, and
// were folded since.
func (p *Pairer) askEarlier(t *Turn) error {
	if p.gap == 0 || p.Earlier == nil || t.Calls[0].within {
		return nil
	}
	groups, err := p.Earlier(p.gap)
	if err != nil {
		return err
	}
	for _, g := range groups {
		for _, done := range g.Turns[0].Calls {
			if c := t.waiting(done.ID); c != nil {
				c.folded = p.Reader + " " + g.stepAt(done.Result).ID()
			}
		}
	}
	return nil
}

// stepAt returns the step at a position of the group.
func (g *Group) stepAt(position uint64) *step.Step {
	at := slices.IndexFunc(g.Members, func(m Member) bool { return m.Entry.Position == position })
	return g.Members[at].Entry.Step
}

// give hands the results that a turn asks for over to it.
func (g *Group) give(t *Turn) (given bool) {
	own := g.Turns[0]
	own.Calls = slices.DeleteFunc(own.Calls, func(done Call) bool {
		c := t.waiting(done.ID)
		if c == nil {
			return false
		}
		c.Result, c.label, given = done.Result, done.label, true
		for i := range g.Members {
			if g.Members[i].Entry.Position == done.Result {
				g.Members[i].Use = answer
			}
		}
		return true
	})
	return given
}

// join puts groups right before the last one into it.
func (p *Pairer) join(before []*Group) {
	if len(before) == 0 {
		return
	}
	all := &Group{}
	for _, g := range append(slices.Clone(before), p.last) {
		all.Members = append(all.Members, g.Members...)
		for _, t := range g.Turns {
			if t.Said != nil || len(t.Calls) > 0 {
				t.relabel()
				all.Turns = append(all.Turns, t)
			}
		}
	}
	p.Groups = append(p.Groups[:len(p.Groups)-1-len(before)], all)
	p.last = all
}

// relabel names a turn of steps for the first that is left.
func (t *Turn) relabel() {
	if t.Said == nil {
		t.Label = t.Calls[0].label
	}
}
