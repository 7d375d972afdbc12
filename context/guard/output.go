package guard

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Output is the result of a call as a prompt shows it: a line that looks like one that
// folding writes ([n lines unchanged: …], [...n chars omitted], [Earlier steps, …], Full
// data: …) gets a mark in front. So such a line without one is true. The stored result
// stays as it came.
func Output(s string) string { return WithMarks(s, FoldLines(s)) }

// FoldLines are where the lines begin that Output marks, in order.
func FoldLines(s string) []int {
	var places []int
	for at := strings.IndexByte(s, '['); at >= 0; at = after(s, at, "[") {
		places = addFoldLine(places, s, at)
	}
	// "Full" and "full" both begin a line.
	for at := strings.Index(s, ullWord); at >= 0; at = after(s, at, ullWord) {
		if at > 0 && (s[at-1] == 'f' || s[at-1] == 'F') {
			places = addFoldLine(places, s, at-1)
		}
	}
	slices.Sort(places)
	return places
}

// ullWord is what all marks of foldMarks that begin with a letter have behind it.
const ullWord = "ull "

// after is where a text next holds a word behind a place; -1 where it does not.
func after(s string, at int, word string) int {
	next := strings.Index(s[at+1:], word)
	if next < 0 {
		return -1
	}
	return at + 1 + next
}

// addFoldLine adds the line that begins with the mark of a fold at a place, if one does.
func addFoldLine(places []int, s string, at int) []int {
	start, begins := lineStart(s, at)
	if !begins {
		return places
	}
	var room [maxVisibleBytes]byte
	if marksFold(visible(room[:0], s[at:])) {
		return append(places, start)
	}
	return places
}

// lineStart is where the line begins that holds a place, if nothing that one sees stands
// before it there.
func lineStart(s string, at int) (start int, begins bool) {
	for at > 0 {
		if c := s[at-1]; c > ' ' && c < 0x7f {
			return 0, false
		}
		r, size := utf8.DecodeLastRuneInString(s[:at])
		switch {
		case isBreak(r):
			return at, true
		case !unicode.IsSpace(r) && !hidden(r):
			return 0, false
		}
		at -= size
	}
	return 0, true
}

// WithMarks is a text with a mark at each of some places, which are in order.
func WithMarks(s string, places []int) string {
	if len(places) == 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + len(places)*len(Mark))
	from := 0
	for _, at := range places {
		b.WriteString(s[from:at])
		b.WriteString(Mark)
		from = at
	}
	b.WriteString(s[from:])
	return b.String()
}

// Marked is where a place of a text lies once it has marks: behind one that stands there.
func Marked(places []int, at int) int {
	n, _ := slices.BinarySearch(places, at+1)
	return at + n*len(Mark)
}

// Unmarked is where a place of a text with marks lies without them.
func Unmarked(places []int, at int) int {
	for n, place := range places {
		switch {
		case at <= place+n*len(Mark):
			return at - n*len(Mark)
		case at < place+(n+1)*len(Mark):
			return place
		}
	}
	return at - len(places)*len(Mark)
}
