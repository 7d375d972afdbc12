package assemble

import (
	"context"
	"errors"

	"github.com/loom-bridge/loom-bridge/context/assemble/fold"
	"github.com/loom-bridge/loom-bridge/context/history/decay"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
)

// What is done before a prompt is refused: a talk that is longer than the window begins in
// its middle, and the request is cut in its own middle.

// cutTries is how often that is cut shorter where sizes did not add up: some layouts show
// it more than once.
const cutTries = 4

// lastResort makes a draft where none fitted so far.
func (t *task) lastResort(ctx context.Context, s *fold.Material, f fixed, d *draft, err error) (*draft, error) {
	if errors.Is(err, ErrOverflow) && t.rules.Policy == session.PolicyLedger && s.Talks() {
		t.talkLeaves = true
		d, err = t.fit(ctx, s, f)
	}
	for range cutTries {
		overflow, ok := errors.AsType[*OverflowError](err)
		if !ok {
			break
		}
		cut, failed := t.cutGoal(overflow)
		if failed != nil {
			return nil, failed
		}
		if !cut {
			if cut, failed = t.folding.CutNewest(s, overflow.TotalTokens-overflow.MaxTokens); failed != nil {
				return nil, failed
			}
		}
		if !cut {
			break
		}
		if f, failed = t.fixed(ctx); failed != nil {
			return nil, failed
		}
		d, err = t.fit(ctx, s, f)
	}
	return d, err
}

// cutGoal cuts the goal in its middle, by as much as the prompt is over its budget.
func (t *task) cutGoal(e *OverflowError) (bool, error) {
	size := t.tally.Text(t.frame.Goal)
	keep := max(size-(e.TotalTokens-e.MaxTokens)-fold.LeastAsked/2, fold.LeastAsked)
	if keep >= size || e.Part != settings.Goal && size < e.TotalTokens-e.MaxTokens {
		return false, nil
	}
	t.frame.Goal = decay.CutTask(t.frame.Goal, "", keep, t.tally.Text)
	return true, t.frame.Arrange()
}
