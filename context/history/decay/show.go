package decay

import (
	"cmp"
	"slices"
	"sort"

	"github.com/loom-bridge/loom-bridge/context/history"
)

// The zones: so many of the newest messages stand in full, so many before those are
// folded, and all older ones are summarized. Images stay for so many turns of the user
// before the newest.
const (
	zoneFull   = 4
	zoneFold   = 6
	imageTurns = 2
)

// bounds are the boundaries of a layout as numbers of units, from the oldest.
type bounds struct {
	// older units are folded, omitted of them summarized.
	older, omitted int
	// bare is the newest turn whose images are lines.
	bare int
	// task is the position of the task when the boundaries moved: it stays until they
	// move again, though it is the task no more. 0 is none.
	task uint64
}

// view is one call of Show.
type view struct {
	conv  Conversation
	count func(text string) int
	opts  history.Options
	// upTo is how many messages stand before each unit, and in all.
	upTo []int
}

// Show lays out a conversation. Between two batches a layout begins with the one of
// any shorter beginning of the conversation. A batch comes when leaving the
// boundaries has cost as much as moving them, or when the layout is over its budget;
// it moves them to where the rules would have them. Units still over the budget are left
// out, oldest first. opts are the options of a ledger.
func Show(conv Conversation, count func(text string) int, opts *history.Options) ShownUnits {
	v := &view{conv: conv, count: count}
	if opts != nil {
		v.opts = *opts
	}
	v.opts = v.opts.WithDefaults()
	v.upTo = make([]int, len(conv.Units)+1)
	for i := range conv.Units {
		v.upTo[i+1] = v.upTo[i] + conv.Units[i].Messages
	}
	target := v.rules()
	at := v.marked(target)
	if conv.Literal {
		return v.literally(target)
	}
	before := v.layout(at)
	out := v.settle(before, at, target)
	out = v.fit(out)
	if out.Mark == conv.Mark {
		out.Reason = 0
		return out
	}
	out.Reason = cmp.Or(out.Reason, history.ByBudget)
	out.Before = before.Tokens
	out.Refs = v.changed(before, out)
	return out
}

// literally is the layout by the rules alone.
func (v *view) literally(target bounds) ShownUnits {
	out := v.fit(v.layout(target))
	out.Mark = v.conv.Mark
	return out
}

// rules are the boundaries as the zones have them.
func (v *view) rules() bounds {
	if !v.conv.Zoned || len(v.conv.Units) == 0 {
		return bounds{}
	}
	return bounds{older: v.first(zoneFull), omitted: v.first(zoneFull + zoneFold), bare: max(v.turn()-imageTurns-1, 0)}
}

// turn is the newest.
func (v *view) turn() int { return v.conv.Units[len(v.conv.Units)-1].Turn }

// first is the oldest unit of the newest n messages. A unit that stands on
// the border belongs to them.
func (v *view) first(n int) int {
	units := v.conv.Units
	at := len(units)
	for at > 0 && n > 0 {
		at--
		n -= units[at].Messages
	}
	return at
}

// marked are the boundaries of the mark, nowhere past the rules.
func (v *view) marked(rules bounds) bounds {
	upTo := func(position int) int {
		return sort.Search(len(v.conv.Units), func(i int) bool { return v.conv.Units[i].Position > uint64(position) })
	}
	m := v.conv.Mark
	b := bounds{older: min(upTo(m.Older), rules.older), omitted: min(upTo(m.Omitted), rules.omitted), bare: min(m.Bare, rules.bare)}
	b.omitted = min(b.omitted, b.older)
	for i := range v.conv.Units {
		if u := &v.conv.Units[i]; u.Wish && u.Position <= uint64(m.Seen) {
			b.task = u.Position
		}
	}
	return b
}

// stays reports whether a unit is neither folded nor summarized at some boundaries.
func (v *view) stays(i int, b bounds) bool {
	u := &v.conv.Units[i]
	return u.Stays || u.Position == b.task
}

// markOf is a mark at some boundaries.
func (v *view) markOf(b bounds, s history.Summary) history.Mark {
	last := func(n int) int {
		if n == 0 {
			return 0
		}
		return int(v.conv.Units[n-1].Position)
	}
	m := history.Mark{Older: last(b.older), Omitted: last(b.omitted), Bare: b.bare, Seen: v.conv.Mark.Seen, Lost: v.conv.Lost, Summary: s}
	if m.Older != v.conv.Mark.Older || m.Omitted != v.conv.Mark.Omitted || m.Bare != v.conv.Mark.Bare {
		m.Seen = last(len(v.conv.Units))
	}
	return m
}

// form is how a unit is shown that is not summarized, and what it takes so.
func (v *view) form(i int, b bounds) (UnitForm, int) {
	u := &v.conv.Units[i]
	forms, sizes := []UnitForm{InFull, Folded}, []int{u.Full, u.Folded}
	if u.Turn <= b.bare && u.Aged < u.Full {
		forms, sizes = []UnitForm{Aged, FoldedAged}, []int{u.Aged, u.FoldedAged}
	}
	if i < b.older && !v.stays(i, b) && sizes[1] < sizes[0] {
		return forms[1], sizes[1]
	}
	return forms[0], sizes[0]
}

// layout is the conversation at some boundaries.
func (v *view) layout(b bounds) ShownUnits {
	s := v.summary(b)
	tokens := v.count(s.Text) + v.opts.MessageTokens
	if s.Text != "" && tokens >= v.foldedTokens(b) {
		s = history.Summary{}
	}
	out := ShownUnits{Mark: v.markOf(b, s)}
	told := false
	for i := range v.conv.Units {
		if s.Text != "" && i < b.omitted && !v.stays(i, b) {
			if !told {
				out.add(Shown{Text: s.Text, Tokens: tokens})
			}
			told = true
			continue
		}
		form, size := v.form(i, b)
		out.add(Shown{Unit: i, Form: form, Tokens: size})
	}
	return out
}

// foldedTokens is what the units take that a summary stands for, shown otherwise.
func (v *view) foldedTokens(b bounds) int {
	n := 0
	for i := range b.omitted {
		if !v.stays(i, b) {
			_, size := v.form(i, b)
			n += size
		}
	}
	return n
}

func (l *ShownUnits) add(s Shown) {
	l.Shown = append(l.Shown, s)
	l.Tokens += s.Tokens
	if s.Text != "" || s.Form == Folded || s.Form == FoldedAged {
		l.Less += s.Tokens
	}
}

// fit leaves out what does not fit the budget, and cuts the current task where it
// alone is too long.
func (v *view) fit(out ShownUnits) ShownUnits {
	if v.conv.Budget <= 0 || out.Tokens <= v.conv.Budget {
		return out
	}
	pieces := make([]FitUnit, len(out.Shown))
	for i, s := range out.Shown {
		pieces[i] = FitUnit{Tokens: s.Tokens}
		if s.Text == "" {
			pieces[i].Kept = v.conv.Units[s.Unit].Kept
		}
	}
	stays, left := Fit(pieces, v.conv.Budget)
	if !stays[len(stays)-1] {
		for i, s := range out.Shown {
			pieces[i].Kept = pieces[i].Kept && (s.Text != "" || !v.conv.Units[s.Unit].Yields)
		}
		stays, left = Fit(pieces, v.conv.Budget)
	}
	fits := ShownUnits{Mark: out.Mark, Reason: out.Reason, BreakEven: out.BreakEven}
	for i, s := range out.Shown {
		if !stays[i] {
			fits.Mark.Whole = int(v.position(s, out.Mark))
			fits.Mark.Left++
			continue
		}
		if left < 0 && s.Text == "" && v.conv.Units[s.Unit].Task && s.Tokens+left > v.opts.MessageTokens {
			s.Tokens += left
			s.Room, left = s.Tokens, 0
		}
		fits.add(s)
	}
	return fits
}

// position is that of what is shown, of a summary the last one that it stands for.
func (v *view) position(s Shown, m history.Mark) uint64 {
	if s.Text != "" {
		return m.Summary.Last
	}
	return v.conv.Units[s.Unit].Position
}

// changed names what two layouts show otherwise.
func (v *view) changed(before, after ShownUnits) []string {
	was, is := v.forms(before), v.forms(after)
	var refs []string
	for i := range v.conv.Units {
		if was[i] != is[i] {
			refs = append(refs, v.conv.Units[i].Refs...)
		}
	}
	return slices.Compact(refs)
}

// forms says of each unit how a layout shows it: one more than its Form, or 0 where
// it is summarized or left out.
func (v *view) forms(l ShownUnits) []UnitForm {
	forms := make([]UnitForm, len(v.conv.Units))
	for _, s := range l.Shown {
		if s.Text == "" {
			forms[s.Unit] = s.Form + 1
		}
	}
	return forms
}
