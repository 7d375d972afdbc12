package history

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
	"github.com/loom-bridge/loom-bridge/context/guard"
)

const (
	// capIdentifiers bounds the identifiers that stand for what a cap cuts out.
	capIdentifiers = 200
	// capStep is how many bytes a cap gives up at least at a time until the text
	// fits.
	capStep = 8
	// capFewer: when there is no room for them, so many times fewer are tried.
	capFewer = 4
	// errorParts: lines that say what went wrong take one such part of what stays at most.
	errorParts = 4
	// namedBytes next to what stays are looked at for identifiers: who wants more
	// reads on there.
	namedBytes = 64 << 10
)

// capped returns an output that is over the limit without its middle. Of a
// result two thirds of what stays are its beginning, of a failure two thirds
// are its end, where failures say what happened. cut is the first line that is
// not shown whole, resumed the first that is again; both are zero when nothing
// was cut.
func (l *Ledger) capped(e *Entry, text string, limit int) (short string, cut, resumed int) {
	// A token has at least one byte.
	if len(text) <= limit {
		return text, 0, 0
	}
	n := l.count(text)
	if n <= limit {
		return text, 0, 0
	}
	keep := len(text) * limit / n
	chars := utf8.RuneCountInString(text)
	// Later attempts leave out more, but what they name is found once.
	head, tail := excerpt.Halves(keep, e.failed())
	found := l.omitted(e, text, head/2, tail/2)
	errors := e.errorLines(text[head/2:len(text)-tail/2], guard.Output(e.Evidence)) // the text is guarded already
	// Long names can take more than there is room for.
	for names := capIdentifiers; names > 0; names /= capFewer {
		for keep := keep; keep > 0; {
			head, tail = excerpt.Halves(keep, e.failed())
			short, cut, resumed = e.withoutMiddle(text, chars, head, tail, pickOf{found, names, within(errors, keep/errorParts)})
			got := l.count(short)
			if got <= limit {
				return short, cut, resumed
			}
			keep -= keep*(got-limit)/got + capStep
		}
	}
	return e.withoutMiddle(text, chars, 0, 0, pickOf{})
}

// pickOf are identifiers of which so many are named at most, and lines to quote.
type pickOf struct {
	found  []excerpt.Identifier
	most   int
	errors []string
}

// within are the lines that fit into so many bytes, in their order.
func within(lines []string, room int) []string {
	var kept []string
	for _, line := range lines {
		if len(line) < room {
			kept = append(kept, line)
			room -= len(line) + 1
		}
	}
	return kept
}

// omitted are the identifiers of a text but for some bytes at its ends, from
// at most namedBytes next to each of them.
func (l *Ledger) omitted(e *Entry, text string, head, tail int) []excerpt.Identifier {
	from, to := head, len(text)-tail
	parts := []string{excerpt.QuotedPart(text, from, to)}
	if at := cutMarkAt(e, text); at >= from && at+len(e.CutMark) <= to {
		parts = []string{excerpt.QuotedPart(text, from, at), excerpt.QuotedPart(text, at+len(e.CutMark), to)}
	}
	if middle := parts[0]; len(parts) == 1 && len(middle) > 2*namedBytes {
		parts = []string{middle[:namedBytes], middle[len(middle)-namedBytes:]}
	}
	return l.opts.Memo.ranked(parts, func() []excerpt.Identifier {
		r := excerpt.NewRanking()
		for _, part := range parts {
			r.Add(excerpt.WholeNames(part))
		}
		best := r.Best()
		return best[:min(len(best), maxOmitted)]
	})
}

// cutMarkAt is where words stand in a text for what was left out before, or -1.
func cutMarkAt(e *Entry, text string) int {
	if e.CutMark == "" {
		return -1
	}
	return strings.Index(text, e.CutMark)
}

// maxOmitted of a text's identifiers are looked at, the best.
const maxOmitted = 2000

// withoutMiddle keeps about head bytes of the beginning and tail bytes of the
// end, on borders of lines where there are any, and says what the rest names:
// the best names that do not stand in them, and the lines to quote that do not. The text
// has so many chars. What it does not show is counted in them, or in bytes where it was cut
// before.
func (e *Entry) withoutMiddle(s string, chars, head, tail int, names pickOf) (short string, cut, resumed int) {
	first, last := excerpt.NamedHead(s, head), excerpt.NamedTail(s, tail)
	var omitted string
	if at := cutMarkAt(e, s); at >= 0 {
		first, last = first[:min(len(first), at)], s[max(len(s)-len(last), at+len(e.CutMark)):]
		// How many characters the record left out is unknown.
		omitted = fmt.Sprintf("%d bytes", int64(len(s)-len(first)-len(last)-len(e.CutMark))+e.CutBytes)
	} else {
		omitted = fmt.Sprintf("%d chars", chars-utf8.RuneCountInString(first)-utf8.RuneCountInString(last))
	}
	seen := newVisible()
	seen.add(first)
	seen.add(last)
	mark := "[..." + omitted + " omitted"
	if ref := e.full(); ref != "" {
		mark += ". Full data: " + ref
	}
	mark += e.readOn(first)
	if named := pick(names.found, names.most, names.most, seen); named != "" {
		mark += "; they name: " + named
	}
	mark += "]\n"
	quoted := false
	for _, line := range names.errors {
		if !strings.Contains(first, line) && !strings.Contains(last, line) {
			mark, quoted = mark+line+"\n", true
		}
	}
	if quoted {
		mark += "[...]\n"
	}
	cut = strings.Count(first, "\n") + 1
	if first == "" {
		cut = 0
	}
	resumed = strings.Count(s[:len(s)-len(last)], "\n")
	return first + "\n" + mark + last, cut, max(resumed, cut)
}

// readOn says how to read on behind the beginning of an output.
func (e *Entry) readOn(beginning string) string {
	r := e.Read
	if r == nil || len(beginning) <= r.Start || len(beginning) > r.End {
		return ""
	}
	// Behind a reference in place of lines their number is unknown.
	rest, whole := strings.CutPrefix(e.shown(), beginning)
	if !whole {
		return ""
	}
	next := r.Next(beginning[r.Start:], strings.HasPrefix(rest, "\n"))
	if next == "" {
		return ""
	}
	return "; read on with " + next
}
