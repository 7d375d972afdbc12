package assemble

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/history/decay"
	"github.com/loom-bridge/loom-bridge/context/instruct"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/window"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// pressed is a conversation as the levels of pressure see it.
type pressed struct {
	*faded
	units []window.Unit
	// tokens is what stands beside the history, as far as a draft knows.
	beside, budget int
}

// pressedHistory is the conversation as the levels of pressure show it: at most one level
// more than before, in each turn.
func (t *task) pressedHistory(s *source, d *draft, budget int) ([]pairing.Item, error) {
	p := &pressed{faded: s.faded, budget: budget, beside: max(t.r.MaxTokens-budget, 0)}
	p.units = p.windowUnits()
	mark := s.state.Marks[t.name]
	state, err := window.Decode(mark.Window)
	if err != nil {
		return nil, fmt.Errorf("assemble: %w", err)
	}
	before, size, err := p.show(state)
	if err != nil {
		return nil, err
	}
	d.saved = p.whole - size
	level := p.due(&state, size)
	if level == window.Renewal {
		return p.renewed(d, state, mark, size)
	}
	if level == window.None {
		return before, p.fits(size, before)
	}
	after := state.Press(level, p.units, p.goal(t.r.Goal))
	after.Turn, after.Overflow = t.turn(), ""
	items, shorter, err := p.show(after)
	if err != nil {
		return nil, err
	}
	if shorter >= size && level != window.Reactive || !p.pays(level, size, shorter, before, items) {
		return before, p.fits(size, before)
	}
	d.saved = p.whole - shorter
	d.mark, d.moved = mark, true
	d.mark.Window = after.Encode()
	if len(d.mark.Window) > window.MaxStateBytes {
		return before, p.fits(size, before)
	}
	d.batch = &Batch{Reason: history.ByBudget, Level: level, Refs: p.refs(&state, &after), Before: size, After: shorter}
	return items, p.fits(shorter, items)
}

// turn names the turn of the prompt: as the caller does, or by the end of the log.
func (t *task) turn() string { return turnOf(t.r.TurnID, t.moment.End.Through) }

func turnOf(id string, through uint64) string {
	if id != "" {
		return "id:" + id
	}
	return "at:" + strconv.FormatUint(through, 10)
}

// due is the level that the prompt asks for: none where this turn had one.
func (p *pressed) due(state *window.State, size int) window.Level {
	turn := p.t.turn()
	switch {
	case state.Overflow == turn:
		return window.Reactive
	case state.Turn == turn && state.Level == window.Renewal && p.pressure(size) >= 1 && !p.t.forced:
		return window.Reactive // the renewal did not know what else stands in this prompt
	case state.Turn == turn:
		return window.None
	case p.t.forced || p.t.evicting || window.Renews(p.pressure(size)):
		return window.Renewal
	}
	return window.At(p.pressure(size))
}

// pressure is the share of the window that the prompt takes with a history of a size.
func (p *pressed) pressure(size int) float64 {
	return float64(p.beside+size) / float64(p.t.r.MaxTokens)
}

// pays tells whether a level is due by price: unless the preset is taken literally, or the
// prompt would not fit, it has to save more on the turns to come than writing again costs.
func (p *pressed) pays(level window.Level, size, shorter int, before, after []pairing.Item) bool {
	if p.t.literal || level == window.Reactive || size > p.budget {
		return true
	}
	same := 0
	for same < len(before) && same < len(after) && sameItem(&before[same], &after[same]) {
		same++
	}
	prices := p.t.prices
	opts := history.Options{Prices: prices}.WithDefaults()
	turns := p.t.turns
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
func (p *pressed) fits(size int, items []pairing.Item) error { return p.fitsIn(p.budget, size, items) }

func (p *pressed) fitsIn(budget, size int, items []pairing.Item) error {
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
	items = append(items, p.handoff(&state)...)
	for i, g := range p.groups {
		position := p.units[i].Position
		switch {
		case state.Gone.Has(position):
			continue
		case state.Collapsed.Has(position):
			if !collapsed {
				items = append(items, p.collapsed(&state))
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
	if items, err = p.counted(items); err != nil {
		return nil, 0, err
	}
	return items, sizeOf(items), p.t.err
}

// collapsed is the message that stands for the middle. It has words of everybody who spoke
// there, results of tools among them.
func (p *pressed) collapsed(state *window.State) pairing.Item {
	role := instruct.Of(instruct.Collapsed).RoleOf(instruct.Everybody)
	return pairing.Item{Label: pairing.LabelSummary, Message: session.Message{Role: role, Content: state.CollapsedText(p.units)}}
}

// pressedItems are the messages of a group: lines for results that are marked, and cut
// texts where there is a limit.
func (p *pressed) pressedItems(g *pairing.Group, state *window.State, limit int) ([]pairing.Item, error) {
	own := p.repaired(g)
	r := p.reading
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
		it.Message.Content = p.cut(it.Message.Content, limit, ref)
		it.Message.BlocksJSON = content.WithTexts(it.Message.BlocksJSON, func(s string) string { return p.cut(s, limit, ref) })
	}
	return items, nil
}

// cut is a text cut at a limit, unless that takes more.
func (p *pressed) cut(s string, limit int, ref string) string {
	short := window.Cut(s, limit, ref)
	if len(short) == len(s) || p.t.count(short) >= p.t.count(s) {
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

// ReportOverflow notes that a provider refused the last prompt of a turn as too long. With
// a preset of levels the turn's next prompt is made by window.Reactive; under another
// policy the history is folded at once as far as it may be. A second report in one turn is
// ErrRefusedAgain and an *OverflowError, and changes nothing.
func (a *Assembler) ReportOverflow(ctx context.Context, scope kv.Scope, sessionID, turnID string) (window.Level, error) {
	for range maxRaces {
		level, err := a.reportOverflow(ctx, scope, sessionID, turnID)
		if !errors.Is(err, session.ErrFoldsChanged) {
			return level, err
		}
	}
	return window.None, session.ErrFoldsChanged
}

func (a *Assembler) reportOverflow(ctx context.Context, scope kv.Scope, sessionID, turnID string) (window.Level, error) {
	t, err := a.newTask(ctx, Request{Scope: scope, SessionID: sessionID, TurnID: turnID}, true)
	if err != nil {
		return window.None, err
	}
	defer t.moment.Close()
	mark := t.moment.Folds.Marks[t.name]
	state, err := window.Decode(mark.Window)
	if err != nil {
		return window.None, fmt.Errorf("assemble: %w", err)
	}
	turn := t.turn()
	if state.Overflow == turn || state.Turn == turn && state.Level == window.Reactive {
		account := a.known.last(scope, sessionOf(sessionID)).account
		return window.None, fmt.Errorf("%w: %w", ErrRefusedAgain, &account)
	}
	level := window.Reactive
	state.Overflow = turn
	if t.preset.Style != history.StyleLevels {
		// There is nothing to make shorter by levels: the note alone is kept.
		level, state.Overflow, state.Turn, state.Level = window.None, "", turn, window.Reactive
	}
	mark.Window = state.Encode()
	if err := t.a.log.MoveMark(ctx, scope, sessionID, t.moment.Folds.Version, t.name, mark); err != nil {
		return window.None, fmt.Errorf("assemble: note the overflow: %w", err)
	}
	if level == window.None {
		_, err = a.Compact(ctx, CompactRequest{Scope: scope, SessionID: sessionID})
	}
	return level, err
}

// accountOf says what takes most of a prompt.
func accountOf(r *Receipt, b *render.Builder, all, budget int) OverflowError {
	e := OverflowError{TotalTokens: all, MaxTokens: budget}
	for i := range r.Sections {
		s := &r.Sections[i]
		if s.Name == settings.History {
			continue
		}
		if s.Tokens > e.PartTokens {
			e.Part, e.PartTokens = s.Name, s.Tokens
		}
		if s.Tokens > 0 {
			e.Detail += fmt.Sprintf("%s %d, ", s.Name, s.Tokens)
		}
	}
	for i := max(b.Head, 1); i < len(b.Places); i++ {
		if n := b.Places[i].Tokens - b.Places[i-1].Tokens; n > e.PartTokens {
			e.Part, e.PartTokens = fmt.Sprintf("message %d of the prompt", i), n
		}
	}
	e.Detail += fmt.Sprintf("history %d", b.Parts[settings.History])
	return e
}
