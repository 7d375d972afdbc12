package step

import "strings"

// How many lines that say what went wrong are kept of a text: what came first
// is often the cause, what came last the summary.
const (
	firstErrorLines = 3
	lastErrorLines  = 3
	// maxErrorLineBytes bounds one such line; longer ones are no text for
	// people.
	maxErrorLineBytes = 2000
)

// span is a part of a text.
type span struct{ from, to int }

// errorLines returns the first and the last lines of a text that say what went
// wrong: those with one of the words that isErrorWord knows. It reads the text
// in one pass.
func errorLines(text string) []span {
	var first []span
	var last [lastErrorLines]span
	more := 0
	for at := 0; ; {
		hit := nextErrorWord(text, at)
		if hit < 0 {
			break
		}
		line := lineAt(text, hit)
		at = line.to
		switch {
		case line.to-line.from > maxErrorLineBytes:
		case len(first) < firstErrorLines:
			first = append(first, line)
		default:
			last[more%lastErrorLines] = line
			more++
		}
	}
	for i := max(more-lastErrorLines, 0); i < more; i++ {
		first = append(first, last[i%lastErrorLines])
	}
	return first
}

// lineAt is the line that a place of a text stands in, without its end.
func lineAt(text string, at int) span {
	line := span{strings.LastIndexByte(text[:at], '\n') + 1, len(text)}
	if end := strings.IndexByte(text[at:], '\n'); end >= 0 {
		line.to = at + end
	}
	for line.to > line.from && text[line.to-1] == '\r' {
		line.to--
	}
	return line
}

// wordBytes are what words are made of.
var wordBytes = func() (is [256]bool) {
	for c := range is {
		is[c] = c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
	}
	return is
}()

// nextErrorWord returns where the next word stands, from a place on, that says
// that something went wrong, or -1.
func nextErrorWord(text string, from int) int {
	inWord := from > 0 && wordBytes[text[from-1]]
	for i := from; i < len(text); i++ {
		isWord := wordBytes[text[i]]
		if isWord && !inWord && isErrorWord(text[i:]) {
			return i
		}
		inWord = isWord
	}
	return -1
}

// isErrorWord tells whether a text begins with a word that says that something
// went wrong, in any case.
func isErrorWord(text string) bool {
	switch text[0] | 0x20 {
	case 'e':
		return hasWord(text, "error") || hasWord(text, "exception")
	case 'f':
		return hasWord(text, "failed") || hasWord(text, "fatal")
	case 'p':
		return hasWord(text, "panic")
	case 't':
		return hasWord(text, "traceback")
	case 'c':
		return hasWord(text, "cannot")
	case 'd':
		return hasWord(text, "denied")
	case 'n':
		return hasWord(text, "not found")
	}
	return false
}

func hasWord(text, word string) bool {
	return len(text) >= len(word) && strings.EqualFold(text[:len(word)], word) &&
		(len(text) == len(word) || !wordBytes[text[len(word)]])
}
