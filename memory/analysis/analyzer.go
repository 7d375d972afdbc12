package analysis

import (
	"cmp"
	"hash/maphash"
	"iter"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"
)

// Limits of the analysis.
const (
	// MaxTermBytes bounds a term. A longer word is cut, alike in text and
	// query; an identifier that would be longer is not kept whole.
	MaxTermBytes = 64
	// maxStemBytes bounds the words that are stemmed and remembered: hardly a
	// word is longer, but base64 is. Letters outside ASCII take two bytes.
	maxStemBytes   = 32
	maxForeignStem = 2 * maxStemBytes
	// memoSets and memoWays say how many words a memo remembers: 32 Ki, at
	// some 100 bytes each. A language's everyday words fit.
	memoSets = 8 << 10 // a power of two
	memoWays = 4
)

// version goes up whenever a text gets other terms than before, in any language
// and be it by a newer stemmer, so that indexes are made anew.
const version = 7

// Analyzer converts text into terms. It is safe for concurrent use; share one, as
// it remembers the stems of words it has seen, in bounded memory.
type Analyzer struct {
	language grammar
	months   [13]string // the terms of the months, from 1
	seed     maphash.Seed
	memo     []memoSet
}

// Options adjusts an Analyzer. Nil and zero fields mean the defaults.
type Options struct {
	// Language is the language whose stop words and endings fall away. Default
	// Auto. Index and queries must have the same.
	Language Language
}

// memoSet remembers the words whose hashes fall together. A tag says cheaply
// which way is worth looking at; it may be out of date, the word never is.
type memoSet struct {
	tags [memoWays]atomic.Uint32
	ways [memoWays]atomic.Pointer[known]
}

// known is the stored analysis of a word.
type known struct {
	word  string // as it stands in the text; if it is ASCII, in lower case
	term  string
	stop  bool
	month uint8 // 1 to 12 for the name of a month
	// plain: the term is the word in ASCII and must be read as such.
	plain bool
	// accented: the term lacks accents that the word has.
	accented bool
	// spelled is the term of the word with two letters in place of one with a mark, as
	// mueller is for müller; empty for most.
	spelled string
	// meaning is what it is in the language that it was last met in, or nil.
	meaning atomic.Pointer[meaning]
}

// New returns an analyzer. The options may be nil.
func New(opts *Options) *Analyzer {
	if opts == nil {
		opts = &Options{}
	}
	a := &Analyzer{language: opts.Language.grammar(), seed: maphash.MakeSeed(), memo: make([]memoSet, memoSets)}
	for i, name := range monthNames {
		a.months[i+1] = a.stem(name)
	}
	return a
}

// Name names the analysis: the language and the version, such as "english/1".
// Analyzers of one name make the same terms of the same text, analyzers of different
// names need not.
func (a *Analyzer) Name() string { return a.language.name + "/" + strconv.Itoa(version) }

// Terms yields the terms of text in order, repeats included. An identifier's
// parts come before its whole. A text of stop words alone yields these; one
// without letters, digits or symbols yields nothing. Bytes that are not UTF-8
// separate words.
func (a *Analyzer) Terms(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		w := walker{analyzer: a, yield: yield}
		w.read(text)
	}
}

// lookup returns the analysis of a word, of ASCII letters and digits in lower
// case or of letters outside ASCII as they stand, and learns it if need be. It
// keeps no reference to word.
func (a *Analyzer) lookup(word []byte) *known {
	return recall(a, maphash.Bytes(a.seed, word), word)
}

// lookupText is lookup for a word that is a text already.
func (a *Analyzer) lookupText(word string) *known {
	return recall(a, maphash.String(a.seed, word), word)
}

func recall[T string | []byte](a *Analyzer, hash uint64, word T) *known {
	set, tag := &a.memo[hash%memoSets], uint32(hash>>32)
	for i := range set.tags {
		if set.tags[i].Load() != tag {
			continue
		}
		if k := set.ways[i].Load(); k != nil && k.word == string(word) {
			return k
		}
	}
	k := a.learn(string(word))
	if len(word) <= maxForeignStem {
		at := tag % memoWays
		for i := range set.ways {
			if set.ways[i].Load() == nil {
				at = uint32(i)
				break
			}
		}
		set.ways[at].Store(k)
		set.tags[at].Store(tag)
	}
	return k
}

// learn finds out about a word.
func (a *Analyzer) learn(word string) *known {
	if !isASCII(word) {
		return a.learnForeign(word)
	}
	k := &known{word: word, term: word, month: monthOf(word), stop: a.language.stop(word)}
	if !k.stop {
		k.term = a.stem(word)
	}
	return k
}

func (a *Analyzer) learnForeign(word string) *known {
	folded := Fold(word)
	if s := scriptOf(folded); s != nil {
		k := &known{word: word, term: s.plain(folded)}
		k.term = cmp.Or(k.term, folded)
		if k.stop = s.stop(k.term); !k.stop && s.stemmable(k.term) {
			if stem := s.stem(k.term); stem != "" {
				k.term = stem
			}
		}
		k.term = cut(k.term)
		return k
	}
	// A capital I with a dot folds to an i with one more.
	k := &known{word: word, term: strings.ReplaceAll(folded, "i\u0307", "i")}
	if a.language.plainLetters {
		k.term = withoutAccents(folded)
		k.accented = k.term != folded
		if spelled := spelledOut.Replace(folded); spelled != folded {
			k.spelled = a.stem(withoutAccents(spelled))
		}
	}
	if k.plain = isASCII(k.term); k.plain {
		return k
	}
	if k.stop = a.language.stop(k.term); !k.stop {
		k.term = a.stem(k.term)
	}
	return k
}

// stem cuts a word to its stem. Words with digits and words that no text of
// the language has stay as they are, up to MaxTermBytes.
func (a *Analyzer) stem(word string) string {
	longest := maxForeignStem
	if isASCII(word) {
		longest = maxStemBytes
	}
	if len(word) > longest || !isStemmable(word) {
		return cut(word)
	}
	if stem := cut(a.language.stem(word, true)); stem != "" {
		return stem
	}
	return word
}

// isStemmable reports whether a folded word consists of letters that stemmers
// know.
func isStemmable(word string) bool {
	for _, r := range word {
		if r < utf8.RuneSelf && !isLower(byte(r)) || r >= utf8.RuneSelf && !isSimpleLetter(r) {
			return false
		}
	}
	return true
}
