package memkv

import (
	"context"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

var _ kv.Sizer = (*DB)(nil)

// largeValue is from which size on a value of the blobs keyspace is not counted.
const largeValue = 4 << 10

// Size is kv.Sizer's; it reads the range.
func (db *DB) Size(ctx context.Context, ks kv.Keyspace, r kv.Range) (size int64, err error) {
	for pair, err := range db.Scan(ctx, ks, r) {
		if err != nil {
			return 0, err
		}
		size += int64(len(pair.Key))
		if ks != kv.Blobs || len(pair.Value) < largeValue {
			size += int64(len(pair.Value))
		}
	}
	return size, nil
}

// Free is kv.Sizer's: it is unknown.
func (db *DB) Free() (int64, bool) { return 0, false }
