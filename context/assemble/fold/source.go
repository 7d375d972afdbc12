package fold

import (
	"context"
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/window"
)

// Material is what a history is made of.
type Material struct {
	State session.Folds
	// more: the log goes on behind what was read.
	more bool
	// Firm: nothing is folded any more that waits for a message.
	Firm bool
	// folds stand in the history, groups are the rest and entries what the
	// policy sees of it.
	folds   []history.Fold
	Groups  []*pairing.Group
	entries []history.Entry
	// unseen is the position of the first of the newest results, once it was settled; 0 is none.
	unseen  uint64
	settled bool
	// window is what levels of pressure did behind the ledger.
	window window.State
	// presented is what a preset sees of them, once it was asked for.
	presented *presented
	// faded is what a preset of messages sees of them, once it was asked for.
	faded *faded
}

// Read reads the unfolded entries and the folds. If they exceed the limit, the entries read
// so far are folded first.
func (c *Folding) Read(ctx context.Context) (*Material, error) {
	for limit := c.moment.Room(); ; {
		s, err := c.readUpTo(ctx, c.moment.Folds, limit)
		if err != nil || !s.more {
			return s, err
		}
		folded, err := c.foldRead(ctx, s)
		if err != nil {
			return nil, err
		}
		if !folded {
			limit *= 2
		}
	}
}

// readUpTo reads about limit bytes of unfolded entries, and the folds.
func (c *Folding) readUpTo(ctx context.Context, state session.Folds, limit int) (*Material, error) {
	s := &Material{State: state}
	if c.Policy == session.PolicyLedger {
		s.folds = c.recounted(state.Live)
	}
	if c.Policy != session.PolicyLedger {
		limit = 0
	}
	var err error
	if s.Groups, s.more, err = c.moment.Groups(ctx, s.folds, limit, c.MaxBytes, c.reader); err != nil {
		return nil, err
	}
	if c.Policy == session.PolicyPreset {
		return s, c.Err
	}
	if c.Ledger() {
		if s.window, err = window.Decode(state.Marks[c.Name].Window); err != nil {
			return nil, fmt.Errorf("assemble: %w", err)
		}
	}
	all, err := c.enterAll(s)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("assemble: read history: %w", err)
	}
	c.keep(all)
	return s, c.Err
}

// recounted returns folds with their sizes for the model of this prompt.
func (c *Folding) recounted(folds []history.Fold) []history.Fold {
	own := folds
	for i := range folds {
		size, known := c.last.Size(c.Model, i, folds[i].Text)
		if !known {
			size = c.Text(folds[i].Text) + c.options.MessageTokens
		}
		if size == folds[i].Tokens {
			continue
		}
		if &own[0] == &folds[0] {
			own = slices.Clone(folds)
		}
		own[i].Tokens = size
	}
	return own
}

// weigh sets the overhead of a group's entries beyond their texts, so that the sizes add up
// to the messages' sizes.
func weigh(tally *render.Tally, ledger *history.Ledger, g *pairing.Group, entries []history.Entry) error {
	left := 0
	for _, it := range g.Items(func(uint64) string { return "" }) {
		n, err := tally.Message(it.Label, it.Message)
		if err != nil {
			return err
		}
		left += n
	}
	for i := range entries {
		left -= ledger.Size(&entries[i])
	}
	entries[0].ExtraTokens = left
	return nil
}

// foldRead folds what was read so far, but for the newest turns; false where nothing can be
// folded. A dry run stores none of it.
func (c *Folding) foldRead(ctx context.Context, s *Material) (folded bool, err error) {
	h := fitting{Folding: c}.given(ctx, s, 0)
	h.Now = true
	v, err := c.ledger.Compact(h)
	if c.Err != nil {
		err = c.Err
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
	if c.DryRun {
		c.moment.Folds = withFolds(s.State, v.Made)
	} else if err := c.stage.journal.AppendFolds(ctx, c.moment.Scope, c.moment.SessionID, s.State.Version, v.Made); err != nil {
		return false, fmt.Errorf("assemble: store folds: %w", err)
	} else if err := c.moment.Again(ctx); err != nil {
		return false, err
	}
	c.Before = c.Before.Plus(batchOf(v))
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

// standsFor reports whether a fold covers the entries of an older one.
func standsFor(f, old history.Fold) bool {
	first := old.Spans[0].First
	return slices.ContainsFunc(f.Spans, func(s history.Span) bool { return s.First <= first && first <= s.Last })
}

// Plus is what two batches of one call folded, the later one as other. Either
// may be nil.
func (b *Batch) Plus(other *Batch) *Batch {
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
func (s *Material) release() bool {
	awaited := make(map[uint64]bool)
	for _, g := range s.Groups {
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
