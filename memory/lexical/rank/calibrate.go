package rank

import (
	"cmp"
	"context"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// datedCoverage is how sure a document at a moment that the query names is worth
// a look when no word of the query stands anywhere.
const datedCoverage = 0.3

// namedCoverage is the same for a document by the author that the query names:
// little, as nothing says that it is about the request.
const namedCoverage = 0.1

// calibrate converts the best candidates into hits with scores from 0 to 1, drops hits
// under the least score and counts them.
//
// The score of the best hit says how sure it is that something was found: the
// part of what the query asks for that the hit and what stands around it cover,
// on average with the part that the record covers that covers most, weighed by
// rarity. Words that stand nowhere count most, and names of authors do not
// count. A vector that stands out makes up for words. The score of the others
// is in proportion to their ranks. With no words to go by, scores are cosines.
func (r *ranking) calibrate(ctx context.Context, best []candidate) error {
	r.answer.LexicalCandidates = r.allowed + r.answer.Filtered + r.answer.Expired + r.answer.Superseded
	r.vectors = r.nearness()
	n := r.vectors
	sure, err := r.coverage(best)
	if err != nil {
		return err
	}
	r.factor = 1
	if n.nearest > 0 {
		if len(best) > 0 && best[0].rank > 0 {
			r.factor /= best[0].rank
		}
		best = r.fuse(best, sure)
	}
	r.preferNewer(best)
	if best, err = r.newestOfMatter(ctx, best); err != nil {
		return err
	}
	r.spreadOut(best)
	if err := r.heed(ctx, best); err != nil {
		return err
	}
	if n.alone {
		sure = n.nearest
	} else {
		sure = 1 - (1-sure)*(1-n.sure)
	}
	r.toHits(best, sure)
	return r.failed
}

// toHits makes hits of the best candidates, of which the first gets the score
// sure.
func (r *ranking) toHits(best []candidate, sure float64) {
	r.answer.Irrelevant = sure == 0 && r.allowed > 0
	if len(best) == 0 || sure == 0 {
		r.answer.UnderMinScore = r.allowed
		return
	}
	top := float64(best[0].rank)
	score := func(c candidate) float64 {
		if top <= 0 {
			return 0
		}
		return sure * max(0, float64(c.rank)) / top
	}
	own := r.owned(best)
	passes := func(c candidate) float64 { return min(score(c), sure*own(c)) }
	for _, c := range best[:min(len(best), r.query.Limit)] {
		if own := passes(c); own >= r.query.MinScore {
			r.answer.Hits = append(r.answer.Hits, Hit{Part: c.part, Ordinal: r.parts[c.part].frame.Ordinal(c.slot), Score: score(c), Own: own})
			r.ranked = append(r.ranked, c)
		}
	}
	r.countRest(best, passes)
}

// owned says how much a candidate has by itself, without what stands around it and who
// said it, as a part of what the best one of these has: nothing but that lifts it over a least
// score.
func (r *ranking) owned(best []candidate) func(candidate) float64 {
	if r.query.MinScore == 0 && !r.query.Judge || r.vectors.alone {
		return func(candidate) float64 { return 1 }
	}
	own := func(c candidate) float64 {
		p := r.parts[c.part]
		words := r.mix.alone(p.inWindow[c.slot], 0)
		words.turn += r.mix.window * r.mix.byTurn * p.inWindow[c.slot]
		s := r.signalsOf(p, c.slot, words)
		s.author = 0
		if words.turn == 0 {
			s.answer = 0
		}
		return float64(max(0, r.factor*s.rank()+c.byVector+c.gained))
	}
	most := 0.0
	for _, c := range best {
		most = max(most, own(c))
	}
	if most == 0 {
		return func(candidate) float64 { return 1 } // only who said it is known
	}
	return func(c candidate) float64 { return own(c) / most }
}

// countRest counts the candidates that are no hits.
func (r *ranking) countRest(best []candidate, score func(candidate) float64) {
	a := &r.answer
	if least := r.query.MinScore; least > 0 {
		for _, c := range best {
			if score(c) < least {
				a.UnderMinScore++
			}
		}
		// Those that were not picked are no better than the worst that was, unless
		// that was found by its vector.
		if len(best) > 0 && a.VectorCandidates == 0 && score(best[len(best)-1]) < least {
			a.UnderMinScore += r.allowed - len(best)
		} else {
			a.UnderMinScore += r.countUnder(best, score)
		}
	}
	a.OverLimit = r.allowed - a.UnderMinScore - len(a.Hits)
}

// countUnder counts the candidates under the least score other than the best.
func (r *ranking) countUnder(best []candidate, score func(candidate) float64) (n int) {
	if r.allowed == len(best) {
		return 0
	}
	picked := make(map[documentSlot]bool, len(best))
	for _, c := range best {
		picked[documentSlot{c.part, c.slot}] = true
	}
	for part, p := range r.parts {
		for o := range p.Selection.Allowed.All() {
			words := r.byWords(p, o)
			if words.sum() <= 0 && !r.onDate(p, o) || picked[documentSlot{part, o}] {
				continue
			}
			if rank := r.factor * r.signalsOf(p, o, words).rank(); score(candidate{rank: rank, part: part, slot: o}) < r.query.MinScore {
				n++
			}
		}
	}
	return n
}

// coverage is which part of what the query asks for the best candidates cover.
func (r *ranking) coverage(best []candidate) (float64, error) {
	if len(best) == 0 {
		return 0, nil
	}
	top := best[0]
	p := r.parts[top.part]
	around := 0.0
	for i, asked := range r.asked {
		if asked == 0 {
			continue
		}
		for n, o := range neighbours(p.frame, top.slot) {
			body, all, err := p.frequencyIn(p.words[i], o)
			if err != nil {
				return 0, err
			}
			if body > 0 || n == 0 && all > 0 {
				around += asked
				break
			}
		}
	}
	covered := 0.0
	if r.mass > 0 {
		covered = min(1, (around+float64(r.covered))/2/r.mass)
	}
	if covered == 0 && r.closeness(p.frame.Event[top.slot]) == 1 {
		return datedCoverage, nil
	}
	if covered == 0 && p.named != 0 && p.frame.Author[top.slot] == p.named {
		return namedCoverage, nil
	}
	return covered, nil
}

// frequencyIn is how often a word stands in a document: in its body, and in
// all of it.
func (p *rankedPart) frequencyIn(word lexical.TermPostings, slot uint32) (body, all uint32, err error) {
	o := p.frame.Ordinal(slot)
	for _, at := range word.Blocks {
		if o < at.First || o > at.Last {
			continue
		}
		if p.postings, err = at.Frequencies(p.postings[:0]); err != nil {
			return 0, 0, err
		}
		if body, all = frequencyAmong(p.postings, o); all > 0 {
			return body, all, nil
		}
	}
	body, all = frequencyAmong(word.Tail, o)
	return body, all, nil
}

func frequencyAmong(postings []segment.Posting, o uint32) (body, all uint32) {
	i, ok := slices.BinarySearchFunc(postings, o, func(p segment.Posting, o uint32) int { return cmp.Compare(p.Ordinal, o) })
	if !ok {
		return 0, 0
	}
	body, header := segment.UnpackFrequency(postings[i].Value)
	return body, body + header
}
