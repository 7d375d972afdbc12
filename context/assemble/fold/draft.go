package fold

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/window"
	"github.com/loom-bridge/loom-bridge/context/working"
)

// History is the history in at most budget tokens. What takes more whatever is done is a
// *history.OverflowError.
func (c *Folding) History(ctx context.Context, s *Material, ask Ask, budget int) (d *Draft, err error) {
	c.ask, d = ask, &Draft{}
	switch {
	case c.Ledger():
		d.Items, err = levels{fitting{Folding: c}}.history(ctx, s, d, budget)
	case c.Policy != session.PolicyPreset:
		d.Items, err = levels{fitting{Folding: c}}.behind(ctx, s, d, window.State{}, budget)
	case c.Preset.Style.Messages() || c.Preset.Style == history.StyleLevels:
		if s.faded == nil {
			err = fade(ctx, c, s)
		}
		switch {
		case err != nil:
		case c.Preset.Style == history.StyleLevels:
			p := &pressed{faded: s.faded, budget: budget, beside: max(ask.MaxTokens-budget, 0)}
			d.Items, err = p.history(s, d)
		default:
			d.Items, err = s.faded.history(s, d, budget)
		}
	default:
		if s.presented == nil {
			err = present(c, s)
		}
		if err == nil {
			d.Items, err = s.presented.history(s, d, budget)
		}
	}
	if c.Err != nil {
		err = c.Err
	}
	return d, err
}

// given is what a ledger is asked to make fit a budget.
func (c fitting) given(ctx context.Context, s *Material, budget int) history.History {
	h := history.History{
		Entries: s.entries, Folds: s.folds, Budget: budget,
		Since: s.State.Since, ExpectedTurns: c.Turns, Originals: c.moment.Originals(ctx), Parts: partsOf(c.moment.Working.Plan),
	}
	if c.Ledger() {
		h.Batch, h.Through = s.State.Batch, s.State.Through
	}
	return h
}

// partsOf are the items of a plan that are over, and what was done for them.
func partsOf(plan working.Plan) []history.Part {
	var parts []history.Part
	for i := range plan {
		if item := &plan[i]; item.Over() && item.Begun < item.Ended {
			parts = append(parts, history.Part{Name: "Plan item " + item.Status.String() + ": " + item.Text, After: item.Begun, Through: item.Ended})
		}
	}
	return parts
}

// draftOf is what a ledger did.
func draftOf(v history.View) *Draft {
	d := &Draft{}
	d.take(v)
	return d
}

// take notes what a ledger did.
func (d *Draft) take(v history.View) {
	d.Saved = v.Original - v.Tokens
	d.Folds, d.Made, d.Batch = v.Folds, v.Made, batchOf(v)
}

// items returns the messages of a view, behind those before it.
func (s *Material) items(before []pairing.Item, v history.View) []pairing.Item {
	shown := func(position uint64) string {
		at, found := slices.BinarySearchFunc(v.Items, position, func(it history.ShownItem, p uint64) int { return cmp.Compare(it.Position(), p) })
		if !found {
			return ""
		}
		return v.Items[at].Output
	}
	groups := s.Groups
	// A step is two messages.
	out := append(make([]pairing.Item, 0, len(before)+2*len(v.Items)-len(v.Folds)), before...)
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
	b := &Batch{Number: v.Made[0].Batch, Reason: v.Decision.Reason}
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

// Batch describes the folds of one call, or the steps that a preset shows as lines from now
// on, and the reason. A call that read more than it may hold at once folded several times:
// Number and Reason are the last fold's.
type Batch struct {
	// Number counts the batches of the session, from 1; 0 for a preset's.
	Number uint64
	// Reason is why.
	Reason history.Reason
	// Level is the level of pressure that it is of; 0 for others.
	Level window.Level
	// Refs name the steps and messages, such as "step_012" and "message_017", in
	// order.
	Refs []string
	// Before is what they took, in tokens, After what stands for them.
	Before, After int
}

// Finite is a number that every format can write: what prices are may differ by
// more than fits one.
func Finite(f float64) float64 {
	if math.IsNaN(f) {
		return 0
	}
	return max(min(f, math.MaxFloat64), -math.MaxFloat64)
}
