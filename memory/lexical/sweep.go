package lexical

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// sweep deletes keys that no reader needs any more, some at a time: of segments,
// then of an older generation. It does not wait for the scope if the known head has nothing
// to sweep.
func sweep(ctx context.Context, writer *kv.Writer, known scopeHead) (more bool, err error) {
	if l := known.segments; l.Building == nil && len(l.Dropped) == 0 && known.Sweep == 0 {
		return false, nil
	}
	err = writer.Do(ctx, kv.Request{Refs: []kv.Ref{Ref(known.Scope)}, Lazy: true, Stage: func(ctx context.Context, tx *kv.Tx) error {
		h, err := readHead(ctx, tx, known.Scope, true)
		if more = false; err != nil || h.Outdated {
			return err
		}
		h.segments.Abandon()
		switch {
		case len(h.segments.Dropped) > 0:
			more = true
			n, err := deleteSome(ctx, tx, h.SegmentPrefix(h.segments.Dropped[0]), sweepKeys)
			if err != nil {
				return err
			}
			if n < sweepKeys {
				h.segments.Dropped = h.segments.Dropped[1:]
			}
			tx.Put(kv.Index, h.ListKey(), h.segments.Encode())
			return nil
		case h.Sweep != 0:
			more = true
			return h.sweepGeneration(ctx, tx)
		}
		return nil
	}})
	if err != nil {
		return false, fmt.Errorf("lexical: sweep %s: %w", known.Scope, err)
	}
	return more, nil
}

// sweepGeneration deletes keys of the older generation.
func (h *scopeHead) sweepGeneration(ctx context.Context, tx *kv.Tx) error {
	old := segment.Space{Scope: h.Scope, Generation: h.Sweep}
	left := sweepKeys
	for _, tag := range []byte{segment.TagList, segment.TagEntry, segment.TagIDs, segment.TagSegment, segment.TagColumns, segment.TagDeleted, segment.TagSession} {
		n, err := deleteSome(ctx, tx, old.Key(tag), left)
		if err != nil {
			return err
		}
		if left -= n; left == 0 {
			return nil
		}
	}
	h.Sweep = 0
	tx.Put(kv.Index, segment.HeadKey(h.Scope), h.Encode())
	return nil
}

// deleteSome deletes keys with a prefix, up to a number, and returns how many.
func deleteSome(ctx context.Context, tx *kv.Tx, prefix []byte, limit int) (n int, err error) {
	keys := kv.Prefix(prefix)
	keys.Limit = limit
	for pair, err := range tx.Scan(ctx, kv.Index, keys) {
		if err != nil {
			return n, err
		}
		tx.Delete(kv.Index, pair.Key)
		n++
	}
	return n, nil
}
