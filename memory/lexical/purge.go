package lexical

import (
	"context"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// purge deletes what is left of the ids and columns of dead documents.
func (m *merging) purge(ctx context.Context) error {
	for first := m.info.first; first <= m.info.last && first != 0; {
		last := min(m.info.last, first|(purgeOrdinals-1))
		if m.dead.count(first, last) > 0 {
			if err := m.commit(ctx, func(_ *head, tx *kv.Tx) error { return m.purgeRange(ctx, tx, first, last) }); err != nil {
				return err
			}
		}
		first = last + 1
	}
	return nil
}

func (m *merging) purgeRange(ctx context.Context, tx *kv.Tx, first, last uint32) error {
	for n := first / idsPerBlock; n <= last/idsPerBlock; n++ {
		if from, to := max(first, n*idsPerBlock), min(last, n*idsPerBlock+idsPerBlock-1); m.dead.count(from, to) > 0 {
			if err := m.purgeIDs(ctx, tx, n); err != nil {
				return err
			}
		}
	}
	for n := first / rowsPerBlock; n <= last/rowsPerBlock; n++ {
		if from, to := max(first, n*rowsPerBlock), min(last, n*rowsPerBlock+rowsPerBlock-1); m.dead.count(from, to) > 0 {
			if err := m.purgeRows(ctx, tx, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *merging) purgeIDs(ctx context.Context, tx *kv.Tx, block uint32) error {
	key := m.head.ids(block)
	values, err := tx.Get(ctx, kv.Index, key)
	if err != nil {
		return err
	}
	ids, err := decodeIDs(values[0])
	if err != nil {
		return err
	}
	changed := false
	for i := range ids {
		if len(ids[i]) > 0 && m.dead.contains(block*idsPerBlock+uint32(i)) {
			ids[i], changed = nil, true
		}
	}
	if changed {
		tx.Put(kv.Index, key, encodeIDs(ids))
	}
	return nil
}

func (m *merging) purgeRows(ctx context.Context, tx *kv.Tx, block uint32) error {
	key := m.head.columns(block)
	values, err := tx.Get(ctx, kv.Index, key)
	if err != nil {
		return err
	}
	rows, err := decodeRows(values[0], block*rowsPerBlock)
	if err != nil {
		return err
	}
	changed := false
	for i, r := range rows {
		if m.dead.contains(block*rowsPerBlock+uint32(i)) && r != r.remains() {
			rows[i], changed = r.remains(), true
		}
	}
	if changed {
		tx.Put(kv.Index, key, encodeRows(rows, block*rowsPerBlock))
	}
	return nil
}
