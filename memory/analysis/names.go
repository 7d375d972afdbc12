package analysis

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// Indexed yields the Terms of a text for an index, and calls aside with more terms that it
// is found by: its stop words, the single characters of scripts without spaces, and other
// spellings. A stop word that is written as a name is (The Who, IT, vitamin D) is there as
// such, too. They say nothing of how long the text is.
func (a *Analyzer) Indexed(text string, aside func(term string)) iter.Seq[string] {
	return a.withAsides(text, true, aside)
}

// Asked yields the Terms of a query, and calls aside with the terms of Indexed that say the same
// in other forms. Stop words are among the Terms where there is nothing else.
func (a *Analyzer) Asked(text string, aside func(term string)) iter.Seq[string] {
	return a.withAsides(text, false, aside)
}

func (a *Analyzer) withAsides(text string, stops bool, aside func(string)) iter.Seq[string] {
	return func(yield func(string) bool) {
		w := walker{analyzer: a, yield: yield, aside: aside, stopsAside: stops}
		w.read(text)
	}
}

// nameMark begins the term of a stop word that is written as a name. No word has it.
const nameMark = "^"

// name yields the term of a stop word with a capital, if it is a name: within a sentence,
// or in capitals where not all of the text is.
func (w *walker) name(k *known, text string, start, end int) bool {
	if k.word == "i" || !w.keepStops && !within(text, start) && (end-start == 1 || !allCapitals(text[start:end]) || allCapitals(w.all)) {
		return true
	}
	return w.emitAside(nameMark + k.term)
}

// within reports whether a place is inside of a sentence, because a word, a comma or a hyphen stands
// before it.
func within(text string, at int) bool {
	for at > 0 && text[at-1] == ' ' {
		at--
	}
	return at > 0 && (isAlnum(text[at-1]) || text[at-1] == ',' || text[at-1] == '-' || text[at-1] >= utf8.RuneSelf)
}

// allCapitals reports whether a text has no small letter of ASCII.
func allCapitals(text string) bool {
	for i := range len(text) {
		if isLower(text[i]) {
			return false
		}
	}
	return true
}

// afterSigil returns where the signs end that are part of a name behind its last letter:
// C++, C#, A+. It is end where there are none.
func afterSigil(text string, start, end int) int {
	rest := text[end:]
	switch {
	case rest == "" || isDigit(text[end-1]):
		return end
	case strings.HasPrefix(rest, "++"):
		return end + 2
	case rest[0] == '#' && end-start > 2, rest[0] != '#' && rest[0] != '+', len(rest) > 1 && isAlnum(rest[1]):
		return end
	}
	return end + 1
}

// sigil yields a word with the signs behind it, as a whole, and without them if it has
// more than one letter. It returns where it ends.
func (w *walker) sigil(text string, start, end, after int) (int, bool) {
	whole := lower(w.part[:0], text[start:end])
	whole = append(whole, text[end:after]...)
	w.whole.add(whole, false)
	if len(whole) > MaxTermBytes {
		return after, true
	}
	if end-start == 1 {
		return after, w.emitTerm(string(whole))
	}
	return after, w.emitAside(string(whole)) && w.emit(w.analyzer.lookup(whole[:end-start]))
}

// beginsWithDot reports whether a word is a name that begins with a dot: .NET, .env.
func beginsWithDot(text string, start int) bool {
	if start == 0 || text[start-1] != '.' || isDigit(text[start]) {
		return false
	}
	return start == 1 || strings.IndexByte(" \t\n(\"'`", text[start-2]) >= 0
}

// dotted yields a word with the dot before it.
func (w *walker) dotted(text string, start int) bool {
	end := start
	for end < len(text) && isAlnum(text[end]) && end-start < maxStemBytes {
		end++
	}
	return w.emitAside("." + string(lower(w.part[:0], text[start:end])))
}

// joined yields an identifier without its hyphens, or without the dots between single
// letters: Wi-Fi is wifi, U.S. is us.
func (w *walker) joined(id []byte) bool {
	single := len(id) == 2*w.whole.parts-1
	plain := w.part[:0]
	for _, c := range id {
		switch {
		case c == '-' || single && c == '.':
		case !isAlnum(c):
			return true
		default:
			plain = append(plain, c)
		}
	}
	if len(plain) > maxStemBytes {
		return true
	}
	return w.emitAside(w.analyzer.lookup(plain).term)
}
