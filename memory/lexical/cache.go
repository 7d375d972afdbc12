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
	firsts  []string
	lengths []docLength
}

// size is about how much memory it takes.
func (s *segment) size() int {
	const each, perChunk, perDocument = 200, 40, 8
	return each + perChunk*len(s.firsts) + perDocument*len(s.lengths)
}

// segmentKey names a segment for good: no two segments share a stamp, and a
// segment never changes, so what is remembered under it stays true.
type segmentKey struct {
	space
	stamp uint64
}

// cache remembers the segments used last, up to a number of bytes.
type cache struct {
	mu    sync.Mutex // guards the fields below
	limit int
	used  int
	order *list.List // of *cached, the one used last in front
	known map[segmentKey]*list.Element
}

type cached struct {
	key     segmentKey
	segment *segment
}

func newCache(limit int) *cache {
	return &cache{limit: limit, order: list.New(), known: make(map[segmentKey]*list.Element)}
}

func (c *cache) get(key segmentKey) *segment {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.known[key]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).segment
}

func (c *cache) put(key segmentKey, s *segment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[key] != nil || s.size() > c.limit {
		return
	}
	c.known[key] = c.order.PushFront(&cached{key, s})
	c.used += s.size()
	for c.used > c.limit {
		c.drop(c.order.Back())
	}
}

func (c *cache) drop(e *list.Element) {
	old := e.Value.(*cached)
	c.order.Remove(e)
	delete(c.known, old.key)
	c.used -= old.segment.size()
}

// load returns the segments of a head, reading in one round what is not
// remembered.
func (c *cache) load(ctx context.Context, from getter, h head) ([]*segment, error) {
	segments := make([]*segment, len(h.segments.segments))
	var keys [][]byte
	var missing []int
	for i, info := range h.segments.segments {
		if segments[i] = c.get(segmentKey{h.space, info.stamp}); segments[i] == nil {
			keys = append(keys, h.directory(info.id), h.lengths(info.id))
			missing = append(missing, i)
		}
	}
	if len(missing) == 0 {
		return segments, nil
	}
	values, err := from.Get(ctx, kv.Index, keys...)
	if err != nil {
		return nil, err
	}
	for n, i := range missing {
		s, err := openSegment(h.segments.segments[i], values[2*n], values[2*n+1])
		if err != nil {
			return nil, err
		}
		segments[i] = s
		c.put(segmentKey{h.space, s.stamp}, s)
	}
	return segments, nil
}

func openSegment(info segmentInfo, directory, lengths []byte) (*segment, error) {
	firsts, err := decodeDirectory(directory)
	if err != nil {
		return nil, fmt.Errorf("segment %d: %w", info.id, err)
	}
	docs, err := decodeLengths(lengths, info.documents())
	if err != nil {
		return nil, fmt.Errorf("segment %d: %w", info.id, err)
	}
	return &segment{segmentInfo: info, firsts: firsts, lengths: docs}, nil
}
