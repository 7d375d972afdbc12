package history

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// capIdentifiers bounds the identifiers that stand for what a cap cuts out.
	capIdentifiers = 100
	// capShrink is how much of what it keeps a cap gives up at a time until the
	// text fits: a tenth.
	capShrink = 10
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
	for keep := len(text) * limit / n; ; keep -= keep/capShrink + 1 {
		head := max(keep, 0) * 2 / 3
		if e.failed() {
			head = max(keep, 0) / 3
		}
		short, cut, resumed = withoutMiddle(text, head, max(keep, 0)-head, e.Ref)
		if keep <= 0 || l.count(short) <= limit {
			return short, cut, resumed
		}
	}
}

// withoutMiddle keeps about head bytes of the beginning and tail bytes of the
// end, on borders of lines where there are any, and says what the rest names.
func withoutMiddle(text string, head, tail int, ref string) (short string, cut, resumed int) {
	first := cutBytes(text, head)
	if at := strings.LastIndexByte(first, '\n'); at >= 0 {
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
	mark := fmt.Sprintf("[%d characters left out", utf8.RuneCountInString(middle))
	if ref != "" {
		mark += "; full text: " + ref
	}
	if names := pick(Identifiers(middle), capIdentifiers, seen); names != "" {
		mark += "; they name: " + names
	}
	cut = strings.Count(first, "\n") + 1
	if first == "" {
		cut = 0
	}
	resumed = strings.Count(text[:len(text)-len(last)], "\n")
	return first + "\n" + mark + "]\n" + last, cut, max(resumed, cut)
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
