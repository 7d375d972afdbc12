package text

import (
	"strings"
	"unicode"
)

// OneLine returns s on one line: each run of white space and control characters is
// one space, and there is none at the ends. Characters that turn the direction of what
// stands around them are left out: "a\u202egpj.exe" looks like a picture. So are tags, in
// which a whole sentence can stand that no reader sees and a model reads; of a flag that is
// spelt with them the plain one stays.
func OneLine(s string) string {
	line, _ := OneLineHead(s, len(s))
	return line
}

// OneLineHead returns at most n characters (code points) of OneLine(s), and whether
// it has more. It reads no more of s than it needs, apart from space.
func OneLineHead(s string, n int) (head string, cut bool) {
	var line strings.Builder
	gap := false
	for _, c := range s {
		if unicode.Is(unicode.Bidi_Control, c) || isTag(c) {
			continue
		}
		if unicode.IsSpace(c) || unicode.IsControl(c) {
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

// isTag tells whether c is of the block of tags (Unicode 16, 23.9), letters without a shape.
func isTag(c rune) bool { return 0xe0000 <= c && c <= 0xe007f }

// CountLines counts the lines of s; a final line feed opens no new one.
func CountLines(s string) int64 {
	n := int64(strings.Count(s, "\n"))
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}
