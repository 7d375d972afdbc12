package vector

import (
	"math"
	"slices"
)

// candidate is a document with what its cosine can be at best.
type candidate struct {
	bound   float32
	ordinal uint32
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

// shortlist keeps the candidates that may come among the first.
type shortlist struct {
	limit int // how many at most; twice as many for a while
	kept  candidates
	// sure are the highest of the lowest that cosines can be: as many candidates
	// as it has lie above the last of them.
	sure leaders
	// floor is a bound at or below which no candidate is wanted any more.
	floor float32
}

// newShortlist returns one for the first wanted of at most limit candidates.
func newShortlist(limit, wanted int) *shortlist {
	l := &shortlist{limit: limit, floor: float32(math.Inf(-1))}
	l.sure.size = wanted
	return l
}

// add takes in a document whose cosine is about estimate, give or take margin.
func (l *shortlist) add(ordinal uint32, estimate, margin float32) {
	l.kept = append(l.kept, candidate{estimate + margin, ordinal})
	l.sure.add(float64(estimate - margin))
	l.floor = max(l.floor, float32(l.sure.last()))
	if len(l.kept) == 2*l.limit {
		l.cut()
	}
}

// cut drops the candidates that are not wanted, and all but the best.
func (l *shortlist) cut() {
	l.kept = slices.DeleteFunc(l.kept, func(c candidate) bool { return c.bound < l.floor })
	if len(l.kept) <= l.limit {
		return
	}
	partition(l.kept, l.limit)
	l.kept = l.kept[:l.limit]
	for i, c := range l.kept {
		if i == 0 || c.bound < l.floor {
			l.floor = c.bound
		}
	}
}

// ordered returns the candidates as a heap. The list is used up.
func (l *shortlist) ordered() candidates {
	l.cut()
	c := l.kept
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
