package similar

import (
	"strings"
	"unicode"
)

// Bare returns a text without what only adds emphasis: blanks, full stops, exclamation marks
// and emoji at its end, and capitals where it has no other letters. A question mark is more
// than that.
func Bare(text string) string {
	text = strings.TrimRightFunc(text, emphasis)
	if strings.ContainsFunc(text, unicode.IsLower) {
		return text
	}
	return strings.ToLower(text)
}

// emphasis reports whether a character at the end of a text says nothing new.
func emphasis(r rune) bool {
	const arrows, joiner = 0x2190, 0x200d // symbols before the arrows are units and the like
	switch {
	case r < unicode.MaxASCII:
		return r == '.' || r == '!' || unicode.IsSpace(r)
	case r == '…' || r == joiner || unicode.Is(unicode.Variation_Selector, r):
		return true
	case unicode.Is(unicode.STerm, r):
		return !strings.ContainsRune("？؟⁇⁈⁉", r)
	}
	return unicode.IsSpace(r) || r >= arrows && unicode.In(r, unicode.So, unicode.Sk)
}
