//go:build cgo && !norocksdb

package rockskv

import (
	"context"
	"fmt"

	"github.com/linxGnu/grocksdb"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

var _ kv.Sizer = (*DB)(nil)

// farKey lies behind every key: none is longer, and none has only such bytes.
var farKey = func() []byte {
	key := make([]byte, kv.MaxKeyBytes)
	for i := range key {
		key[i] = 0xff
	}
	return key
}()

// Size is kv.Sizer's, by the tables that the range touches. What is in the write
// buffers is missing.
func (db *DB) Size(ctx context.Context, ks kv.Keyspace, r kv.Range) (int64, error) {
	if err := db.enter(ctx); err != nil {
		return 0, err
	}
	defer db.gate.leave()
	end := r.End
	if end == nil {
		end = farKey
	}
	sizes, err := db.rocks.GetApproximateSizesCF(db.families[ks], []grocksdb.Range{{Start: r.Start, Limit: end}})
	if err != nil {
		return 0, fmt.Errorf("size of %s: %w", ks, err)
	}
	return int64(sizes[0]), nil
}

// Free is kv.Sizer's.
func (db *DB) Free() (int64, bool) { return freeBytes(db.lock.Name()) }
