package analysis

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// walker walks through one text. Its methods return false when the receiver of
// the terms has had enough.
type walker struct {
	analyzer  *Analyzer
	yield     func(string) bool
	keepStops bool
	found     bool // whether a term was yielded

	buf, part [MaxTermBytes]byte // a word and a part of it
	whole     whole
}

// emit yields the term of a word of ASCII letters and digits in lower case.
func (w *walker) emit(word []byte) bool {
	k := w.analyzer.lookup(word)
	if k.stop && !w.keepStops {
		return true
	}
	return w.emitTerm(k.term)
}

func (w *walker) emitTerm(term string) bool {
	w.found = true
	return w.yield(term)
}

// text walks through stretches of ASCII and chunks, up to a space, of anything
// else.
func (w *walker) text(text string) bool {
	for len(text) > 0 {
		plain := plainPrefix(text)
		if !w.ascii(text[:plain]) {
			return false
		}
		text = text[plain:]
		chunk := chunkPrefix(text)
		if chunk > 0 && !w.chunk(text[:chunk]) {
			return false
		}
		text = text[chunk:]
	}
	return true
}

// plainPrefix returns how much of text to take as ASCII: all, or up to the
// chunk that holds something else.
func plainPrefix(text string) int {
	afterSpace := 0
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return afterSpace
		}
		if classes[text[i]]&space != 0 {
			afterSpace = i + 1
		}
	}
	return len(text)
}

// chunkPrefix returns the length of text up to its first ASCII space.
func chunkPrefix(text string) int {
	for i := range len(text) {
		if classes[text[i]]&space != 0 {
			return i
		}
	}
	return len(text)
}

// chunk walks through a text that is not all ASCII: runs of CJK become pairs,
// symbols terms, and the stretches between other characters words.
func (w *walker) chunk(text string) bool {
	text = strings.ReplaceAll(norm.NFKC.String(text), "’", "'")
	for len(text) > 0 {
		first, size := utf8.DecodeRuneInString(text)
		kind := classify(first, size)
		end := size
		for end < len(text) && kind != symbol {
			r, size := utf8.DecodeRuneInString(text[end:])
			if classify(r, size) != kind && !(kind == cjk && unicode.IsMark(r)) {
				break
			}
			end += size
		}
		if !w.stretch(kind, text[:end]) {
			return false
		}
		text = text[end:]
	}
	return true
}

// runeKind is what a character means for cutting a text into words.
type runeKind uint8

const (
	separator runeKind = iota
	wordly             // may stand in a word, or is ASCII
	cjk                // Han, Kana, Hangul: no spaces between words
	symbol             // a term of its own, such as an emoji
)

func classify(r rune, size int) runeKind {
	switch {
	case r < utf8.RuneSelf:
		return wordly
	case r == utf8.RuneError && size <= 1:
		return separator
	case isCJK(r):
		return cjk
	case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || unicode.Is(unicode.Cf, r):
		return wordly
	case unicode.Is(unicode.So, r) && r != utf8.RuneError:
		return symbol
	}
	return separator
}

func isCJK(r rune) bool {
	const firstJamo, prolonged, halfProlonged = 0x1100, 'ー', 'ｰ'
	if r < firstJamo {
		return false
	}
	return r == prolonged || r == halfProlonged ||
		unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

func (w *walker) stretch(kind runeKind, text string) bool {
	switch kind {
	case cjk:
		return w.pairs(text)
	case symbol:
		return w.emitTerm(text)
	case wordly:
		return w.words(text)
	}
	return true
}

// pairs yields each two neighbours of a run, or its only character.
func (w *walker) pairs(run string) bool {
	_, first := utf8.DecodeRuneInString(run)
	if first == len(run) {
		return w.emitTerm(run)
	}
	for len(run) > first {
		_, second := utf8.DecodeRuneInString(run[first:])
		if !w.emitTerm(run[:first+second]) {
			return false
		}
		run, first = run[first:], second
	}
	return true
}

// words cuts a stretch into words after Unicode's rules.
func (w *walker) words(text string) bool {
	if isASCII(text) {
		return w.ascii(text)
	}
	state := -1
	for len(text) > 0 {
		var word string
		word, text, state = uniseg.FirstWordInString(text, state)
		read := w.foreign
		if isASCII(word) {
			read = w.ascii
		}
		if !read(word) {
			return false
		}
	}
	return true
}

// foreign yields a word with letters outside ASCII, its parts first when it
// has several.
func (w *walker) foreign(word string) bool {
	word = strings.TrimSuffix(strings.TrimSuffix(word, "'s"), "'S")
	parts := 0
	for part := range strings.FieldsFuncSeq(word, isGap) {
		if parts++; !w.foreignPart(part) {
			return false
		}
	}
	if parts > 1 && strings.ContainsAny(word, "._:") {
		return w.emitFolded(word)
	}
	return true
}

func (w *walker) foreignPart(part string) bool {
	if isASCII(part) {
		return w.ascii(part)
	}
	return w.emitFolded(part)
}

func (w *walker) emitFolded(word string) bool {
	term := Fold(word)
	if isASCII(term) {
		return w.ascii(term)
	}
	if strings.IndexFunc(term, isWordRune) < 0 {
		return true
	}
	return w.emitTerm(cut(term))
}

func isGap(r rune) bool {
	return !isWordRune(r) && !unicode.IsMark(r) && !unicode.Is(unicode.Cf, r)
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// cut shortens a term to MaxTermBytes, between characters.
func cut(term string) string {
	if len(term) <= MaxTermBytes {
		return term
	}
	end := MaxTermBytes
	for !utf8.RuneStart(term[end]) {
		end--
	}
	return term[:end]
}

// Fold returns text in the form in which terms are compared: normalized (NFKC)
// and without differences of case. Folding twice changes nothing more.
func Fold(text string) string {
	// Folding can undo the normal form and the normal form can bring back
	// capitals; in practice two rounds settle it.
	const maxRounds = 4
	for range maxRounds {
		folded := norm.NFKC.String(cases.Fold().String(norm.NFKC.String(text)))
		if folded == text {
			break
		}
		text = folded
	}
	return text
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
