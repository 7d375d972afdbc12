package rank

import (
	"cmp"
	"math"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/lexical/selection"
)

// ranked is a candidate with its rank.
type ranked struct {
	rank       float32
	part, slot uint32
	created    int64
}

// compare orders as candidate.compare does.
func (a ranked) compare(b ranked) int {
	switch {
	case a.rank != b.rank:
		return cmp.Compare(a.rank, b.rank)
	case a.created != b.created:
		return cmp.Compare(a.created, b.created)
	case a.part != b.part:
		return cmp.Compare(b.part, a.part)
	}
	return cmp.Compare(a.slot, b.slot)
}

// topK keeps the best candidates. It takes in twice as many and then throws away the worse
// half, which is less work than keeping them in order.
type topK struct {
	limit int
	all   []ranked
	least float32 // no candidate with less is among the best
}

func newTopK(limit int) *topK {
	return &topK{limit: limit, all: make([]ranked, 0, 2*limit), least: float32(math.Inf(-1))}
}

// offer takes the candidate in if it may be among the best so far.
func (b *topK) offer(c ranked) {
	if c.rank < b.least {
		return
	}
	if b.all = append(b.all, c); len(b.all) >= 2*b.limit {
		b.cut()
	}
}

// cut leaves the best ones.
func (b *topK) cut() {
	if len(b.all) <= b.limit {
		return
	}
	for from, to := 0, len(b.all); to-from > 1; {
		middle := b.divide(from, to)
		if middle <= b.limit {
			from = middle
		}
		if middle >= b.limit {
			to = middle
		}
	}
	b.all = b.all[:b.limit]
	for i, c := range b.all {
		if i == 0 || c.rank < b.least {
			b.least = c.rank
		}
	}
}

// divide puts the better ones of a stretch before the worse, by one from its middle, and
// returns where the worse begin. Neither side is empty.
func (b *topK) divide(from, to int) int {
	by := b.all[(from+to-1)/2]
	i, j := from, to-1
	for {
		for b.all[i].compare(by) > 0 {
			i++
		}
		for b.all[j].compare(by) < 0 {
			j--
		}
		if i >= j {
			return j + 1
		}
		b.all[i], b.all[j] = b.all[j], b.all[i]
		i, j = i+1, j-1
	}
}

// sorted returns the best ones, best first.
func (b *topK) sorted() []candidate {
	b.cut()
	slices.SortFunc(b.all, func(c, d ranked) int { return d.compare(c) })
	best := make([]candidate, len(b.all))
	for i, c := range b.all {
		best[i] = candidate{rank: c.rank, part: int(c.part), slot: c.slot, created: c.created}
	}
	return best
}

// pick returns the best of the candidates that may be hits, best first. There may be some
// more than the limit, as what is newer can still change the order. What vectors find is
// joined later.
func (r *ranking) pick() []candidate {
	if pool := r.pool(); r.picked == nil || r.picked.limit != pool {
		r.picked = newTopK(pool)
		for i := range r.parts {
			r.pickFrom(i, r.picked)
		}
	}
	return r.picked.sorted()
}

// blockSlots is how many documents stand in a block: as many as in a word of a bitset.
const blockSlots = 64

// pickFrom offers the candidates of one part, block by block, those first whose words say
// most: most of the others are so far from the best that their words alone show it.
func (r *ranking) pickFrom(part int, b *topK) {
	p := r.parts[part]
	most := r.most(p)
	for h := blockHeap(p.blocks).init(); len(h) > 0; h = h.pop() {
		best, block := h[0].read()
		if best+most < b.least {
			return
		}
		for o := max(1, block*blockSlots); o <= min(block*blockSlots+blockSlots-1, p.frame.Slots()); o++ {
			if p.sums[o] < 0 || p.sums[o]+most < b.least {
				continue
			}
			rank := r.signalsOf(p, o, r.byWords(p, o)).rank()
			b.offer(ranked{rank, uint32(part), o, p.frame.Create[o]}) //nolint:gosec // few parts
		}
	}
}

// noCandidate stands in sums for a document that is not a candidate.
const noCandidate = -1

// measure sums up what the words of the query say of each document, finds the most of each
// block that has a candidate, and counts the candidates.
func (r *ranking) measure(p *rankedPart) {
	slots := p.frame.Slots()
	p.sums, p.blocks = sized(p.sums, int(slots)+1), p.blocks[:0]
	covered, dated := r.covered, len(r.spans) > 0
	for first := uint32(0); first <= slots; first += blockSlots {
		allowed, best := p.Selection.Allowed[first/blockSlots], float32(noCandidate)
		last := min(first+blockSlots-1, slots)
		r.sumWords(p, max(1, first), last)
		for o := max(1, first); o <= last; o++ {
			sum := p.sums[o]
			switch {
			case sum <= 0 && !(dated && r.onDate(p, o)):
				p.sums[o] = noCandidate
			case allowed&(1<<(o%blockSlots)) == 0:
				p.sums[o] = noCandidate
				r.measured.exclude(p.Selection.WhySlot(o))
			default:
				r.measured.allowed++
				if sum > best { // max would care for values that are no numbers
					best = sum
				}
				if p.covered[o] > covered {
					covered = p.covered[o]
				}
			}
		}
		if best >= 0 {
			p.blocks = append(p.blocks, newBlock(best, first/blockSlots))
		}
	}
	r.covered = covered
}

// exclude counts a candidate that may be no hit.
func (a *Answer) exclude(why selection.Reason) {
	switch why {
	case selection.Deleted: // no candidate
	case selection.Expired:
		a.Expired++
	case selection.Superseded:
		a.Superseded++
	case selection.Archived:
		a.Archived++
	default:
		a.Filtered++
	}
}

// block is the number of a block and, above it, the most that words say of one in it. It
// is not negative, so that blocks compare as their floats do.
type block uint64

func newBlock(best float32, number uint32) block {
	return block(uint64(math.Float32bits(best))<<32 | uint64(number))
}

func (b block) read() (best float32, number uint32) {
	return math.Float32frombits(uint32(b >> 32)), uint32(b) //nolint:gosec // its lower half
}

// blockHeap holds blocks, the best of them first.
type blockHeap []block

func (h blockHeap) init() blockHeap {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
	return h
}

// pop puts the first one behind the heap.
func (h blockHeap) pop() blockHeap {
	last := len(h) - 1
	h[0], h[last] = h[last], h[0]
	h = h[:last]
	h.sink(0)
	return h
}

// sink restores the order below i.
func (h blockHeap) sink(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if next := child + 1; next < len(h) && h[next] > h[child] {
			child = next
		}
		if h[i] >= h[child] {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
