//go:build !norocksdb && cgo

package memory_test

import (
	"path/filepath"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

func TestStoreOnRocksDB(t *testing.T) {
	runSuite(t, func(tb testing.TB) kv.Engine { return MustRocks(tb, rockskv.None) })
}

// MustRocks opens a fresh RocksDB store for the length of a test.
func MustRocks(tb testing.TB, durability rockskv.Durability) kv.Engine {
	tb.Helper()
	db, err := rockskv.Open(filepath.Join(tb.TempDir(), "store"), &rockskv.Options{Durability: durability})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	return db
}
