package lexical

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// encodeDirectory packs the first term of each chunk.
func encodeDirectory(firsts []string) []byte {
	b := binary.AppendUvarint(nil, layout)
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

func decodeDirectory(b []byte) ([]string, error) {
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

// locate returns the range of chunks that may hold a term.
func locate(firsts []string, term string) (from, to int) {
	from, _ = slices.BinarySearch(firsts, term)
	for to = from; to < len(firsts) && firsts[to] == term; to++ {
	}
	// The blocks of a term may begin behind other terms of the chunk before.
	return max(0, from-1), to
}

// idsPerBlock is how many ids share a key. A hit reads one such block.
const idsPerBlock = 64

// encodeIDs packs ids of neighbouring ordinals, the first of which is a
// multiple of idsPerBlock.
func encodeIDs(ids [][]byte) []byte {
	b := binary.AppendUvarint(nil, layout)
	for _, id := range ids {
		b = binary.AppendUvarint(b, uint64(len(id)))
		b = append(b, id...)
	}
	return b
}

func decodeIDs(b []byte) ([][]byte, error) {
	r := parser{bytes: b}
	if err := r.format(); err != nil {
		return nil, err
	}
	ids := make([][]byte, 0, idsPerBlock)
	for !r.done() && len(ids) < idsPerBlock {
		ids = append(ids, r.take(r.uint()))
	}
	if r.bad || !r.done() {
		return nil, fmt.Errorf("%w: ids", ErrDamaged)
	}
	return ids, nil
}
