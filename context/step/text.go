package step

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// HumanSize returns a byte count for people: "512 bytes", "1.2KB", "50KB",
// "3MB". Halves round up, and from ten on there is no decimal. A negative
// count is "0 bytes".
func HumanSize(n int64) string {
	const kb, mb = 1 << 10, 1 << 20
	switch {
	case n < kb:
		return strconv.FormatInt(max(n, 0), 10) + " bytes"
	case n < mb:
		return inUnits(n, kb) + "KB"
	}
	return inUnits(n, mb) + "MB"
}

// inUnits divides with one decimal below ten and none from there on.
func inUnits(n, unit int64) string {
	if n >= 10*unit {
		whole, rest := n/unit, n%unit
		if rest >= unit/2 {
			whole++
		}
		return strconv.FormatInt(whole, 10)
	}
	tenths := (n*10 + unit/2) / unit
	text := strconv.FormatInt(tenths/10, 10)
	if tenths%10 != 0 {
		text += "." + strconv.FormatInt(tenths%10, 10)
	}
	return text
}

// OneLine returns s with every run of white space as one space, and none at
// its ends.
func OneLine(s string) string {
	line, _ := oneLineCut(s, len(s))
	return line
}

// CutChars returns the first n characters (code points) of s and whether
// anything was left out. It never splits a code point.
func CutChars(s string, n int) (string, bool) {
	for i := range s {
		if n == 0 {
			return s[:i], true
		}
		n--
	}
	return s, false
}

// oneLineCut is OneLine cut to n characters; it reads no more of s than it
// needs.
func oneLineCut(s string, n int) (string, bool) {
	var line strings.Builder
	gap := false
	for _, c := range s {
		if unicode.IsSpace(c) {
			gap = line.Len() > 0
			continue
		}
		need := 1
		if gap {
			need = 2
		}
		if n < need {
			return line.String(), true
		}
		n -= need
		if gap {
			line.WriteByte(' ')
		}
		gap = false
		line.WriteRune(c)
	}
	return line.String(), false
}

// ellipsis marks a cut in a line.
const ellipsis = "..."

// withEllipsis cuts s to n characters and says so.
func withEllipsis(s string, n int) string {
	cut, was := CutChars(s, n)
	if was {
		cut += ellipsis
	}
	return cut
}

// headBytes returns at most n leading bytes of s that end with a code point.
func headBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// tailBytes returns at most n trailing bytes of s that begin with a code point.
func tailBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	from := len(s) - n
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return s[from:]
}

// lastChars returns the last n characters of s and whether anything was left
// out.
func lastChars(s string, n int) (string, bool) {
	from := len(s)
	for ; n > 0 && from > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:from])
		from -= size
	}
	return s[from:], from > 0
}

// lines counts the lines of s; a final line feed opens no new one.
func lines(s string) int64 {
	n := int64(strings.Count(s, "\n"))
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}
