package vector

import (
	"container/list"
	"sync"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// cache remembers blocks and tails, those used last, up to a number of bytes.
type cache struct {
	limit int

	mu    sync.Mutex // guards the fields below
	bytes int
	items map[cacheKey]*list.Element // of *cached
	used  list.List                  // last used first
}

// cacheKey names a block, its centre alone, or the tail under id 0. What it
// names never changes, except that a tail moves on.
type cacheKey struct {
	scope  kv.Scope
	number uint16
	stamp  uint64
	part   byte
	id     uint32
}

type cached struct {
	key   cacheKey
	value any
	bytes int
}

func newCache(limit int) *cache {
	return &cache{limit: limit, items: make(map[cacheKey]*list.Element)}
}

func (c *cache) get(key cacheKey) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.items[key]
	if e == nil {
		return nil
	}
	c.used.MoveToFront(e)
	return e.Value.(*cached).value
}

// put remembers a value in the place of what the key had, unless it is larger
// than a quarter of all there is room for.
func (c *cache) put(key cacheKey, value any, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.items[key]; e != nil {
		c.drop(e)
	}
	if bytes > c.limit/4 {
		return
	}
	c.items[key] = c.used.PushFront(&cached{key, value, bytes})
	c.bytes += bytes
	for c.bytes > c.limit {
		c.drop(c.used.Back())
	}
}

func (c *cache) drop(e *list.Element) {
	item := e.Value.(*cached)
	c.used.Remove(e)
	delete(c.items, item.key)
	c.bytes -= item.bytes
}
