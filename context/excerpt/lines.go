package excerpt

import (
	"cmp"
	"slices"
	"strings"
)

// How many lines that say what went wrong are kept of a text: what came first
// is often the cause, what came last the summary.
const (
	FirstErrorLines = 3
	LastErrorLines  = 3
	// maxErrorLineBytes bounds one such line; longer ones are no text for
	// people.
	maxErrorLineBytes = 2000
)

// Range is a part of a text: the bytes from From on, up to To.
type Range struct{ From, To int }

// Of is the part of a text.
func (r Range) Of(text string) string { return text[r.From:r.To] }

// ErrorLines returns the lines of a text that say what went wrong, in order and
// without their ends: the first and the last ones with one of the words that
// isErrorWord knows, and the last one that names an exception, such as "ValueError: bad
// date". Lines over 2,000 bytes are skipped. It reads the text in one pass.
func ErrorLines(text string) []Range {
	return errorLines(text, func(int) bool { return true })
}

// Complaints are ErrorLines of a text that need not be about a failure, such as source or
// a log: the word stands in capitals, before a colon or a bracket, or alone in quotes, as
// in "ERROR disk full", "error: no rule", "error[E0308]" and {"level":"error"}.
func Complaints(text string) []Range {
	return errorLines(text, func(at int) bool {
		end := at
		for end < len(text) && is(text[end], isWord) {
			end++
		}
		switch after := text[end:]; {
		case strings.ToUpper(text[at:end]) == text[at:end]:
			return true
		case strings.HasPrefix(after, `"`):
			return at > 0 && text[at-1] == '"' && !strings.HasPrefix(after, `":`)
		default:
			return strings.HasPrefix(after, ":") || strings.HasPrefix(after, "[")
		}
	})
}

// errorLines returns the lines with an error word that counts, and the last that names an
// exception.
func errorLines(text string, counts func(at int) bool) []Range {
	var found []Range
	var last [LastErrorLines]Range
	more := 0
	for at := 0; ; {
		hit := nextErrorWord(text, at)
		if hit < 0 {
			break
		}
		if !counts(hit) {
			at = hit + 1
			continue
		}
		line := lineAt(text, hit)
		at = line.To
		switch {
		case line.To-line.From > maxErrorLineBytes:
		case len(found) < FirstErrorLines:
			found = append(found, line)
		default:
			last[more%LastErrorLines] = line
			more++
		}
	}
	for i := max(more-LastErrorLines, 0); i < more; i++ {
		found = append(found, last[i%LastErrorLines])
	}
	if line, ok := raisedLine(text); ok {
		at, known := slices.BinarySearchFunc(found, line, func(a, b Range) int { return cmp.Compare(a.From, b.From) })
		if !known {
			found = slices.Insert(found, at, line)
		}
	}
	return found
}

// raisedLine returns the last line that names an exception. It looks at each line once.
func raisedLine(text string) (raised Range, ok bool) {
	for _, kind := range []string{"Error: ", "Exception: "} {
		for from := 0; ; {
			at := strings.Index(text[from:], kind)
			if at < 0 {
				break
			}
			at += from
			from = at + len(kind)
			if at == 0 || !is(text[at-1], isWord) {
				continue
			}
			line := lineAt(text, at)
			from = line.To
			if line.To-line.From <= maxErrorLineBytes && (!ok || line.From > raised.From) {
				raised, ok = line, true
			}
		}
	}
	return raised, ok
}

// WithDetail is a line of a text together with the next one, if that is indented deeper:
// it says where, or what was expected.
func (r Range) WithDetail(text string) Range {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(text[r.To:], "\r"), "\n")
	if !ok || indent(rest) <= indent(r.Of(text)) {
		return r
	}
	next := lineAt(text, len(text)-len(rest))
	if next.To-next.From > maxErrorLineBytes {
		return r
	}
	return Range{r.From, next.To}
}

func indent(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }

// lineAt is the line that a place of a text stands in, without its end.
func lineAt(text string, at int) Range {
	line := Range{strings.LastIndexByte(text[:at], '\n') + 1, len(text)}
	if end := strings.IndexByte(text[at:], '\n'); end >= 0 {
		line.To = at + end
	}
	for line.To > line.From && text[line.To-1] == '\r' {
		line.To--
	}
	return line
}

// nextErrorWord returns where the next word stands, from a place on, that says
// that something went wrong, or -1. Few words have the first three letters of one.
func nextErrorWord(text string, from int) int {
	three := uint32(0) // the last letters
	for i := from; i < len(text); i++ {
		three = (three<<5 | uint32(text[i]&0x1f)) & 0x7fff
		if errorHeads[three>>5]>>(three&0x1f)&1 == 0 {
			continue
		}
		if at := i - 2; at >= from && (at == 0 || !is(text[at-1], isWord)) && is(text[at], isWord) && isErrorWord(text[at:]) {
			return at
		}
	}
	return -1
}

// errorHeads has a bit for the first three letters of each word of isErrorWord, in any case:
// the five lowest bits of a letter are its place in the alphabet.
var errorHeads = func() (table [1 << 10]uint32) {
	for _, head := range []string{"err", "exc", "fai", "fat", "pan", "tra", "can", "cri", "den", "not", "no "} {
		three := uint32(head[0]&0x1f)<<10 | uint32(head[1]&0x1f)<<5 | uint32(head[2]&0x1f)
		table[three>>5] |= 1 << (three & 0x1f)
	}
	return table
}()

// isErrorWord reports whether a text begins with a word that says that something
// went wrong, in any case.
func isErrorWord(text string) bool {
	switch text[0] | 0x20 {
	case 'e':
		return hasWord(text, "error") || hasWord(text, "exception")
	case 'f':
		return hasWord(text, "fail") || hasWord(text, "failed") || hasWord(text, "failure") || hasWord(text, "fatal")
	case 'p':
		return hasWord(text, "panic") || hasWord(text, "panicked")
	case 't':
		return hasWord(text, "traceback")
	case 'c':
		return hasWord(text, "cannot") || hasWord(text, "critical")
	case 'd':
		return hasWord(text, "denied")
	case 'n':
		return hasWord(text, "not found") || hasWord(text, "no such")
	}
	return false
}

// hasWord reports whether a text begins with a word. The second letter, which decides
// most of the time, is looked at first.
func hasWord(text, word string) bool {
	return len(text) >= len(word) && text[1]|0x20 == word[1] && strings.EqualFold(text[:len(word)], word) &&
		(len(text) == len(word) || !is(text[len(word)], isWord))
}
