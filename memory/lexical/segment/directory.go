package segment

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// EncodeDirectory packs the first term of each chunk.
func EncodeDirectory(firsts []string) []byte {
	b := binary.AppendUvarint(nil, Format)
	b = binary.AppendUvarint(b, uint64(len(firsts)))
	before := ""
	for _, first := range firsts {
		shared := sharedPrefix(before, first)
		b = binary.AppendUvarint(b, uint64(shared))
		b = binary.AppendUvarint(b, uint64(len(first)-shared))
		b = append(b, first[shared:]...)
		before = first
	}
	return b
}

// DecodeDirectory reads what EncodeDirectory wrote.
func DecodeDirectory(b []byte) ([]string, error) {
	r := parser{bytes: b}
	if err := r.format(); err != nil {
		return nil, err
	}
	count := r.uint()
	if count > uint64(len(b)) {
		r.fail()
	}
	firsts := make([]string, 0, min(count, uint64(len(b))))
	before := ""
	for range count {
		shared, suffix := r.uint(), r.take(r.uint())
		if r.bad || shared > uint64(len(before)) || int(shared)+len(suffix) > MaxTermBytes {
			return nil, fmt.Errorf("%w: directory", ErrDamaged)
		}
		first := before[:shared] + string(suffix)
		if len(firsts) > 0 && first < before {
			return nil, fmt.Errorf("%w: directory is out of order", ErrDamaged)
		}
		firsts, before = append(firsts, first), first
	}
	if r.bad || !r.done() {
		return nil, fmt.Errorf("%w: directory", ErrDamaged)
	}
	return firsts, nil
}

// LocateChunks returns the range of chunks that may hold a term.
func LocateChunks(firsts []string, term string) (from, to int) {
	from, _ = slices.BinarySearch(firsts, term)
	for to = from; to < len(firsts) && firsts[to] == term; to++ {
	}
	// The blocks of a term may begin behind other terms of the chunk before.
	return max(0, from-1), to
}

// IDsPerBlock is how many ids share a key. A hit reads one such block.
const IDsPerBlock = 64

// EncodeIDs packs ids of neighbouring ordinals, the first of which is a
// multiple of idsPerBlock.
func EncodeIDs(ids [][]byte) []byte {
	b := binary.AppendUvarint(nil, Format)
	for _, id := range ids {
		b = binary.AppendUvarint(b, uint64(len(id)))
		b = append(b, id...)
	}
	return b
}

// DecodeIDs reads what EncodeIDs wrote.
func DecodeIDs(b []byte) ([][]byte, error) {
	r := parser{bytes: b}
	if err := r.format(); err != nil {
		return nil, err
	}
	ids := make([][]byte, 0, IDsPerBlock)
	for !r.done() && len(ids) < IDsPerBlock {
		ids = append(ids, r.take(r.uint()))
	}
	if r.bad || !r.done() {
		return nil, fmt.Errorf("%w: ids", ErrDamaged)
	}
	return ids, nil
}

// Segment is what a query needs of every segment, whatever its terms.
type Segment struct {
	Info
	Firsts []string // the first term of each chunk
}

// MemoryBytes is about how much memory it takes.
func (s *Segment) MemoryBytes() int {
	const each, perChunk = 200, 40
	return each + perChunk*len(s.Firsts)
}
