package memory

import (
	"context"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory/lexical/rank"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/similar"
)

// shownAlike is how many hits of the same text an answer has while something else is there to
// show: a third says nothing new.
const shownAlike = 2

// find ranks and reads the hits. Where the same text takes the places of others, it looks
// further, and these others take them. A query with a filter or tiers may ask how often
// something was said.
func (a *asking) find(ctx context.Context, in *searched, receipt *Receipt) (rank.Answer, []Hit, error) {
	limit := a.asked.Limit
	for most := limit; ; most = min(question.MaxLimit, 2*most) {
		receipt.ExpandedWords = nil
		found, err := a.rank(ctx, in, most, receipt)
		if err != nil {
			return rank.Answer{}, nil, err
		}
		if a.byAccess {
			if err := a.weighAccesses(ctx, in, &found); err != nil {
				return rank.Answer{}, nil, err
			}
		}
		hits, err := a.readWithin(ctx, in, found.Hits)
		if err != nil || a.query.Filter != "" || len(a.query.Tiers) > 0 {
			return found, hits, err
		}
		alike := crowding(hits)
		wanting := len(alike) > 0 && len(hits)-len(alike) < limit
		cut := len(hits) == most && most < question.MaxLimit // there may be more
		if wanting && cut && !a.byAccess {
			if !a.query.WithVectors {
				in.keep(found.Hits, hits)
			}
			continue
		}
		excess := min(len(alike), max(0, len(hits)-limit))
		for _, i := range slices.Backward(alike[len(alike)-excess:]) {
			hits, found.Hits = slices.Delete(hits, i, i+1), slices.Delete(found.Hits, i, i+1)
			found.OverLimit++
		}
		found.OverLimit += max(0, len(found.Hits)-limit)
		found.Hits = found.Hits[:min(len(found.Hits), limit)]
		return found, hits[:min(len(hits), limit)], nil
	}
}

// crowding returns the places of the hits whose text shownAlike better ones have.
func crowding(hits []Hit) (places []int) {
	texts := make(map[int][]string, len(hits)) // by length, of hits of each
	for i, hit := range hits {
		text, alike := similar.Bare(hit.Record.Text), 0
		for _, other := range texts[len(text)] {
			if strings.EqualFold(text, other) {
				alike++
			}
		}
		if alike >= shownAlike {
			places = append(places, i)
			continue
		}
		texts[len(text)] = append(texts[len(text)], text)
	}
	return places
}
