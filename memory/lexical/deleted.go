package lexical

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/bitset"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// readDeleted returns the deleted documents among the ordinals of those chunks.
func (h scopeHead) readDeleted(ctx context.Context, from kv.Getter, chunks []uint32) (segment.DeletedSet, error) {
	if len(chunks) == 0 {
		return segment.DeletedSet{}, nil
	}
	keys := make([][]byte, len(chunks))
	for i, chunk := range chunks {
		keys[i] = h.DeletedKey(chunk)
	}
	values, err := from.Get(ctx, kv.Index, keys...)
	if err != nil {
		return nil, err
	}
	deleted := make(segment.DeletedSet)
	for i, value := range values {
		if value == nil {
			continue
		}
		set := bitset.New(segment.DeletedPerChunk - 1)
		if err := segment.DecodeDeleted(value, set); err != nil {
			return nil, err
		}
		deleted[chunks[i]] = set
	}
	return deleted, nil
}

// readAllDeleted returns all deleted ordinals.
func (h scopeHead) readAllDeleted(ctx context.Context, from kv.Getter) (segment.DeletedSet, error) {
	deleted, err := h.readDeleted(ctx, from, segment.DeletedChunks(0, h.Stats.Last))
	if err != nil {
		return nil, err
	}
	if n := deleted.Count(1, h.Stats.Last); n != h.Stats.Deleted || n != deleted.All() {
		return nil, fmt.Errorf("%w: %d deleted documents instead of %d", segment.ErrDamaged, n, h.Stats.Deleted)
	}
	return deleted, nil
}
