package passage

import (
	"hash/maphash"
	"iter"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
)

const (
	// aroundShare is the part of what a piece has of the words that are asked for that
	// those next to it count with: an answer stands right before or behind them, too.
	aroundShare = 0.5
	// evenShare is the part of what a text is worth that all its pieces have alike: what
	// it was found for may be said in other words.
	evenShare = 0.3
)

// ValueOf is what a hit of a search is worth. How likely it answers the question falls with
// its place, counted from 0: on LoCoMo dev .54, .18, .08, .03, .011, .004 of the questions have
// evidence at a place up to 1, 2, 4, 8, 16, 32, and on RealMem dev .38, .13, .10, .05, .027,
// .013.
func ValueOf(place int, score float64) float64 { return score / float64(place+1) }

// cut offers the pieces of a long text.
func (g *filling) cut(o offer) []offer {
	text := g.texts[o.text].Text
	pieces := cut(text)
	shares := g.shares(text, pieces)
	all := make([]offer, len(pieces))
	for i, p := range pieces {
		all[i] = offer{text: o.text, Passage: p, value: o.value * shares[i]}
		all[i].worth = min(o.worth, worth(all[i].value, p.To-p.From))
	}
	return all
}

// shares are the parts of what a text is worth that its pieces have. Where none has a word
// that is asked for, the first have most: they say what it is about.
func (f *Filler) shares(text string, pieces []Passage) []float64 {
	own := make([]float64, len(pieces)+2) // with nothing before the first and behind the last
	last := make(map[string]int, len(f.Weights))
	for i, p := range pieces {
		for term := range f.Terms(p.In(text)) {
			if weight := f.Weights[term]; weight > 0 && last[term] != i+1 {
				last[term] = i + 1 // each word once in a piece
				own[i+1] += weight
			}
		}
	}
	shares, sum := make([]float64, len(pieces)), 0.0
	for i := range shares {
		shares[i] = own[i+1] + aroundShare*max(own[i], own[i+2])
		sum += shares[i]
	}
	even := 1 / float64(len(shares))
	for i := range shares {
		if sum == 0 {
			shares[i] = 1 / float64(i+1)
			continue
		}
		shares[i] = evenShare*even + (1-evenShare)*shares[i]/sum
	}
	return shares
}

// seed is that of the hashes of words, alike in all that is compared.
var seed = maphash.MakeSeed()

// pairSpread makes other pairs of the same words in another order.
const pairSpread = 31

// memoBytes bounds what a Memo holds: some ten thousand statements.
const memoBytes = 4 << 20

// Memo remembers of texts what fillers compare them by, since questions of one talk find much
// the same: it takes longer to read a text than to weigh it. It holds hashes, at most 4 MiB of
// them. It is safe for concurrent use. Make one with NewMemo; a nil one remembers nothing.
type Memo struct {
	known *cache.Cache[memoKey, []uint64]
}

// memoKey names a text.
type memoKey struct {
	hash uint64
	size int
}

// NewMemo returns an empty one.
func NewMemo() *Memo { return &Memo{cache.New[memoKey, []uint64](memoBytes)} }

// pairs returns the pairs of a text. The result is shared.
func (m *Memo) pairs(terms func(string) iter.Seq[string], text string) []uint64 {
	if m == nil {
		return pairsOf(terms(text))
	}
	key := memoKey{maphash.String(seed, text), len(text)}
	pairs, ok := m.known.Get(key)
	if !ok {
		pairs = pairsOf(terms(text))
		m.known.Put(key, pairs, 8*cap(pairs)+memoBeside)
	}
	return pairs
}

// memoBeside is about what the memo has for a text beside its pairs.
const memoBeside = 128

// pairsOf are the pairs of words that stand next to one another in a text, each once; of a
// single word that word.
func pairsOf(terms iter.Seq[string]) []uint64 {
	pairs := []uint64{}
	var before, words uint64
	for term := range terms {
		now := maphash.String(seed, term)
		if words++; words > 1 {
			pairs = append(pairs, pairSpread*before+now)
		}
		before = now
	}
	if words == 1 {
		return append(pairs, before)
	}
	slices.Sort(pairs)
	return slices.Compact(pairs)
}
