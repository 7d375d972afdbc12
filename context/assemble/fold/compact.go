package fold

import (
	"cmp"
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// Compacted is a history that was folded on request.
type Compacted struct {
	// Batch is the folded part; nil when that was nothing.
	Batch *Batch
	// Folds stand in the history now, in order, which takes so many Tokens.
	Folds  []history.Fold
	Tokens int
	// Problem says why a summary was left out, or nothing was folded; empty otherwise.
	Problem string
}

// Compact folds everything but the newest turns, whether that pays or not, and stores the
// folds. summary is what the caller says of the folded part. A history over budget whatever
// is folded is a *history.OverflowError; 0 is no bound.
func (c *Folding) Compact(ctx context.Context, budget int, summary string) (Compacted, error) {
	s, err := c.Read(ctx)
	if err != nil {
		return Compacted{}, err
	}
	f := fitting{Folding: c}
	h := f.given(ctx, s, budget)
	h.Now, h.Summary = true, summary
	v, _, _, err := f.fitted(s, h)
	if c.Err != nil {
		err = c.Err
	}
	if err != nil {
		return Compacted{}, fmt.Errorf("assemble: %w", err)
	}
	d := draftOf(v)
	if err := c.Store(ctx, s, d, ""); err != nil {
		return Compacted{}, err
	}
	return Compacted{Batch: c.Before.Plus(d.Batch), Folds: d.Folds, Problem: v.SummaryProblem, Tokens: v.Tokens}, nil
}

// Conclude folds the steps of a task that is done into its conclusion, and stores that.
func (c *Folding) Conclude(ctx context.Context, own history.Subtask) (Compacted, error) {
	s, err := c.Read(ctx)
	if err != nil {
		return Compacted{}, err
	}
	v, err := c.ledger.Conclude(fitting{Folding: c}.given(ctx, s, 0), own)
	if err == nil {
		err = c.Err
	}
	if err != nil {
		return Compacted{}, fmt.Errorf("assemble: %w", err)
	}
	d := draftOf(v)
	if len(d.Made) == 0 {
		return Compacted{Problem: "it has no steps in the history that are longer than its conclusion"}, nil
	}
	return Compacted{Batch: d.Batch}, c.Store(ctx, s, d, "")
}

// Lines are steps as text in a style, of which the last keep stand in full; 0 is
// history.DefaultKeepRecent. In history.StyleReduction earlier steps take at most limit
// tokens; 0 is no bound.
func (s *Stage) Lines(steps []step.Step, style history.Style, keep, limit int, count func(text string) int) string {
	var p history.Preset
	switch style {
	case history.StyleDesign:
		p = s.Preset("design")
	case history.StyleReduction, 0:
		p = s.Preset("reduction")
	case history.StyleGrouped:
		// Of the profile, the lines alone: the call says how much stays.
		p = s.Preset("research")
		p.KeepRecent, p.GroupLines = 0, 0
	}
	if keep > 0 {
		p.KeepRecent = keep
	}
	if limit > 0 && style == history.StyleReduction {
		p.SectionTokens = limit
	}
	return history.NewCompactor(count, p).Render(steps, len(steps)-cmp.Or(p.KeepRecent, history.DefaultKeepRecent))
}
