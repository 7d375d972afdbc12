package question

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/memory/filter"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/lexical/rank"
	"github.com/loom-bridge/loom-bridge/memory/past"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/relations"
)

// Limits and defaults of a question.
const (
	// MaxTextBytes bounds its text.
	MaxTextBytes = 8 << 10
	// MaxWords bounds the different words of its text that are searched. A question
	// has a dozen; of a text that somebody pasted the first words count.
	MaxWords = 256
	// DefaultLimit is the number of hits of one that names none.
	DefaultLimit = 5
	// MaxLimit bounds the hits of one question.
	MaxLimit = 100
	// DefaultRecencyHalfLife is the half-life of one that names none.
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
	// Vector: vectors only. memory.ErrNoEmbedder without an embedder.
	Vector
)

// Question asks for the records that fit best.
type Question struct {
	// Text is what to look for: 1 byte to MaxTextBytes of UTF-8. It may be
	// empty in mode Vector with an Embedding.
	Text string
	// Limit is how many hits at most. Default DefaultLimit, with MaxTokens MaxLimit: these
	// bound the answer then. At most MaxLimit.
	Limit int
	// Filter narrows the search before anything is ranked; see filter.Expression.
	// Empty: no filter.
	Filter string
	// Mode is which signals to use. Default Hybrid.
	Mode Mode
	// MinScore drops hits under this score, 0 to 1, and hits that exceed it only because of
	// their neighbours in the session or their author. Default 0.
	MinScore float64
	// MaxTokens bounds the texts of all hits together, and is filled with the best matching
	// texts: short texts whole, long ones as passages. Default 0: no bound.
	MaxTokens int
	// MaxBytes bounds what the records of all hits hold together, as record.Record.Bytes
	// counts. Hits are dropped from the worst up, but never the best one. Default
	// 0: no bound.
	MaxBytes int
	// Expand searches a second time with words that the first hits suggest.
	Expand bool
	// Explain says of each hit how its score came about.
	Explain bool
	// WithVectors completes the records of the hits with their vectors.
	WithVectors bool
	// Embedding is the vector of the text in EmbeddingSpace, in place of the
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
	// AccessWeight, from 0 to 1, is the part of a score that unread records lose;
	// those read often and of late lose little. It counts where the store counts accesses.
	// Default 0.
	AccessWeight float64
	// Without names signals that records are not ranked by: any of rank.Signals.
	Without []string
	// Archived finds what lies in the archive, too.
	Archived bool
	// Tiers are the memory tiers to search, 1 to 4. Default record.LongTerm alone.
	Tiers []int
	// Peek leaves the life of records with a sliding span as it is, though they are found.
	Peek bool
	// Moment, unless it is now, asks for what counted then.
	Moment past.Moment
	// Related, unless nil, adds records related to the hits.
	Related *Related
}

// Limits and defaults of related records.
const (
	// DefaultRelated is how many related records are added unless it is said otherwise.
	DefaultRelated = 5
	// MaxRelated bounds them.
	MaxRelated = 50
)

// Related asks for the records that are one relation away from hits.
type Related struct {
	// Way is the direction, as the hits see it. Default both.
	Way relations.Way
	// Names are the relations that count, at most relations.MaxNames; none: all.
	Names []string
	// Limit is how many records are added at most. Default DefaultRelated.
	Limit int
}

func (r *Related) check() error {
	switch {
	case r == nil:
		return nil
	case r.Way > relations.In:
		return invalid.Field(record.ErrInvalid, "related.direction", "is unknown")
	case r.Limit < 0 || r.Limit > MaxRelated:
		return invalid.Field(record.ErrInvalid, "related.limit", "is not from 1 to %d", MaxRelated)
	}
	return relations.CheckNames("related.names", r.Names)
}

// Most is how many hits at most.
func (q Question) Most() int {
	if q.MaxTokens > 0 {
		return cmp.Or(q.Limit, MaxLimit)
	}
	return cmp.Or(q.Limit, DefaultLimit)
}

// Check refuses what may not be asked, all but what is wrong with the filter.
func (q Question) Check() error {
	switch {
	case q.Text == "" && (q.Mode != Vector || len(q.Embedding) == 0):
		return invalid.Field(record.ErrInvalid, "query", "is empty")
	case len(q.Text) > MaxTextBytes:
		return record.TooLong("query", len(q.Text), MaxTextBytes)
	case !utf8.ValidString(q.Text):
		return invalid.Field(record.ErrInvalid, "query", "is not UTF-8")
	case q.Limit < 0 || q.Limit > MaxLimit:
		return invalid.Field(record.ErrInvalid, "limit", "is not from 1 to %d", MaxLimit)
	case len(q.Filter) > filter.MaxBytes:
		return record.TooLong("filter", len(q.Filter), filter.MaxBytes)
	case q.Mode > Vector:
		return invalid.Field(record.ErrInvalid, "mode", "is unknown")
	case q.MaxTokens < 0:
		return invalid.Field(record.ErrInvalid, "max_tokens", "is less than zero")
	case q.MaxBytes < 0:
		return invalid.Field(record.ErrInvalid, "max_bytes", "is less than zero")
	case q.RecencyHalfLife < 0:
		return invalid.Field(record.ErrInvalid, "recency_half_life", "is less than zero")
	case slices.ContainsFunc(q.Tiers, func(tier int) bool { return tier < 1 || tier > record.LongTerm }):
		return invalid.Field(record.ErrInvalid, "tiers", "are not all from 1 to %d", record.LongTerm)
	}
	for _, signal := range q.Without {
		if !slices.Contains(rank.Signals(), signal) {
			return invalid.Field(record.ErrInvalid, "without_signals", "names %.32q; there are %s", signal, strings.Join(rank.Signals(), ", "))
		}
	}
	for _, w := range []struct {
		field string
		value float64
	}{{"min_score", q.MinScore}, {"recency_weight", q.RecencyWeight}, {"importance_weight", q.ImportanceWeight}, {"access_weight", q.AccessWeight}} {
		if !(w.value >= 0 && w.value <= 1) {
			return invalid.Field(record.ErrInvalid, w.field, "is not from 0 to 1")
		}
	}
	if err := q.Related.check(); err != nil || q.Mode == Lexical {
		return err
	}
	return record.CheckEmbedding(q.Embedding, q.EmbeddingSpace)
}
