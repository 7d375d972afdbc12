package inject

import (
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// joinTokens is what joining two texts may take beyond what both take: the blank line,
// and characters that count otherwise next to it.
const joinTokens = 2

// maxTokenBytes bounds one token, so that no more of a long text is counted than may
// fit a cap.
const maxTokenBytes = 256

// fit cuts the least important pieces until all together are within the total.
func (a *arranger) fit() {
	order := make([]int, 0, len(a.pieces))
	for i := range a.pieces {
		if p := &a.pieces[i]; !p.kept() {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, k int) int {
		if by := a.pieces[i].Priority - a.pieces[k].Priority; by != 0 {
			return by
		}
		return a.pieces[k].given - a.pieces[i].given
	})
	for _, i := range order { // what grew above its share gives that back first
		if p := &a.pieces[i]; p.Least > 0 && p.After > p.Least {
			a.shrink(p, p.Least)
		}
	}
	for _, i := range order {
		a.shrink(&a.pieces[i], 0)
	}
}

// shrink cuts a piece, to no fewer tokens than that, until all together are within the total.
func (a *arranger) shrink(p *Piece, least int) {
	for over := a.total() - a.o.Total; over > 0 && (least == 0 || p.After > least) && !p.LeftOut(); over = a.total() - a.o.Total {
		a.cut(p, max(p.After-over, least))
		p.Reason = OverTotal
		a.close(p)
	}
}

// total is what counts against the total.
func (a *arranger) total() int {
	n := 0
	for i := range a.pieces {
		if p := &a.pieces[i]; !p.LeftOut() {
			n += p.Tokens + joinTokens
		}
	}
	return max(n-joinTokens, 0)
}

// cut makes a piece fit so many tokens, which are fewer than it has.
func (a *arranger) cut(p *Piece, limit int) {
	switch {
	case len(p.shown) > 0:
		a.cutMessages(p, limit)
	case len(p.Parts) > 0:
		a.cutParts(p, limit)
	case limit <= 0:
		p.parts = nil
	default:
		p.parts = slices.DeleteFunc([]string{Beginning(p.parts[0], limit, p.Rest, a.o.Count)}, blank)
	}
	p.After = a.size(p)
}

func (a *arranger) cutParts(p *Piece, limit int) {
	for len(p.parts) > 0 && a.size(p) > limit {
		p.Left = append(p.Left, len(p.parts))
		p.parts = p.parts[:len(p.parts)-1]
	}
}

func (a *arranger) cutMessages(p *Piece, limit int) {
	for over := a.size(p) - limit; over > 0 && len(p.shown) > 0; over = a.size(p) - limit {
		at := len(p.shown) - 1
		for at > 0 && !begins(&p.shown[at]) {
			at--
		}
		last := p.shown[at]
		p.shown = p.shown[:at:at]
		if last.Role == session.System {
			last.Content = Lines(last.Content, a.o.Count(last.Content)-over, a.o.Count)
			if !blank(last.Content) {
				p.shown = append(p.shown, last)
				continue
			}
		}
		p.Left = append(p.Left, exchanges(p.shown)+1)
	}
}

// begins reports whether a message begins an exchange.
func begins(m *session.Message) bool { return m.Role == session.User || m.Role == session.System }

// exchanges is how many exchanges messages are.
func exchanges(all []session.Message) int {
	n := 0
	for i := range all {
		if i == 0 || begins(&all[i]) {
			n++
		}
	}
	return n
}

// fence begins and ends a block of code.
const fence = "```"

// Beginning is Lines, with a last line that says that it is a beginning and how to read the rest,
// where there is room for more than that. Code that is cut off ends as code does.
func Beginning(s string, limit int, rest string, count func(string) int) string {
	if rest == "" || limit <= 0 || count(s) <= limit {
		return Lines(s, limit, count)
	}
	note := CutNote(rest)
	for room := limit - count(note) - joinTokens; 2*room > limit; room -= joinTokens {
		head := Lines(s, room, count)
		if strings.Count(head, fence)%2 == 1 {
			head += "\n" + fence
		}
		if cut := head + "\n" + note; head != "" && count(cut) <= limit {
			return cut
		}
	}
	return Lines(s, limit, count)
}

// CutNote is the line that ends a text that was cut. rest says how to read the rest.
func CutNote(rest string) string { return "[Cut here. " + rest + "]" }

// Lines is the largest beginning of whole lines of a text that takes at most limit
// tokens. If not even the first line fits, it is a beginning of that line and an
// ellipsis; empty where not even that fits.
func Lines(s string, limit int, count func(string) int) string {
	if limit <= 0 {
		return ""
	}
	if count(s) <= limit {
		return s
	}
	head := text.Head(s, limit*maxTokenBytes)
	var ends []int
	for at, r := range head {
		if r == '\n' {
			ends = append(ends, at)
		}
	}
	if len(head) < len(s) && s[len(head)] == '\n' {
		ends = append(ends, len(head))
	}
	for n := largest(len(ends), func(n int) bool { return count(s[:ends[n-1]]) <= limit }); n > 0; n-- {
		if lines := s[:ends[n-1]]; strings.TrimSpace(lines) != "" {
			return lines
		}
	}
	line, _, _ := strings.Cut(strings.TrimLeft(head, "\n"), "\n")
	return Line(line, limit, count)
}

// Line is a text of at most limit tokens: s, or its largest beginning with an ellipsis;
// empty where not even that fits.
func Line(s string, limit int, count func(string) int) string {
	if count(s) <= limit {
		return s
	}
	head := text.Valid(text.Head(s, max(limit, 0)*maxTokenBytes))
	ends := make([]int, 0, len(head))
	for at, r := range head {
		ends = append(ends, at+utf8.RuneLen(r))
	}
	n := largest(len(ends), func(n int) bool { return count(head[:ends[n-1]]+text.Ellipsis) <= limit })
	if n == 0 {
		return ""
	}
	return strings.TrimRight(head[:ends[n-1]], " \t\r") + text.Ellipsis
}

// largest is the largest n from 1 to most that fits, if whatever is smaller fits too; 0
// where none does. Tokens are not quite monotonic, so it goes down until n fits indeed.
func largest(most int, fits func(n int) bool) int {
	n := sort.Search(most, func(n int) bool { return !fits(n + 1) })
	for n > 0 && !fits(n) {
		n--
	}
	return n
}
