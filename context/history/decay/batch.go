package decay

import (
	"github.com/loom-bridge/loom-bridge/context/history"
)

// settle moves the boundaries of a layout if that is due.
func (v *view) settle(before ShownUnits, at, target bounds) ShownUnits {
	if target == at {
		return before
	}
	over := v.conv.Budget > 0 && before.Tokens > v.conv.Budget
	rent := v.rent(at, target)
	if !over && rent < history.DefaultPatience*v.opts.Prices.Rewrite()*float64(v.opts.BatchTokens) {
		return before // whatever is written again
	}
	after := v.layout(target)
	if !over && !v.due(before, &after, rent) {
		return before
	}
	reason, breakEven := history.ByPrice, after.BreakEven
	if over {
		reason = history.ByBudget
	}
	after.Reason, after.BreakEven = reason, breakEven
	return after
}

// due compares what leaving the boundaries has cost since they moved last with what
// moving them costs, as a ledger does with a batch; see history.Ledger.
func (v *view) due(before ShownUnits, after *ShownUnits, rent float64) bool {
	gain := v.opts.Prices.CachedInput * float64(before.Tokens-after.Tokens)
	if gain <= 0 {
		return false
	}
	kept := rewritten(before, *after)
	if n := len(before.Shown); n > 0 {
		kept = max(kept-before.Shown[n-1].Tokens, 0)
	}
	price := v.opts.Prices.Rewrite()
	if rent <= 0 || rent < history.DefaultPatience*price*float64(kept+v.opts.BatchTokens) {
		return false
	}
	turns := v.conv.ExpectedTurns
	if turns == 0 {
		for i := range v.conv.Units {
			if v.conv.Units[i].Asked {
				turns++
			}
		}
	}
	after.BreakEven = price * float64(kept) / gain
	return after.BreakEven <= float64(turns)
}

// rent is what reading the units from the cache has cost more, since the boundaries
// stand where they are, than if they had followed the rules with every prompt.
func (v *view) rent(at, target bounds) float64 {
	rent, saved, summary := 0.0, 0, 0
	since := max(uint64(v.conv.Mark.Seen), v.conv.Since)
	folded, gone := at.older, at.omitted
	for i := range v.conv.Units {
		for ; folded < target.older && v.behind(folded, i, zoneFull); folded++ {
			_, now := v.form(folded, at)
			_, then := v.form(folded, target)
			saved += max(now-then, 0)
		}
		for ; gone < min(target.omitted, folded) && v.behind(gone, i, zoneFull+zoneFold); gone++ {
			if _, then := v.form(gone, target); !v.stays(gone, target) {
				saved += then
			}
			if at.omitted == 0 {
				summary = history.DefaultSummaryTokens
			}
		}
		if v.conv.Units[i].Asked && v.conv.Units[i].Position > since {
			rent += v.opts.Prices.CachedInput * float64(max(saved-summary, 0))
		}
	}
	return rent
}

// behind reports whether a unit was not among the newest n when another one was the
// newest.
func (v *view) behind(i, newest, n int) bool {
	return v.upTo[newest+1]-v.upTo[i+1] >= n
}

// rewritten is what of a layout stands behind the first place where it differs from
// the one before.
func rewritten(before, after ShownUnits) int {
	same := 0
	for same < len(before.Shown) && same < len(after.Shown) && before.Shown[same] == after.Shown[same] {
		same++
	}
	n := 0
	for _, s := range after.Shown[same:] {
		n += s.Tokens
	}
	return n
}
