package memory

import (
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/lexical"
)

// count takes over what the ranking counted.
func (r *Receipt) count(f lexical.Answer) {
	r.LexicalCandidates, r.VectorCandidates = f.LexicalCandidates, f.VectorCandidates
	r.Filtered, r.Expired, r.Superseded = f.Filtered, f.Expired, f.Superseded
	r.UnderMinScore, r.OverLimit = f.UnderMinScore, f.OverLimit
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
	excluded := r.Filtered + r.Expired + r.Superseded
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

// cutToTokens drops the worst hits until the texts of the others fit.
func (a *asking) cutToTokens(result *Answer) {
	if a.query.MaxTokens == 0 {
		return
	}
	fit := 0
	for _, hit := range result.Hits {
		tokens := a.countTokens(hit.Record.Text)
		if result.Receipt.Tokens+tokens > a.query.MaxTokens {
			break
		}
		result.Receipt.Tokens += tokens
		fit++
	}
	result.Receipt.OverMaxTokens = len(result.Hits) - fit
	result.Hits = result.Hits[:fit]
}
