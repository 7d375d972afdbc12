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

// ends returns where the first head tokens end and where the last tail tokens
// begin, moved to the next code points inside. A text that has no more than both
// together ends at its end.
func (e *engine) ends(text string, head, tail int, s *scratch) (from, to int) {
	repaired := s.valid(text)
	last := &lastLengths{ring: make([]uint8, min(tail, len(repaired)))}
	n := 0
	for at := 0; at < len(repaired); {
		end := e.splitter.next(repaired, at)
		for _, size := range e.lengths(repaired, at, end, s) {
			if n < head {
				from += int(size)
			}
			n++
			last.add(size)
		}
		at = end
	}
	if n <= head+tail {
		return len(text), len(text)
	}
	to = len(repaired) - last.sum
	for from > 0 && !utf8.RuneStart(repaired[from]) {
		from--
	}
	for to < len(repaired) && !utf8.RuneStart(repaired[to]) {
		to++
	}
	return original(text, from), original(text, to)
}

// lengths returns the bytes of each token of a piece. They belong to the
// scratch.
func (e *engine) lengths(text string, at, end int, s *scratch) []uint8 {
	s.lengths = s.lengths[:0]
	v := e.of(text, end)
	if v.has(text, at, end) {
		return append(s.lengths, uint8(end-at))
	}
	v.merge(text[at:end], s)
	for _, t := range s.tokens {
		s.lengths = append(s.lengths, v.length[t])
	}
	return s.lengths
}

// lastLengths adds up the last lengths of many.
type lastLengths struct {
	ring []uint8
	next int
	sum  int
}

func (l *lastLengths) add(size uint8) {
	if len(l.ring) == 0 {
		return
	}
	l.sum += int(size) - int(l.ring[l.next])
	l.ring[l.next] = size
	l.next = (l.next + 1) % len(l.ring)
}

// original returns the place in a text that a place in its repaired form stands
// for. A replacement character is longer than the byte it stands for.
func original(text string, repaired int) int {
	at := 0
	for repaired > 0 && at < len(text) {
		r, width := utf8.DecodeRuneInString(text[at:])
		at += width
		repaired -= utf8.RuneLen(r)
	}
	return at
}
