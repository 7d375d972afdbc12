package lexical

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// purge deletes what is left of the ids and columns of deleted documents. It looks
// at the blocks that there are, not at the ordinals: of most deleted ones nothing
// is left.
func (m *merging) purge(ctx context.Context) error {
	if m.info.Purged == 0 {
		return nil
	}
	kinds := []purging{
		{segment.TagIDs, segment.IDsPerBlock, purgeOrdinals / segment.IDsPerBlock, m.withoutIDs},
		{segment.TagColumns, segment.RowsPerBlock, purgeOrdinals / segment.RowsPerBlock, m.withoutRows},
	}
	for _, kind := range kinds {
		if err := m.purgeBlocks(ctx, kind); err != nil {
			return err
		}
	}
	return nil
}

// purging says how to purge one kind of blocks.
type purging struct {
	tag                 byte
	ordinals, perCommit uint32 // ordinals of a block, blocks of a commit
	// without returns a block without what the deleted documents have in it: nil
	// where no document is live. It reports whether that differs from the stored data.
	without func(block uint32, stored []byte) (purged []byte, changed bool, err error)
}

// purgeBlocks purges the blocks of the merge, some in each commit.
func (m *merging) purgeBlocks(ctx context.Context, kind purging) error {
	blocks, err := m.unpurged(ctx, kind)
	if err != nil {
		return err
	}
	for len(blocks) > 0 {
		some := blocks[:min(len(blocks), int(kind.perCommit))]
		if err := m.commit(ctx, func(_ *scopeHead, tx *kv.Tx) error { return m.purgeSome(ctx, tx, kind, some) }); err != nil {
			return err
		}
		blocks = blocks[len(some):]
	}
	return nil
}

// unpurged returns the numbers of the blocks that hold something of the deleted
// documents.
func (m *merging) unpurged(ctx context.Context, kind purging) (blocks []uint32, err error) {
	first, last := m.info.First/kind.ordinals, m.info.Last/kind.ordinals
	prefix := m.Key(kind.tag)
	all := kv.Range{Start: m.BlockKey(kind.tag, first), End: kv.After(m.BlockKey(kind.tag, last))}
	for pair, err := range m.view.Scan(ctx, kv.Index, all) {
		if err != nil {
			return nil, err
		}
		if len(pair.Key) != len(prefix)+4 {
			return nil, fmt.Errorf("%w: key of a block", segment.ErrDamaged)
		}
		n := binary.BigEndian.Uint32(pair.Key[len(prefix):])
		if _, changed, err := kind.without(n, pair.Value); err != nil {
			return nil, err
		} else if changed {
			blocks = append(blocks, n)
		}
	}
	return blocks, nil
}

// purgeSome purges blocks as they are now.
func (m *merging) purgeSome(ctx context.Context, tx *kv.Tx, kind purging, blocks []uint32) error {
	keys := make([][]byte, len(blocks))
	for i, n := range blocks {
		keys[i] = m.BlockKey(kind.tag, n)
	}
	values, err := tx.Get(ctx, kv.Index, keys...)
	if err != nil {
		return err
	}
	for i, n := range blocks {
		if values[i] == nil {
			continue
		}
		purged, changed, err := kind.without(n, values[i])
		switch {
		case err != nil:
			return err
		case changed:
			putBlock(tx, keys[i], purged)
		}
	}
	return nil
}

// putBlock stages a block; none where it is nil.
func putBlock(tx *kv.Tx, key, block []byte) {
	if block == nil {
		tx.Delete(kv.Index, key)
		return
	}
	tx.Put(kv.Index, key, block)
}

func (m *merging) withoutIDs(block uint32, stored []byte) (purged []byte, changed bool, err error) {
	ids, err := segment.DecodeIDs(stored)
	if err != nil {
		return nil, false, err
	}
	live := false
	for i := range ids {
		if m.deleted.Has(block*segment.IDsPerBlock + uint32(i)) {
			changed = changed || len(ids[i]) > 0
			ids[i] = nil
		} else if i > 0 || block > 0 {
			live = true
		}
	}
	if !live {
		return nil, true, nil
	}
	return segment.EncodeIDs(ids), changed, nil
}

func (m *merging) withoutRows(block uint32, stored []byte) (purged []byte, changed bool, err error) {
	rows, err := segment.DecodeRows(stored, block*segment.RowsPerBlock)
	if err != nil {
		return nil, false, err
	}
	live := false
	for i := range rows {
		if m.deleted.Has(block*segment.RowsPerBlock + uint32(i)) {
			changed = changed || rows[i] != segment.Row{}
			rows[i] = segment.Row{}
		} else if i > 0 || block > 0 {
			live = true
		}
	}
	if !live {
		return nil, true, nil
	}
	return segment.EncodeRows(rows, block*segment.RowsPerBlock), changed, nil
}
