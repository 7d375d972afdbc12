//go:build cgo && !norocksdb

package rockskv_test

import (
	"testing"

	"github.com/linxGnu/grocksdb"
)

// makeDefaultOnly makes a RocksDB without any of our column families, as a
// crash between two steps of RocksDB's own creation leaves it.
func makeDefaultOnly(tb testing.TB, dir string) {
	tb.Helper()
	opts := grocksdb.NewDefaultOptions()
	defer opts.Destroy()
	opts.SetCreateIfMissing(true)
	db, err := grocksdb.OpenDb(opts, dir)
	if err != nil {
		tb.Fatal(err)
	}
	db.Close()
}
