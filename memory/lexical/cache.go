package lexical

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
)

// segment is what a query needs of every segment, whatever its terms.
type segment struct {
	segmentInfo
	firsts []string // the first term of each chunk
}

// size is about how much memory it takes.
func (s *segment) size() int {
	const each, perChunk = 200, 40
	return each + perChunk*len(s.firsts)
}

// segmentKey names a segment for good: no two segments share a stamp, and a
// segment never changes, so what is remembered under it stays true. The id is
// part of it because a commit that is staged again may give it another one.
type segmentKey struct {
	space
	stamp uint64
	id    uint32
}

// scopeKey names what is remembered of a scope.
type scopeKey struct {
	space
	incarnation uint64
}

// indexCache is what an Index remembers: segments, the blocks of terms, and scopes,
// by segmentKey, termKey and scopeKey.
type indexCache struct{ *cache.Cache[any, any] }

func newIndexCache(limit int) indexCache { return indexCache{cache.New[any, any](limit)} }

// scope returns what is remembered of a scope, and remembers it from now on.
func (c indexCache) scope(key scopeKey) *scopeMemory {
	const empty = 1 << 10
	return c.GetOrPut(key, empty, func() any { return newScopeMemory() }).(*scopeMemory)
}

// load returns the segments of a head, reading in one round what is not
// remembered.
func (c indexCache) load(ctx context.Context, from getter, h head) ([]*segment, error) {
	segments := make([]*segment, len(h.segments.segments))
	var keys [][]byte
	var missing []int
	for i, info := range h.segments.segments {
		if known, ok := c.Get(segmentKey{h.space, info.stamp, info.id}); ok {
			segments[i] = known.(*segment)
			continue
		}
		keys = append(keys, h.directory(info.id))
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
		info := h.segments.segments[i]
		firsts, err := decodeDirectory(values[n])
		if err != nil {
			return nil, fmt.Errorf("segment %d: %w", info.id, err)
		}
		segments[i] = &segment{segmentInfo: info, firsts: firsts}
		c.Put(segmentKey{h.space, info.stamp, info.id}, segments[i], segments[i].size())
	}
	return segments, nil
}
