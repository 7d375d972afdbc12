package fold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/history/decay"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/context/window"
)

// The levels behind the ledger: where everything is folded that may be and the prompt still
// does not fit, folds and steps are left out and results cut, once a turn, and then the
// window begins anew. Pins, and what the user said last, stay whole; older words leave where
// nothing else makes room for the least of the newest results.

// levels are the levels of pressure behind the ledger.
type levels struct{ fitting }

// maxWeighedChars of a unit are compared with the goal.
const maxWeighedChars = 4000

// history returns the messages of a ledger's history in at most budget tokens. Where the
// newest results lose more than the least that is kept of them, what the user said before
// leaves instead, if that helps.
func (c levels) history(ctx context.Context, s *Material, d *Draft, budget int) ([]pairing.Item, error) {
	items, err := c.pressed(ctx, s, d, budget)
	over := errors.As(err, new(*history.OverflowError))
	if err != nil && (!over || !c.ask.Window.TalkLeaves) {
		return items, err
	}
	misses := c.Misses
	for _, c.least = range []int{leastKept, leastShown} {
		if err == nil && d.share >= c.least {
			break
		}
		kept := &Draft{}
		if shown, failed := c.pressed(ctx, s, kept, budget); failed == nil {
			*d = *kept
			return shown, nil
		} else if !errors.As(failed, new(*history.OverflowError)) {
			return nil, failed
		}
		c.Misses = misses
	}
	return items, err
}

// pressed is the history with as much pressure as it takes.
func (c levels) pressed(ctx context.Context, s *Material, d *Draft, budget int) ([]pairing.Item, error) {
	forced := (c.ask.Window.Forced || c.ask.Window.Evicting) && !s.pressedIn(c.ask.Turn)
	items, err := c.behind(ctx, s, d, s.window, budget)
	over := errors.As(err, new(*history.OverflowError))
	had := s.pressedIn(c.ask.Turn)
	if !forced && (!over || had && s.window.Level == window.Renewal && c.least == 0) {
		return items, err
	}
	p := &pressed{faded: &faded{shapes: shapes{presetReading: presetReading{calls: c.stage.calls, c: c.Folding}}, groups: s.Groups}, budget: budget, beside: max(c.ask.MaxTokens-budget, 0)}
	units := s.units()
	if c.least > 0 {
		s.keepNewest(units)
	}
	size := p.budget + 1
	if overflow, ok := errors.AsType[*history.OverflowError](err); ok {
		size = overflow.Tokens
	}
	if !forced && !had {
		state := s.window.Press(window.Reactive, units, c.ask.Goal)
		state.Turn = c.ask.Turn
		if items, err = c.behind(ctx, s, d, state, budget); !errors.As(err, new(*history.OverflowError)) {
			c.press(s, d, state, units, nil)
			return items, err
		}
	}
	snapshot := p.snapshot(&s.window, size)
	if forced && d.Made == nil && err == nil {
		snapshot.Figures.Pressure = float64(max(c.ask.MaxTokens-budget, 0)+sizeOf(items)) / float64(c.ask.MaxTokens)
	}
	state := s.window.Press(window.Renewal, units, snapshot.Goal)
	for shorter := false; ; shorter = true {
		state.Turn, state.Level, state.Sprint, state.Memory = c.ask.Turn, window.Renewal, snapshot.Sprint, c.ask.Window.Memory
		state.Handoff = snapshot.Handoff() + leftOut(units, &state, c.reader)
		if items, err = c.behind(ctx, s, d, state, budget-1); !errors.As(err, new(*history.OverflowError)) {
			break
		}
		if !shorter {
			state = state.Press(window.Reactive, units, snapshot.Goal)
		} else if !snapshot.Shorten() {
			break
		}
	}
	if err != nil && (c.ask.Window.TalkLeaves || c.least > 0) {
		leaving := s.withoutTalk(units)
		if c.least > 0 {
			s.keepNewest(leaving)
		}
		for errors.As(err, new(*history.OverflowError)) {
			before := state.Gone
			if state = state.Press(window.Reactive, leaving, snapshot.Goal); slices.Equal(state.Gone, before) {
				state = state.Bare(leaving)
			}
			if state.Level = window.Renewal; slices.Equal(state.Gone, before) {
				break
			}
			state.Handoff = snapshot.Handoff() + leftOut(units, &state, c.reader)
			items, err = c.behind(ctx, s, d, state, budget-1)
		}
	}
	c.Misses = err != nil
	if err == nil {
		c.press(s, d, state, units, &session.Renewal{Snapshot: snapshot, Before: c.ask.Window.Working, Swapped: c.ask.Window.Swapped})
	}
	return items, err
}

// pressedIn reports whether a turn had a level.
func (s *Material) pressedIn(turn string) bool { return s.window.Turn == turn }

// press records the effect of a level in a draft, in addition to its folds.
func (c levels) press(s *Material, d *Draft, state window.State, units []window.Unit, r *session.Renewal) {
	d.Mark = s.State.Marks[c.Name]
	d.Mark.Window = state.Encode()
	if r == nil {
		r = &session.Renewal{}
	}
	r.Made, r.Preset, r.Mark = d.Made, c.Name, d.Mark
	d.Renewal = r
	b := Batch{Reason: history.ByBudget}
	if d.Batch != nil {
		b = *d.Batch
	}
	if b.Level = state.Level; c.ask.Window.Forced {
		b.Reason = history.ByCaller
	}
	for i := range units {
		if u := &units[i]; s.window.Hidden(u.Position) != state.Hidden(u.Position) {
			b.Refs = append(b.Refs, s.refsAt(u.Position)...)
		}
	}
	d.Batch = &b
}

// refsAt name what stands at a position.
func (s *Material) refsAt(position uint64) []string {
	for i := range s.folds {
		if s.folds[i].Spans[0].First == position {
			return s.folds[i].Refs
		}
	}
	for _, g := range s.Groups {
		if g.First() == position {
			return refsOf(g)
		}
	}
	return nil
}

// behind is a ledger's history as a state of levels shows it.
func (c levels) behind(ctx context.Context, s *Material, d *Draft, state window.State, budget int) ([]pairing.Item, error) {
	newest := s.newest()
	shown, err := c.shownBy(s, &state)
	if err != nil {
		return nil, err
	}
	items, err := c.Items(handoff(&state))
	if err != nil {
		return nil, err
	}
	v, shown, share, err := c.fitted(shown, c.given(ctx, shown, max(budget-sizeOf(items), 1)))
	if overflow, ok := errors.AsType[*history.OverflowError](err); ok {
		own := *overflow // what the handoff takes is as much in the way
		own.Tokens, own.Fixed = own.Tokens+sizeOf(items), own.Fixed+sizeOf(items)
		err = &own
	}
	if err != nil {
		return nil, fmt.Errorf("assemble: %w", err)
	}
	if slices.ContainsFunc(s.Groups[newest:], func(g *pairing.Group) bool { return state.Gone.Has(g.First()) }) {
		share = 0
	}
	d.take(v)
	d.share = share
	return shown.items(items, v), nil
}

// shownBy is what a state of levels leaves of a source.
func (c levels) shownBy(s *Material, state *window.State) (*Material, error) {
	if len(state.Gone) == 0 && len(state.Shortened) == 0 {
		return s, nil
	}
	out := *s
	out.folds, out.Groups, out.entries = nil, nil, nil
	for i := range s.folds {
		if !state.Gone.Has(s.folds[i].Spans[0].First) {
			out.folds = append(out.folds, s.folds[i])
		}
	}
	for _, g := range s.Groups {
		at := g.First()
		if state.Gone.Has(at) {
			continue
		}
		if state.Shortened.Has(at) {
			g = cutResults(g)
		}
		out.Groups = append(out.Groups, g)
	}
	_, err := c.enterAll(&out)
	return &out, err
}

// cutResults is a group with shorter results.
func cutResults(g *pairing.Group) *pairing.Group {
	own := g.Copied()
	own.Members = slices.Clone(g.Members)
	for i := range own.Members {
		m := &own.Members[i]
		switch e := &m.Entry; {
		case e.Step != nil:
			s := *e.Step
			s.Inline = window.Cut(s.Inline, window.ReactiveChars, cmp.Or(s.OutcomePath, s.ID()))
			e.Step = &s
		case e.Message != nil && m.Use != pairing.Spoken && len(e.Message.BlocksJSON) == 0:
			said := *e.Message
			said.Content = window.Cut(said.Content, window.ReactiveChars, session.MessageID(e.Position))
			e.Message = &said
		}
	}
	return own
}

// units are folds and groups as the levels see them, in the order of the log.
func (s *Material) units() []window.Unit {
	var units []window.Unit
	next := 0
	fold := func(f *history.Fold) {
		head, _ := text.HeadChars(f.Text, maxWeighedChars)
		units = append(units, window.Unit{Position: f.Spans[0].First, Messages: 1, Said: []decay.Said{{Role: session.User.String(), Words: head}}})
	}
	places := history.Live(s.folds)
	for _, g := range s.Groups {
		for ; next < len(places) && places[next].Spans[0].First < g.First(); next++ {
			fold(&places[next])
		}
		var words strings.Builder
		for i := range g.Members {
			if e := &g.Members[i].Entry; e.Step != nil {
				words.WriteString(e.Step.Inline + "\n")
			} else {
				words.WriteString(pairing.Words(e.Message) + "\n")
			}
		}
		head, _ := text.HeadChars(words.String(), maxWeighedChars)
		units = append(units, window.Unit{
			Position: g.First(), Messages: len(g.Members), System: g.Instructs(), Kept: g.Stays() || g.Pinned() || g.Open || g.Awaited,
			Said: []decay.Said{{Words: head}},
		})
	}
	for ; next < len(places); next++ {
		fold(&places[next])
	}
	return units
}
