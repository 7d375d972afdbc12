package vector

import (
	"context"
	"encoding/binary"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Check recounts the vectors of a scope: each belongs to a document that known
// has, each stands in a block or in the tail, the counts are right, blocks have
// their fine codes, and nothing is left of blocks and spaces that are gone. It
// reports each difference. It reads everything from one view.
func (x *Index) Check(ctx context.Context, view kv.Reader, scope kv.Scope, known func(ordinal uint32) bool, report func(format string, args ...any)) error {
	d, err := readDirectory(ctx, view, scope)
	if err != nil {
		return err
	}
	spaces := make(map[uint16]struct{}, len(d.spaces))
	for _, s := range d.spaces {
		spaces[s.number] = struct{}{}
		if s.dropped {
			continue
		}
		if err := x.checkSpace(ctx, view, place{scope, s.number}, s, known, report); err != nil {
			return err
		}
	}
	for ks, prefix := range map[kv.Keyspace][]byte{kv.Records: scope.Key(tagVector), kv.Index: scope.Key(tagCodes)} {
		if err := checkStrays(ctx, view, ks, prefix, spaces, report); err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) checkSpace(ctx context.Context, view kv.Reader, at place, s entry, known func(uint32) bool, report func(string, ...any)) error {
	h, err := readHead(ctx, view, at, true)
	if err != nil {
		return err
	}
	entries, err := x.allEntries(ctx, view, h, s.dimension, report)
	if err != nil {
		return err
	}
	stands := make(map[uint32]struct{}, len(entries))
	for _, ordinal := range entries {
		stands[ordinal] = struct{}{}
	}
	if err := checkFine(ctx, view, h, s.dimension, report); err != nil {
		return err
	}
	count, prefix := 0, at.vectors()
	for pair, err := range view.Scan(ctx, kv.Records, kv.Prefix(prefix)) {
		if err != nil {
			return err
		}
		count++
		if err := checkValue(pair.Value, s.dimension); err != nil {
			return err
		}
		ordinal, ok := idOf(pair.Key, prefix)
		if !ok {
			report("space %q has a vector under the key %q", s.name, pair.Key)
			continue
		}
		if !known(ordinal) {
			report("space %q has a vector of document %d, which is not there", s.name, ordinal)
		}
		if _, ok := stands[ordinal]; !ok {
			report("space %q: the vector of document %d stands in no block", s.name, ordinal)
		}
	}
	if count != int(h.vectors) || len(entries) != h.entries() {
		report("space %q has %d vectors and %d entries, its head says %d and %d", s.name, count, len(entries), h.vectors, h.entries())
	}
	return nil
}

// allEntries returns the documents of all blocks and the tail.
func (x *Index) allEntries(ctx context.Context, view kv.Reader, h head, dimension int, report func(string, ...any)) ([]uint32, error) {
	var ordinals []uint32
	for _, info := range h.blocks {
		blocks, err := x.readBlocks(ctx, view, h, []blockInfo{info}, dimension)
		if err != nil {
			return nil, err
		}
		if len(blocks[0].ordinals) != info.count {
			report("block %d has %d vectors, the list says %d", info.id, len(blocks[0].ordinals), info.count)
		}
		ordinals = append(ordinals, blocks[0].ordinals...)
	}
	if h.tailLength() == 0 {
		return ordinals, nil
	}
	slots, err := readSlots(ctx, view, h, h.packed+1, h.last)
	return append(ordinals, slots...), err
}

// checkFine reports blocks without the fine codes that they should have, and fine
// codes without a block.
func checkFine(ctx context.Context, view kv.Reader, h head, dimension int, report func(string, ...any)) error {
	vectors := make(map[uint32]int, len(h.blocks))
	for _, info := range h.blocks {
		if info.fine {
			vectors[info.id] = info.count
		}
	}
	for pair, err := range view.Scan(ctx, kv.Index, kv.Prefix(h.fines())) {
		if err != nil {
			return err
		}
		id, ok := idOf(pair.Key, h.fines())
		count, known := vectors[id]
		if !ok || !known {
			report("there are fine codes under the key %q, but no block that has them", pair.Key)
			continue
		}
		delete(vectors, id)
		if _, err := decodeFineCodes(pair.Value, dimension, count); err != nil {
			return err
		}
	}
	for id := range vectors {
		report("block %d has no fine codes, the list says it has", id)
	}
	return nil
}

// idOf returns the number at the end of a key behind a prefix.
func idOf(key, prefix []byte) (id uint32, ok bool) {
	rest := key[len(prefix):]
	if len(rest) != 4 {
		return 0, false
	}
	return binary.BigEndian.Uint32(rest), true
}

// checkStrays reports what belongs to no space.
func checkStrays(ctx context.Context, view kv.Reader, ks kv.Keyspace, prefix []byte, spaces map[uint16]struct{}, report func(string, ...any)) error {
	for from := prefix; from != nil; {
		all := kv.Range{Start: from, End: kv.After(prefix), Limit: 1}
		from = nil
		for pair, err := range view.Scan(ctx, ks, all) {
			if err != nil {
				return err
			}
			rest := pair.Key[len(prefix):]
			if len(rest) < 2 {
				report("key %q of vectors is too short", pair.Key)
				return nil
			}
			number := binary.BigEndian.Uint16(rest)
			if _, ok := spaces[number]; !ok {
				report("there are keys of space %d, which is not there, in %s", number, ks)
			}
			from = kv.After(append(append([]byte(nil), prefix...), rest[:2]...))
		}
	}
	return nil
}
