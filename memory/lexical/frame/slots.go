package frame

import (
	"math/bits"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// Slot returns the slot of a document by its ordinal; 0 for one that the frame
// does not have.
func (f *Frame) Slot(ordinal uint32) uint32 {
	switch {
	case ordinal > f.Last:
		return 0
	case ordinal > f.slotMap.last:
		return ordinal - f.slotMap.last + f.slotMap.count()
	}
	return f.slotMap.slot(ordinal)
}

// Ordinal returns the ordinal of the document in a slot; 0 for slot 0.
func (f *Frame) Ordinal(slot uint32) uint32 {
	if n := f.slotMap.count(); slot > n {
		return slot - n + f.slotMap.last
	}
	return f.slotMap.ordinals[slot]
}

// Slots is the last slot.
func (f *Frame) Slots() uint32 { return f.Last - f.slotMap.last + f.slotMap.count() }

// IsLive reports whether the document with that ordinal is live.
func (f *Frame) IsLive(ordinal uint32) bool {
	slot := f.Slot(ordinal)
	return slot != 0 && !f.Deleted.Has(slot)
}

// Ordinals returns the ordinals of slots.
func (f *Frame) Ordinals(slots []uint32) []uint32 {
	all := make([]uint32, len(slots))
	for i, slot := range slots {
		all[i] = f.Ordinal(slot)
	}
	return all
}

// ToSlots puts slots in the place of ordinals and leaves out postings of the
// deleted.
func (f *Frame) ToSlots(postings []segment.Posting) []segment.Posting {
	if f.slotMap.last == f.slotMap.count() && f.Deleted.Empty() {
		return postings
	}
	live := postings[:0]
	for _, p := range postings {
		if slot := f.Slot(p.Ordinal); slot != 0 && !f.Deleted.Has(slot) {
			live = append(live, segment.Posting{Ordinal: slot, Value: p.Value})
		}
	}
	return live
}

// NewlyDeleted returns the ordinals of the frame's live documents that are in a
// deleted set, ascending.
func (f *Frame) NewlyDeleted(deleted segment.DeletedSet) (ordinals []uint32) {
	for _, chunk := range deleted.Chunks() {
		for i, word := range deleted[chunk] {
			first := chunk*segment.DeletedPerChunk + uint32(i*64)
			if first > f.Last {
				break
			}
			for word &= f.slotMap.word(first); word != 0; word &= word - 1 {
				if o := first + uint32(bits.TrailingZeros64(word)); f.IsLive(o) {
					ordinals = append(ordinals, o)
				}
			}
		}
	}
	return ordinals
}

// LiveChunks returns the chunks of the deleted set that hold a live document of the
// frame, ascending.
func (f *Frame) LiveChunks() (chunks []uint32) {
	for slot := uint32(1); slot <= f.Slots(); slot++ {
		if f.Deleted.Has(slot) {
			continue
		}
		chunk := f.Ordinal(slot) / segment.DeletedPerChunk
		chunks = append(chunks, chunk)
		if chunk == f.Last/segment.DeletedPerChunk {
			break
		}
		slot = f.slotsBefore((chunk + 1) * segment.DeletedPerChunk)
	}
	return chunks
}

// slotsBefore is how many slots documents with a lower ordinal have.
func (f *Frame) slotsBefore(ordinal uint32) uint32 {
	if ordinal > f.slotMap.last {
		return ordinal - 1 - f.slotMap.last + f.slotMap.count()
	}
	n, _ := slices.BinarySearch(f.slotMap.ordinals[1:], ordinal)
	return uint32(n)
}

// SharesSlots reports whether both frames give slots to the same ordinals, one being
// an extension of the other, so that they share memory.
func (f *Frame) SharesSlots(other *Frame) bool { return f.slotMap == other.slotMap }
