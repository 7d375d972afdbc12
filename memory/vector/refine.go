package vector

import (
	"context"
	"math"
)

// refine looks at candidates more closely, first by their fine codes and then at
// the vectors themselves. The best wanted stand in front.
func (s *search) refine(ctx context.Context, h head, blocks []blockInfo, c candidates) error {
	fine, err := s.fineCodes(ctx, h, blocks, c)
	if err != nil {
		return err
	}
	c, floor, estimated := s.estimate(fine, c)
	// Hits that are not read back must be of existing vectors.
	estimated = estimated && s.settled
	least := 0
	if !estimated {
		least = s.least() - len(s.hits)
	}
	reads := make([]int, len(blocks))
	if c, err = s.rescore(ctx, ordered(c), floor, least, reads); err != nil {
		return err
	}
	if estimated {
		s.fill(c)
	}
	for i, n := range reads {
		if n > 0 && blocks[i].fine && fine[i] == nil {
			s.index.cache.owe(h.cacheKey(partFine, blocks[i].id), n)
		}
	}
	return nil
}

// fineCodes returns the fine codes of the blocks with candidates, nil for other blocks.
func (s *search) fineCodes(ctx context.Context, h head, blocks []blockInfo, c candidates) ([]*fineCodes, error) {
	wanted := make([]bool, len(blocks))
	for _, x := range c {
		wanted[x.block] = true
	}
	var places []int
	for i, info := range blocks {
		if wanted[i] && info.fine {
			places = append(places, i)
		}
	}
	found, err := s.index.readFine(ctx, s.view, h, pick(blocks, places), s.dimension)
	if err != nil {
		return nil, err
	}
	all := make([]*fineCodes, len(blocks))
	for n, i := range places {
		all[i] = found[n]
	}
	return all, nil
}

// estimate puts fine estimates in the place of those from signs, where there are
// fine codes, and drops what cannot come among the first any more, nor among those
// that are wanted. It returns the others, the bound that all of the first reach,
// and whether all that are left have fine estimates.
func (s *search) estimate(fine []*fineCodes, c candidates) (left candidates, floor float32, all bool) {
	wanted, sure := s.wanted(), s.best.clone()
	left, floor, all = c[:0], float32(math.Inf(-1)), true
	for i, x := range c {
		if i >= wanted && x.bound < floor {
			continue
		}
		f := fine[x.block]
		if f == nil || int(x.entry) >= len(f.steps) {
			left, all = append(left, x), false
			continue
		}
		estimate, margin := f.estimate(int(x.entry), s.bases[x.block], s.rotated)
		x.estimate, x.bound = estimate, estimate+margin
		left = append(left, x)
		if s.settled {
			sure.add(float64(estimate - margin))
			floor = float32(sure.last())
		}
	}
	return left, floor, all
}

// rescore compares the candidates exactly, in the order of what they can be at
// best, until none of the others can come among the first hits, whose bounds all
// reach the floor, and at least so many. It returns the others and counts for each
// block what it read.
func (s *search) rescore(ctx context.Context, c candidates, floor float32, least int, reads []int) (candidates, error) {
	ordinals := make([]uint32, 0, maxRead)
	for size, done := max(firstRead, min(least, maxRead)), 0; ; size = min(2*size, maxRead) {
		ordinals = ordinals[:0]
		lowest := max(float64(floor), s.best.last())
		for len(c) > 0 && len(ordinals) < size && (done < least || float64(c[0].bound) >= lowest) {
			first := c.pop()
			reads[first.block]++
			ordinals = append(ordinals, first.ordinal)
			done++
		}
		if len(ordinals) == 0 {
			return c, nil
		}
		if err := s.compare(ctx, ordinals); err != nil {
			return nil, err
		}
	}
}

// fill fills up the hits with the best estimates.
func (s *search) fill(c candidates) {
	for i := range c {
		c[i].bound = c[i].estimate
	}
	if len(c) > s.K {
		partition(c, s.K)
		c = c[:s.K]
	}
	for _, x := range c {
		s.hits = append(s.hits, Hit{x.ordinal, float64(max(-1, min(1, x.estimate)))})
	}
}
