//go:build cgo && !norocksdb

package rockskv

import (
	"bytes"
	"context"
	"fmt"

	"github.com/linxGnu/grocksdb"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// DropRange is kv.RangeDropper's. It writes one range tombstone for each scope
// in the range and leaves the scope's sequence, which lies before its other
// keys. Open snapshots still see what was dropped; the space comes back as
// RocksDB compacts.
func (db *DB) DropRange(ctx context.Context, ks kv.Keyspace, r kv.Range) error {
	if err := db.enter(ctx); err != nil {
		return err
	}
	defer db.users.Leave()
	if db.readOnly {
		return kv.ErrReadOnly
	}
	family, err := db.latest.family(ks)
	if err != nil {
		return err
	}
	for start := r.Start; ; {
		scope, ok, err := db.firstScope(ctx, ks, kv.Range{Start: start, End: r.End})
		if err != nil || !ok {
			return err
		}
		if err := db.dropScope(family, scope, r); err != nil {
			return fmt.Errorf("drop range: %w", writeError(err))
		}
		if start = kv.After(scope.AppendPrefix(nil)); !before(start, r.End) {
			return nil
		}
	}
}

// firstScope returns the scope of the first key in r, if there is one.
func (db *DB) firstScope(ctx context.Context, ks kv.Keyspace, r kv.Range) (scope kv.Scope, found bool, err error) {
	r.Limit = 1
	db.scan(ctx, ks, r, func(p kv.Pair, failed error) bool {
		if err = failed; err == nil {
			scope, _, err = kv.SplitKey(p.Key)
			found = err == nil
		}
		return false
	})
	return scope, found, err
}

// dropScope drops the part of r that lies in scope, behind its sequence.
func (db *DB) dropScope(family *grocksdb.ColumnFamilyHandle, scope kv.Scope, r kv.Range) error {
	start := append(kv.SequenceKey(scope), 0x00)
	if bytes.Compare(start, r.Start) < 0 {
		start = r.Start
	}
	end := kv.After(scope.AppendPrefix(nil))
	if r.End != nil && bytes.Compare(r.End, end) < 0 {
		end = r.End
	}
	return db.write(true, func() error { return db.rocks.DeleteRangeCF(db.eager, family, start, end) })
}

// before tells whether key lies before a range's end.
func before(key, end []byte) bool { return end == nil || bytes.Compare(key, end) < 0 }
