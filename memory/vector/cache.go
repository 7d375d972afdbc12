package vector

import (
	"container/list"
	"sync"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// fineShare: three of so many parts of the cache may hold fine codes, if
	// nothing else needs the room.
	fineShare = 4
	// readWorth is how many bytes of fine codes are read in the time that it
	// takes to read one vector among others.
	readWorth = 8 << 10
	// maxDebts bounds the blocks whose missing fine codes are counted.
	maxDebts = 8192
)

// cache remembers parts of spaces, those used last, up to a number of bytes.
// Fine codes have what the other parts leave, which every search needs.
//
// Fine codes come in only where that pays, however little room there is: a block
// must have cost as much without them as reading them does, and they take no
// place of others that were used meanwhile. So where spaces need more than there
// is, some blocks have theirs and keep them.
type cache struct {
	limit int

	mu        sync.Mutex // guards the fields below
	bytes     int        // of all
	fineBytes int
	items     map[cacheKey]*list.Element // of *cached
	used      list.List                  // but fine codes; last used first
	fineUsed  list.List                  // fine codes; last used first
	debts     map[cacheKey]debt          // of fine codes that are not remembered
	searches  uint64                     // that asked for fine codes, ever
}

// cacheKey names a block, its centre or fine codes, or the tail under id 0. What
// it names never changes, except that a tail moves on.
type cacheKey struct {
	scope  kv.Scope
	number uint16
	stamp  uint64
	part   byte
	id     uint32
}

// part is what a cache remembers.
type part interface {
	// bytes is about what it takes in memory.
	bytes() int
}

type cached struct {
	key   cacheKey
	value part
	bytes int
	used  uint64 // the last search that did; only of fine codes
}

// debt is what was spent for want of fine codes.
type debt struct {
	bytes int    // as many of them could have been read
	since uint64 // the search before the first that missed them
}

func newCache(limit int) *cache {
	return &cache{limit: limit, items: make(map[cacheKey]*list.Element), debts: make(map[cacheKey]debt)}
}

// get puts what is remembered under the keys into values, which is as long.
func (c *cache) get(keys []cacheKey, values []part) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, key := range keys {
		if e := c.items[key]; e != nil {
			c.used.MoveToFront(e)
			values[i] = e.Value.(*cached).value
		}
	}
}

// getFine returns the fine codes that are remembered, nil for others, and which
// of those are to be read now. They are promised to this caller alone.
func (c *cache) getFine(keys []cacheKey, sizes []int) (found []*fineCodes, missing []int) {
	found = make([]*fineCodes, len(keys))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.searches++
	for i, key := range keys {
		if e := c.items[key]; e != nil {
			c.fineUsed.MoveToFront(e)
			item := e.Value.(*cached)
			item.used = c.searches
			found[i] = item.value.(*fineCodes)
		}
	}
	promised := 0
	for i, key := range keys {
		if owed := c.debts[key]; found[i] == nil && owed.bytes >= sizes[i] {
			delete(c.debts, key)
			if c.makeRoom(promised+sizes[i], owed.since) {
				promised += sizes[i]
				missing = append(missing, i)
			}
		}
	}
	return found, missing
}

// owe counts vectors that were read for want of fine codes.
func (c *cache) owe(key cacheKey, reads int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	owed, ok := c.debts[key]
	if !ok {
		owed.since = c.searches
		if len(c.debts) >= maxDebts {
			clear(c.debts)
		}
	}
	owed.bytes += reads * readWorth
	c.debts[key] = owed
}

// put remembers a value in the place of what the key had, unless it is larger
// than a quarter of all there is room for.
func (c *cache) put(key cacheKey, value part) {
	item := &cached{key: key, value: value, bytes: value.bytes()}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.items[key]; e != nil {
		c.drop(e)
	}
	if item.bytes > c.limit/4 {
		return
	}
	c.bytes += item.bytes
	if key.part == partFine {
		item.used = c.searches
		c.fineBytes += item.bytes
		c.items[key] = c.fineUsed.PushFront(item)
	} else {
		c.items[key] = c.used.PushFront(item)
	}
	for c.fineUsed.Len() > 0 && (c.bytes > c.limit || c.fineBytes > c.fineLimit()) {
		c.drop(c.fineUsed.Back())
	}
	for c.bytes > c.limit {
		c.drop(c.used.Back())
	}
}

func (c *cache) fineLimit() int { return c.limit - c.limit/fineShare }

// makeRoom drops fine codes that no search has used since that one, until there
// is room for so many bytes of others.
func (c *cache) makeRoom(bytes int, since uint64) bool {
	for min(c.fineLimit()-c.fineBytes, c.limit-c.bytes) < bytes {
		last := c.fineUsed.Back()
		if last == nil || last.Value.(*cached).used > since {
			return false
		}
		c.drop(last)
	}
	return true
}

func (c *cache) drop(e *list.Element) {
	item := e.Value.(*cached)
	if item.key.part == partFine {
		c.fineUsed.Remove(e)
		c.fineBytes -= item.bytes
	} else {
		c.used.Remove(e)
	}
	delete(c.items, item.key)
	c.bytes -= item.bytes
}
