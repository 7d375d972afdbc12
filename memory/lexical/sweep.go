package lexical

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// sweep deletes keys that nobody reads any more, some at a time: of segments,
// then of an older generation. It takes no turn when the known head has none.
func sweep(ctx context.Context, writer *kv.Writer, known head) (more bool, err error) {
	if l := known.segments; l.building == nil && len(l.dropped) == 0 && known.sweep == 0 {
		return false, nil
	}
	err = writer.Do(ctx, kv.Request{Refs: []kv.Ref{Ref(known.scope)}, Lazy: true, Stage: func(ctx context.Context, tx *kv.Tx) error {
		h, err := readHead(ctx, tx, known.scope, true)
		if more = false; err != nil || h.outdated {
			return err
		}
		h.segments.abandon()
		switch {
		case len(h.segments.dropped) > 0:
			more = true
			return h.sweepSegment(ctx, tx)
		case h.sweep != 0:
			more = true
			return h.sweepGeneration(ctx, tx)
		}
		return nil
	}})
	if err != nil {
		return false, fmt.Errorf("lexical: sweep %s: %w", known.scope, err)
	}
	return more, nil
}

// sweepSegment deletes keys of the first dropped segment.
func (h *head) sweepSegment(ctx context.Context, tx *kv.Tx) error {
	n, err := deleteSome(ctx, tx, h.segment(h.segments.dropped[0]), sweepKeys)
	if err != nil {
		return err
	}
	if n < sweepKeys {
		h.segments.dropped = h.segments.dropped[1:]
	}
	tx.Put(kv.Index, h.list(), h.segments.encode())
	return nil
}

// sweepGeneration deletes keys of the older generation.
func (h *head) sweepGeneration(ctx context.Context, tx *kv.Tx) error {
	old := space{h.scope, h.sweep}
	left := sweepKeys
	for _, tag := range []byte{tagList, tagEntry, tagIDs, tagSegment, tagColumns, tagDead, tagSession} {
		n, err := deleteSome(ctx, tx, old.key(tag), left)
		if err != nil {
			return err
		}
		if left -= n; left == 0 {
			return nil
		}
	}
	h.sweep = 0
	tx.Put(kv.Index, headKey(h.scope), h.encode())
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
