package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Visible returns s for a person who has to know what stands in it: a character that has no
// shape, turns others around, or steers a terminal is written as its code point, <U+202E>, and
// a byte that is no UTF-8 as <0xFF>. Line feeds and tabs stay.
func Visible(s string) string {
	return rewritten(s, func(out *strings.Builder, c rune, raw string) {
		switch {
		case c == '\n' || c == '\t':
			out.WriteRune(c)
		case c == utf8.RuneError && len(raw) == 1:
			fmt.Fprintf(out, "<0x%02X>", raw[0])
		default:
			fmt.Fprintf(out, "<U+%04X>", c)
		}
	})
}

// VisibleLine is Visible on one line: line feeds and tabs are written as code points, too.
func VisibleLine(s string) string {
	return strings.NewReplacer("\n", "<U+000A>", "\t", "<U+0009>").Replace(Visible(s))
}

// VisibleJSON returns JSON text that means the same, with the characters that Visible replaces
// as escapes.
func VisibleJSON(s string) string {
	return rewritten(s, func(out *strings.Builder, c rune, _ string) {
		if c == '\n' || c == '\t' {
			out.WriteRune(c)
			return
		}
		for _, unit := range utf16.Encode([]rune{c}) {
			fmt.Fprintf(out, `\u%04x`, unit)
		}
	})
}

// rewritten is s with another text for each of its hidden characters.
func rewritten(s string, write func(out *strings.Builder, c rune, raw string)) string {
	var out strings.Builder
	from := 0
	for i := 0; i < len(s); {
		c, size := utf8.DecodeRuneInString(s[i:])
		if hidden(c) || c == utf8.RuneError && size == 1 {
			out.WriteString(s[from:i])
			write(&out, c, s[i:i+size])
			from = i + size
		}
		i += size
	}
	if from == 0 {
		return s
	}
	out.WriteString(s[from:])
	return out.String()
}

// hidden reports whether a character has no visible shape, or one that looks like a space.
func hidden(c rune) bool {
	const blankBraille = 0x2800
	return !unicode.IsPrint(c) || c == blankBraille || unicode.In(c, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
