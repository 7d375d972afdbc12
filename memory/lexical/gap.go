package lexical

import (
	"context"
	"math/rand/v2"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/bitset"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// skipWithSegments assigns the next ordinals, up to last, to deleted documents, as empty
// segments. Waiting documents are packed first.
func (r *rebuilding) skipWithSegments(ctx context.Context, last uint32) error {
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
		to := r.last + min(last-r.last, maxGapOrdinals)
		if err := r.do(ctx, nil, func(ctx context.Context, tx *kv.Tx) error { return r.stageGap(ctx, tx, to) }); err != nil {
			return err
		}
		r.last = to
	}
	return nil
}

// stageGap stages a segment of deleted documents up to an ordinal.
func (r *rebuilding) stageGap(ctx context.Context, tx *kv.Tx, to uint32) error {
	h, err := readHead(ctx, tx, r.scope, true)
	if err != nil {
		return err
	}
	if !h.Rebuilding || h.Stats.Last != r.last || h.Stats.Packed != r.last {
		return errStale
	}
	info := segment.Info{ID: h.segments.TakeID(), Stamp: rand.Uint64(), First: r.last + 1, Last: to}
	info.Purged = uint64(info.Documents())
	if err := h.stageDeleted(ctx, tx, info.First, info.Last); err != nil {
		return err
	}
	h.segments.Segments = append(h.segments.Segments, info)
	h.Stats.Last, h.Stats.Packed = to, to
	h.Stats.Deleted += info.Purged
	h.Stats.Purged += info.Purged
	tx.Put(kv.Index, h.DirectoryKey(info.ID), segment.EncodeDirectory(nil))
	tx.Put(kv.Index, h.ListKey(), h.segments.Encode())
	tx.Put(kv.Index, segment.HeadKey(h.Scope), h.Encode())
	return nil
}

// stageDeleted puts all ordinals from first to last into the deleted set.
func (h scopeHead) stageDeleted(ctx context.Context, tx *kv.Tx, first, last uint32) error {
	numbers := segment.DeletedChunks(first, last)
	keys := make([][]byte, len(numbers))
	for i, n := range numbers {
		keys[i] = h.DeletedKey(n)
	}
	values, err := tx.Get(ctx, kv.Index, keys...)
	if err != nil {
		return err
	}
	for i, n := range numbers {
		set := bitset.New(segment.DeletedPerChunk - 1)
		if err := segment.DecodeDeleted(values[i], set); err != nil {
			return err
		}
		start := n * segment.DeletedPerChunk
		for o := max(first, start) - start; o <= min(last-start, segment.DeletedPerChunk-1); o++ {
			set.Add(o)
		}
		tx.Put(kv.Index, keys[i], segment.EncodeDeleted(set))
	}
	return nil
}
