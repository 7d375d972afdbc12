package history

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// capIdentifiers bounds the identifiers that stand for what a cap cuts out.
	capIdentifiers = 100
	// capStep is how many bytes a cap gives up at least at a time until the text
	// fits.
	capStep = 8
)

// capped returns an output that is over the limit without its middle. Of a
// result two thirds of what stays are its beginning, of a failure two thirds
// are its end, where failures say what happened. cut is the first line that is
// not shown whole, resumed the first that is again; both are zero when nothing
// was cut.
func (l *Ledger) capped(e *Entry, text string) (short string, cut, resumed int) {
	limit := l.opts.ResultTokens
	// A token has at least one byte.
	if len(text) <= limit {
		return text, 0, 0
	}
	n := l.count(text)
	if n <= limit {
		return text, 0, 0
	}
	keep := len(text) * limit / n
	for keep > 0 {
		head := keep * 2 / 3
		if e.failed() {
			head = keep / 3
		}
		short, cut, resumed = e.withoutMiddle(text, head, keep-head, capIdentifiers)
		got := l.count(short)
		if got <= limit {
			return short, cut, resumed
		}
		keep -= keep*(got-limit)/got + capStep
	}
	return e.withoutMiddle(text, 0, 0, 0)
}

// withoutMiddle keeps about head bytes of the beginning and tail bytes of the
// end, on borders of lines where there are any, and says what the rest names: up
// to so many names.
func (e *Entry) withoutMiddle(text string, head, tail, names int) (short string, cut, resumed int) {
	first := cutBytes(text, head)
	// A line that is most of it stays, as far as it goes.
	if at := strings.LastIndexByte(first, '\n'); at >= len(first)/2 {
		first = first[:at]
	}
	last := text[len(text)-tail:]
	for last != "" && !utf8.RuneStart(last[0]) {
		last = last[1:]
	}
	if at := strings.IndexByte(last, '\n'); at >= 0 {
		last = last[at+1:]
	}
	middle := text[len(first) : len(text)-len(last)]
	seen := newVisible()
	seen.add(first)
	seen.add(last)
	mark := fmt.Sprintf("[...%d chars omitted", utf8.RuneCountInString(middle))
	if ref := e.full(); ref != "" {
		mark += ". Full data: " + ref
	}
	mark += e.readOn(first)
	if found := pick(Identifiers(middle), names, seen); found != "" {
		mark += "; they name: " + found
	}
	cut = strings.Count(first, "\n") + 1
	if first == "" {
		cut = 0
	}
	resumed = strings.Count(text[:len(text)-len(last)], "\n")
	return first + "\n" + mark + "]\n" + last, cut, max(resumed, cut)
}

// readOn says how to read on behind the beginning of an output.
func (e *Entry) readOn(beginning string) string {
	r := e.Read
	if r == nil || len(beginning) <= r.Start || len(beginning) > r.End {
		return ""
	}
	// Behind a reference in place of lines nobody knows how many there were.
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

// cutBytes returns at most n leading bytes of s that end with a code point.
func cutBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
