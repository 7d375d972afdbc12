package assemble

import (
	"context"
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/assemble/layout"
	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// draft is a prompt that may yet be refused.
type draft struct {
	b *render.Builder
	// folds stand in it; made are those of them that are not stored yet, and
	// batch says why.
	folds, made []history.Fold
	batch       *Batch
	// mark is where the preset's boundary stands, moved that it has to be
	// stored.
	mark  history.Mark
	moved bool
	// renewal is that of a window that begins anew; nil for none.
	renewal *session.Renewal
	// saved is what it has less than with nothing folded.
	saved int
	// asked is the prompt as it is predicted, from last; predicted is what it
	// will be counted as.
	asked     tokens.Prompt
	last      tokens.Anchor
	predicted tokens.Prediction
}

// Drafts of one prompt. A second one leaves the reserve free, a third makes up for sizes
// that did not add up. Only where none fits yet are there more: what stands around the
// history takes more beside one that ends otherwise, and a provider may count less than is
// counted here, so that one step back is not enough.
const maxDrafts, maxMisfits = 3, 8

// fit makes a draft within the budget. Before a prompt is refused it is counted
// again with less faith in what usage reports said: a session whose prompts are
// all refused could never hear better.
func (t *task) fit(ctx context.Context, s *source, fixed fixed) (*draft, error) {
	d, err := t.fitAs(ctx, s, fixed)
	for errors.Is(err, ErrOverflow) && t.doubts(&fixed) {
		d, err = t.fitAs(ctx, s, fixed)
	}
	return d, err
}

// fitAs makes a draft within the budget. The reserve is kept free where that is
// possible.
func (t *task) fitAs(ctx context.Context, s *source, fixed fixed) (*draft, error) {
	var fits *draft
	limit := fixed.hard
	for n := 1; ; n++ {
		d, err := t.draft(ctx, s, fixed, limit)
		if fits != nil && errors.Is(err, ErrOverflow) {
			return fits, nil
		}
		if err != nil {
			return nil, err
		}
		over := d.predicted.Tokens + d.predicted.Reserve - t.r.MaxTokens
		most := t.r.MaxTokens
		if d.renewal != nil { // its pressure is under 1
			over, most = over+1, most-1
		}
		if over <= 0 {
			return d, nil
		}
		if fits == nil && d.predicted.Tokens <= most {
			fits = d
			s.firm = true
		}
		if n >= maxDrafts && fits != nil {
			return fits, nil
		}
		if n >= maxMisfits {
			// A renewed window that misses by little has more to give than its history.
			t.evicts = t.evicts || d.renewal != nil
			return nil, t.overflow(s, fixed, &history.OverflowError{Tokens: d.b.Parts[settings.History]})
		}
		less := 1
		if fits == nil { // the history kept to its limit, and still it was too much
			less = max(over*(n+1)/2, 1)
		}
		limit = min(fixed.soft, limit-less, d.b.Total.Tokens-max(over, 1)-t.joining(s))
	}
}

// draft makes a prompt whose history takes what is left of limit tokens, as
// they are counted here.
func (t *task) draft(ctx context.Context, s *source, fixed fixed, limit int) (*draft, error) {
	d := &draft{last: fixed.anchor}
	items, err := t.history(ctx, s, d, max(limit-fixed.tokens()+t.joining(s), 1))
	if t.err != nil {
		return nil, t.err
	}
	if overflow, ok := errors.AsType[*history.OverflowError](err); ok {
		return nil, t.overflow(s, fixed, overflow)
	}
	if err != nil {
		return nil, err
	}
	d.b = render.NewBuilder(t.a.counter, t.r.job(), t.tools.Tools)
	if err := d.b.Render(ctx, &t.frame, items, t.a.known.trail(t.r.Scope, t.r.SessionID)); err != nil {
		return nil, err
	}
	t.predict(d)
	return d, nil
}

// joining is what it may save that the newest message of the user and the runtime
// sections are one message.
func (t *task) joining(s *source) int {
	if t.query(s) == nil {
		return 0
	}
	return t.options.MessageTokens
}

// query is the newest message of the user, if the log ends with it and the prompt's last
// message begins with it.
func (t *task) query(s *source) *session.Message {
	if len(s.groups) == 0 || !t.frame.TakesQuery() || render.Merges(t.r.Format) {
		return nil
	}
	members := s.groups[len(s.groups)-1].Members
	last := &members[len(members)-1]
	if it := (pairing.Item{Message: deref(last.Entry.Message)}); last.Use == pairing.Spoken && it.Asks() {
		return last.Entry.Message
	}
	return nil
}

func deref(m *session.Message) session.Message {
	if m == nil {
		return session.Message{}
	}
	return *m
}

// joined is what that does save, exactly.
func (t *task) joined(s *source) int {
	query := t.query(s)
	if query == nil {
		return 0
	}
	size := func(messages []layout.Message) (n int) {
		for i := range messages {
			c, err := render.CountMessage(t.a.counter, t.r.Model, render.Counted(t.r.Format.Renamed(messages[i].Message)))
			if err != nil {
				return 0
			}
			n += c.Tokens
		}
		return n
	}
	alone := []layout.Message{{Message: *query}}
	return size(alone) + size(t.frame.Last(nil, false)) - size(t.frame.Last(query, false))
}

// history returns the messages of the history in at most budget tokens.
func (t *task) history(ctx context.Context, s *source, d *draft, budget int) ([]pairing.Item, error) {
	if t.policy == session.PolicyPreset {
		return t.presetHistory(ctx, s, d, budget)
	}
	if t.policy == session.PolicyLedger {
		return t.ledgerHistory(ctx, s, d, budget)
	}
	v, s, err := t.fitted(s, t.given(ctx, s, budget))
	if err != nil {
		return nil, fmt.Errorf("assemble: %w", err)
	}
	d.take(v)
	return s.items(v), nil
}

// given is what a ledger is asked to make fit a budget.
func (t *task) given(ctx context.Context, s *source, budget int) history.History {
	h := history.History{
		Entries: s.entries, Folds: s.folds, Budget: budget,
		Since: s.state.Since, ExpectedTurns: t.turns, Originals: t.moment.Originals(ctx),
	}
	if t.policy == session.PolicyLedger {
		h.Batch, h.Through = s.state.Batch, s.state.Through
	}
	return h
}

// take notes what a ledger did.
func (d *draft) take(v history.View) {
	d.saved = v.Original - v.Tokens
	for i := range v.Items {
		if f := v.Items[i].Fold; f != nil {
			d.folds = append(d.folds, *f)
		}
	}
	d.made, d.batch = v.Made, batchOf(v)
}

// items returns the messages of a view.
func (s *source) items(v history.View) []pairing.Item {
	outputs := make(map[uint64]string, len(v.Items))
	for i := range v.Items {
		if e := v.Items[i].Entry; e != nil {
			outputs[e.Position] = v.Items[i].Output
		}
	}
	shown := func(position uint64) string { return outputs[position] }
	groups := s.groups
	var out []pairing.Item
	given := uint64(0)
	for i := range v.Items {
		it := &v.Items[i]
		if it.Fold != nil {
			out = append(out, pairing.Item{Label: pairing.LabelFold, Message: session.Message{Role: session.User, Content: it.Fold.Text}, Tokens: it.Fold.Tokens, Origin: pairing.Origin{Batch: it.Fold.Batch, First: it.Fold.Spans[0].First}})
			continue
		}
		if it.Entry.Group == given {
			continue
		}
		given = it.Entry.Group
		for groups[0].First() != given {
			groups = groups[1:]
		}
		out = append(out, groups[0].Items(shown)...)
	}
	return out
}

// batchOf is the folded part, or nil.
func batchOf(v history.View) *Batch {
	if len(v.Made) == 0 {
		return nil
	}
	b := &Batch{Number: v.Made[0].Batch, Reason: v.Decision.Reason, BreakEven: finite(v.Decision.BreakEven)}
	known := make(map[string]bool)
	for i := range v.Made {
		b.After += v.Made[i].Tokens
		for _, ref := range v.Made[i].Refs {
			if !known[ref] {
				known[ref] = true
				b.Refs = append(b.Refs, ref)
			}
		}
	}
	b.Before = v.Decision.Tokens - v.Tokens + b.After
	return b
}
