package assemble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/history/decay"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/context/window"
)

// Errors of assembling.
var (
	// ErrOverflow: the prompt does not fit its budget.
	ErrOverflow = errors.New("assemble: prompt exceeds its budget")
	// ErrTooLarge: the prompt has more bytes than are taken.
	ErrTooLarge = render.ErrTooLarge
	// ErrInvalid: the request is malformed.
	ErrInvalid = errors.New("assemble: invalid request")
	// ErrPromptUnknown: usage was reported for a prompt that is not known.
	ErrPromptUnknown = errors.New("assemble: unknown prompt")
)

// ErrRefusedAgain: a provider refused two prompts of one turn. The error is an
// *OverflowError, too.
var ErrRefusedAgain = errors.New("assemble: the provider refused the shortened prompt, too")

// OverflowError says by how much a prompt is over its budget, and what takes
// most of it. It is an ErrOverflow.
type OverflowError struct {
	// Part is what takes most: "system", "tools", "goal", "pinned", "steps" for
	// what a preset makes of them, a single piece of the history such as
	// "step_014 (fs:read_file)" or "message 7 (user)", or "messages" where it is
	// many that are never folded. It is "usage" where the prompt would fit as it
	// is counted here, but not as the provider counts by its usage reports.
	// Empty where nothing is in the prompt but what every prompt takes.
	Part string
	// PartTokens is its size.
	PartTokens int
	// TotalTokens is what the whole prompt would take after all that could be
	// folded was, MaxTokens its budget.
	TotalTokens, MaxTokens int
	// Detail lists the sizes of all parts, for people.
	Detail string
}

func (e *OverflowError) Error() string {
	largest := ""
	if e.Part != "" {
		largest = fmt.Sprintf("largest is %s with %d ", e.Part, e.PartTokens)
	}
	return fmt.Sprintf("assemble: prompt of %d tokens exceeds %d: %s(%s)", e.TotalTokens, e.MaxTokens, largest, e.Detail)
}

// TooLargeError says what has more bytes than are taken, and what to do about it.
type TooLargeError = render.TooLargeError

// overflow says what is too big: of the history h does.
func (t *task) overflow(s *source, f fixed, h *history.OverflowError) error {
	e := &OverflowError{MaxTokens: t.r.MaxTokens}
	largest := func(part string, tokens int) {
		if tokens > e.PartTokens {
			e.Part, e.PartTokens = part, tokens
		}
	}
	for _, section := range f.order {
		if section != settings.History {
			largest(section, f.parts[section])
			e.Detail += fmt.Sprintf("%s %d, ", section, f.parts[section])
		}
	}
	largest("pinned", h.Pinned)
	largest(h.Largest, h.LargestTokens)
	e.Detail += fmt.Sprintf("history %d: never folded %d, pinned %d, folds %d, not foldable yet %d", h.Tokens, h.Fixed, h.Pinned, h.Folds, h.Open)
	if h.Fixed > 2*e.PartTokens {
		e.Part, e.PartTokens = "messages", h.Fixed
	}
	// The budget is in the model's own tokens.
	local := f.tokens() + h.Tokens - t.joined(s)
	e.TotalTokens = max(int(float64(local)*float64(t.r.MaxTokens)/float64(max(f.hard, 1))), t.r.MaxTokens+1)
	if local <= t.r.MaxTokens && f.hard < t.r.MaxTokens {
		e.Part, e.PartTokens = "usage", e.TotalTokens-local
		e.Detail += fmt.Sprintf(", together %d as they are counted here", local)
	}
	return e
}

// Is makes errors.Is(err, ErrOverflow) true.
func (e *OverflowError) Is(target error) bool { return target == ErrOverflow }

// foldRead folds what was read so far, but for the newest turns; false where nothing can be
// folded. A dry run stores none of it.
func (t *task) foldRead(ctx context.Context, s *source) (folded bool, err error) {
	h := t.given(ctx, s, 0)
	h.Now = true
	v, err := t.ledger.Compact(h)
	if t.err != nil {
		err = t.err
	}
	if err != nil {
		return false, fmt.Errorf("assemble: %w", err)
	}
	if len(v.Made) == 0 {
		return false, nil
	}
	v.Decision.Reason = history.ByBudget
	for i := range v.Made {
		v.Made[i].Reason = history.ByBudget
	}
	if t.r.DryRun {
		t.moment.Folds = withFolds(s.state, v.Made)
	} else if err := t.a.log.AppendFolds(ctx, t.r.Scope, t.r.SessionID, s.state.Version, v.Made); err != nil {
		return false, fmt.Errorf("assemble: store folds: %w", err)
	} else if err := t.moment.Again(ctx); err != nil {
		return false, err
	}
	t.folded = t.folded.plus(batchOf(v))
	return true, nil
}

// withFolds is the state of a session as it would be with one batch more.
func withFolds(state session.Folds, made []history.Fold) session.Folds {
	state.Live = slices.DeleteFunc(slices.Clone(state.Live), func(old history.Fold) bool {
		return slices.ContainsFunc(made, func(f history.Fold) bool { return f.Level > history.LevelLines && standsFor(f, old) })
	})
	state.Live = append(state.Live, made...)
	for i := range made {
		state.Batch = made[i].Batch
		state.Through = max(state.Through, made[i].Through)
	}
	return state
}

// standsFor tells whether a fold has the entries of an older one.
func standsFor(f, old history.Fold) bool {
	first := old.Spans[0].First
	return slices.ContainsFunc(f.Spans, func(s history.Span) bool { return s.First <= first && first <= s.Last })
}

// plus is what two batches of one call folded, the later one as other. Either
// may be nil.
func (b *Batch) plus(other *Batch) *Batch {
	switch {
	case b == nil:
		return other
	case other == nil:
		return b
	}
	sum := *other
	sum.Refs = slices.Concat(b.Refs, other.Refs)
	sum.Before, sum.After = b.Before+other.Before, b.After+other.After
	return &sum
}

// release lets go of steps that a message may still ask for.
func (s *source) release() bool {
	awaited := make(map[uint64]bool)
	for _, g := range s.groups {
		if g.Awaited {
			awaited[g.First()], g.Awaited = true, false
		}
	}
	for i := range s.entries {
		if e := &s.entries[i]; awaited[e.Group] {
			e.Open = false
		}
	}
	return len(awaited) > 0
}

// The levels behind the ledger: where everything is folded that may be and the prompt still
// does not fit, folds and steps are left out and results cut, once a turn, and then the
// window begins anew. What the user said, and pins, stay whole.

// maxWeighedChars of a unit are compared with the goal.
const maxWeighedChars = 4000

// ledgerHistory returns the messages of a ledger's history in at most budget tokens.
func (t *task) ledgerHistory(ctx context.Context, s *source, d *draft, budget int) ([]pairing.Item, error) {
	forced := (t.forced || t.evicting) && !s.pressedIn(t.turn())
	items, err := t.behind(ctx, s, d, s.window, budget)
	over := errors.As(err, new(*history.OverflowError))
	had := s.pressedIn(t.turn())
	if !forced && (!over || had && s.window.Level == window.Renewal) {
		return items, err
	}
	p := &pressed{faded: &faded{reading: reading{t: t, compactor: t.compactor()}, groups: s.groups}, budget: budget, beside: max(t.r.MaxTokens-budget, 0)}
	units := t.ledgerUnits(s)
	size := p.budget + 1
	if overflow, ok := errors.AsType[*history.OverflowError](err); ok {
		size = overflow.Tokens
	}
	if !forced && !had {
		state := s.window.Press(window.Reactive, units, t.r.Goal)
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
	state := s.window.Press(window.Renewal, units, snapshot.Goal)
	for shorter := false; ; shorter = true {
		state.Turn, state.Level, state.Sprint, state.Handoff, state.Memory = t.turn(), window.Renewal, snapshot.Sprint, snapshot.Handoff(), 0
		if t.trimmed {
			state.Memory = t.memory + 1
		}
		if items, err = t.behind(ctx, s, d, state, budget-1); !errors.As(err, new(*history.OverflowError)) {
			break
		}
		if !shorter {
			state = state.Press(window.Reactive, units, snapshot.Goal)
		} else if !snapshot.Shorten() {
			break
		}
	}
	if err != nil && t.leavesTalk {
		units = t.withoutTalk(s, units)
		for errors.As(err, new(*history.OverflowError)) {
			before := state.Gone
			state = state.Press(window.Reactive, units, snapshot.Goal)
			if state.Level = window.Renewal; slices.Equal(state.Gone, before) {
				break
			}
			state.Handoff = snapshot.Handoff() + leftOut(units, &state, t.reader())
			items, err = t.behind(ctx, s, d, state, budget-1)
		}
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
	v, shown, err := t.fitted(shown, t.given(ctx, shown, max(budget-sizeOf(items), 1)))
	if overflow, ok := errors.AsType[*history.OverflowError](err); ok {
		own := *overflow // what the handoff takes is as much in the way
		own.Tokens, own.Fixed = own.Tokens+sizeOf(items), own.Fixed+sizeOf(items)
		err = &own
	}
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
