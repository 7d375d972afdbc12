package rank

import (
	"cmp"
	"context"
	"slices"
)

// Rank answers a query from all parts as if they were one scope: statistics are
// summed over the parts and signals scaled once. Every part's Reader must be
// open. The score of a hit is from 0 to 1, see calibrate; the order of the hits
// is that of their ranks.
func Rank(ctx context.Context, parts []Part, q Query) (Answer, error) {
	r, err := newRanking(ctx, parts, q)
	if err != nil {
		return Answer{}, err
	}
	defer r.release()
	if err := r.addWords(); err != nil {
		return Answer{}, err
	}
	r.answer.Weights = r.asked
	r.finish()
	r.answer.Uneven = r.norms.turn.uneven
	best := r.pick()
	if err := r.calibrate(ctx, best); err != nil {
		return Answer{}, err
	}
	if q.Explain {
		if err := r.explain(); err != nil {
			return Answer{}, err
		}
	}
	return r.answer, r.name(ctx)
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
	// gained is what it was lifted by as the newest telling of a matter.
	gained float32
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
			older := r.older[documentSlot{i, r.ranked[h].slot}]
			hit.Older = make([]string, len(older))
			ordinals, to = append(ordinals, hit.Ordinal), append(to, &hit.ID)
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
