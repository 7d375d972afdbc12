package frame

import (
	"math/bits"
)

// ordinalsPerPage is how many ordinals share a page of a slot map. A page without
// a slot takes eight bytes, another one some two hundred.
const ordinalsPerPage = 1024

// slotMap gives slots to some of the ordinals up to its last one, in their order
// and from 1 on. It never changes.
type slotMap struct {
	last     uint32
	ordinals []uint32    // by slot; index 0 unused
	pages    []*slotPage // by ordinal / ordinalsPerPage; nil without a slot
}

// slotPage is the part of a slot map for neighbouring ordinals.
type slotPage struct {
	bits [ordinalsPerPage / 64]uint64
	// below is how many slots there are before each word of bits.
	below [ordinalsPerPage / 64]uint32
}

// newSlotMap gives slots to the documents of those rows, whose ordinals ascend up
// to last at most.
func newSlotMap(rows []NumberedRow, last uint32) *slotMap {
	s := &slotMap{last: last, ordinals: make([]uint32, 1, len(rows)+1)}
	for _, r := range rows {
		s.ordinals = append(s.ordinals, r.Ordinal)
	}
	s.pages = make([]*slotPage, last/ordinalsPerPage+1)
	for slot, o := range s.ordinals[1:] {
		p, at := s.pages[o/ordinalsPerPage], o%ordinalsPerPage
		if p == nil {
			p = &slotPage{}
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
func (s *slotMap) count() uint32 { return uint32(len(s.ordinals) - 1) }

// slot returns the slot of an ordinal up to the last one; 0 for none.
func (s *slotMap) slot(ordinal uint32) uint32 {
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
func (s *slotMap) word(first uint32) (set uint64) {
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

// memoryBytes is about how much memory it takes.
func (s *slotMap) memoryBytes() (n int) {
	const perSlot, perPage, each = 4, 8, 208
	for _, p := range s.pages {
		if p != nil {
			n += each
		}
	}
	return n + perSlot*len(s.ordinals) + perPage*len(s.pages)
}
