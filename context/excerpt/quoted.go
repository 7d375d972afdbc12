package excerpt

import "strings"

// Quoted finds the escapes of quoted text, such as `\n` in JSON and in source code,
// so that the letter of an escape is not taken for the beginning of a name. It
// reads a text from front to back; the zero value is ready.
type Quoted struct {
	// to is the end of the line that was looked at last, and quote is where its
	// first quotation mark stands.
	to, quote int
}

// Escaped returns how many bytes at a place of a text belong to an escape that
// began right before it: 1 for the letter of `\n`, 5 for `u00e9`, else 0. Places
// must not go down.
func (q *Quoted) Escaped(text string, at int) int {
	if at == 0 || at >= len(text) || text[at-1] != '\\' {
		return 0
	}
	var size int
	switch text[at] {
	case 'n', 'r', 't':
		size = 1
	case 'u':
		if size = len("u0000"); at+size > len(text) || strings.Trim(text[at+1:at+size], "0123456789abcdefABCDEF") != "" {
			return 0
		}
	default:
		return 0
	}
	slashes := 1
	for at-slashes > 0 && text[at-slashes-1] == '\\' {
		slashes++
	}
	if slashes%2 == 0 || !q.within(text, at) {
		return 0
	}
	return size
}

// within reports whether a quotation mark stands before a place in its line. Outside
// of quotes a backslash is a backslash, as in the paths of Windows.
func (q *Quoted) within(text string, at int) bool {
	if at >= q.to {
		from := strings.LastIndexByte(text[:at], '\n') + 1
		q.to = len(text)
		if end := strings.IndexByte(text[at:], '\n'); end >= 0 {
			q.to = at + end
		}
		q.quote = q.to
		if first := strings.IndexByte(text[from:q.to], '"'); first >= 0 {
			q.quote = from + first
		}
	}
	return q.quote < at
}

// QuotedPart is a part of a text, for a Quoted. Where it begins within quotes, it
// has a quotation mark before it.
func QuotedPart(text string, from, to int) string {
	line := strings.LastIndexByte(text[:from], '\n') + 1
	if strings.IndexByte(text[line:from], '"') >= 0 {
		return `"` + text[from:to]
	}
	return text[from:to]
}
