package vector

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// blocksPerRead bounds the blocks that are read in one round, some megabytes.
	blocksPerRead = 32
	// fineBlocksPerRead is the same for their fine codes.
	fineBlocksPerRead = 8
)

func (h head) cacheKey(part byte, id uint32) cacheKey {
	return cacheKey{h.scope, h.number, h.stamp, part, id}
}

// readBlocks returns blocks with their codes.
func (x *Index) readBlocks(ctx context.Context, view kv.Getter, h head, infos []blockInfo, dimension int) ([]*packedVectors, error) {
	blocks, missing := recall[*packedVectors](x.cache, h, partBlock, infos)
	if len(missing) == 0 {
		return blocks, nil
	}
	centres, err := x.readCentres(ctx, view, h, pick(infos, missing), dimension)
	if err != nil {
		return nil, err
	}
	values, err := readParts(ctx, view, h.block, pick(infos, missing))
	if err != nil {
		return nil, err
	}
	for n, i := range missing {
		b := *centres[n]
		if err := b.decodeCodes(values[n]); err != nil {
			return nil, err
		}
		blocks[i] = &b
		x.cache.put(h.cacheKey(partBlock, infos[i].id), &b)
	}
	return blocks, nil
}

// readCentres returns blocks with their centres, without codes.
func (x *Index) readCentres(ctx context.Context, view kv.Getter, h head, infos []blockInfo, dimension int) ([]*packedVectors, error) {
	blocks, missing := recall[*packedVectors](x.cache, h, partCentre, infos)
	if len(missing) == 0 {
		return blocks, nil
	}
	values, err := readParts(ctx, view, h.centre, pick(infos, missing))
	if err != nil {
		return nil, err
	}
	for n, i := range missing {
		if blocks[i], err = decodeCentre(values[n], dimension); err != nil {
			return nil, err
		}
		x.cache.put(h.cacheKey(partCentre, infos[i].id), blocks[i])
	}
	return blocks, nil
}

// readFine returns the fine codes of blocks, nil where there are none or where
// reading them does not pay.
func (x *Index) readFine(ctx context.Context, view kv.Getter, h head, infos []blockInfo, dimension int) ([]*fineCodes, error) {
	keys, sizes := make([]cacheKey, len(infos)), make([]int, len(infos))
	for i, info := range infos {
		keys[i], sizes[i] = h.cacheKey(partFine, info.id), info.count*fineBytes(dimension)
	}
	found, missing := x.cache.getFine(keys, sizes)
	for few := range slices.Chunk(missing, fineBlocksPerRead) {
		values, err := readParts(ctx, view, h.fine, pick(infos, few))
		if err != nil {
			return nil, err
		}
		for n, i := range few {
			if found[i], err = decodeFineCodes(values[n], dimension, infos[i].count); err != nil {
				return nil, err
			}
			x.cache.putFine(keys[i], found[i])
		}
	}
	return found, nil
}

// recall returns the cached state of a part of blocks, and where it is missing.
func recall[T part](c *partCache, h head, of byte, infos []blockInfo) (found []T, missing []int) {
	keys, values := make([]cacheKey, len(infos)), make([]part, len(infos))
	for i, info := range infos {
		keys[i] = h.cacheKey(of, info.id)
	}
	c.get(keys, values)
	found = make([]T, len(infos))
	for i, value := range values {
		var ok bool
		if found[i], ok = value.(T); !ok {
			missing = append(missing, i)
		}
	}
	return found, missing
}

// readParts reads a part of blocks from the store.
func readParts(ctx context.Context, view kv.Getter, key func(id uint32) []byte, infos []blockInfo) ([][]byte, error) {
	keys := make([][]byte, len(infos))
	for i, info := range infos {
		keys[i] = key(info.id)
	}
	return view.Get(ctx, kv.Index, keys...)
}

func pick(infos []blockInfo, places []int) []blockInfo {
	picked := make([]blockInfo, len(places))
	for i, place := range places {
		picked[i] = infos[place]
	}
	return picked
}

// choose returns the blocks to scan: all, or where the space is larger than the
// scan may be, those in order of arrival and the nearest of the others.
func (s *search) choose(ctx context.Context, h head) ([]blockInfo, error) {
	if s.few || h.entries() <= s.index.scanLimit {
		return h.blocks, nil
	}
	var chosen, others []blockInfo
	room := s.index.scanLimit
	for _, info := range h.blocks {
		if info.clustered {
			others = append(others, info)
			continue
		}
		chosen = append(chosen, info)
		room -= info.count
	}
	near, err := s.nearest(ctx, h, others)
	if err != nil {
		return nil, err
	}
	for _, info := range near {
		if room <= 0 {
			break
		}
		chosen = append(chosen, info)
		room -= info.count
	}
	return chosen, nil
}

// nearest sorts blocks by the distance from their centres to the query.
func (s *search) nearest(ctx context.Context, h head, infos []blockInfo) ([]blockInfo, error) {
	centres, err := s.index.readCentres(ctx, s.view, h, infos, s.dimension)
	if err != nil {
		return nil, err
	}
	type measured struct {
		blockInfo
		distance float32
	}
	all := make([]measured, len(infos))
	for i, b := range centres {
		all[i] = measured{infos[i], b.square - 2*product(s.rotated, b.centre)}
	}
	slices.SortFunc(all, func(a, b measured) int { return cmp.Compare(a.distance, b.distance) })
	for i, m := range all {
		infos[i] = m.blockInfo
	}
	return infos, nil
}

// tail is what of a space stands in no block. Where a document comes twice, only
// the later entry has a value.
type tail struct {
	first, last uint32 // slots
	changes     uint32 // of the head that it was read under
	ordinals    []uint32
	values      [][]byte // nil where the vector is gone
}

// entryMemory is roughly the memory of an entry of the tail without its vector.
const entryMemory = 64

func (t *tail) bytes() int {
	size := entryMemory
	for _, value := range t.values {
		size += entryMemory + len(value)
	}
	return size
}

// readTail returns the tail of a space, reading only the part that is not cached.
func (x *Index) readTail(ctx context.Context, view kv.Getter, h head) (*tail, error) {
	if h.tailLength() == 0 {
		return &tail{}, nil
	}
	key := h.cacheKey(partTail, 0)
	var known [1]part
	x.cache.get([]cacheKey{key}, known[:])
	t := &tail{first: h.packed + 1, last: h.packed, changes: h.changes}
	if old, ok := known[0].(*tail); ok && old.changes == h.changes && old.first <= t.first && old.last >= h.packed {
		from, to := h.packed+1-old.first, min(old.last, h.last)-old.first+1
		t.last = min(old.last, h.last)
		t.ordinals, t.values = slices.Clip(old.ordinals[from:to]), slices.Clip(old.values[from:to])
		if t.last == h.last {
			return t, nil
		}
	}
	if err := t.read(ctx, view, h); err != nil {
		return nil, err
	}
	x.cache.put(key, t)
	return t, nil
}

// read adds the slots behind the last one.
func (t *tail) read(ctx context.Context, view kv.Getter, h head) error {
	ordinals, err := readSlots(ctx, view, h, t.last+1, h.last)
	if err != nil {
		return err
	}
	values, err := readValues(ctx, view, h.place, ordinals)
	if err != nil {
		return err
	}
	t.last = h.last
	t.ordinals, t.values = append(t.ordinals, ordinals...), append(t.values, values...)
	later := make(map[uint32]struct{}, len(t.ordinals))
	for i := len(t.ordinals) - 1; i >= 0; i-- {
		if _, ok := later[t.ordinals[i]]; ok {
			t.values[i] = nil
		}
		later[t.ordinals[i]] = struct{}{}
	}
	return nil
}

// readSlots returns the ordinals of slots of the tail.
func readSlots(ctx context.Context, view kv.Getter, h head, first, last uint32) ([]uint32, error) {
	ordinals := make([]uint32, 0, last-first+1)
	all := kv.Range{Start: h.tail(first), End: kv.After(h.tail(last))}
	for pair, err := range view.Scan(ctx, kv.Index, all) {
		if err != nil {
			return nil, err
		}
		if len(pair.Value) != 4 {
			return nil, fmt.Errorf("%w: entry of the tail has %d bytes", ErrDamaged, len(pair.Value))
		}
		ordinals = append(ordinals, binary.BigEndian.Uint32(pair.Value))
	}
	if len(ordinals) != int(last-first)+1 {
		return nil, fmt.Errorf("%w: %d of %d entries of the tail", ErrDamaged, len(ordinals), last-first+1)
	}
	return ordinals, nil
}
