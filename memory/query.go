package memory

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
	// Text is what to look for: 1 byte to MaxQueryBytes of UTF-8.
	Text string
	// Limit is how many hits at most. Default DefaultLimit, at most MaxLimit.
	Limit int
	// Filter narrows the search: equality joined by AND, after AIP-160, over id,
	// key, kind, session_id, author, origin, metadata paths, and tags with the
	// operator `:`. The literal decides the type, and a missing metadata key
	// does not match. Empty: no filter.
	Filter string
	// Mode is which signals to use. Default Hybrid.
	Mode Mode
	// MinScore drops hits under this score, 0 to 1. Default 0.
	MinScore float64
}

// Hit is one record found.
type Hit struct {
	Record Record
	// Score is from 0 to 1: close to the share of the query's words, weighed by
	// rarity, that the record covers while that is small, 0.78 when it holds
	// all of them once; see lexical.Score.
	Score float64
}

// Result holds the hits of a query, best first, and how they were found.
type Result struct {
	// Hits are best first; equal scores newest first.
	Hits    []Hit
	Receipt Receipt
}

// Receipt says how a query was answered. Each candidate that is no hit is
// counted once: filtered before expired, before superseded, before under the
// minimal score; the rest fell to the limit.
type Receipt struct {
	// LexicalCandidates is how many records share a word with the query.
	LexicalCandidates int
	// Filtered is how many candidates the filter removed.
	Filtered int
	// Expired is how many candidates had expired.
	Expired int
	// Superseded is how many candidates had been replaced.
	Superseded int
	// UnderMinScore is how many candidates scored below MinScore.
	UnderMinScore int
	// Records is how many records the scope holds, those expired and
	// superseded included.
	Records int64
	// IndexSequence is the commit that the answer reflects.
	IndexSequence uint64
	// Degraded names what the search had to do without.
	Degraded []string
}

// Stats are counts of one scope.
type Stats struct {
	// Records is how many records the scope holds, those expired and
	// superseded included.
	Records int64
	// Words is the length of all of them, in words as the index counts them.
	Words int64
	// Tail is how many records are not packed yet.
	Tail int
	// Segments is how many packed pieces the index has.
	Segments int
	// IndexSequence is the commit that the counts reflect.
	IndexSequence uint64
}
