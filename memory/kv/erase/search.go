package erase

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// strictBytes is from which length an id is looked for in all bytes. A shorter one stands in
// other words and numbers by chance, so it only counts as a word or a whole field.
const strictBytes = 8

// maxDepth bounds how deep messages in messages are searched.
const maxDepth = 8

// Search looks for an id, or for words. The zero value finds nothing.
type Search struct {
	id    []byte
	words [][]byte
}

// NewSearch looks for an id.
func NewSearch(id string) Search { return Search{id: []byte(id)} }

// What of texts WordsOf looks for: the longest lines, if they are not as short as lines that
// stand everywhere.
const (
	minWordBytes = 16
	maxWords     = 48
)

// WordsOf looks for what some texts say: for their longest lines, as they are and as JSON has
// them.
func WordsOf(texts ...string) Search {
	known := make(map[string]bool)
	var lines []string
	for _, text := range texts {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); len(line) >= minWordBytes && !known[line] {
				known[line] = true
				lines = append(lines, line)
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var s Search
	for _, line := range lines[:min(len(lines), maxWords)] {
		s.words = append(s.words, []byte(line))
		if quoted, err := json.Marshal(line); err == nil && len(quoted) > len(line)+2 {
			s.words = append(s.words, quoted[1:len(quoted)-1])
		}
	}
	return s
}

// In reports whether bytes have any of the words.
func (s Search) In(b []byte) bool {
	return slices.ContainsFunc(s.words, func(w []byte) bool { return bytes.Contains(b, w) })
}

// Names reports whether a key behind its tag, or a value, is or has the id as a whole part, or
// whether a value has any of the words.
func (s Search) Names(tail, value []byte) bool {
	if s.In(value) {
		return true
	}
	if len(s.id) == 0 {
		return false
	}
	if len(s.id) >= strictBytes {
		return bytes.Contains(tail, s.id) || bytes.Contains(value, s.id)
	}
	return s.word(tail) || s.word(value) || s.field(value, 0)
}

// Is reports whether a key behind its tag, a value, or a field of it is the id and nothing else.
func (s Search) Is(tail, value []byte) bool {
	return len(s.id) > 0 && (bytes.Equal(tail, s.id) || bytes.Equal(value, s.id) || s.exactly(value, 0))
}

func (s Search) exactly(message []byte, depth int) (found bool) {
	if depth == maxDepth || !bytes.Contains(message, s.id) {
		return false
	}
	for f, err := range wire.Fields(message) {
		if err != nil {
			return false
		}
		found = found || bytes.Equal(f.Bytes, s.id) || s.exactly(f.Bytes, depth+1)
	}
	return found
}

// word reports whether bytes are a text that has the id as a word.
func (s Search) word(b []byte) bool {
	if !bytes.Contains(b, s.id) || !isText(b) {
		return false
	}
	for at := 0; ; {
		n := bytes.Index(b[at:], s.id)
		if n < 0 {
			return false
		}
		begin, end := at+n, at+n+len(s.id)
		before, _ := utf8.DecodeLastRune(b[:begin])
		behind, _ := utf8.DecodeRune(b[end:])
		if (begin == 0 || !ofWord(before)) && (end == len(b) || !ofWord(behind)) {
			return true
		}
		at = begin + 1
	}
}

// isText reports whether bytes are a text: numbers and hashes have any byte.
func isText(b []byte) bool {
	return utf8.Valid(b) && bytes.IndexFunc(b, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }) < 0
}

func ofWord(r rune) bool {
	return r == '_' || r == '-' || r == '.' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// field reports whether bytes are a message with a field that is a text with the id.
func (s Search) field(message []byte, depth int) (found bool) {
	if depth == maxDepth || !bytes.Contains(message, s.id) {
		return false
	}
	for f, err := range wire.Fields(message) {
		if err != nil {
			return false
		}
		found = found || s.word(f.Bytes) || s.field(f.Bytes, depth+1)
	}
	return found
}
