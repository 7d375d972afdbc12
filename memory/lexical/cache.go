package lexical

import (
	"container/list"
	"context"
	"fmt"
	"sync"

	"github.com/loom-bridge/loom-bridge/memory/kv"
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

// cache remembers what was used last, up to a number of bytes.
type cache struct {
	mu    sync.Mutex // guards the fields below
	limit int
	used  int
	order *list.List // of *cached, the one used last in front
	known map[any]*list.Element
}

type cached struct {
	key, value any
	size       int
}

func newCache(limit int) *cache {
	return &cache{limit: limit, order: list.New(), known: make(map[any]*list.Element)}
}

// get returns what is remembered under a key, or nil.
func (c *cache) get(key any) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.known[key]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).value
}

// put remembers a value, or that one grew, unless it is larger than all may
// be together. What was there under the key stays the same value.
func (c *cache) put(key, value any, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.known[key]
	if e == nil {
		e = c.order.PushFront(&cached{key: key, value: value})
		c.known[key] = e
	}
	entry := e.Value.(*cached)
	c.used += size - entry.size
	entry.size = size
	if size > c.limit {
		c.drop(e)
	}
	for c.used > c.limit {
		c.drop(c.order.Back())
	}
}

func (c *cache) drop(e *list.Element) {
	old := e.Value.(*cached)
	c.order.Remove(e)
	delete(c.known, old.key)
	c.used -= old.size
}

// scope returns what is remembered of a scope, and remembers it from now on.
func (c *cache) scope(key scopeKey) *scopeMemory {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.known[key]; e != nil {
		c.order.MoveToFront(e)
		return e.Value.(*cached).value.(*scopeMemory)
	}
	const empty = 1 << 10
	m := newScopeMemory()
	c.known[key] = c.order.PushFront(&cached{key: key, value: m, size: empty})
	c.used += empty
	return m
}

// load returns the segments of a head, reading in one round what is not
// remembered.
func (c *cache) load(ctx context.Context, from getter, h head) ([]*segment, error) {
	segments := make([]*segment, len(h.segments.segments))
	var keys [][]byte
	var missing []int
	for i, info := range h.segments.segments {
		if known, ok := c.get(segmentKey{h.space, info.stamp, info.id}).(*segment); ok {
			segments[i] = known
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
		c.put(segmentKey{h.space, info.stamp, info.id}, segments[i], segments[i].size())
	}
	return segments, nil
}
