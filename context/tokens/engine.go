package tokens

import (
	"unicode"
	"unicode/utf8"
)

// engine counts with one vocabulary. It is immutable.
type engine struct {
	vocabulary *vocabulary
	splitter   splitter
	// han is the vocabulary of pieces in Chinese and Japanese; nil is the same.
	han *vocabulary
}

// of is the vocabulary of the piece that ends at a place. A piece of letters may begin with
// another character.
func (e *engine) of(text string, end int) *vocabulary {
	if e.han == nil || text[end-1] < utf8.RuneSelf {
		return e.vocabulary
	}
	if r, _ := utf8.DecodeLastRuneInString(text[:end]); unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) {
		return e.han
	}
	return e.vocabulary
}

// count returns the tokens of any text.
func (e *engine) count(text string, s *scratch) (n int) {
	text = s.valid(text)
	for at := 0; at < len(text); {
		end := e.splitter.next(text, at)
		if e.of(text, end).has(text, at, end) {
			n++
		} else {
			n += e.mergeCount(text, at, end, s)
		}
		at = end
	}
	return n
}

// mergeCount returns the tokens of a piece that is not one itself.
func (e *engine) mergeCount(text string, at, end int, s *scratch) int {
	if end-at > maxCachedLen {
		e.of(text, end).merge(text[at:end], s)
		return len(s.tokens)
	}
	key, slot := s.pieces.slot(text, at, end)
	n := slot.count(key)
	if n == 0 {
		e.of(text, end).merge(text[at:end], s)
		n = len(s.tokens)
		slot.put(key, n)
	}
	return n
}
