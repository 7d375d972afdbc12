package compress

import (
	"strings"
	"unicode"
)

// ellipsis ends a line that was cut.
const ellipsis = "…"

// prefix returns the first n characters of s.
func prefix(s string, n int) string {
	if n <= 0 {
		return ""
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// suffix returns the last n characters of s.
func suffix(s string, n int) string {
	from := len(s)
	for ; n > 0 && from > 0; n-- {
		from = before(s, from)
	}
	return s[from:]
}

// cutLine returns a line of at most n characters, at least one.
func cutLine(line string, n int) string {
	if short := prefix(line, n); len(short) == len(line) {
		return line
	}
	return prefix(line, n-1) + ellipsis
}

// oneLine returns at most n characters of s on one line: each run of white
// space and control characters is one space, none at the ends. It reads no more
// of s than it needs, apart from space.
func oneLine(s string, n int) string {
	var line strings.Builder
	gap, used := false, 0
	for _, r := range s {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			gap = used > 0
			continue
		}
		if gap {
			line.WriteByte(' ')
			used++
		}
		gap = false
		line.WriteRune(r)
		if used++; used > n {
			break
		}
	}
	return cutLine(line.String(), n)
}
