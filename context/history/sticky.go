package history

import "github.com/loom-bridge/loom-bridge/context/step"

// Mark is where a preset's boundary stands between batches. The zero Mark is
// that of a session without one. It is a pair of counts of steps, to be stored
// with the session's folds.
type Mark struct {
	// Older is how many steps are shown as lines.
	Older int
	// Seen is how many steps there were when the boundary moved last.
	Seen int
}

// Sticky returns where the boundary of a preset stands if it moves only in
// batches: where it stood, or, when leaving it has cost as much as moving it,
// where the preset as written would put it now, never past that. The history
// as Render shows it at the mark only grows at its end until the mark changes.
// budget is the most tokens that the history may take, 0 for no bound; over it
// the boundary moves at once. opts are those of a Ledger.
func (c *Compactor) Sticky(steps []step.Step, at Mark, budget int, opts *Options) Mark {
	target := c.Boundary(steps)
	if target <= at.Older {
		return at
	}
	l := New(c.count, opts)
	moved := Mark{Older: target, Seen: len(steps)}
	if budget > 0 && c.count(c.Render(steps, at.Older)) > budget {
		return moved
	}
	rent, saved := 0.0, 0.0
	for i := at.Older; i < len(steps); i++ {
		if old := i - c.preset.KeepRecent; old >= at.Older {
			saved += float64(c.count(c.Full(steps[old])) - c.count(c.preset.Templates.Compact(steps[old]).Summary))
		}
		if i >= at.Seen {
			rent += l.opts.Prices.CachedInput * saved
		}
	}
	kept := 0
	for _, s := range steps[target:max(len(steps)-1, target)] {
		kept += c.count(c.Full(s))
	}
	if rent <= 0 || rent < l.opts.Patience*l.rewrite()*float64(kept+l.opts.BatchTokens) {
		return at
	}
	return moved
}
