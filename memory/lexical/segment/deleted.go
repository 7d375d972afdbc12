package segment

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/lexical/bitset"
)

// DeletedPerChunk is how many ordinals share a key of the deleted set. A deletion
// writes one chunk, which takes at most 2 KiB; a reader reads all of them.
const DeletedPerChunk = 16 << 10

// The forms of a chunk of the deleted set: which takes less room is used.
const (
	deletedListed = 1 // steps from one to the next, uvarint
	deletedBits   = 2 // a bit for each, the lowest first
)

// EncodeDeleted packs a chunk of the deleted set, its first ordinal being bit zero.
func EncodeDeleted(set bitset.Set) []byte {
	listed := append(binary.AppendUvarint(nil, Format), deletedListed)
	last := -1
	for i := range DeletedPerChunk {
		if set.Contains(uint32(i)) {
			listed = binary.AppendUvarint(listed, uint64(i-last))
			last = i
		}
	}
	if len(listed) <= DeletedPerChunk/8 {
		return listed
	}
	plain := append(binary.AppendUvarint(nil, Format), deletedBits)
	for _, word := range set {
		plain = binary.LittleEndian.AppendUint64(plain, word)
	}
	return plain
}

// DecodeDeleted reads a chunk into set, whose bit zero is the chunk's first
// ordinal. Nil is an empty chunk.
func DecodeDeleted(b []byte, set bitset.Set) error {
	if b == nil {
		return nil
	}
	p := parser{bytes: b}
	if err := p.format(); err != nil {
		return fmt.Errorf("%w: deleted documents", err)
	}
	form := p.uint()
	switch form {
	case deletedListed:
		for at := uint64(0); !p.done(); {
			step := p.uint()
			if at += step; step == 0 || at > DeletedPerChunk || int((at-1)/64) >= len(set) {
				p.fail()
				break
			}
			set.Add(uint32(at - 1))
		}
	case deletedBits:
		rest := p.take(uint64(len(b) - p.at))
		if len(rest)%8 != 0 || len(rest) > DeletedPerChunk/8 {
			p.fail()
			break
		}
		for i := 0; i < len(rest); i += 8 {
			word := binary.LittleEndian.Uint64(rest[i:])
			if i/8 >= len(set) && word != 0 {
				p.fail()
				break
			}
			if word != 0 {
				set[i/8] = word
			}
		}
	default:
		p.fail()
	}
	if p.bad {
		return fmt.Errorf("%w: deleted documents", ErrDamaged)
	}
	return nil
}

// DeletedSet holds the deleted ones among the ordinals of some chunks, by chunk.
type DeletedSet map[uint32]bitset.Set

// Has reports whether an ordinal is that of a deleted document, as far as its chunk
// was read.
func (d DeletedSet) Has(ordinal uint32) bool {
	return d[ordinal/DeletedPerChunk].Contains(ordinal % DeletedPerChunk)
}

// Chunks returns the chunks that have a deleted document, ascending.
func (d DeletedSet) Chunks() []uint32 { return slices.Sorted(maps.Keys(d)) }

// Count is how many ordinals from first to last are deleted.
func (d DeletedSet) Count(first, last uint32) (n uint64) {
	for chunk := first / DeletedPerChunk; first <= last && chunk <= last/DeletedPerChunk; chunk++ {
		start := chunk * DeletedPerChunk
		n += d[chunk].CountRange(max(first, start)-start, min(last-start, DeletedPerChunk-1))
	}
	return n
}

// All is how many ordinals are deleted.
func (d DeletedSet) All() (n uint64) {
	for _, set := range d {
		n += set.CountRange(0, DeletedPerChunk-1)
	}
	return n
}

// DeletedChunks are the chunks of the deleted set with the ordinals from first
// to last.
func DeletedChunks(first, last uint32) (chunks []uint32) {
	for chunk := first / DeletedPerChunk; first <= last && chunk <= last/DeletedPerChunk; chunk++ {
		chunks = append(chunks, chunk)
	}
	return chunks
}

// AnyLive reports whether one of so many documents before an ordinal is live.
func (d DeletedSet) AnyLive(before uint32, documents int) bool {
	first := max(1, before-uint32(documents))
	return d.Count(first, before-1) < uint64(before-first)
}
