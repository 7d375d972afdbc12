package memory

import (
	"context"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/rank"
	"github.com/loom-bridge/loom-bridge/memory/passage"
	"github.com/loom-bridge/loom-bridge/memory/past"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/relations"
)

const (
	// MaxScopes bounds the scopes that one query searches: an agent, its user
	// and some shared spaces.
	MaxScopes = 16
	// DefaultVectorWeight is how much near vectors count unless the options say
	// otherwise: little, as it suits any model.
	DefaultVectorWeight = 0.15
)

// Hit is one record found.
type Hit struct {
	// Scope is where the record was found.
	Scope  kv.Scope
	Record record.Record
	// Score is from 0 to 1: how sure the search is that the record says
	// something about the question. Scores can be compared between queries.
	Score float64
	// Part is what MaxTokens left of the text, which is whole in Record; nil where that is all.
	Part *TextPart
	// Older are the ids of records that stated the same of the same before, by their form or
	// their vectors, the newest first.
	Older []string
	// Through, unless nil, is the relation that brought the record, which was not found
	// itself: it has no score.
	Through *Through
	// Explanation is there when the query asked for it.
	Explanation *Explanation
}

// Through is the relation between a hit and a record that came with it.
type Through struct {
	// Relation has the hit at one end, and at the other the record, or one that it has
	// replaced.
	Relation relations.Relation
	// Hit is the id of the hit, and Score its score.
	Hit   string
	Score float64
}

// TextPart is the given part of a record's text.
type TextPart struct {
	// Passages are stretches of the text, in their order: one at least.
	Passages []passage.Passage
}

// Explanation says how a score came about.
type Explanation struct {
	// Signals are the parts of the score, the strongest first.
	Signals []rank.Signal
	// MatchedWords are the words of the query, as the index has them, that the
	// record holds: none where it was found by what stands around it.
	MatchedWords []string
}

// Answer holds the hits of a query, best first, and how they were found.
type Answer struct {
	// Hits are best first; equal scores newest first.
	Hits    []Hit
	Receipt Receipt

	words   []rank.QueryWord
	weights []float64 // of words
}

// Words are the words that were asked for, as the index has them, and how much each counts.
func (a *Answer) Words() map[string]float64 {
	words := make(map[string]float64, len(a.words))
	for i, weight := range a.weights {
		words[a.words[i].Text] = weight
	}
	return words
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
	// AllOverMaxTokens: no hit and no passage of one fits into MaxTokens.
	AllOverMaxTokens
)

// Receipt says how a query was answered. Each candidate that is no hit is
// counted once, in the order of the counts.
type Receipt struct {
	// LexicalCandidates is how many records share a word with the query, or
	// stand near one in its session that does.
	LexicalCandidates int
	// VectorCandidates is how many records came from their vectors.
	VectorCandidates int
	// Filtered is how many candidates the filter or their tier removed.
	Filtered int
	// Expired is how many candidates had expired.
	Expired int
	// Superseded is how many candidates had been replaced.
	Superseded int
	// Archived is how many candidates lie in the archive.
	Archived int
	// UnderMinScore is how many candidates scored below MinScore.
	UnderMinScore int
	// OverLimit is how many candidates fell to Limit, or have a text that two better hits have.
	OverLimit int
	// OverMaxBytes is how many hits fell to MaxBytes.
	OverMaxBytes int
	// OverMaxTokens is how many of the others fell to MaxTokens.
	OverMaxTokens int
	// InPart is how many hits MaxTokens left a part of.
	InPart int
	// Tokens is how many the texts of the hits have, or the passages that are left of
	// them, each counted by itself; only with MaxTokens.
	Tokens int
	// VectorsScanned and VectorsRescored are how many vectors were compared by
	// their codes, and how many of them exactly.
	VectorsScanned, VectorsRescored int
	// EmbeddingSpaces are the spaces whose vectors were searched.
	EmbeddingSpaces []string
	// ExpandedWords are what Expand searched for in addition to the query.
	ExpandedWords []string
	// Records is how many records the scopes hold, those expired and
	// superseded included.
	Records int64
	// IndexSequence is the commit that the answer reflects, of the first
	// scope.
	IndexSequence uint64
	// Moment is the one that was asked for.
	Moment past.Moment
	// Reread is how many records were read again because they have changed or were
	// replaced since that moment, and Lost how many of them are missing because what they
	// were then is kept no longer.
	Reread, Lost int
	// Related is how many records came through relations and fit; RelatedExcluded
	// how many did not because of the filter, their tier, expiry, replacement, the archive
	// or review; RelatedOver how many fell to Related.Limit or to MaxBytes, or were not
	// looked at because too much had been.
	Related, RelatedExcluded, RelatedOver int
	// Degraded names what the search had to do without.
	Degraded []string
	// Empty is why there are no hits.
	Empty EmptyReason
}

// count takes over what the ranking counted.
func (r *Receipt) count(f rank.Answer) {
	r.LexicalCandidates, r.VectorCandidates = f.LexicalCandidates, f.VectorCandidates
	r.Filtered, r.Expired, r.Superseded, r.Archived = f.Filtered, f.Expired, f.Superseded, f.Archived
	r.UnderMinScore, r.OverLimit = f.UnderMinScore, f.OverLimit
}

// lookedBack says what a search of an earlier moment does without.
func (r *Receipt) lookedBack(m past.Moment) {
	if r.Moment = m; m.AsOf.IsZero() {
		return
	}
	r.Degraded = append(slices.Clip(r.Degraded), degradedGone)
	if r.VectorCandidates > 0 && r.Reread > 0 {
		r.Degraded = append(r.Degraded, degradedThen)
	}
}

// forgotRelations says that relations of then may be missing.
func (r *Receipt) forgotRelations(forgot bool) {
	if forgot {
		r.Degraded = append(slices.Clip(r.Degraded), degradedRelations)
	}
}

// addSpaces adds the names of embedding spaces, each once.
func (r *Receipt) addSpaces(spaces []string) {
	for _, space := range spaces {
		if !slices.Contains(r.EmbeddingSpaces, space) {
			r.EmbeddingSpaces = append(r.EmbeddingSpaces, space)
		}
	}
}

// explainEmpty says why there are no hits.
func (r *Receipt) explainEmpty(hits int, irrelevant bool) {
	excluded := r.Filtered + r.Expired + r.Superseded + r.Archived
	switch {
	case hits > 0:
	case r.Records == 0:
		r.Empty = NothingStored
	case irrelevant:
		r.Empty = NothingRelevant
	case r.OverMaxTokens > 0:
		r.Empty = AllOverMaxTokens
	case r.UnderMinScore > 0:
		r.Empty = AllUnderMinScore
	case excluded > 0:
		r.Empty = AllExcluded
	default:
		r.Empty = NothingRelevant
	}
}

// fill leaves of the hits what fits into MaxTokens and says most: short texts whole, of
// long ones passages.
func (a *asking) fill(ctx context.Context, result *Answer) error {
	if a.query.MaxTokens == 0 {
		return nil
	}
	texts := make([]passage.Text, len(result.Hits))
	for i, hit := range result.Hits {
		texts[i] = passage.Text{Text: hit.Record.Text, Value: passage.ValueOf(i, hit.Score)}
		if hit.Through != nil {
			texts[i].Value = passage.ValueOf(i, hit.Through.Score)
		}
	}
	by := passage.Filler{Terms: a.analyzer.Terms, Weights: result.Words(), Count: a.countTokens, Memo: a.packed}
	parts, err := by.Fill(ctx, texts, a.query.MaxTokens)
	if err != nil {
		return err
	}
	a.keep(result, parts)
	return nil
}

// keep keeps of the hits the parts that are given, and counts what is not.
func (a *asking) keep(result *Answer, parts []passage.Excerpt) {
	receipt, kept := &result.Receipt, result.Hits[:0]
	receipt.Related = 0
	for i, hit := range result.Hits {
		part := &parts[i]
		if !part.Given() {
			receipt.OverMaxTokens++
			continue
		}
		receipt.Tokens += part.Tokens
		if !part.Whole {
			receipt.InPart++
			hit.Part = &TextPart{Passages: part.Passages}
		}
		if hit.Through != nil {
			receipt.Related++
		}
		kept = append(kept, hit)
	}
	result.Hits = kept
}
