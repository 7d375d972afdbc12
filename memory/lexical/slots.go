package lexical

import (
	"math/bits"
	"slices"
)

// ordinalsPerPage is how many ordinals share a page of a sieve. A page without
// a slot takes eight bytes, another one some two hundred.
const ordinalsPerPage = 1024

// sieve gives slots to some of the ordinals up to its last one, in their order
// and from 1 on. It never changes.
type sieve struct {
	last     uint32
	ordinals []uint32 // by slot; index 0 unused
	pages    []*page  // by ordinal / ordinalsPerPage; nil without a slot
}

// page is the part of a sieve for neighbouring ordinals.
type page struct {
	bits [ordinalsPerPage / 64]uint64
	// below is how many slots there are before each word of bits.
	below [ordinalsPerPage / 64]uint32
}

// newSieve gives slots to the documents of those rows, whose ordinals ascend up
// to last at most.
func newSieve(rows []numberedRow, last uint32) *sieve {
	s := &sieve{last: last, ordinals: make([]uint32, 1, len(rows)+1)}
	for _, r := range rows {
		s.ordinals = append(s.ordinals, r.ordinal)
	}
	s.pages = make([]*page, last/ordinalsPerPage+1)
	for slot, o := range s.ordinals[1:] {
		p, at := s.pages[o/ordinalsPerPage], o%ordinalsPerPage
		if p == nil {
			p = &page{}
			s.pages[o/ordinalsPerPage] = p
		}
		if p.bits[at/64] == 0 {
			p.below[at/64] = uint32(slot)
		}
		p.bits[at/64] |= 1 << (at % 64)
	}
	return s
}

// count is how many slots it gave.
func (s *sieve) count() uint32 { return uint32(len(s.ordinals) - 1) }

// slot returns the slot of an ordinal up to the last one; 0 for none.
func (s *sieve) slot(ordinal uint32) uint32 {
	p := s.pages[ordinal/ordinalsPerPage]
	if p == nil {
		return 0
	}
	at := ordinal % ordinalsPerPage
	word, bit := p.bits[at/64], uint64(1)<<(at%64)
	if word&bit == 0 {
		return 0
	}
	return p.below[at/64] + uint32(bits.OnesCount64(word&(bit-1))) + 1
}

// word returns which of 64 neighbouring ordinals, from a multiple of 64 on, may
// have a slot: those behind the last one all do.
func (s *sieve) word(first uint32) (set uint64) {
	if first > s.last {
		return ^uint64(0)
	}
	if p := s.pages[first/ordinalsPerPage]; p != nil {
		set = p.bits[first%ordinalsPerPage/64]
	}
	if s.last-first < 63 {
		set |= ^uint64(0) << (s.last - first + 1)
	}
	return set
}

// size is about how much memory it takes.
func (s *sieve) size() (n int) {
	const perSlot, perPage, each = 4, 8, 208
	for _, p := range s.pages {
		if p != nil {
			n += each
		}
	}
	return n + perSlot*len(s.ordinals) + perPage*len(s.pages)
}

// slot returns the slot of a document by its ordinal; 0 for one that the frame
// does not have.
func (f *frame) slot(ordinal uint32) uint32 {
	switch {
	case ordinal > f.last:
		return 0
	case ordinal > f.sieve.last:
		return ordinal - f.sieve.last + f.sieve.count()
	}
	return f.sieve.slot(ordinal)
}

// ordinal returns the ordinal of the document in a slot; 0 for slot 0.
func (f *frame) ordinal(slot uint32) uint32 {
	if n := f.sieve.count(); slot > n {
		return slot - n + f.sieve.last
	}
	return f.sieve.ordinals[slot]
}

// slots is the last slot.
func (f *frame) slots() uint32 { return f.last - f.sieve.last + f.sieve.count() }

// whole tells whether every ordinal has a slot, which is the ordinal then.
func (f *frame) whole() bool { return f.sieve.last == f.sieve.count() }

// has tells whether the document with that ordinal lives.
func (f *frame) has(ordinal uint32) bool {
	slot := f.slot(ordinal)
	return slot != 0 && !f.dead.has(slot)
}

// ordinals returns the ordinals of slots.
func (f *frame) ordinals(slots []uint32) []uint32 {
	all := make([]uint32, len(slots))
	for i, slot := range slots {
		all[i] = f.ordinal(slot)
	}
	return all
}

// toSlots puts slots in the place of ordinals and leaves out postings of the
// dead.
func (f *frame) toSlots(postings []posting) []posting {
	if f.whole() && f.dead.empty() {
		return postings
	}
	living := postings[:0]
	for _, p := range postings {
		if slot := f.slot(p.ordinal); slot != 0 && !f.dead.has(slot) {
			living = append(living, posting{slot, p.value})
		}
	}
	return living
}

// died returns the ordinals of the frame's living documents that are in dead,
// ascending.
func (f *frame) died(dead deadSet) (ordinals []uint32) {
	for _, chunk := range dead.chunks() {
		for i, word := range dead[chunk] {
			first := chunk*deadPerChunk + uint32(i*64)
			if first > f.last {
				break
			}
			for word &= f.sieve.word(first); word != 0; word &= word - 1 {
				if o := first + uint32(bits.TrailingZeros64(word)); f.has(o) {
					ordinals = append(ordinals, o)
				}
			}
		}
	}
	return ordinals
}

// aliveIn returns the chunks of the dead set that hold a living document of the
// frame, ascending.
func (f *frame) aliveIn() (chunks []uint32) {
	for slot := uint32(1); slot <= f.slots(); slot++ {
		if f.dead.has(slot) {
			continue
		}
		chunk := f.ordinal(slot) / deadPerChunk
		chunks = append(chunks, chunk)
		if chunk == f.last/deadPerChunk {
			break
		}
		slot = f.slotsBefore((chunk + 1) * deadPerChunk)
	}
	return chunks
}

// slotsBefore is how many slots documents with a lower ordinal have.
func (f *frame) slotsBefore(ordinal uint32) uint32 {
	if ordinal > f.sieve.last {
		return ordinal - 1 - f.sieve.last + f.sieve.count()
	}
	n, _ := slices.BinarySearch(f.sieve.ordinals[1:], ordinal)
	return uint32(n)
}
