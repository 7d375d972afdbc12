//go:build cgo && !norocksdb

package barerocks

import (
	"fmt"

	"github.com/linxGnu/grocksdb"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/internal/tuning"
)

// bufferBytes is the default of rockskv, for both of its budgets.
const bufferBytes = 64 << 20

// DB is an open database. Write and Get are safe for concurrent use, but not concurrently
// with Close.
type DB struct {
	rocks    *grocksdb.DB
	families []*grocksdb.ColumnFamilyHandle
	tuning   *tuning.Tuning
	reads    *grocksdb.ReadOptions
}

// Open opens the database in dir, and creates it where there is none.
func Open(dir string) (*DB, error) {
	t := tuning.New(tuning.Settings{WriteBufferBytes: bufferBytes, BlockCacheBytes: bufferBytes, Create: true})
	rocks, families, err := t.Open(dir)
	if err != nil {
		t.Destroy()
		return nil, fmt.Errorf("open bare rocksdb %s: %w", dir, err)
	}
	return &DB{rocks: rocks, families: families, tuning: t, reads: grocksdb.NewDefaultReadOptions()}, nil
}

// Write applies ops as one batch, built call by call, and with sync returns
// when the batch is on disk. The ops are not kept.
func (db *DB) Write(ops []kv.Op, sync bool) error {
	batch := grocksdb.NewWriteBatch()
	defer batch.Destroy()
	for _, op := range ops {
		if op.Delete {
			batch.DeleteCF(db.families[op.Keyspace], op.Key)
		} else {
			batch.PutCF(db.families[op.Keyspace], op.Key, op.Value)
		}
	}
	how := grocksdb.NewDefaultWriteOptions()
	defer how.Destroy()
	how.SetSync(sync)
	return db.rocks.Write(how, batch)
}

// Get returns a copy of the value of key, nil when there is none.
func (db *DB) Get(ks kv.Keyspace, key []byte) ([]byte, error) {
	value, err := db.rocks.GetPinnedCF(db.reads, db.families[ks], key)
	if err != nil {
		return nil, err
	}
	defer value.Destroy()
	if !value.Exists() {
		return nil, nil
	}
	return append([]byte{}, value.Data()...), nil
}

// Close closes the database.
func (db *DB) Close() {
	for _, family := range db.families {
		family.Destroy()
	}
	db.reads.Destroy()
	db.rocks.Close()
	db.tuning.Destroy()
}
