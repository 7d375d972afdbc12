package vector

import (
	"context"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// StageOldBlocks stages what an older version left: blocks of a scope's first
// space without fine codes.
func StageOldBlocks(ctx context.Context, tx *kv.Tx, scope kv.Scope) error {
	h, err := readHead(ctx, tx, place{scope, 1}, true)
	if err != nil {
		return err
	}
	for i, b := range h.blocks {
		tx.Delete(kv.Index, h.fine(b.id))
		h.blocks[i].fine = false
	}
	tx.Put(kv.Index, h.list(), encodeList(h.blocks))
	return nil
}

// FineBytes is how much of fine codes the index remembers.
func (x *Index) FineBytes() int {
	x.cache.mu.Lock()
	defer x.cache.mu.Unlock()
	return x.cache.fine.Weight()
}

// CacheBytes is how much the index remembers.
func (x *Index) CacheBytes() int {
	x.cache.mu.Lock()
	defer x.cache.mu.Unlock()
	return x.cache.bytes()
}
