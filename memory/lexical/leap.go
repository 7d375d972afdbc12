package lexical

import (
	"context"
	"math/rand/v2"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// leap lets the next ordinals, up to the last one, be those of dead documents,
// as segments with nothing in them. What waits is packed before.
func (r *rebuilding) leap(ctx context.Context, last uint32) error {
	if err := r.flush(ctx, false); err != nil {
		return err
	}
	for {
		s, _, err := r.index.Pack(ctx, r.engine, r.writer, r.scope)
		if err != nil {
			return err
		}
		if s.Tail() == 0 {
			break
		}
	}
	for r.last < last {
		to := r.last + min(last-r.last, leapOrdinals)
		if err := r.do(ctx, nil, func(ctx context.Context, tx *kv.Tx) error { return r.stageLeap(ctx, tx, to) }); err != nil {
			return err
		}
		r.last = to
	}
	return nil
}

// stageLeap stages a segment of dead documents up to an ordinal.
func (r *rebuilding) stageLeap(ctx context.Context, tx *kv.Tx, to uint32) error {
	h, err := readHead(ctx, tx, r.scope, true)
	if err != nil {
		return err
	}
	if !h.rebuilding || h.stats.Last != r.last || h.stats.Packed != r.last {
		return errStale
	}
	info := segmentInfo{id: h.segments.take(), stamp: rand.Uint64(), first: r.last + 1, last: to}
	info.purged = uint64(info.documents())
	if err := h.stageDead(ctx, tx, info.first, info.last); err != nil {
		return err
	}
	h.segments.segments = append(h.segments.segments, info)
	h.stats.Last, h.stats.Packed = to, to
	h.stats.Dead += info.purged
	h.stats.Purged += info.purged
	tx.Put(kv.Index, h.directory(info.id), encodeDirectory(nil))
	tx.Put(kv.Index, h.list(), h.segments.encode())
	tx.Put(kv.Index, headKey(h.scope), h.encode())
	return nil
}

// stageDead puts all ordinals from first to last into the dead set.
func (h head) stageDead(ctx context.Context, tx *kv.Tx, first, last uint32) error {
	numbers := chunksOf(first, last)
	keys := make([][]byte, len(numbers))
	for i, n := range numbers {
		keys[i] = h.deadSet(n)
	}
	values, err := tx.Get(ctx, kv.Index, keys...)
	if err != nil {
		return err
	}
	for i, n := range numbers {
		set := newBitset(deadPerChunk - 1)
		if err := decodeDead(values[i], set); err != nil {
			return err
		}
		start := n * deadPerChunk
		for o := max(first, start) - start; o <= min(last-start, deadPerChunk-1); o++ {
			set.set(o)
		}
		tx.Put(kv.Index, keys[i], encodeDead(set))
	}
	return nil
}
