package lexical

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// scores is the working memory of a query, indexed by ordinal.
type scores struct {
	sums       []float64 // zero for a document without a word of the query
	mass       float64
	filtered   bool   // whether there are conditions
	passed     bitset // documents that all conditions let through
	condition  bitset
	expired    bitset
	superseded bitset
	postings   []posting
}

func (w *scores) reset(last uint32) {
	n := int(last) + 1
	w.sums = slices.Grow(w.sums[:0], n)[:n]
	clear(w.sums)
	w.mass = 0
	for _, set := range []*bitset{&w.passed, &w.condition, &w.expired, &w.superseded} {
		set.reset(n)
	}
}

// bitset is a set of ordinals.
type bitset []uint64

func (s *bitset) reset(n int) {
	words := (n + 63) / 64
	*s = slices.Grow((*s)[:0], words)[:words]
	clear(*s)
}

func (s bitset) set(i uint32)      { s[i/64] |= 1 << (i % 64) }
func (s bitset) has(i uint32) bool { return s[i/64]&(1<<(i%64)) != 0 }

// rank fills the working memory.
func (s *search) rank(work *scores) error {
	for i, w := range s.words() {
		weight := float64(s.query.Words[i].Count) * inverseFrequency(s.stats.Documents, w.documents())
		work.mass += weight
		if err := s.addWord(work, w, weight); err != nil {
			return err
		}
	}
	if err := s.filter(work); err != nil {
		return err
	}
	if err := s.each(work, *s.expires(), func(p posting) {
		if int64(p.value) <= s.query.Now {
			work.expired.set(p.ordinal)
		}
	}); err != nil {
		return err
	}
	return s.each(work, *s.supersedes(), func(p posting) {
		if p.value < uint64(p.ordinal) {
			work.superseded.set(p.ordinal - uint32(p.value))
		}
	})
}

// addWord adds a word's share to every document that holds it.
func (s *search) addWord(work *scores, w wanted, weight float64) error {
	fixed, perWord := bm25K1*(1-bm25B), bm25K1*bm25B/s.stats.averageLength()
	weight *= bm25K1 + 1
	for _, at := range w.blocks {
		postings, err := at.decode(work.postings[:0])
		if err != nil {
			return err
		}
		work.postings = postings
		lengths, first := at.segment.lengths, at.segment.first
		for _, p := range postings {
			tf := float64(total(p.value))
			norm := fixed + perWord*float64(lengths[p.ordinal-first].total())
			work.sums[p.ordinal] += weight * tf / (tf + norm)
		}
	}
	for _, p := range w.tail {
		tf := float64(total(p.value))
		norm := fixed + perWord*float64(s.tailLengths[p.ordinal-s.stats.Packed-1])
		work.sums[p.ordinal] += weight * tf / (tf + norm)
	}
	return nil
}

// filter leaves in passed the documents that meet all conditions.
func (s *search) filter(work *scores) error {
	work.filtered = len(s.query.Filter) > 0
	for i := range work.passed {
		work.passed[i] = ^uint64(0)
	}
	for i, w := range s.conditions() {
		clear(work.condition)
		if o := s.query.Filter[i].Ordinal; s.query.Filter[i].Field == 0 && o > 0 && o <= s.stats.Last {
			work.condition.set(o)
		}
		if err := s.each(work, w, func(p posting) { work.condition.set(p.ordinal) }); err != nil {
			return err
		}
		for i := range work.passed {
			work.passed[i] &= work.condition[i]
		}
	}
	return nil
}

// each calls visit for the postings of a term.
func (s *search) each(work *scores, w wanted, visit func(posting)) error {
	for _, at := range w.blocks {
		postings, err := at.decode(work.postings[:0])
		if err != nil {
			return err
		}
		work.postings = postings
		for _, p := range postings {
			visit(p)
		}
	}
	for _, p := range w.tail {
		visit(p)
	}
	return nil
}

// answer counts the candidates and picks the best.
func (s *search) answer(ctx context.Context, view getter, work *scores) (Answer, error) {
	a := Answer{Statistics: s.stats}
	var best hitHeap
	for i, sum := range work.sums {
		if sum == 0 {
			continue
		}
		a.Candidates++
		if why := s.excluded(&a, work, uint32(i), sum); why != nil {
			*why++
			continue
		}
		best.offer(ranked{sum, uint32(i)}, s.query.Limit)
	}
	slices.SortFunc(best, func(x, y ranked) int { return compareRanked(y, x) })
	for _, r := range best {
		a.Hits = append(a.Hits, Hit{Ordinal: r.ordinal, Score: Score(r.sum, work.mass)})
	}
	return a, s.name(ctx, view, a.Hits)
}

// excluded returns the count of an answer that a candidate belongs to which
// may be no hit, or nil.
func (s *search) excluded(a *Answer, work *scores, ordinal uint32, sum float64) *int {
	switch {
	case work.filtered && !work.passed.has(ordinal):
		return &a.Filtered
	case work.expired.has(ordinal):
		return &a.Expired
	case work.superseded.has(ordinal):
		return &a.Superseded
	case s.query.MinScore > 0 && Score(sum, work.mass) < s.query.MinScore:
		return &a.UnderMinScore
	}
	return nil
}

// ranked is a candidate. Scores keep the order of the sums.
type ranked struct {
	sum     float64
	ordinal uint32
}

// compareRanked orders the worse before the better: by sum, then older before
// newer.
func compareRanked(x, y ranked) int {
	return cmp.Or(cmp.Compare(x.sum, y.sum), cmp.Compare(x.ordinal, y.ordinal))
}

// hitHeap holds the best candidates so far, the worst of them on top.
type hitHeap []ranked

func (h *hitHeap) offer(r ranked, limit int) {
	switch {
	case len(*h) < limit:
		heap.Push(h, r)
	case limit > 0 && r.sum >= (*h)[0].sum: // on a par, the newer is better
		(*h)[0] = r
		heap.Fix(h, 0)
	}
}

func (h hitHeap) Len() int           { return len(h) }
func (h hitHeap) Less(i, j int) bool { return compareRanked(h[i], h[j]) < 0 }
func (h hitHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *hitHeap) Push(x any)        { *h = append(*h, x.(ranked)) }
func (h *hitHeap) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	*h = (*h)[:last]
	return r
}

// name fills in the ids of hits.
func (s *search) name(ctx context.Context, view getter, hits []Hit) error {
	var keys [][]byte
	for _, hit := range hits {
		if hit.Ordinal <= s.stats.Packed {
			keys = append(keys, s.ids(hit.Ordinal/idsPerBlock))
		}
	}
	var blocks [][]byte
	if len(keys) > 0 {
		var err error
		if blocks, err = view.Get(ctx, kv.Index, keys...); err != nil {
			return err
		}
	}
	for i := range hits {
		hit := &hits[i]
		if hit.Ordinal > s.stats.Packed {
			hit.ID = string(s.tailIDs[hit.Ordinal-s.stats.Packed-1])
			continue
		}
		id, err := idOf(blocks[0], hit.Ordinal)
		if err != nil {
			return err
		}
		hit.ID, blocks = id, blocks[1:]
	}
	return nil
}

// idOf returns the id of an ordinal from the block that it stands in.
func idOf(block []byte, ordinal uint32) (string, error) {
	ids, err := decodeIDs(block)
	if err != nil {
		return "", err
	}
	at := ordinal % idsPerBlock
	if int(at) >= len(ids) {
		return "", fmt.Errorf("%w: no id for document %d", ErrDamaged, ordinal)
	}
	return string(ids[at]), nil
}
