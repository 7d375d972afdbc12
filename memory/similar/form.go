package similar

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"unicode"
)

const (
	// MaxBytes bounds the texts that are looked at; longer ones repeat nothing.
	MaxBytes = 64 << 10
	// minWords is how many words a text needs, and minTelling how many of them must not
	// be mere courtesy: "ok, thanks" is said again and again, and each time anew.
	minWords, minTelling = 3, 2
)

// Form is what of a text carries its meaning.
type Form struct {
	tokens []token
	words  int
	// telling is how many words are not mere courtesy.
	telling int
	// fleeting: it names a time that moves on, such as today.
	fleeting bool
	// lower and upper: it has letters of that case.
	lower, upper bool
}

// token is a word or a sign of a text.
type token struct {
	text string // in lower case
	raw  string // as it stands there
	// first: it begins a sentence, so that its case says nothing.
	first bool
	word  bool
	// point is a point or comma, which matters only next to a "no".
	point bool
}

// Of returns the form of a text.
func Of(text string) Form {
	f := Form{tokens: scan(text)}
	f.expand()
	f.dropPoints()
	if n := f.opening(); n > 0 {
		f.tokens = f.tokens[n:]
		f.tokens[0].first = true
	}
	f.dropFillers()
	for _, t := range f.tokens {
		f.count(t)
	}
	f.fleeting = fleeting(f.tokens)
	return f
}

func (f *Form) count(t token) {
	for _, r := range t.raw {
		f.lower = f.lower || unicode.IsLower(r)
		f.upper = f.upper || unicode.IsUpper(r)
	}
	if t.word {
		f.words++
		if !courtesy[t.text] {
			f.telling++
		}
	}
}

// Tells reports whether the text says enough to be recognised when it is said again.
func (f Form) Tells() bool { return f.words >= minWords && f.telling >= minTelling }

// Fleeting reports whether the text names a time that moves on, such as today: said
// again later it says something else.
func (f Form) Fleeting() bool { return f.fleeting }

// Sum is a checksum of the form: equal for equal forms, and for few others. It is stored
// (FORMAT.md), so a change of what a form is needs another version there.
func (f Form) Sum(also ...string) uint64 {
	h := sha256.New()
	for _, t := range f.tokens {
		h.Write([]byte(t.text))
		h.Write([]byte{0})
	}
	for _, text := range also {
		h.Write(binary.BigEndian.AppendUint64([]byte{1}, uint64(len(text))))
		h.Write([]byte(text))
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// Same reports whether two texts say the same.
func (f Form) Same(g Form) bool {
	if !slices.EqualFunc(f.tokens, g.tokens, func(a, b token) bool { return a.text == b.text }) {
		return false
	}
	for i, a := range f.tokens {
		if b := g.tokens[i]; !sameCase(a, b, f, g) && !f.dated(i) {
			return false
		}
	}
	return true
}

// dated reports whether a word is a month because a number stands next to it.
func (f Form) dated(i int) bool {
	number := func(i int) bool {
		return i >= 0 && i < len(f.tokens) && f.tokens[i].text[0] >= '0' && f.tokens[i].text[0] <= '9'
	}
	return months[f.tokens[i].text] && (number(i-1) || number(i+1))
}

// sameCase reports whether two words that differ in case at most are the same word: "us"
// is not "US", and "polish" is not "Polish".
func sameCase(a, b token, f, g Form) bool {
	switch {
	case a.raw == b.raw:
		return true
	case shouted(a.raw) != shouted(b.raw) && (f.lower && f.upper || g.lower && g.upper):
		// A word in capitals is an abbreviation, unless all of the text is in capitals.
		return !f.lower || !g.lower
	case a.first || b.first:
		return true
	}
	// Elsewhere case distinguishes names from words, unless one of the texts does without.
	careless := !f.upper || !g.upper || !f.lower || !g.lower
	return careless && !alsoName[a.text]
}

// shouted reports whether a word is in capitals and has more than one letter.
func shouted(word string) bool {
	letters := 0
	for _, r := range word {
		if unicode.IsLower(r) {
			return false
		}
		if unicode.IsUpper(r) {
			letters++
		}
	}
	return letters > 1
}

// Within reports whether f, which is not empty, has whole sentences of another text alone,
// in their order, and at least half of its words: what is said adds nothing to it then.
func Within(text, of string) bool {
	parts, all := sentences(text), sentences(of)
	said, words, at := 0, 0, 0
	for _, whole := range all {
		words += whole.words
	}
	for _, part := range parts {
		for at < len(all) && !part.Same(all[at]) {
			at++
		}
		if at == len(all) {
			return false
		}
		said += part.words
		at++
	}
	return said >= minWords && 2*said >= words
}

// sentences are the forms of a text's sentences.
func sentences(text string) []Form {
	var forms []Form
	start := 0
	add := func(end int) {
		if f := Of(text[start:end]); len(f.tokens) > 0 {
			forms = append(forms, f)
		}
		start = end
	}
	for i, r := range text {
		ends := r == '\n' || strings.ContainsRune(".!?", r) && (i+1 == len(text) || text[i+1] == ' ' || text[i+1] == '\n')
		if ends {
			add(i + 1)
		}
	}
	add(len(text))
	return forms
}

// Similarity is the part of two texts' runs of one and two words that both have, from 0 to
// 1 (Jaccard), without regard to case and points.
func Similarity(a, b string) float64 {
	x, y := shingles(a), shingles(b)
	if len(x) == 0 && len(y) == 0 {
		return 1
	}
	both := 0
	for s := range x {
		if y[s] {
			both++
		}
	}
	return float64(both) / float64(len(x)+len(y)-both)
}

func shingles(text string) map[string]bool {
	set := make(map[string]bool)
	last := ""
	for _, t := range scan(text) {
		if t.point {
			continue
		}
		set[t.text] = true
		if last != "" {
			set[last+" "+t.text] = true
		}
		last = t.text
	}
	return set
}
