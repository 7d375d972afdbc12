package session

import (
	"sync"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
)

const (
	// maxCachedEntryBytes bounds the entries that a log remembers: those of some hundred
	// long sessions. Where it does not suffice, the tenant that takes most of it gives way.
	maxCachedEntryBytes = 64 << 20
	// maxSessionEntryBytes bounds those of one session: a prompt of many times the window
	// of any model.
	maxSessionEntryBytes = maxCachedEntryBytes / 8
	// entryBytes is about what an entry takes beside its stored form.
	entryBytes = 512
)

// entryCache remembers the entries that prompts of sessions read, so that the next prompt
// reads and decodes only what is new. An entry never changes and its position is never
// given again, so that nothing here can be out of date: whoever reads goes by the head of
// the session, which says which entries there are.
type entryCache struct {
	sessions *cache.Fair[string, journal, *cachedEntries]
}

func newEntryCache(bytes int) entryCache {
	return entryCache{cache.NewFair[string, journal, *cachedEntries](bytes)}
}

// of returns what is known of a session.
func (c entryCache) of(j journal) *cachedEntries {
	known, ok := c.sessions.Get(j.scope.Tenant, j)
	if !ok {
		known = &cachedEntries{entries: make(map[uint64]cachedEntry)}
	}
	return known
}

// keep remembers what was added to what is known of a session, without what stands in
// spans if that takes much.
func (c entryCache) keep(j journal, known *cachedEntries, folded []history.Span) {
	if size, changed := known.trim(folded); changed {
		c.sessions.Put(j.scope.Tenant, j, known, size)
	}
}

// cachedEntries are entries of a session. What they hold is shared, and never changed.
type cachedEntries struct {
	mu      sync.Mutex // guards the fields below
	entries map[uint64]cachedEntry
	bytes   int
	// changed says that the cache does not know its weight yet.
	changed bool
}

type cachedEntry struct {
	entry Entry
	bytes int
}

// at returns the entry at a position.
func (c *cachedEntries) at(position uint64) (Entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[position]
	return e.entry, ok
}

// add adds an entry that takes so many bytes in its stored form, if there is room.
func (c *cachedEntries) add(e Entry, stored int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size := stored + entryBytes
	if _, known := c.entries[e.Position]; known || c.bytes+size > maxSessionEntryBytes {
		return
	}
	c.entries[e.Position] = cachedEntry{e, size}
	c.bytes += size
	c.changed = true
}

// trim drops what stands in spans if more than half of the room is taken. It returns
// what the rest takes, and whether that has changed.
func (c *cachedEntries) trim(folded []history.Span) (bytes int, changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(folded) > 0 && c.bytes > maxSessionEntryBytes/2 {
		for position, e := range c.entries {
			if within(folded, position) {
				delete(c.entries, position)
				c.bytes -= e.bytes
				c.changed = true
			}
		}
	}
	changed = c.changed
	c.changed = false
	return sessionBytes + c.bytes, changed
}
