package rank

import (
	"cmp"
	"context"
	"slices"
)

// Rank answers a query from all parts as if they were one scope, see Ranking.
func Rank(ctx context.Context, parts []Part, q Query) (Answer, error) {
	r, err := Open(ctx, parts, q)
	if err != nil {
		return Answer{}, err
	}
	defer r.Close()
	return r.Answer(ctx, q.Limit)
}

// Ranking is a query of which is known what its words say of every document, so that
// several limits cost little more than one. It is not for concurrent use.
type Ranking struct{ *ranking }

// Open looks the words of a query up in all parts: statistics are summed over the parts and
// signals scaled once. Every part's Reader must be open. Close what it returns.
func Open(ctx context.Context, parts []Part, q Query) (Ranking, error) {
	r, err := newRanking(ctx, parts, q)
	if err != nil {
		return Ranking{}, err
	}
	if err := r.addWords(); err != nil {
		r.release()
		return Ranking{}, err
	}
	r.finish()
	for _, p := range r.parts {
		r.measure(p)
	}
	return Ranking{r}, nil
}

// Close gives the working memory back.
func (r Ranking) Close() { r.release() }

// Answer returns so many hits at most. The score of a hit is from 0 to 1, see calibrate; the
// order of the hits is that of their ranks.
func (r Ranking) Answer(ctx context.Context, limit int) (Answer, error) {
	r.again(limit)
	if err := r.calibrate(ctx, r.pick()); err != nil {
		return Answer{}, err
	}
	if r.query.Explain {
		if err := r.explain(); err != nil {
			return Answer{}, err
		}
	}
	if err := r.name(ctx); err != nil {
		return Answer{}, err
	}
	return r.answer, nil
}

// again forgets the answer for another limit, but for the ids that it read.
func (r *ranking) again(limit int) {
	if len(r.ranked) > 0 {
		r.ids = make(map[documentSlot]string, len(r.ranked))
	}
	for i, c := range r.ranked {
		r.ids[documentSlot{c.part, c.slot}] = r.answer.Hits[i].ID
	}
	r.query.Limit, r.ranked, r.older = limit, nil, nil
	r.allowed, r.answer = r.measured.allowed, r.measured.Answer
	r.answer.Weights, r.answer.Uneven = r.asked, r.norms.turn.uneven
}

// candidate is a document that may be a hit.
type candidate struct {
	rank    float32 // by all but its vector, later by all
	part    int
	slot    uint32
	created int64
	// cosine is that of its vector, zero if that was not found. Of what vectors
	// found, byWords is the rank by all else. byVector is what vectors add to the
	// rank, before age and importance take their part.
	cosine            float64
	byVector, byWords float32
	// repeated is what it lost to better ones of its session.
	repeated float32
	// stale is what it lost because a later one states the same of the same.
	stale float32
	// gained is what it was lifted by as the newest statement of a matter.
	gained float32
	// heeded is what it was lifted by as an instruction for the work that is asked for.
	heeded float32
	// words are the query's words that it holds; zero until computed.
	words uint64
}

// compare orders the worse before the better: by rank, then older before newer.
func (c candidate) compare(d candidate) int {
	switch {
	case c.rank != d.rank:
		return cmp.Compare(c.rank, d.rank)
	case c.created != d.created:
		return cmp.Compare(c.created, d.created)
	case c.part != d.part:
		return cmp.Compare(d.part, c.part)
	}
	return cmp.Compare(c.slot, d.slot)
}

// name fills in the ids of the hits, and of what they put out of date.
func (r *ranking) name(ctx context.Context) error {
	for i, p := range r.parts {
		var ordinals []uint32
		var to []*string
		for h := range r.answer.Hits {
			hit := &r.answer.Hits[h]
			if hit.Part != i {
				continue
			}
			at := documentSlot{i, r.ranked[h].slot}
			older := r.older[at]
			hit.Older = make([]string, len(older))
			if hit.ID = r.ids[at]; hit.ID == "" {
				ordinals, to = append(ordinals, hit.Ordinal), append(to, &hit.ID)
			}
			for n, slot := range slices.Backward(older) {
				ordinals, to = append(ordinals, p.frame.Ordinal(slot)), append(to, &hit.Older[len(older)-1-n])
			}
		}
		if len(ordinals) == 0 {
			continue
		}
		ids, err := p.Reader.IDs(ctx, ordinals)
		if err != nil {
			return err
		}
		for n, id := range ids {
			*to[n] = id
		}
	}
	return nil
}
