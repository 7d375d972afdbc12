package fold

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/history/decay"
	"github.com/loom-bridge/loom-bridge/context/instruct"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/window"
)

// pressed is a conversation as the levels of pressure see it.
type pressed struct {
	*faded
	units []window.Unit
	// beside is the size of the prompt without the history, as far as a draft knows.
	beside, budget int
}

// history is the conversation as the levels of pressure show it: at most one level
// more than before, in each turn.
func (p *pressed) history(s *Material, d *Draft) ([]pairing.Item, error) {
	c := p.c
	p.units = p.windowUnits()
	mark := s.State.Marks[c.Name]
	state, err := window.Decode(mark.Window)
	if err != nil {
		return nil, fmt.Errorf("assemble: %w", err)
	}
	before, size, err := p.show(state)
	if err != nil {
		return nil, err
	}
	d.Saved = p.whole - size
	level := p.due(&state, size)
	if level == window.Renewal {
		return p.renewed(d, state, mark, size)
	}
	if level == window.None {
		return before, fits(p.budget, size, before)
	}
	after := state.Press(level, p.units, p.goal(c.ask.Goal))
	after.Turn, after.Overflow = c.ask.Turn, ""
	items, shorter, err := p.show(after)
	if err != nil {
		return nil, err
	}
	if shorter >= size && level != window.Reactive || !p.pays(level, size, shorter, before, items) {
		return before, fits(p.budget, size, before)
	}
	d.Saved = p.whole - shorter
	d.Mark, d.Moved = mark, true
	d.Mark.Window = after.Encode()
	if len(d.Mark.Window) > window.MaxStateBytes {
		return before, fits(p.budget, size, before)
	}
	d.Batch = &Batch{Reason: history.ByBudget, Level: level, Refs: p.refs(&state, &after), Before: size, After: shorter}
	return items, fits(p.budget, shorter, items)
}

// due is the level that the prompt asks for: none where this turn had one.
func (p *pressed) due(state *window.State, size int) window.Level {
	turn := p.c.ask.Turn
	switch {
	case state.Overflow == turn:
		return window.Reactive
	case state.Turn == turn && state.Level == window.Renewal && p.pressure(size) >= 1 && !p.c.ask.Window.Forced:
		return window.Reactive // the renewal did not know what else stands in this prompt
	case state.Turn == turn:
		return window.None
	case p.c.ask.Window.Forced || p.c.ask.Window.Evicting || window.Renews(p.pressure(size)):
		return window.Renewal
	}
	return window.At(p.pressure(size))
}

// pressure is the share of the window that the prompt takes with a history of a size.
func (p *pressed) pressure(size int) float64 {
	return float64(p.beside+size) / float64(p.c.ask.MaxTokens)
}

// pays tells whether a level is due by price: unless the preset is taken literally, or the
// prompt would not fit, it must save more on the coming turns than the rewrite costs.
func (p *pressed) pays(level window.Level, size, shorter int, before, after []pairing.Item) bool {
	if p.c.Literal || level == window.Reactive || size > p.budget {
		return true
	}
	same := 0
	for same < len(before) && same < len(after) && sameItem(&before[same], &after[same]) {
		same++
	}
	prices := p.c.Prices
	opts := history.Options{Prices: prices}.WithDefaults()
	turns := p.c.Turns
	if turns == 0 {
		for i := range p.faded.units {
			if p.faded.units[i].Asked {
				turns++
			}
		}
	}
	cost := prices.Rewrite() * float64(sizeOf(after[same:])+opts.BatchTokens)
	gain := prices.CachedInput * float64(size-shorter) * float64(turns)
	return gain > cost
}

func sameItem(a, b *pairing.Item) bool {
	return a.Label == b.Label && a.Message.Content == b.Message.Content && string(a.Message.BlocksJSON) == string(b.Message.BlocksJSON)
}

// fits returns an error that says what takes most of a history that does not fit.
func fits(budget, size int, items []pairing.Item) error {
	if size <= budget {
		return nil
	}
	e := &history.OverflowError{Tokens: size, Budget: budget, Fixed: size}
	for i := range items {
		if items[i].Tokens > e.LargestTokens {
			e.Largest, e.LargestTokens = items[i].Label, items[i].Tokens
		}
	}
	return e
}

// windowUnits are the groups as the levels see them.
func (p *pressed) windowUnits() []window.Unit {
	units := make([]window.Unit, len(p.groups))
	for i, g := range p.groups {
		u := &p.faded.units[i]
		units[i] = window.Unit{
			Position: u.Position, Messages: u.Messages, System: g.Instructs(), Said: u.Said,
			Kept: u.Kept || g.Awaited || slices.ContainsFunc(u.Said, func(s decay.Said) bool { return s.Failed }),
		}
		whole := p.outputs(g)
		for _, d := range p.done(g, whole) {
			if d.call == nil || d.result == 0 {
				continue
			}
			gave := whole(d.result)
			if d.inBlocks() {
				gave = d.act.Inline
			}
			units[i].Results = append(units[i].Results, window.Result{ID: d.call.ID, Name: calledAs(&d.act), Content: gave, Position: d.result})
		}
	}
	return units
}

// show are the messages of a state, and what they take.
func (p *pressed) show(state window.State) (items []pairing.Item, tokens int, err error) {
	collapsed := false
	items = append(items, handoff(&state)...)
	for i, g := range p.groups {
		position := p.units[i].Position
		switch {
		case state.Gone.Has(position):
			continue
		case state.Collapsed.Has(position):
			if !collapsed {
				items = append(items, collapsedItem(&state, p.units))
			}
			collapsed = true
			continue
		}
		own, err := p.pressedItems(g, &state, state.Limit(position))
		if err != nil {
			return nil, 0, err
		}
		items = append(items, own...)
	}
	if items, err = p.c.Items(items); err != nil {
		return nil, 0, err
	}
	return items, sizeOf(items), p.c.Err
}

// collapsedItem is the message that stands for the middle. It has words of everybody who spoke
// there, results of tools among them.
func collapsedItem(state *window.State, units []window.Unit) pairing.Item {
	role := instruct.Of(instruct.Collapsed).RoleOf(instruct.Everybody)
	return pairing.Item{Label: pairing.LabelSummary, Message: session.Message{Role: role, Content: state.CollapsedText(units)}}
}

// pressedItems are the messages of a group: lines for results that are marked, and cut
// texts where there is a limit.
func (p *pressed) pressedItems(g *pairing.Group, state *window.State, limit int) ([]pairing.Item, error) {
	own := p.repaired(g)
	r := p.presetReading
	if len(state.Marked) > 0 {
		r.marker = func(d *done) (string, bool) {
			if d.call == nil {
				return "", false
			}
			m, ok := state.Marks(d.result, d.call.ID)
			return m.Line(calledAs(&d.act), refOf(&d.act)), ok
		}
	}
	items, _, err := r.forms(own)
	if err != nil || limit == 0 {
		return items, err
	}
	for i := range items {
		it := &items[i]
		if it.Message.Role == session.System {
			continue
		}
		ref := refOfLabel(it.Label)
		it.Message.Content = p.c.cutText(it.Message.Content, limit, ref)
		it.Message.BlocksJSON = content.WithTexts(it.Message.BlocksJSON, func(s string) string { return p.c.cutText(s, limit, ref) })
	}
	return items, nil
}

// cutText is a text cut at a limit, unless that takes more.
func (c *Folding) cutText(s string, limit int, ref string) string {
	short := window.Cut(s, limit, ref)
	if len(short) == len(s) || c.Text(short) >= c.Text(s) {
		return s
	}
	return short
}

// refOfLabel is the name by which what a label names can be read.
func refOfLabel(label string) string {
	if number, ok := strings.CutPrefix(label, "message "); ok {
		number, _, _ = strings.Cut(number, " ")
		if position, err := strconv.ParseUint(number, 10, 64); err == nil {
			return session.MessageID(position)
		}
	}
	name, _, _ := strings.Cut(label, " ")
	return name
}

// refs name what a state shows otherwise than the one before.
func (p *pressed) refs(before, after *window.State) []string {
	var refs []string
	for i := range p.units {
		position := p.units[i].Position
		marked := slices.ContainsFunc(after.Marked, func(m window.Marker) bool { return m.Unit == position }) !=
			slices.ContainsFunc(before.Marked, func(m window.Marker) bool { return m.Unit == position })
		if marked || before.Hidden(position) != after.Hidden(position) || before.Limit(position) != after.Limit(position) {
			refs = append(refs, p.faded.units[i].Refs...)
		}
	}
	return refs
}
