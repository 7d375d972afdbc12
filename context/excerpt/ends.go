package excerpt

import (
	"strings"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// Halves shares out what stays of a text whose middle is cut out. Two thirds are the
// beginning; of a failure two thirds are the end, where failures say what happened.
func Halves(room int, failed bool) (head, tail int) {
	head = room * 2 / 3
	if failed {
		head = room / 3
	}
	return head, room - head
}

// Of what a cut leaves of an end, whole lines must be at least three fifths, or the
// cut goes through a line.
const (
	lineShare = 3
	lineParts = 5
)

// Head returns at most n leading bytes of a text: whole lines without the last line
// feed if they are three fifths of them, or else whole characters.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = text.Head(s, n)
	if end := strings.LastIndexByte(s, '\n'); end >= 0 && end*lineParts >= len(s)*lineShare {
		return s[:end]
	}
	return s
}

// Tail returns at most n trailing bytes of a text: whole lines if they are three
// fifths of them, or else whole characters.
func Tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = text.Tail(s, n)
	if start := strings.IndexByte(s, '\n'); start >= 0 && (len(s)-start)*lineParts > len(s)*lineShare {
		return s[start+1:]
	}
	return s
}

// NamedHead is Head for a text of which the names in the rest are listed: where it
// cuts through a line, it leaves a name that it would cut in two to the rest.
func NamedHead(s string, n int) string {
	head := Head(s, n)
	if at := len(head); at < len(s) && s[at] != '\n' && isName(s[at]) {
		return withoutLastName(head)
	}
	return head
}

// NamedTail is NamedHead for the end of a text.
func NamedTail(s string, n int) string {
	tail := Tail(s, n)
	if at := len(s) - len(tail); at > 0 && isName(s[at-1]) {
		return withoutFirstName(tail)
	}
	return tail
}

// isName reports whether a byte may be part of an identifier.
func isName(b byte) bool { return is(b, isWord|isJoin) }

// WholeNames is a text without the identifiers at its ends, which may be cut.
func WholeNames(s string) string { return withoutLastName(withoutFirstName(s)) }

// withoutFirstName is a text without the identifier that it begins with, if it is
// no longer than one may be.
func withoutFirstName(s string) string {
	for i := range min(len(s), MaxIdentifierBytes) {
		if !isName(s[i]) {
			return s[i:]
		}
	}
	return s
}

// withoutLastName is the same at the end.
func withoutLastName(s string) string {
	for i := range min(len(s), MaxIdentifierBytes) {
		if end := len(s) - i; !isName(s[end-1]) {
			return s[:end]
		}
	}
	return s
}
