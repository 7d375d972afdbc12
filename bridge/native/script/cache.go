package script

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
)

// DefaultCacheBytes bounds a cache.
const DefaultCacheBytes = 64 << 20

// Key identifies a call: script, function, arguments and environment.
type Key [sha256.Size]byte

// KeyOf is the key of some parts, in order.
func KeyOf(parts ...[]byte) Key {
	h := sha256.New()
	for _, part := range parts {
		_ = binary.Write(h, binary.BigEndian, uint64(len(part))) // a hash takes everything
		h.Write(part)
	}
	return Key(h.Sum(nil))
}

// Entry is a kept answer.
type Entry struct {
	// Reads are what it was made from, with the digests of what was there.
	Reads []Seen
	// Values is the answer as JSON text.
	Values []byte
}

// Seen is something read, as it was.
type Seen struct {
	Read
	Digest string // empty: nothing was there
}

func (e Entry) weight() int {
	const overhead = 256
	n := overhead + len(e.Values)
	for _, s := range e.Reads {
		n += overhead/2 + len(s.Path) + len(s.Digest)
	}
	return n
}

// AnswerCache keeps answers within a number of bytes. Tenants share it: when it is full, the
// tenant that holds most loses what it used least recently. All methods are safe for
// concurrent use; a nil Cache keeps nothing.
type AnswerCache struct {
	limit int

	mu      sync.Mutex
	weight  int                               // guarded by mu
	tenants map[string]*cache.LRU[Key, Entry] // guarded by mu
}

// NewCache returns a cache of that many bytes; nil for none.
func NewCache(limit int) *AnswerCache {
	if limit <= 0 {
		return nil
	}
	return &AnswerCache{limit: limit, tenants: map[string]*cache.LRU[Key, Entry]{}}
}

// Get returns what a tenant has under a key.
func (c *AnswerCache) Get(tenant string, key Key) (Entry, bool) {
	if c == nil {
		return Entry{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	lru := c.tenants[tenant]
	if lru == nil {
		return Entry{}, false
	}
	return lru.Get(key)
}

// Put keeps an entry in place of the one that the key had.
func (c *AnswerCache) Put(tenant string, key Key, e Entry) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	lru := c.tenants[tenant]
	if lru == nil {
		lru = cache.NewLRU[Key, Entry](c.limit)
		c.tenants[tenant] = lru
	}
	c.weight -= lru.Weight()
	lru.Put(key, e, e.weight())
	c.weight += lru.Weight()
	for c.weight > c.limit {
		c.drop()
	}
	if lru.Len() == 0 {
		delete(c.tenants, tenant)
	}
}

// drop drops the oldest entry of the tenant that holds most.
func (c *AnswerCache) drop() {
	var most string
	for tenant, lru := range c.tenants {
		if c.tenants[most] == nil || lru.Weight() > c.tenants[most].Weight() {
			most = tenant
		}
	}
	lru := c.tenants[most]
	c.weight -= lru.Weight()
	oldest, _, _ := lru.Oldest()
	lru.Delete(oldest)
	c.weight += lru.Weight()
	if lru.Len() == 0 {
		delete(c.tenants, most)
	}
}
