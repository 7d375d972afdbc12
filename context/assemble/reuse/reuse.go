// Package reuse keeps prompts for calls that would make the same ones again.
//
// A [Key] is the hash of all that a prompt is made of, so that a prompt that is kept can
// never be another than the one that would be made: a changed record, message, setting, tool
// or reported usage has another key. A [Cache] has the prompts by their keys, in memory only,
// the least recently used go first.
package reuse

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv/cache"
)

// DefaultMaxBytes bounds the prompts of a Cache.
const DefaultMaxBytes = 64 << 20

// Key stands for all inputs of a prompt.
type Key [sha256.Size]byte

// KeyOf is the key of some inputs, in that order. They are plain data: what JSON leaves out
// of one is no input. Long ones are better given as bytes, which are taken as they are.
func KeyOf(inputs ...any) (Key, error) {
	h := sha256.New()
	out := json.NewEncoder(h)
	for _, in := range inputs {
		if raw, ok := in.([]byte); ok {
			h.Write(binary.AppendUvarint(nil, uint64(len(raw))))
			h.Write(raw)
			continue
		}
		if err := out.Encode(in); err != nil { // each on its own line
			return Key{}, fmt.Errorf("reuse: %w", err)
		}
	}
	return Key(h.Sum(nil)), nil
}

// Cache keeps prompts. Its methods are safe for concurrent use; a nil Cache keeps nothing.
type Cache[P any] struct{ kept *cache.Cache[Key, P] }

// New returns an empty cache of prompts of at most so many bytes; DefaultMaxBytes for 0.
func New[P any](maxBytes int) *Cache[P] {
	if maxBytes <= 0 {
		maxBytes = DefaultMaxBytes
	}
	return &Cache[P]{cache.New[Key, P](maxBytes)}
}

// Get returns the prompt of a key. It belongs to the cache.
func (c *Cache[P]) Get(key Key) (p P, ok bool) {
	if c == nil {
		return p, false
	}
	return c.kept.Get(key)
}

// Put keeps a prompt of so many bytes, which is not changed any more.
func (c *Cache[P]) Put(key Key, p P, bytes int) {
	if c != nil {
		c.kept.Put(key, p, bytes)
	}
}
