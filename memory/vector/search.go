package vector

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// exactAllowed: where a search allows no more than that many, it reads all
	// of their vectors and looks at no code.
	exactAllowed = 256
	// fewAllowed: up to that many are searched so that none of the first hits is
	// missed, however much has to be read.
	fewAllowed = 20_000
	// maxDepth bounds the vectors read for one search where more are allowed. It
	// is reached where nothing stands out, as with random numbers.
	maxDepth = 4096
	// sureHits is how many of the first hits the depth is made for. Those behind
	// them are found nearly as well.
	sureHits = 10
	// certainty is how many standard deviations a cosine may lie above its
	// estimate and still be found: with three, one of 700 among the first hits
	// would be missed.
	certainty = 3
	// certaintyFew is the same where few are allowed.
	certaintyFew = 4.5
	// firstRead and maxRead bound the vectors that are read in one round, which
	// grows from one to the other.
	firstRead = 64
	maxRead   = 512
)

// Allowed is the set of documents that may be hits.
type Allowed interface {
	// Has tells whether the document is in the set.
	Has(ordinal uint32) bool
	// Count is how many documents the set has.
	Count() int
	// All yields the documents in ascending order.
	All() iter.Seq[uint32]
}

// Query asks for the nearest vectors of a space.
type Query struct {
	// Space is the name of the space.
	Space string
	// Vector is what to look for; it has the dimension of the space.
	Vector []float32
	// K is how many hits at most.
	K int
	// Depth, if not zero, is how many vectors are compared exactly. By default
	// it depends on how sure the estimates are.
	Depth int
	// Allowed are the documents that may be hits; nil means all.
	Allowed Allowed
}

// Hit is a document with the cosine of its vector and the query's.
type Hit struct {
	Ordinal uint32
	Cosine  float64
}

// Result holds the nearest vectors and what it took to find them.
type Result struct {
	// Hits are the nearest first; equal ones in the order of their ordinals.
	Hits []Hit
	// Scanned is how many vectors were looked at, if only as codes.
	Scanned int
	// Rescored is how many of them were compared exactly.
	Rescored int
	// Tail is how many vectors of the space are not packed.
	Tail int
}

// Search finds the nearest vectors of a space in a scope; none where the space
// does not exist. A query of another dimension is a *DimensionError.
func (x *Index) Search(ctx context.Context, view kv.Reader, scope kv.Scope, q Query) (Result, error) {
	if err := Check(q.Vector); err != nil {
		return Result{}, err
	}
	s, ok, err := findSpace(ctx, view, scope, q.Space)
	if err != nil || !ok || q.K <= 0 {
		return Result{}, err
	}
	if s.dimension != len(q.Vector) {
		return Result{}, &DimensionError{Space: q.Space, Want: s.dimension, Got: len(q.Vector)}
	}
	run := &search{index: x, view: view, at: place{scope, s.number}, dimension: s.dimension, Query: q, unit: unit(q.Vector)}
	if q.Allowed != nil && q.Allowed.Count() <= exactAllowed {
		err = run.exact(ctx, slices.Collect(q.Allowed.All()))
	} else {
		err = run.approximate(ctx)
	}
	if err != nil {
		return Result{}, fmt.Errorf("vector: search %s: %w", scope, err)
	}
	return run.result(), nil
}

// search is one search under way.
type search struct {
	Query
	index     *Index
	view      kv.Reader
	at        place
	dimension int
	unit      []float32 // the query's vector, of length one

	hits              []Hit // all that was compared exactly
	best              leaders
	scanned, rescored int
	tail              int
	few               bool      // are allowed
	estimates         []float32 // room for those of a block
}

func (s *search) allows(ordinal uint32) bool { return s.Allowed == nil || s.Allowed.Has(ordinal) }

// wanted is how many vectors are compared at least: more than K, so that K hits
// are good ones.
func (s *search) wanted() int { return max(s.K+s.K/2, s.Depth) }

// found takes in an exact cosine.
func (s *search) found(ordinal uint32, cosine float64) {
	s.hits = append(s.hits, Hit{ordinal, cosine})
	s.best.add(cosine)
}

// exact compares the vectors of all those documents.
func (s *search) exact(ctx context.Context, ordinals []uint32) error {
	values, err := readValues(ctx, s.view, s.at, ordinals)
	if err != nil {
		return err
	}
	for i, value := range values {
		if value == nil {
			continue
		}
		if err := checkValue(value, s.dimension); err != nil {
			return err
		}
		s.scanned++
		s.rescored++
		s.found(ordinals[i], cosine(value, s.unit))
	}
	return nil
}

// approximate compares the tail, scans the blocks, and compares what they
// promise.
func (s *search) approximate(ctx context.Context) error {
	h, err := readHead(ctx, s.view, s.at, true)
	if err != nil {
		return err
	}
	s.best.size, s.tail = min(s.K, sureHits), h.tailLength()
	if err := s.compareTail(ctx, h); err != nil {
		return err
	}
	allowed := int(h.vectors)
	if s.Allowed != nil {
		allowed = min(allowed, s.Allowed.Count())
	}
	s.few = allowed <= fewAllowed
	depth, deviations := maxDepth, float32(certainty)
	if s.few {
		depth, deviations = fewAllowed, certaintyFew
	}
	if s.Depth > 0 {
		depth = s.Depth
	}
	ranking := newShortlist(depth, s.wanted())
	blocks, err := s.choose(ctx, h)
	if err != nil {
		return err
	}
	if err := s.scan(ctx, h, blocks, deviations, ranking); err != nil {
		return err
	}
	return s.rescore(ctx, ranking.ordered())
}

// compareTail compares the tail exactly.
func (s *search) compareTail(ctx context.Context, h head) error {
	t, err := s.index.readTail(ctx, s.view, h)
	if err != nil {
		return err
	}
	for i, ordinal := range t.ordinals {
		if t.values[i] == nil || !s.allows(ordinal) {
			continue
		}
		if err := checkValue(t.values[i], s.dimension); err != nil {
			return err
		}
		s.scanned++
		s.rescored++
		s.found(ordinal, cosine(t.values[i], s.unit))
	}
	return nil
}

// scan estimates the cosines of all that is allowed in the blocks.
func (s *search) scan(ctx context.Context, h head, blocks []blockInfo, deviations float32, into *shortlist) error {
	turned := turn(s.unit)
	var p probe
	for len(blocks) > 0 {
		group := blocks[:min(len(blocks), blocksPerRead)]
		blocks = blocks[len(group):]
		loaded, err := s.index.readBlocks(ctx, s.view, h, group, s.dimension)
		if err != nil {
			return err
		}
		for _, b := range loaded {
			p.aim(b, turned)
			s.scanned += s.scanBlock(b, &p, deviations*p.sigma, into)
		}
	}
	return nil
}

// scanBlock offers each vector of a block with what its cosine can be at best.
func (s *search) scanBlock(b *block, p *probe, margin float32, into *shortlist) (scanned int) {
	if s.Allowed != nil && s.few {
		return s.scanFew(b, p, margin, into)
	}
	if len(s.estimates) < len(b.ordinals) {
		s.estimates = make([]float32, maxBlockVectors)
	}
	estimates := s.estimates[:len(b.ordinals)]
	p.estimates(b, estimates)
	for i, estimate := range estimates {
		if estimate+margin > into.floor && s.allows(b.ordinals[i]) {
			into.add(b.ordinals[i], estimate, margin)
		}
	}
	return len(estimates)
}

// scanFew is scanBlock where it pays to ask first what is allowed.
func (s *search) scanFew(b *block, p *probe, margin float32, into *shortlist) (scanned int) {
	for i, ordinal := range b.ordinals {
		if !s.Allowed.Has(ordinal) {
			continue
		}
		scanned++
		if estimate := p.estimate(b, i); estimate+margin > into.floor {
			into.add(ordinal, estimate, margin)
		}
	}
	return scanned
}

// rescore compares the candidates exactly, in the order of what they can be at
// best, until none of the others can come among the first hits.
func (s *search) rescore(ctx context.Context, c candidates) error {
	least := s.wanted() - len(s.hits)
	ordinals := make([]uint32, 0, maxRead)
	for size, done := firstRead, 0; len(c) > 0; size = min(2*size, maxRead) {
		ordinals = ordinals[:0]
		for len(c) > 0 && len(ordinals) < size {
			if s.Depth == 0 && done+len(ordinals) >= least && float64(c[0].bound) < s.best.last() {
				c = nil
				break
			}
			ordinals = append(ordinals, c.pop().ordinal)
		}
		before := s.scanned
		if err := s.exact(ctx, ordinals); err != nil {
			return err
		}
		s.scanned = before
		done += len(ordinals)
	}
	return nil
}

// result sorts the hits. A document that stands in several entries counts once.
func (s *search) result() Result {
	slices.SortFunc(s.hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Cosine, a.Cosine), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	hits := slices.Compact(s.hits)
	return Result{Hits: hits[:min(len(hits), s.K):min(len(hits), s.K)], Scanned: s.scanned, Rescored: s.rescored, Tail: s.tail}
}
