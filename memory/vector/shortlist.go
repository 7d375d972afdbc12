package vector

import (
	"math"
	"slices"
)

// candidate is a document with what its cosine is about and can be at best.
type candidate struct {
	estimate, bound float32
	ordinal         uint32
	block, entry    uint32 // where it stands: the number among those scanned, and in the block
}

// candidates are a heap once ordered: the one with the highest bound first.
type candidates []candidate

// pop takes out the first candidate.
func (c *candidates) pop() candidate {
	heap := *c
	first, last := heap[0], len(heap)-1
	heap[0] = heap[last]
	*c = heap[:last]
	c.sink(0)
	return first
}

func (c candidates) sink(i int) {
	for {
		child := 2*i + 1
		if child >= len(c) {
			return
		}
		if child+1 < len(c) && c[child+1].bound > c[child].bound {
			child++
		}
		if c[i].bound >= c[child].bound {
			return
		}
		c[i], c[child] = c[child], c[i]
		i = child
	}
}

// firstCut is after how many candidates, not counting those kept in any case, the rest are
// pruned for the first time. Most scopes stay below it, so they prune once.
const firstCut = 8192

// shortlist keeps the candidates that may come among the first.
type shortlist struct {
	limit  int // how many at most; twice as many for a while
	wanted int // how many are kept of any that there are
	kept   candidates
	cutAt  int // so many are cut before there are more
	// sure are the highest of the lowest that cosines can be: as many candidates
	// as it has lie above the last of them. It is nil where candidates may be
	// gone, since nothing is sure then.
	sure *leaders
	// floor is a bound below which no candidate is wanted any more.
	floor float32
}

// newShortlist returns a shortlist that puts candidates into kept. A candidate is dropped
// only if its bound is below the first wanted of the others and, moreover, sure rules it
// out or its bound is below the first limit of the others.
func newShortlist(limit, wanted int, sure *leaders, kept candidates) *shortlist {
	l := &shortlist{limit: max(limit, wanted), wanted: wanted, sure: sure, kept: kept, floor: float32(math.Inf(-1))}
	l.cutAt = min(2*l.limit, firstCut+wanted)
	return l
}

// add takes in a candidate whose cosine is about its estimate, give or take
// margin.
func (l *shortlist) add(c candidate, margin float32) {
	c.bound = c.estimate + margin
	l.kept = append(l.kept, c)
	if l.sure != nil {
		l.sure.add(float64(c.estimate - margin))
	}
	if len(l.kept) >= l.cutAt {
		l.cut()
		l.cutAt = min(2*l.limit, 2*len(l.kept)+firstCut+l.wanted)
	}
}

// cut drops the candidates that are not wanted. The best wanted of the others
// stand in front then.
func (l *shortlist) cut() {
	if len(l.kept) > l.limit {
		partition(l.kept, l.limit)
		l.kept = l.kept[:l.limit]
		l.floor = max(l.floor, lowest(l.kept))
	}
	if len(l.kept) <= l.wanted {
		return
	}
	partition(l.kept, l.wanted)
	if l.sure != nil {
		l.floor = max(l.floor, min(float32(l.sure.last()), lowest(l.kept[:l.wanted])))
	}
	l.kept = slices.DeleteFunc(l.kept, func(c candidate) bool { return c.bound < l.floor })
}

// lowest returns the lowest bound.
func lowest(c candidates) float32 {
	low := float32(math.Inf(1))
	for _, x := range c {
		low = min(low, x.bound)
	}
	return low
}

// ordered makes a heap of candidates in any order.
func ordered(c candidates) candidates {
	for i := len(c)/2 - 1; i >= 0; i-- {
		c.sink(i)
	}
	return c
}

// partition moves the n candidates with the highest bounds to the front, in any
// order (Hoare's selection).
func partition(c candidates, n int) {
	low, high := 0, len(c)-1
	for low < high {
		pivot := c[(low+high)/2].bound
		i, j := low, high
		for i <= j {
			for c[i].bound > pivot {
				i++
			}
			for c[j].bound < pivot {
				j--
			}
			if i <= j {
				c[i], c[j] = c[j], c[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case n-1 <= j:
			high = j
		case n-1 >= i:
			low = i
		default:
			return
		}
	}
}

// leaders are the highest cosines seen.
type leaders struct {
	size int
	top  []float64 // highest first
}

// clone returns an independent copy.
func (l *leaders) clone() *leaders { return &leaders{l.size, slices.Clone(l.top)} }

func (l *leaders) add(cosine float64) {
	if l.size == 0 || len(l.top) == l.size && cosine <= l.top[l.size-1] {
		return
	}
	if len(l.top) < l.size {
		l.top = append(l.top, cosine)
	} else {
		l.top[l.size-1] = cosine
	}
	for i := len(l.top) - 1; i > 0 && l.top[i] > l.top[i-1]; i-- {
		l.top[i], l.top[i-1] = l.top[i-1], l.top[i]
	}
}

// last returns the lowest of the leaders; less than any cosine while there are
// too few.
func (l *leaders) last() float64 {
	if len(l.top) < l.size {
		return math.Inf(-1)
	}
	return l.top[l.size-1]
}
