package history

import (
	"slices"
	"sort"
)

// Mark is where a preset's boundary stands between batches. The zero Mark is that
// of a session without one. Its numbers count the calls of the session, from the
// oldest; it is to be stored with the session's folds. Package decay says what they
// are to presets that show messages.
type Mark struct {
	// Older of the calls are shown as lines.
	Older int
	// Seen is how many calls there were when Older was set.
	Seen int
	// Bare of the calls are shown without their results, where they are no lines.
	Bare int
	// Omitted is how many of the lines are left out.
	Omitted int
	// Whole of the calls are shown as they are, without the preset.
	Whole int
	// Left are left out, in presets that show messages.
	Left int
	// Lost is how many calls stand as text there, because they have no result.
	Lost int
	// Window is what levels of pressure did, in the form of package window.
	Window string
	// Summary stands for the oldest messages.
	Summary Summary
}

// Summary is a text that stands for messages of the log, and stays as it is while it
// stands for the same ones.
type Summary struct {
	// First and Last are the positions of the first and the last of them, Count how
	// many they are.
	First, Last uint64
	Count       int
	// Text is what stands there, at most MaxSummaryBytes. Empty is no summary.
	Text string
}

// MaxSummaryBytes bounds the text of a Summary, which is stored with the mark.
const MaxSummaryBytes = 64 << 10

// lowWater is to how much of its budget, in percent, a history is brought that is
// over it, so that it is not over it again with the next call.
const lowWater = 80

// boundary is how many acts a preset taken literally shows as lines: all but the
// last KeepRecent once there are more than triggerSteps or triggerTokens, none
// before; and no turn in part. forced takes those, too, that a message may still
// ask for.
func (v *showing) boundary(forced bool) int {
	n := v.acts()
	if n <= triggerSteps && v.fullTokens() <= triggerTokens {
		return 0
	}
	most, at := n-v.c.preset.KeepRecent, 0
	for i := range v.conv.Parts {
		if v.before[i+1] > most || v.conv.Parts[i].Awaited && !forced {
			break
		}
		at = v.before[i+1]
	}
	return at
}

// fullTokens is what all acts take in full.
func (v *showing) fullTokens() int {
	n := 0
	for i := range v.conv.Parts {
		for _, a := range v.conv.Parts[i].full() {
			n += v.c.count(v.c.Full(a.Step))
		}
	}
	return n
}

// whole is a mark that ends between two parts. One may end within a part where
// steps became lines before the message came that asked for them.
func (v *showing) whole(m Mark) Mark {
	for _, n := range []*int{&m.Older, &m.Bare, &m.Whole} {
		at, _ := slices.BinarySearch(v.before, *n+1)
		*n = v.before[max(at-1, 0)]
	}
	return m
}

// within is a mark as whole says, nowhere past the boundary of the preset: its rules
// may be others than when the mark was set.
func (v *showing) within(m Mark) Mark {
	m = v.whole(m)
	if m.Older > 0 {
		m.Older = min(m.Older, v.boundary(true))
	}
	return m
}

// settle moves the boundary of a layout if that is due.
func (v *showing) settle(before Layout) Layout {
	at := before.Mark
	over := v.over(before.Tokens)
	if to := v.boundary(over); to > at.Older {
		moved := at
		moved.Older, moved.Seen, moved.Whole = to, v.acts(), 0
		after := v.layout(moved)
		if over {
			after.Reason = ByBudget
			return after
		}
		if v.due(at, before, &after) {
			after.Reason = ByPrice
			return after
		}
	}
	return before
}

func (v *showing) over(tokens int) bool { return v.conv.Budget > 0 && tokens > v.conv.Budget }

// due compares what leaving the boundary has cost since it moved last with what
// moving it costs, as a ledger does with a batch; see Ledger.
func (v *showing) due(at Mark, before Layout, after *Layout) bool {
	o := &v.l.opts
	rent, saved, turns, next := 0.0, 0.0, 0, 0
	for i := range v.conv.Parts {
		p := &v.conv.Parts[i]
		if len(p.Acts) == 0 {
			continue
		}
		turns++
		for ; next < i && v.before[next+1] <= v.before[i+1]-v.c.preset.KeepRecent; next++ {
			if v.older(next, after.Mark) && !v.older(next, at) {
				saved += float64(max(v.size(next, at)-v.lineTokens(next), 0))
			}
		}
		if v.before[i+1] > at.Seen && p.Position > v.conv.Since {
			rent += o.Prices.CachedInput * saved
		}
	}
	kept := max(rewritten(before, *after)-v.size(len(v.conv.Parts)-1, at), 0)
	if rent <= 0 || rent < DefaultPatience*v.l.rewrite()*float64(kept+o.BatchTokens) {
		return false
	}
	if v.conv.ExpectedTurns > 0 {
		turns = v.conv.ExpectedTurns
	}
	gain := o.Prices.CachedInput * float64(before.Tokens-after.Tokens)
	if gain <= 0 {
		return false
	}
	after.BreakEven = v.l.rewrite() * float64(kept) / gain
	return after.BreakEven <= float64(turns)
}

// lineTokens is what a part takes as lines.
func (v *showing) lineTokens(i int) int {
	return sum(v.conv.Parts[i].Acts, func(a *Act) int { return v.c.count(v.c.lineOf(a)) })
}

// rewritten is what of a layout stands behind the first place where it differs
// from the one before.
func rewritten(before, after Layout) int {
	same := 0
	for same < len(before.Shown) && same < len(after.Shown) && before.Shown[same] == after.Shown[same] {
		same++
	}
	return sum(after.Shown[same:], func(s *Shown) int { return s.Tokens })
}

// fit makes a layout fit the budget: the oldest results that are shown are left
// out, then the oldest lines.
func (v *showing) fit(out Layout) Layout {
	aim := v.conv.Budget
	if !v.conv.Literal {
		aim = aim * lowWater / 100
	}
	for v.over(out.Tokens) {
		// What texts take together is not quite the sum of what each takes.
		m := v.withoutResults(out, aim)
		if m == out.Mark {
			return v.withoutLines(out, aim)
		}
		out = v.layout(m)
		out.Reason = ByBudget
	}
	return out
}

// withoutLines leaves the oldest lines out until a layout takes no more than aim.
// Where that is not enough and the conversation fits as it is, that is shown.
func (v *showing) withoutLines(out Layout, aim int) Layout {
	m := out.Mark
	m.Omitted += sort.Search(max(m.Older-m.Omitted, 0), func(more int) bool {
		less := m
		less.Omitted += more
		return v.layout(less).Tokens <= aim
	})
	out = v.layout(m)
	if v.over(out.Tokens) && v.hasWhole() {
		if whole := v.layout(Mark{Older: m.Older, Seen: m.Seen, Whole: v.acts()}); whole.Tokens < out.Tokens {
			out = whole
		}
	}
	out.Reason = ByBudget
	return out
}

// hasWhole reports whether all parts can be shown as they are.
func (v *showing) hasWhole() bool {
	return !slices.ContainsFunc(v.conv.Parts, func(p Chunk) bool { return len(p.Acts) > 0 && p.Whole == 0 })
}

// withoutResults leaves the results of the oldest calls out until the layout takes
// no more than aim. Once it fits, it stops before the newest turn, whose results the model
// has not seen yet, and before a result much larger than the remaining excess.
func (v *showing) withoutResults(out Layout, aim int) Mark {
	m, left := out.Mark, out.Tokens
	newest := v.newest()
	for i := range v.conv.Parts {
		if v.before[i+1] <= max(m.Bare, m.Whole) || v.older(i, m) || len(v.conv.Parts[i].Acts) == 0 {
			continue
		}
		less := m
		less.Bare = v.before[i+1]
		saved := v.size(i, m) - v.size(i, less)
		if left <= aim || !v.over(left) && (i == newest || saved > v.conv.Budget-aim) {
			break
		}
		m, left = less, left-saved
	}
	return m
}

// newest is the last part with calls.
func (v *showing) newest() int {
	at := len(v.conv.Parts) - 1
	for at >= 0 && len(v.conv.Parts[at].Acts) == 0 {
		at--
	}
	return at
}

// refs name the acts that two marks show otherwise.
func (v *showing) refs(from, to Mark) []string {
	var refs []string
	for i := range v.conv.Parts {
		p := &v.conv.Parts[i]
		same := v.older(i, from) == v.older(i, to)
		switch {
		case len(p.Acts) == 0, same && !v.older(i, to) && v.form(i, from) == v.form(i, to):
			continue
		case same && v.older(i, to) && (v.before[i+1] <= from.Omitted || to.Omitted <= v.before[i]):
			continue
		}
		for k := range p.Acts {
			refs = append(refs, p.Acts[k].ID())
		}
	}
	return refs
}
