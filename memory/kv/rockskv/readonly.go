//go:build cgo && !norocksdb

package rockskv

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/loom-bridge/loom-bridge/memory/kv/folder"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/internal/tuning"
)

// OpenReadOnly opens the store in dir for reading only, at the state that Open would find.
// It writes nothing there and needs no write permission; commits fail with kv.ErrReadOnly.
// No other process may have the store open. An empty directory or one without a finished
// store gives kv.ErrForeign, other errors are as from Open. The log's contents are kept in
// memory until Close.
func OpenReadOnly(dir string, opts *Options) (*DB, error) {
	filled, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	limitArenas()
	db, err := openReadOnly(dir, filled)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w%s", dir, err, adviceToReader(err))
	}
	return db, nil
}

func openReadOnly(dir string, o Options) (*DB, error) {
	s, err := lockStore(dir)
	if err != nil {
		return nil, err
	}
	var db *DB
	if err = verify(context.Background(), s.dir, s.marked); err == nil {
		db, err = openRocksReadOnly(s.dir, o)
	}
	if err != nil {
		return nil, errors.Join(err, folder.Unlock(s.lock))
	}
	db.lock = s.lock
	return db, nil
}

func openRocksReadOnly(dir string, o Options) (*DB, error) {
	// RocksDB's own LOG goes to its own directory, which ends with the store.
	logs, err := os.MkdirTemp("", "loom-rocksdb-log-")
	if err != nil {
		logs = "" // then there is none, if dir can't be written to
	}
	t := tuning.New(tuning.Settings{
		WriteBufferBytes: uint64(o.WriteBufferBytes),
		BlockCacheBytes:  uint64(o.BlockCacheBytes),
		LogDir:           logs,
	})
	rocks, families, err := t.OpenReadOnly(dir)
	if err != nil {
		t.Destroy()
		return nil, errors.Join(openError(err), removeAll(logs))
	}
	db := newDB(rocks, families, t, o)
	db.dir, db.readOnly, db.logs = dir, true, logs
	return db, nil
}

func removeAll(dir string) error {
	if dir == "" {
		return nil
	}
	return os.RemoveAll(dir)
}
