package rank

import (
	"cmp"
	"context"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/lexical/selection"
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
	best := r.pick()
	if err := r.calibrate(best); err != nil {
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
}

// compare orders the worse before the better: by rank, then older before newer.
func (c candidate) compare(d candidate) int {
	return cmp.Or(cmp.Compare(c.rank, d.rank), cmp.Compare(c.created, d.created),
		cmp.Compare(d.part, c.part), cmp.Compare(c.slot, d.slot))
}

// topK keeps the best candidates, as a heap with the worst of them first.
type topK struct {
	limit int
	all   []candidate
}

func (b *topK) full() bool { return len(b.all) >= b.limit }

// offer takes the candidate in if it is among the best so far.
func (b *topK) offer(c candidate) {
	switch {
	case !b.full():
		b.all = append(b.all, c)
		if b.full() {
			for i := len(b.all)/2 - 1; i >= 0; i-- {
				b.sink(i)
			}
		}
	case c.compare(b.all[0]) > 0:
		b.all[0] = c
		b.sink(0)
	}
}

// sink restores the order of the heap below i.
func (b *topK) sink(i int) {
	for {
		worst := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(b.all); child++ {
			if b.all[child].compare(b.all[worst]) < 0 {
				worst = child
			}
		}
		if worst == i {
			return
		}
		b.all[i], b.all[worst] = b.all[worst], b.all[i]
		i = worst
	}
}

// pick returns the best of the candidates that may be hits, best first, and
// counts all candidates. There may be some more than the limit, as what is newer
// can still change the order. What vectors find is joined later.
func (r *ranking) pick() []candidate {
	b := topK{limit: r.pool()}
	for i := range r.parts {
		r.pickFrom(i, &b)
	}
	slices.SortFunc(b.all, func(c, d candidate) int { return d.compare(c) })
	return b.all
}

// pickFrom offers the candidates of one part. Most are far from the best, which
// their words alone tell.
func (r *ranking) pickFrom(part int, b *topK) {
	p, most := r.parts[part], r.most()
	for o := uint32(1); o <= p.frame.Slots(); o++ {
		found := r.byWords(p, o)
		words := found.sum()
		if words <= 0 && !r.onDate(p, o) {
			continue
		}
		if !p.Selection.Allowed.Has(o) {
			r.answer.exclude(p.Selection.WhySlot(o))
			continue
		}
		r.allowed++
		r.covered = max(r.covered, p.covered[o])
		if b.full() && words+most < b.all[0].rank {
			continue
		}
		if rank := r.signalsOf(p, o, found).rank(); !b.full() || rank >= b.all[0].rank {
			b.offer(candidate{rank: rank, part: part, slot: o, created: p.frame.Create[o]})
		}
	}
}

// exclude counts a candidate that may be no hit.
func (a *Answer) exclude(why selection.Reason) {
	switch why {
	case selection.Deleted: // no candidate
	case selection.Expired:
		a.Expired++
	case selection.Superseded:
		a.Superseded++
	default:
		a.Filtered++
	}
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
