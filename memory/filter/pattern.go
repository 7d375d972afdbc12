package filter

import (
	"strings"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/memory/lexical/selection"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// pattern is a text in which asterisks stand for zero or more characters: the
// parts between them. One part is a text without an asterisk.
type pattern []string

// patternOf reads a text of a filter. A backslash before an asterisk makes it one
// of the text.
func patternOf(text string) pattern {
	var p pattern
	var part strings.Builder
	for len(text) > 0 {
		switch {
		case strings.HasPrefix(text, `\*`):
			part.WriteByte('*')
			text = text[len(`\*`):]
		case text[0] == '*':
			p = append(p, part.String())
			part.Reset()
			text = text[1:]
		default:
			part.WriteByte(text[0])
			text = text[1:]
		}
	}
	return append(p, part.String())
}

// exact reports whether the pattern is one text, which it returns.
func (p pattern) exact() (string, bool) { return p[0], len(p) == 1 }

// matches reports whether a text is such.
func (p pattern) matches(text string) bool {
	if whole, ok := p.exact(); ok {
		return text == whole
	}
	first, last := p[0], p[len(p)-1]
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range p[1 : len(p)-1] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}

// begins returns how every text of the pattern begins, in at most so many bytes.
func (p pattern) begins(most int) string {
	first := p[0]
	if len(first) <= most {
		return first
	}
	for !utf8.RuneStart(first[most]) {
		most--
	}
	return first[:most]
}

// test looks at what a term keeps of a text that begins with a prefix, behind it.
func (p pattern) test(prefix string) func(rest string) selection.Match {
	return func(rest string) selection.Match {
		kept, whole := record.CutValue(prefix + rest)
		first := p[0]
		switch {
		case whole:
			return matches(p.matches(kept))
		case !strings.HasPrefix(first, kept) && !strings.HasPrefix(kept, first):
			return selection.No
		case len(p) == 2 && p[1] == "" && len(kept) >= len(first):
			return selection.Yes
		}
		return selection.Unsure
	}
}
