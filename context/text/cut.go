package text

import (
	"strings"
	"unicode/utf8"
)

// The marks behind a text that was cut.
const (
	// Ellipsis is the usual one.
	Ellipsis = "…"
	// Dots stand in the observations of steps and in the errors of tools, whose words
	// clients know.
	Dots = "..."
)

// Head returns at most n leading bytes of s, cut at the border of a character. Of
// bytes that are no UTF-8 it cuts anywhere.
func Head[T ~string | ~[]byte](s T, n int) T {
	n = max(n, 0)
	if len(s) <= n {
		return s
	}
	for i := n; i > n-utf8.UTFMax && i >= 0; i-- {
		if utf8.RuneStart(s[i]) {
			return s[:i]
		}
	}
	return s[:n]
}

// Tail returns at most n trailing bytes of s, cut at the border of a character. Of
// bytes that are no UTF-8 it cuts anywhere.
func Tail[T ~string | ~[]byte](s T, n int) T {
	n = max(n, 0)
	if len(s) <= n {
		return s
	}
	from := len(s) - n
	for i := from; i < from+utf8.UTFMax; i++ {
		if i == len(s) || utf8.RuneStart(s[i]) {
			return s[i:]
		}
	}
	return s[from:]
}

// HeadChars returns the first n characters (code points) of s, and whether it has
// more.
func HeadChars(s string, n int) (head string, cut bool) {
	if len(s) <= n {
		return s, false
	}
	for i := range s {
		if n <= 0 {
			return s[:i], true
		}
		n--
	}
	return s, false
}

// TailChars returns the last n characters (code points) of s, and whether it has
// more.
func TailChars(s string, n int) (tail string, cut bool) {
	from := len(s)
	for ; n > 0 && from > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:from])
		from -= size
	}
	return s[from:], from > 0
}

// Cut returns s, or of a longer one at most n leading bytes with a mark behind
// them.
func Cut(s string, n int, mark string) string {
	if len(s) <= n {
		return s
	}
	return Head(s, n) + mark
}

// CutChars returns s, or of a longer one the first n characters (code points) with
// a mark behind them.
func CutChars(s string, n int, mark string) string {
	head, cut := HeadChars(s, n)
	if cut {
		head += mark
	}
	return head
}

// WholeChars returns the beginning of a text without the character that its end
// cuts in two.
func WholeChars(s []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(s); i++ {
		if end := s[len(s)-i:]; utf8.RuneStart(end[0]) {
			if !utf8.FullRune(end) {
				return s[:len(s)-i]
			}
			break
		}
	}
	return s
}

// Valid returns s with U+FFFD for each run of bytes that is no UTF-8.
func Valid(s string) string {
	if utf8.ValidString(s) { // nearly always, and several times faster
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
