package assemble

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
// window begins anew. What the user said, and pins, stay whole.

// maxWeighedChars of a unit are compared with the goal.
const maxWeighedChars = 4000

// ledgerHistory returns the messages of a ledger's history in at most budget tokens.
func (t *task) ledgerHistory(ctx context.Context, s *source, d *draft, budget int) ([]pairing.Item, error) {
	forced := (t.forced || t.evicting) && !s.pressedIn(t.turn())
	items, err := t.behind(ctx, s, d, s.window, budget)
	if !forced && (!errors.As(err, new(*history.OverflowError)) || s.pressedIn(t.turn())) {
		return items, err
	}
	p := &pressed{faded: &faded{reading: reading{t: t, compactor: history.NewCompactor(t.count, t.preset)}, groups: s.groups}, budget: budget, beside: max(t.r.MaxTokens-budget, 0)}
	units := t.ledgerUnits(s)
	size := p.budget + 1
	if overflow, ok := errors.AsType[*history.OverflowError](err); ok {
		size = overflow.Tokens
	}
	if !forced {
		state := s.window.Press(window.Reactive, units, t.r.Goal, t.rules, t.scoring)
		state.Turn = t.turn()
		if items, err = t.behind(ctx, s, d, state, budget); !errors.As(err, new(*history.OverflowError)) {
			t.press(s, d, state, units, nil)
			return items, err
		}
	}
	snapshot := p.snapshot(&s.window, size)
	if forced && d.made == nil && err == nil {
		snapshot.Figures.Pressure = float64(max(t.r.MaxTokens-budget, 0)+sizeOf(items)) / float64(t.r.MaxTokens)
	}
	state := s.window.Press(window.Renewal, units, snapshot.Goal, t.rules, t.scoring)
	for range 2 {
		state.Turn, state.Level, state.Sprint, state.Handoff, state.Memory = t.turn(), window.Renewal, snapshot.Sprint, snapshot.Handoff(), 0
		if t.trimmed {
			state.Memory = t.memory + 1
		}
		if items, err = t.behind(ctx, s, d, state, budget-1); !errors.As(err, new(*history.OverflowError)) {
			break
		}
		state = state.Press(window.Reactive, units, snapshot.Goal, t.rules, t.scoring)
	}
	t.evicts = err != nil
	if err == nil {
		t.press(s, d, state, units, &session.Renewal{Snapshot: snapshot, Before: t.before, Swapped: t.swapped})
	}
	return items, err
}

// pressedIn tells whether a turn had a level.
func (s *source) pressedIn(turn string) bool { return s.window.Turn == turn }

// press notes what a level did, beside the folds of a draft.
func (t *task) press(s *source, d *draft, state window.State, units []window.Unit, r *session.Renewal) {
	d.mark = s.state.Marks[t.name]
	d.mark.Window = state.Encode()
	if r == nil {
		r = &session.Renewal{}
	}
	r.Made, r.Preset, r.Mark = d.made, t.name, d.mark
	d.renewal = r
	b := Batch{Reason: history.ByBudget}
	if d.batch != nil {
		b = *d.batch
	}
	if b.Level = state.Level; t.forced {
		b.Reason = history.ByCaller
	}
	for i := range units {
		if u := &units[i]; s.window.Hidden(u.Position) != state.Hidden(u.Position) {
			b.Refs = append(b.Refs, s.refsAt(u.Position)...)
		}
	}
	d.batch = &b
}

// refsAt name what stands at a position.
func (s *source) refsAt(position uint64) []string {
	for i := range s.folds {
		if s.folds[i].Spans[0].First == position {
			return s.folds[i].Refs
		}
	}
	for _, g := range s.groups {
		if g.First() == position {
			return refsOf(g)
		}
	}
	return nil
}

// behind is a ledger's history as a state of levels shows it.
func (t *task) behind(ctx context.Context, s *source, d *draft, state window.State, budget int) ([]pairing.Item, error) {
	shown, err := t.shownBy(s, &state)
	if err != nil {
		return nil, err
	}
	p := &pressed{faded: &faded{reading: reading{t: t}}}
	items, err := p.counted(p.handoff(&state))
	if err != nil {
		return nil, err
	}
	v, err := t.compacted(shown, t.given(ctx, shown, max(budget-sizeOf(items), 1)))
	if err != nil {
		return nil, fmt.Errorf("assemble: %w", err)
	}
	d.take(v)
	return append(items, shown.items(v)...), nil
}

// shownBy is what a state of levels leaves of a source.
func (t *task) shownBy(s *source, state *window.State) (*source, error) {
	if len(state.Gone) == 0 && len(state.Shortened) == 0 {
		return s, nil
	}
	out := *s
	out.folds, out.groups, out.entries = nil, nil, nil
	for i := range s.folds {
		if !state.Gone.Has(s.folds[i].Spans[0].First) {
			out.folds = append(out.folds, s.folds[i])
		}
	}
	for _, g := range s.groups {
		at := g.First()
		if state.Gone.Has(at) {
			continue
		}
		if state.Shortened.Has(at) {
			g = t.cutResults(g)
		}
		out.groups = append(out.groups, g)
	}
	return &out, t.enterAll(&out)
}

// cutResults is a group with shorter results.
func (t *task) cutResults(g *pairing.Group) *pairing.Group {
	own := g.Copied()
	own.Members = slices.Clone(g.Members)
	for i := range own.Members {
		m := &own.Members[i]
		switch e := &m.Entry; {
		case e.Step != nil:
			s := *e.Step
			s.Inline = window.Cut(s.Inline, t.rules.ReactiveChars, cmp.Or(s.OutcomePath, s.ID()))
			e.Step = &s
		case e.Message != nil && m.Use != pairing.Spoken && len(e.Message.BlocksJSON) == 0:
			said := *e.Message
			said.Content = window.Cut(said.Content, t.rules.ReactiveChars, session.MessageID(e.Position))
			e.Message = &said
		}
	}
	return own
}

// ledgerUnits are folds and groups as the levels see them, in the order of the log.
func (t *task) ledgerUnits(s *source) []window.Unit {
	var units []window.Unit
	next := 0
	fold := func(f *history.Fold) {
		head, _ := text.HeadChars(f.Text, maxWeighedChars)
		units = append(units, window.Unit{Position: f.Spans[0].First, Messages: 1, Said: []decay.Said{{Role: session.User.String(), Words: head}}})
	}
	places := history.Live(s.folds)
	for _, g := range s.groups {
		for ; next < len(places) && places[next].Spans[0].First < g.First(); next++ {
			fold(&places[next])
		}
		var words strings.Builder
		for i := range g.Members {
			if e := &g.Members[i].Entry; e.Step != nil {
				words.WriteString(e.Step.Inline + "\n")
			} else {
				words.WriteString(spokenText(e.Message) + "\n")
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
