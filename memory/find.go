package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory/lexical/rank"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/similar"
)

// Expansion takes words from the first hits and searches again with both.
const (
	// feedbackHits is how many of the first hits words are taken from.
	feedbackHits = 6
	// feedbackWords is how many words are taken at most.
	feedbackWords = 15
	// feedbackShare is how much all the words taken count together, the words of
	// the query counting 1. It falls to nothing where lengths are wholly uneven: long
	// answers lend words of all that they touch, and a short statement has no second one
	// that says more.
	feedbackShare = 0.3
	// feedbackReach is how far from a word of the query, in words, those stand that are
	// taken.
	feedbackReach = 10
	// leastFeedback is the share from which on it is worth to search again.
	leastFeedback = 0.1
	// minFeedbackScore is the score of the first hit under which nothing is
	// taken: it would lead further away.
	minFeedbackScore = 0.3
	// minFeedbackWord is the length in bytes of the shortest word taken.
	minFeedbackWord = 2
	// feedbackLength is added to the length of a text in words, so that the
	// words of a very short one do not outweigh all others.
	feedbackLength = 5
	// maxFeedbackBytes is how much of a hit's text is read.
	maxFeedbackBytes = 4 << 10
)

// rankExpanded ranks with the words that the first hits suggest, and returns those
// words. What the query finds without them stays among the hits: a new word makes
// other records more sure, and these less, in proportion.
func (a *asking) rankExpanded(ctx context.Context, in *searched, asked rank.Query) (rank.Answer, []rank.QueryWord, error) {
	parts := in.parts
	plain := asked
	plain.Limit, plain.MinScore, plain.Judge = max(feedbackHits, plain.Limit), 0, plain.MinScore > 0
	first, err := rank.Rank(ctx, parts, plain)
	if err != nil {
		return rank.Answer{}, nil, err
	}
	share := feedbackShare * (1 - first.Uneven)
	if share < leastFeedback {
		found, err := rank.Rank(ctx, parts, asked)
		return found, nil, err
	}
	words, err := a.suggested(ctx, in, first.Hits[:min(len(first.Hits), feedbackHits)], share)
	if err != nil {
		return rank.Answer{}, nil, err
	}
	more := asked
	more.Words = append(slices.Clip(more.Words), words...)
	found, err := rank.Rank(ctx, parts, more)
	if err != nil {
		return rank.Answer{}, nil, err
	}
	keepPlain(&found, first.Hits, asked)
	a.keepFirst(&found, first.Hits)
	return found, words, nil
}

// keepPlain adds the hits of the query without further words that are not among
// those with them.
func keepPlain(found *rank.Answer, plain []rank.Hit, asked rank.Query) {
	there := make(map[ranked]bool, len(found.Hits))
	for _, hit := range found.Hits {
		there[ranked{hit.Part, hit.Ordinal}] = true
	}
	for _, hit := range plain {
		if len(found.Hits) >= asked.Limit || hit.Score < asked.MinScore {
			break
		}
		if hit.Own >= asked.MinScore && !there[ranked{hit.Part, hit.Ordinal}] {
			found.Hits = append(found.Hits, hit)
			found.UnderMinScore--
		}
	}
	slices.SortStableFunc(found.Hits, func(a, b rank.Hit) int { return cmp.Compare(b.Score, a.Score) })
}

// keepFirst puts what the query finds best by itself before what was found with more words:
// these are for what comes behind it.
func (a *asking) keepFirst(found *rank.Answer, plain []rank.Hit) {
	hits := found.Hits
	if len(plain) == 0 || len(hits) == 0 || plain[0].Own < a.asked.MinScore {
		return
	}
	first := plain[0]
	at := slices.IndexFunc(hits, func(h rank.Hit) bool { return h.Part == first.Part && h.Ordinal == first.Ordinal })
	if at < 0 {
		at = len(hits) - 1 // it takes the last one's place
	} else {
		first = hits[at]
	}
	first.Score = max(first.Score, hits[0].Score)
	copy(hits[1:at+1], hits[:at])
	hits[0] = first
}

// suggested returns words that the first hits suggest, with weights that sum
// up to a share of what the query's count, the best first; none when the first hits are
// weak.
func (a *asking) suggested(ctx context.Context, in *searched, first []rank.Hit, share float64) ([]rank.QueryWord, error) {
	if len(first) == 0 || first[0].Score < minFeedbackScore {
		return nil, nil
	}
	hits, err := a.read(ctx, in, first)
	if err != nil {
		return nil, err
	}
	weights := a.feedback(hits)
	words := slices.Sorted(maps.Keys(weights))
	rarity, err := rank.Rarity(ctx, in.parts, words)
	if err != nil {
		return nil, err
	}
	suggested := make([]rank.QueryWord, 0, len(words))
	for i, word := range words {
		// Hits that score nothing make nothing of their words.
		if weights[word]*rarity[i] > 0 {
			suggested = append(suggested, rank.QueryWord{Text: word, Count: 1, Weight: weights[word] * rarity[i]})
		}
	}
	slices.SortStableFunc(suggested, func(a, b rank.QueryWord) int { return cmp.Compare(b.Weight, a.Weight) })
	return a.scale(suggested[:min(len(suggested), feedbackWords)], share), nil
}

// feedback returns how much each new word of the hits counts: as often as it
// stands near words of the query, as much as the square of the hits' scores, so that the
// best ones decide, and less where much stands near these.
func (a *asking) feedback(hits []Hit) map[string]float64 {
	asked := make(map[string]bool)
	for _, word := range a.asked.Words {
		asked[word.Text] = true
	}
	names := make(map[string]bool)
	for _, hit := range hits {
		for word := range a.analyzer.Terms(hit.Record.Author) {
			names[word] = true
		}
	}
	weights := make(map[string]float64)
	for _, hit := range hits {
		text := hit.Record.Text
		near := nearby(slices.Collect(a.analyzer.Terms(text[:min(len(text), maxFeedbackBytes)])), asked)
		each := hit.Score * hit.Score / float64(len(near)+feedbackLength)
		for _, word := range near {
			if !asked[word] && !names[word] && len(word) >= minFeedbackWord {
				weights[word] += each
			}
		}
	}
	return weights
}

// nearby returns the words of a text that stand near the words asked for; all of them where
// it has none of these, as it was found by the texts around it.
func nearby(words []string, asked map[string]bool) []string {
	near, end := make([]string, 0, len(words)), 0
	for i, word := range words {
		if !asked[word] {
			continue
		}
		from := max(end, i-feedbackReach)
		end = min(len(words), i+feedbackReach+1)
		near = append(near, words[from:end]...)
	}
	if len(near) == 0 {
		return words
	}
	return near
}

// scale gives the suggested words together a share of what the words of the query count.
func (a *asking) scale(suggested []rank.QueryWord, share float64) []rank.QueryWord {
	sum, asked := 0.0, 0
	for _, word := range suggested {
		sum += word.Weight
	}
	for _, word := range a.asked.Words {
		asked += word.Count
	}
	for i := range suggested {
		suggested[i].Weight *= share * float64(asked) / sum
	}
	return suggested
}

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
