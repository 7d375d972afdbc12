package cache

import "sync"

// Cache is an LRU that is safe for concurrent use. Make one with New.
type Cache[K comparable, V any] struct {
	mu  sync.Mutex // guards lru
	lru *LRU[K, V]
}

// New returns an empty cache with that limit.
func New[K comparable, V any](limit int) *Cache[K, V] {
	return &Cache[K, V]{lru: NewLRU[K, V](limit)}
}

// Get returns the value of a key, which is then the most recently used.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lru.Get(key)
}

// GetOrPut returns the value of a key. Where there is none, it stores the one that
// create returns. Calls of create are made one at a time, under the cache's lock:
// it must be quick and must not use the cache.
func (c *Cache[K, V]) GetOrPut(key K, weight int, create func() V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if value, ok := c.lru.Get(key); ok {
		return value
	}
	value := create()
	c.lru.Put(key, value, weight)
	return value
}

// Put stores a value as LRU.Put does.
func (c *Cache[K, V]) Put(key K, value V, weight int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lru.Put(key, value, weight)
}

// DeleteFunc drops the entries of the keys that match.
func (c *Cache[K, V]) DeleteFunc(match func(K) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lru.DeleteFunc(match)
}

// Len returns the number of entries.
func (c *Cache[K, V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lru.Len()
}

// Weight returns the sum of the weights of all entries.
func (c *Cache[K, V]) Weight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lru.Weight()
}
