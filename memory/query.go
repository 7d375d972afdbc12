package memory

import (
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// Limits and defaults of a query.
const (
	// MaxQueryBytes bounds the text of a query.
	MaxQueryBytes = 8 << 10
	// MaxFilterBytes bounds a filter.
	MaxFilterBytes = 4 << 10
	// DefaultLimit is the number of hits of a query that names none.
	DefaultLimit = 5
	// MaxLimit bounds the hits of one query.
	MaxLimit = 100
	// MaxScopes bounds the scopes that one query searches: an agent, its user
	// and some shared spaces.
	MaxScopes = 16
	// DefaultVectorWeight is how much near vectors count unless the options say
	// otherwise: little, as it suits any model.
	DefaultVectorWeight = 0.15
	// DefaultRecencyHalfLife is the half-life of a query that names none.
	DefaultRecencyHalfLife = 30 * 24 * time.Hour
)

// Mode is which signals find candidates.
type Mode uint8

// The modes. The zero value is Hybrid.
const (
	// Hybrid: words and, where there is an embedder, vectors.
	Hybrid Mode = iota
	// Lexical: words only.
	Lexical
	// Vector: vectors only. ErrNoEmbedder without an embedder.
	Vector
)

// Query asks for the records that fit best.
type Query struct {
	// Text is what to look for: 1 byte to MaxQueryBytes of UTF-8. It may be
	// empty in mode Vector with an Embedding.
	Text string
	// Limit is how many hits at most. Default DefaultLimit, at most MaxLimit.
	Limit int
	// Filter narrows the search before anything is ranked; see filter.Expression.
	// Empty: no filter.
	Filter string
	// Mode is which signals to use. Default Hybrid.
	Mode Mode
	// MinScore drops hits under this score, 0 to 1. Default 0.
	MinScore float64
	// MaxTokens bounds the texts of all hits together. Hits are dropped from
	// the worst up, never cut. Default 0: no bound.
	MaxTokens int
	// MaxBytes bounds what the records of all hits hold together, as Record.Bytes
	// counts. Hits are dropped from the worst up, but never the best one. Default
	// 0: no bound.
	MaxBytes int
	// Expand searches a second time with words that the first hits suggest.
	Expand bool
	// Explain says of each hit how its score came about.
	Explain bool
	// WithVectors completes the records of the hits with their vectors.
	WithVectors bool
	// Embedding is the query's vector in EmbeddingSpace, in place of the
	// embedder's. Both or neither.
	Embedding      []float32
	EmbeddingSpace string
	// RecencyWeight, from 0 to 1, is the part of a score that very old records
	// lose; half of it is lost at the age RecencyHalfLife. Default 0.
	RecencyWeight float64
	// RecencyHalfLife is more than zero. Default DefaultRecencyHalfLife.
	RecencyHalfLife time.Duration
	// ImportanceWeight, from 0 to 1, is the part of a score that records of
	// importance zero lose. Default 0.
	ImportanceWeight float64
	// Tiers are the memory tiers to search, 1 to 4. Default LongTerm alone.
	Tiers []int
}

// Hit is one record found.
type Hit struct {
	// Scope is where the record was found.
	Scope  kv.Scope
	Record record.Record
	// Score is from 0 to 1: how sure the search is that the record says
	// something of what was asked. Scores can be compared between queries.
	Score float64
	// Explanation is there when the query asked for it.
	Explanation *Explanation
}

// Explanation says how a score came about.
type Explanation struct {
	// Signals are what was added up, the strongest first.
	Signals []SignalScore
	// MatchedWords are the words of the query, as the index has them, that the
	// record or one next to it holds.
	MatchedWords []string
}

// SignalScore is one signal's part of a rank.
type SignalScore struct {
	// Name is turn, window, session, author, date, vector, recency, importance
	// and such.
	Name string
	// Raw is what was measured, in the signal's own unit.
	Raw float64
	// Share is what it added to the rank; negative where it took away.
	Share float64
}

// Result holds the hits of a query, best first, and how they were found.
type Result struct {
	// Hits are best first; equal scores newest first.
	Hits    []Hit
	Receipt Receipt
}

// EmptyReason says why a query found nothing.
type EmptyReason uint8

// The reasons. The zero value means that there are hits.
const (
	// NothingStored: the scopes hold no record.
	NothingStored EmptyReason = iota + 1
	// NothingRelevant: no record has anything of the query.
	NothingRelevant
	// AllUnderMinScore: all that was found scored too low.
	AllUnderMinScore
	// AllExcluded: the filter, expiry or replacement took all.
	AllExcluded
	// AllOverMaxTokens: the best hit alone is over MaxTokens.
	AllOverMaxTokens
)

// Receipt says how a query was answered. Each candidate that is no hit is
// counted once, in the order of the counts.
type Receipt struct {
	// LexicalCandidates is how many records share a word with the query, or
	// stand in a session that does.
	LexicalCandidates int
	// VectorCandidates is how many records came from their vectors.
	VectorCandidates int
	// Filtered is how many candidates the filter or their tier removed.
	Filtered int
	// Expired is how many candidates had expired.
	Expired int
	// Superseded is how many candidates had been replaced.
	Superseded int
	// UnderMinScore is how many candidates scored below MinScore.
	UnderMinScore int
	// OverLimit is how many candidates fell to Limit.
	OverLimit int
	// OverMaxBytes is how many hits fell to MaxBytes.
	OverMaxBytes int
	// OverMaxTokens is how many of the others fell to MaxTokens.
	OverMaxTokens int
	// Tokens is how many the texts of the hits have; only with MaxTokens.
	Tokens int
	// VectorsScanned and VectorsRescored are how many vectors were compared by
	// their codes, and how many of them exactly.
	VectorsScanned, VectorsRescored int
	// EmbeddingSpaces are the spaces whose vectors were searched.
	EmbeddingSpaces []string
	// ExpandedWords are what Expand searched for beside the query.
	ExpandedWords []string
	// Records is how many records the scopes hold, those expired and
	// superseded included.
	Records int64
	// IndexSequence is the commit that the answer reflects, of the first
	// scope.
	IndexSequence uint64
	// Degraded names what the search had to do without.
	Degraded []string
	// Empty is why there are no hits.
	Empty EmptyReason
}
