package passage

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// minPiece is the length in bytes up to which sentences and lines are joined: a few
	// words say nothing alone.
	minPiece = 80
	// maxPiece bounds a piece in bytes; a longer sentence is cut between words.
	maxPiece = 480
)

// Passage is a stretch of a text, in bytes; To is not in it.
type Passage struct{ From, To int }

// In is the passage's own text.
func (p Passage) In(text string) string { return text[p.From:p.To] }

// cut cuts a text into pieces without spaces at their ends: lines and sentences, short ones
// joined with those behind them in the same paragraph. All but spaces stands in one of them.
func cut(text string) (pieces []Passage) {
	var open Passage
	flush := func() {
		if open = trimmed(text, open); open.From < open.To {
			pieces = append(pieces, open)
		}
		open = Passage{open.To, open.To}
	}
	for at := 0; at < len(text); {
		end, paragraph := sentence(text, at)
		if end-open.From > maxPiece && open.To > open.From {
			flush()
			open.From = at
		}
		open.To, at = end, end
		if paragraph || open.To-open.From >= minPiece {
			flush()
			open = Passage{at, at}
		}
	}
	flush()
	return pieces
}

// Sentences yields the lines and sentences of a text, each by itself and without spaces at
// its ends.
func Sentences(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for at := 0; at < len(text); {
			end, _ := sentence(text, at)
			if s := strings.TrimSpace(text[at:end]); s != "" && !yield(s) {
				return
			}
			at = end
		}
	}
}

// sentence returns where the sentence or line that begins at a place ends, with what spaces
// follow it, and whether a paragraph ends there.
func sentence(text string, from int) (end int, paragraph bool) {
	last := 0 // behind the last space
	for at := from; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		if at+size-from > maxPiece && at > from {
			if last > from {
				return last, false
			}
			return at, false
		}
		at += size
		switch {
		case r == '\n':
			end = skipSpace(text, at)
			return end, strings.Contains(text[at:end], "\n")
		case unicode.IsSpace(r):
			last = at
		case endsSentence(r) && ends(text[at:], r):
			at = closing(text, at)
			end = skipSpace(text, at)
			return end, strings.Count(text[at:end], "\n") > 1
		}
	}
	return len(text), true
}

func endsSentence(r rune) bool { return strings.ContainsRune(".!?。！？؟।", r) }

// ends reports whether a sentence ends before rest. A mark of ASCII needs a space behind it,
// or it is that of a number or a name.
func ends(rest string, mark rune) bool {
	if mark >= utf8.RuneSelf {
		return true
	}
	next, _ := utf8.DecodeRuneInString(strings.TrimLeft(rest, `"')]*_`))
	return rest == "" || unicode.IsSpace(next)
}

// closing skips what closes a sentence behind its mark.
func closing(text string, at int) int {
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		if !strings.ContainsRune(`"')]*_”’»」』）`, r) {
			break
		}
		at += size
	}
	return at
}

// skipSpace returns where the spaces end that begin at a place.
func skipSpace(text string, at int) int {
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		if !unicode.IsSpace(r) {
			break
		}
		at += size
	}
	return at
}

// trimmed is a passage without the spaces at its ends.
func trimmed(text string, p Passage) Passage {
	s := p.In(text)
	p.From += len(s) - len(strings.TrimLeftFunc(s, unicode.IsSpace))
	p.To -= len(s) - len(strings.TrimRightFunc(s, unicode.IsSpace))
	return Passage{p.From, max(p.From, p.To)}
}
