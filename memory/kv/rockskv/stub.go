//go:build !cgo || norocksdb

package rockskv

import (
	"errors"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// ErrNoRocksDB is what Open answers in a build without RocksDB.
var ErrNoRocksDB = errors.New("rockskv: this program was built without RocksDB: " +
	"apt-get install librocksdb-dev, then build with cgo and without the tag norocksdb")

// DB stands in for the real one, so that callers compile. There are none.
type DB struct {
	kv.Engine
	kv.Checkpointer
	kv.RangeDropper
}

// Open returns ErrNoRocksDB.
func Open(string, *Options) (*DB, error) { return nil, ErrNoRocksDB }

// Stats returns nothing.
func (*DB) Stats() Stats { return Stats{} }

// Sizes returns nothing.
func (*DB) Sizes() map[kv.Keyspace]uint64 { return nil }
