package analysis

import (
	"hash/maphash"
	"iter"
	"sync/atomic"

	"github.com/kljensen/snowball/english"
)

// Limits of the analysis.
const (
	// MaxTermBytes bounds a term. A longer word is cut, alike in text and
	// query; an identifier that would be longer is not kept whole.
	MaxTermBytes = 64
	// maxStemBytes bounds the words that are stemmed and remembered: no English
	// word is longer, but base64 is.
	maxStemBytes = 32
	// memoSets and memoWays say how many words a memo remembers: 32 Ki, at
	// some 100 bytes each. A language's everyday words fit.
	memoSets = 8 << 10 // a power of two
	memoWays = 4
)

// Analyzer turns text into terms. It is safe for concurrent use; share one, as
// it remembers the stems of words it has seen, in bounded memory.
type Analyzer struct {
	seed maphash.Seed
	memo []memoSet
}

// memoSet remembers the words whose hashes fall together. A tag tells cheaply
// which way is worth looking at; it may be out of date, the word never is.
type memoSet struct {
	tags [memoWays]atomic.Uint32
	ways [memoWays]atomic.Pointer[known]
}

// known is what became of a word.
type known struct {
	word string // as it stands in the text, in lower case
	term string
	stop bool
}

// New returns an analyzer.
func New() *Analyzer {
	return &Analyzer{seed: maphash.MakeSeed(), memo: make([]memoSet, memoSets)}
}

// Terms yields the terms of text in order, repeats included. An identifier's
// parts come before its whole. A text of stop words alone yields these; one
// without letters, digits or symbols yields nothing. Bytes that are not UTF-8
// separate words.
func (a *Analyzer) Terms(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		w := walker{analyzer: a, yield: yield}
		if w.text(text) && !w.found {
			w.keepStops = true
			w.text(text)
		}
	}
}

// lookup returns what is known of a word of ASCII letters and digits in lower
// case, and learns it if need be. It keeps no reference to word.
func (a *Analyzer) lookup(word []byte) *known {
	hash := maphash.Bytes(a.seed, word)
	set, tag := &a.memo[hash%memoSets], uint32(hash>>32)
	for i := range set.tags {
		if set.tags[i].Load() != tag {
			continue
		}
		if k := set.ways[i].Load(); k != nil && k.word == string(word) {
			return k
		}
	}
	k := learn(string(word))
	if len(word) <= maxStemBytes {
		set.store(k, tag)
	}
	return k
}

// store puts k into a free way, or into one that its tag picks.
func (s *memoSet) store(k *known, tag uint32) {
	at := tag % memoWays
	for i := range s.ways {
		if s.ways[i].Load() == nil {
			at = uint32(i)
			break
		}
	}
	s.ways[at].Store(k)
	s.tags[at].Store(tag)
}

// learn finds out about a word.
func learn(word string) *known {
	if _, stop := stopWords[word]; stop {
		return &known{word: word, term: word, stop: true}
	}
	return &known{word: word, term: stem(word)}
}

// stem cuts an English word to its stem. Words with digits and words that no
// English text has stay as they are, up to MaxTermBytes.
func stem(word string) string {
	if len(word) > maxStemBytes {
		return word[:min(len(word), MaxTermBytes)]
	}
	for i := range len(word) {
		if !isLower(word[i]) {
			return word
		}
	}
	return english.Stem(word, true)
}
