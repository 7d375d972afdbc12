package lexical

import (
	"context"
	"math"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// The constants of BM25: how soon more of the same word stops counting, and
// how much a long document is marked down.
const (
	bm25K1 = 0.9
	bm25B  = 0.4
)

// Query asks for the documents that hold its words.
type Query struct {
	// Words are what to look for, each once.
	Words []QueryWord
	// Filter are conditions that all must hold.
	Filter []Condition
	// Now is the moment at which a document must not have expired, in
	// microseconds since 1970.
	Now int64
	// Limit is how many hits at most; zero means none.
	Limit int
	// MinScore drops hits under this score.
	MinScore float64
}

// QueryWord is a word of a query and how often it stands there.
type QueryWord struct {
	Text  string
	Count int
}

// Condition asks for documents with a value, or for one document.
type Condition struct {
	// Field and Value are what the document must hold. Field zero asks for the
	// document with the Ordinal instead; zero is no document.
	Field   Field
	Value   string
	Ordinal uint32
}

// Hit is a document found.
type Hit struct {
	ID      string
	Ordinal uint32
	Score   float64
}

// Answer is what a query found. Candidates are the documents that hold a word
// of the query. Each candidate that is no hit is counted once, in the order of
// the fields; the rest fell to the limit.
type Answer struct {
	// Hits are best first, equal scores newest first.
	Hits []Hit
	// Candidates, and those that no condition let through, had expired, were
	// replaced, or scored too low.
	Candidates, Filtered, Expired, Superseded, UnderMinScore int
	// Statistics are those of the scope.
	Statistics Statistics
}

// Score turns the sum of BM25 weights of a document into a number from 0 to 1.
// Mass is the sum of the inverse document frequencies of the query's words,
// each as often as it stands there and found or not. A document that holds
// every word once and has the average length has a sum equal to the mass; no
// sum reaches k+1 times the mass, k being BM25's k1. With share = sum/((k+1)·mass), the score is
// 1-(1-share)²: while little of the query is covered it is close to the part
// covered, all words once give 0.78, and it approaches 1 as they repeat.
// Documents keep the order that their sums give them.
func Score(sum, mass float64) float64 {
	if mass <= 0 {
		return 0
	}
	rest := 1 - min(1, sum/((bm25K1+1)*mass))
	return 1 - rest*rest
}

// inverseFrequency is the weight of a word that stands in df of n documents.
func inverseFrequency(n, df uint64) float64 {
	return math.Log1p((float64(n) - float64(df) + 0.5) / (float64(df) + 0.5))
}

// Search answers a query from a view that must not change during the call, such
// as a snapshot.
func (x *Index) Search(ctx context.Context, view kv.Reader, scope kv.Scope, q Query) (Answer, error) {
	h, err := readHead(ctx, view, scope, true)
	if err != nil {
		return Answer{}, err
	}
	segments, err := x.cache.load(ctx, view, h)
	if err != nil {
		return Answer{}, err
	}
	s := newSearch(h, segments, q)
	if err := s.readChunks(ctx, view); err != nil {
		return Answer{}, err
	}
	if err := s.readTail(ctx, view); err != nil {
		return Answer{}, err
	}
	work := x.borrow(h.stats.Last)
	defer x.scores.Put(work)
	if err := s.rank(work); err != nil {
		return Answer{}, err
	}
	return s.answer(ctx, view, work)
}

// borrow returns cleared working memory for ordinals up to last.
func (x *Index) borrow(last uint32) *scores {
	work, ok := x.scores.Get().(*scores)
	if !ok {
		work = &scores{}
	}
	work.reset(last)
	return work
}
