//go:build !cgo || norocksdb

package rockskv

import (
	"context"
	"errors"
	"iter"
	"time"

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
	kv.Reclaimer
	kv.Verifier
	kv.Sweeper
	kv.Monitored
}

// Open returns ErrNoRocksDB.
func Open(string, *Options) (*DB, error) { return nil, ErrNoRocksDB }

// OpenReadOnly returns ErrNoRocksDB.
func OpenReadOnly(string, *Options) (*DB, error) { return nil, ErrNoRocksDB }

// Examine returns ErrNoRocksDB.
func Examine(context.Context, string, kv.Verification) error { return ErrNoRocksDB }

// Repair returns ErrNoRocksDB.
func Repair(string, time.Time) (Repaired, error) { return Repaired{}, ErrNoRocksDB }

// Stats returns nothing.
func (*DB) Stats() Stats { return Stats{} }

// Sizes returns nothing.
func (*DB) Sizes() map[kv.Keyspace]uint64 { return nil }

// Rewrite returns ErrNoRocksDB.
func (*DB) Rewrite(context.Context, string, func(kv.Keyspace, kv.Pair) ([]byte, bool, error)) error {
	return ErrNoRocksDB
}

// Each returns ErrNoRocksDB.
func (*DB) Each(context.Context, func(kv.Keyspace, kv.Pair) error) error { return ErrNoRocksDB }

// Raw yields ErrNoRocksDB.
func (*DB) Raw(context.Context, kv.Keyspace, []byte) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) { yield(kv.Pair{}, ErrNoRocksDB) }
}

// Last returns ErrNoRocksDB.
func (*DB) Last(context.Context, kv.Keyspace) ([]byte, error) { return nil, ErrNoRocksDB }

// Fill returns ErrNoRocksDB.
func (*DB) Fill(context.Context, kv.Keyspace, []kv.Pair) error { return ErrNoRocksDB }

// Clear returns ErrNoRocksDB.
func (*DB) Clear(context.Context, kv.Keyspace) error { return ErrNoRocksDB }

// Finish returns ErrNoRocksDB.
func (*DB) Finish(context.Context) error { return ErrNoRocksDB }
