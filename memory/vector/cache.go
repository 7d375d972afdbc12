package vector

import (
	"sync"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
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

// partCache remembers parts of spaces, those used last, up to a number of bytes.
// Fine codes have what the other parts leave, which every search needs.
//
// Fine codes come in only where that pays, however little room there is: a block
// must have cost as much without them as reading them does, and they take no
// place of others that were used meanwhile. So where spaces need more than there
// is, some blocks have theirs and keep them.
type partCache struct {
	limit int

	mu       sync.Mutex                   // guards the fields below
	parts    *cache.LRU[cacheKey, part]   // but fine codes
	fine     *cache.LRU[cacheKey, *fined] // fine codes
	debts    map[cacheKey]debt            // of fine codes that are not remembered
	searches uint64                       // that asked for fine codes, ever
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

// fined are remembered fine codes.
type fined struct {
	codes *fineCodes
	used  uint64 // the last search that did
}

// debt is what was spent for want of fine codes.
type debt struct {
	bytes int    // as many of them could have been read
	since uint64 // the search before the first that missed them
}

func newPartCache(limit int) *partCache {
	return &partCache{
		limit: limit,
		parts: cache.NewLRU[cacheKey, part](limit),
		fine:  cache.NewLRU[cacheKey, *fined](limit - limit/fineShare),
		debts: make(map[cacheKey]debt),
	}
}

// get puts the cached values of the keys into values, which must have the same length.
func (c *partCache) get(keys []cacheKey, values []part) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, key := range keys {
		values[i], _ = c.parts.Get(key)
	}
}

// getFine returns the fine codes that are remembered, nil for others, and which
// of those are to be read now. They are promised to this caller alone.
func (c *partCache) getFine(keys []cacheKey, sizes []int) (found []*fineCodes, missing []int) {
	found = make([]*fineCodes, len(keys))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.searches++
	for i, key := range keys {
		if item, ok := c.fine.Get(key); ok {
			item.used = c.searches
			found[i] = item.codes
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
func (c *partCache) owe(key cacheKey, reads int) {
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

// put remembers a part in the place of what the key had, unless it is larger
// than a quarter of all there is room for. Fine codes go with putFine.
func (c *partCache) put(key cacheKey, p part) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := p.bytes(); n <= c.limit/4 {
		c.parts.Put(key, p, n)
	} else {
		c.parts.Delete(key)
	}
	c.fitFine()
}

// putFine is put for fine codes.
func (c *partCache) putFine(key cacheKey, codes *fineCodes) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := codes.bytes(); n <= c.limit/4 {
		c.fine.Put(key, &fined{codes, c.searches}, n)
	} else {
		c.fine.Delete(key)
	}
	c.fitFine()
}

// fitFine drops the fine codes that the other parts leave no room for.
func (c *partCache) fitFine() {
	for c.fine.Len() > 0 && c.bytes() > c.limit {
		oldest, _, _ := c.fine.Oldest()
		c.fine.Delete(oldest)
	}
}

// bytes is what all parts take, fine codes included.
func (c *partCache) bytes() int { return c.parts.Weight() + c.fine.Weight() }

// makeRoom drops fine codes that no search has used since that one, until there
// is room for so many bytes of others.
func (c *partCache) makeRoom(bytes int, since uint64) bool {
	for min(c.limit-c.limit/fineShare-c.fine.Weight(), c.limit-c.bytes()) < bytes {
		key, oldest, ok := c.fine.Oldest()
		if !ok || oldest.used > since {
			return false
		}
		c.fine.Delete(key)
	}
	return true
}
