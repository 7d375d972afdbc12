package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// OneLine returns s on one line: each run of white space and control characters is
// one space, and there is none at the ends. Characters that turn the direction of what
// stands around them are left out: "a\u202egpj.exe" looks like a picture. So are letters
// without a shape, in which a whole sentence can stand that no reader sees and a model reads:
// tags (of a flag that is spelt with them the plain one stays), variants beyond the first
// sixteen, and space of no width. What joins letters stays.
func OneLine(s string) string {
	line, _ := OneLineHead(s, len(s))
	return line
}

// OneLineHead returns at most n characters (code points) of OneLine(s), and whether
// it has more. It reads no more of s than it needs, apart from space.
func OneLineHead(s string, n int) (head string, cut bool) { return LinesHead(n, s) }

// LinesHead is OneLineHead for lines that stand below each other.
func LinesHead(n int, lines ...string) (head string, cut bool) {
	var line strings.Builder
	for _, s := range lines {
		gap := line.Len() > 0
		for _, c := range s {
			if c >= utf8.RuneSelf && isHidden(c) {
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
	}
	return line.String(), false
}

// Seen returns s without invisible characters: the characters that OneLine leaves out, and
// control characters except tabs and line feeds. Any other line break is a line feed.
func Seen(s string) string {
	if !strings.ContainsFunc(s, func(c rune) bool { return unseen(c) || otherBreak(c) }) {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(c rune) rune {
		switch {
		case otherBreak(c):
			return '\n'
		case unseen(c):
			return -1
		}
		return c
	}, s)
}

// otherBreak reports whether c breaks a line as a line feed does.
func otherBreak(c rune) bool {
	switch c {
	case '\r', '\v', '\f', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}

func unseen(c rune) bool {
	if c < utf8.RuneSelf {
		return c < ' ' && c != '\n' && c != '\t' || c == 0x7f
	}
	return isHidden(c) || unicode.IsControl(c)
}

// isHidden reports whether c turns the direction of what stands around it, or has no shape: the
// blocks of tags and of further variants (Unicode 16, 23.9 and 23.4), and what has no width
// and joins nothing.
func isHidden(c rune) bool {
	switch {
	case 0xe0000 <= c && c <= 0xe0fff, c >= 0x2060 && c <= 0x206f, c >= 0xfff9 && c <= 0xfffb, c >= 0x1bca0 && c <= 0x1bca3, c >= 0x1d173 && c <= 0x1d17a:
		return true
	}
	switch c {
	case 0xad, 0x34f, 0x61c, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x180e, 0x200b, 0x3164, 0xfeff, 0xffa0:
		return true
	}
	return unicode.Is(unicode.Bidi_Control, c)
}

// CountLines counts the lines of s; a final line feed opens no new one.
func CountLines(s string) int64 {
	n := int64(strings.Count(s, "\n"))
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}
