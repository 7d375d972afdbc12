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
	// maxDepth bounds the vectors that one search looks at more closely than at
	// their signs, where more are allowed. It is reached where nothing stands
	// out, as with random numbers.
	maxDepth = 4096
	// sureHits is how many of the first hits are compared exactly, and never
	// missed as far as certainty goes. Those behind them are found nearly as well.
	sureHits = 10
	// certainty is how many standard deviations a cosine may lie above its
	// estimate and still be found: with three, one of 700 among the first hits
	// would be missed.
	certainty = 3
	// certaintyFew is the same where few are allowed.
	certaintyFew = 4.5
	// firstRead and maxRead bound the vectors that are read in one round, which
	// grows from one to the other. With fine codes the first round mostly does.
	firstRead = 32
	maxRead   = 512
	// closerShare: that many times the hits are looked at more closely than at
	// their signs.
	closerShare = 2
	// sparse: where fewer than one of so many entries are allowed, a scan asks
	// that first.
	sparse = 4
)

// Allowed is the set of documents that may be hits.
type Allowed interface {
	// Has reports whether the document is in the set.
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
	// Allowed are the documents that may be hits; nil means all.
	Allowed Allowed
	// Settled promises that of no document in Allowed the vector in the space was
	// replaced or removed. Then the search need not see for itself. Where the
	// promise is broken, such a document may be a hit still, and keep another
	// from being one.
	Settled bool
}

// Hit is a document with the cosine of its vector and the query's.
type Hit struct {
	Ordinal uint32
	// Cosine is exact for the first ten hits. Behind them it may be an estimate,
	// about a thousandth away.
	Cosine float64
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
		err = run.compareAllowed(ctx)
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
	rotated   []float32 // the same, rotated
	few       bool      // are allowed
	sparse    bool      // few are allowed of what there is
	settled   bool      // every entry that is allowed stands for a vector as it is

	bases []float32  // of each block that was scanned, the query times the centre
	room  *searching // used again

	hits              []Hit
	best              leaders // of the exact cosines
	scanned, rescored int
	tail              int
}

// searching is memory that one search after another uses.
type searching struct {
	probe     probe
	estimates [maxBlockVectors]float32
	kept      candidates
}

func (s *search) allows(ordinal uint32) bool { return s.Allowed == nil || s.Allowed.Has(ordinal) }

// wanted is how many candidates are looked at by their fine codes at least: many
// more than K, so that the hits behind the first ones are good ones, too.
func (s *search) wanted() int { return closerShare * s.K }

// least is how many are compared exactly at least, where hits can't be estimated:
// more than K, too.
func (s *search) least() int { return s.K + s.K/2 }

// found takes in an exact cosine.
func (s *search) found(ordinal uint32, cosine float64) {
	s.rescored++
	s.hits = append(s.hits, Hit{ordinal, cosine})
	s.best.add(cosine)
}

// compareAllowed compares all that is allowed exactly.
func (s *search) compareAllowed(ctx context.Context) error {
	h, err := readHead(ctx, s.view, s.at, false)
	if err != nil {
		return err
	}
	ordinals := slices.Collect(s.Allowed.All())
	values, err := s.index.readExact(ctx, s.view, h, ordinals)
	if err == nil {
		err = s.compareValues(ordinals, values)
	}
	s.scanned = s.rescored
	return err
}

// compare compares the vectors of those documents exactly, if they have any.
func (s *search) compare(ctx context.Context, ordinals []uint32) error {
	values, err := readValues(ctx, s.view, s.at, ordinals)
	if err != nil {
		return err
	}
	return s.compareValues(ordinals, values)
}

func (s *search) compareValues(ordinals []uint32, values [][]byte) error {
	for i, value := range values {
		if value == nil {
			continue
		}
		if err := checkValue(value, s.dimension); err != nil {
			return err
		}
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
	allowed := int(h.vectors)
	if s.Allowed != nil {
		allowed = min(allowed, s.Allowed.Count())
	}
	s.few = allowed <= fewAllowed
	s.sparse = s.Allowed != nil && allowed < h.entries()/sparse
	s.settled = h.garbage == 0 || s.Settled && s.Allowed != nil
	s.best.size, s.tail = min(s.K, sureHits), h.tailLength()
	s.rotated = rotate(s.unit)
	if err := s.compareTail(ctx, h); err != nil {
		return err
	}
	blocks, err := s.choose(ctx, h)
	if err != nil {
		return err
	}
	s.room = s.index.rooms.Get().(*searching)
	defer s.index.rooms.Put(s.room)
	list, err := s.scan(ctx, h, blocks)
	if err != nil {
		return err
	}
	list.cut()
	s.room.kept = list.kept[:0]
	return s.refine(ctx, h, blocks, list.kept)
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
		s.found(ordinal, cosine(t.values[i], s.unit))
	}
	return nil
}

// scan estimates the cosines of all that is allowed in the blocks.
func (s *search) scan(ctx context.Context, h head, blocks []blockInfo) (*shortlist, error) {
	depth, deviations := maxDepth, float32(certainty)
	if s.few {
		depth, deviations = fewAllowed, certaintyFew
	}
	var sure *leaders
	if s.settled {
		sure = s.best.clone()
	}
	list := newShortlist(depth, s.wanted(), sure, s.room.kept)
	p := &s.room.probe
	for group := range slices.Chunk(blocks, blocksPerRead) {
		loaded, err := s.index.readBlocks(ctx, s.view, h, group, s.dimension)
		if err != nil {
			return nil, err
		}
		for _, b := range loaded {
			p.aim(b, s.rotated)
			s.scanned += s.scanBlock(b, p, deviations*p.sigma, list)
			s.bases = append(s.bases, p.base)
		}
	}
	return list, nil
}

// scanBlock offers each vector of a block with what its cosine can be at best.
func (s *search) scanBlock(b *packedVectors, p *probe, margin float32, into *shortlist) (scanned int) {
	if s.sparse {
		return s.scanSparse(b, p, margin, into)
	}
	estimates := s.room.estimates[:len(b.ordinals)]
	p.estimates(b, estimates)
	for i, estimate := range estimates {
		if estimate+margin > into.floor && s.allows(b.ordinals[i]) {
			into.add(s.candidate(b, i, estimate), margin)
		}
	}
	return len(estimates)
}

// scanSparse is scanBlock for few allowed documents: it checks the filter first.
func (s *search) scanSparse(b *packedVectors, p *probe, margin float32, into *shortlist) (scanned int) {
	for i, ordinal := range b.ordinals {
		if !s.Allowed.Has(ordinal) {
			continue
		}
		scanned++
		if estimate := p.estimate(b, i); estimate+margin > into.floor {
			into.add(s.candidate(b, i, estimate), margin)
		}
	}
	return scanned
}

func (s *search) candidate(b *packedVectors, i int, estimate float32) candidate {
	return candidate{estimate: estimate, ordinal: b.ordinals[i], block: uint32(len(s.bases)), entry: uint32(i)}
}

// result sorts the hits. A document that stands in several entries counts once.
func (s *search) result() Result {
	slices.SortFunc(s.hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Cosine, a.Cosine), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	hits := slices.Compact(s.hits)
	return Result{Hits: hits[:min(len(hits), s.K):min(len(hits), s.K)], Scanned: s.scanned, Rescored: s.rescored, Tail: s.tail}
}
