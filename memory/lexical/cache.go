package lexical

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
	"github.com/loom-bridge/loom-bridge/memory/lexical/frame"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// segmentKey names a segment for good: no two segments share a stamp, and a
// segment never changes, so its cached contents stay valid. The id is part of it because a
// commit that is staged again may assign another id.
type segmentKey struct {
	segment.Space
	stamp uint64
	id    uint32
}

// scopeKey names the cache entry of a scope.
type scopeKey struct {
	segment.Space
	incarnation uint64
}

// indexCache is what an Index remembers: segments, the blocks of terms, and scopes,
// by segmentKey, termKey and scopeKey.
type indexCache struct{ *cache.Cache[any, any] }

func newIndexCache(limit int) indexCache { return indexCache{cache.New[any, any](limit)} }

// scope returns the cached state of a scope, and remembers it from now on.
func (c indexCache) scope(key scopeKey) *scopeCache {
	const empty = 1 << 10
	return c.GetOrPut(key, empty, func() any { return newScopeCache() }).(*scopeCache)
}

// load returns the segments of a head, reading in one round what is not
// remembered.
func (c indexCache) load(ctx context.Context, from kv.Getter, h scopeHead) ([]*segment.Segment, error) {
	segments := make([]*segment.Segment, len(h.segments.Segments))
	var keys [][]byte
	var missing []int
	for i, info := range h.segments.Segments {
		if known, ok := c.Get(segmentKey{h.Space, info.Stamp, info.ID}); ok {
			segments[i] = known.(*segment.Segment)
			continue
		}
		keys = append(keys, h.DirectoryKey(info.ID))
		missing = append(missing, i)
	}
	if len(missing) == 0 {
		return segments, nil
	}
	values, err := from.Get(ctx, kv.Index, keys...)
	if err != nil {
		return nil, err
	}
	for n, i := range missing {
		info := h.segments.Segments[i]
		firsts, err := segment.DecodeDirectory(values[n])
		if err != nil {
			return nil, fmt.Errorf("segment %d: %w", info.ID, err)
		}
		segments[i] = &segment.Segment{Info: info, Firsts: firsts}
		c.Put(segmentKey{h.Space, info.Stamp, info.ID}, segments[i], segments[i].MemoryBytes())
	}
	return segments, nil
}

// describes reports whether the frame is that of the state that h describes.
func describes(f *frame.Frame, h scopeHead) bool {
	return f.Last == h.Stats.Last && f.Deletions == h.Stats.Deleted
}
