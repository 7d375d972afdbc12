//go:build cgo && !norocksdb

package rockskv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/linxGnu/grocksdb"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/folder"
)

// errChanging: a store is to be read from end to end that may change meanwhile.
var errChanging = errors.New("rockskv: the store is not open for reading alone")

// rewriteBytes is how much Rewrite gives to RocksDB at once.
const rewriteBytes = 1 << 20

// Rewrite copies a store that is open for reading only into dir, which must be absent or
// empty, entry by entry, including the engine's own entries. change says of each entry, in
// the order of keyspaces and keys, which value it gets and whether it is copied at all.
// Each key is written once, so the files in dir never hold anything that change left out.
// Durable when it returns nil; after an error dir holds something unfinished.
func (db *DB) Rewrite(ctx context.Context, dir string, change func(ks kv.Keyspace, p kv.Pair) (value []byte, keep bool, err error)) error {
	if err := db.enter(ctx); err != nil {
		return err
	}
	defer db.users.Leave()
	if !db.readOnly {
		return errChanging
	}
	to, err := Open(dir, nil)
	if err != nil {
		return err
	}
	if err := errors.Join(db.rewrite(ctx, to, change), to.Close()); err != nil {
		return fmt.Errorf("rewrite to %s: %w", dir, err)
	}
	return folder.Sync(dir)
}

func (db *DB) rewrite(ctx context.Context, to *DB, change func(kv.Keyspace, kv.Pair) ([]byte, bool, error)) error {
	batch := grocksdb.NewWriteBatch()
	defer batch.Destroy()
	size := 0
	flush := func(eager bool) error {
		options := to.lazy
		if eager {
			options = to.eager
		}
		if err := to.write(eager, func() error { return to.rocks.Write(options, batch) }); err != nil {
			return writeError(err)
		}
		batch.Clear()
		size = 0
		return ctx.Err()
	}
	for _, ks := range kv.Keyspaces() {
		family, err := to.latest.family(ks)
		if err != nil {
			return err
		}
		err = db.each(ks, nil, func(p kv.Pair) error {
			value, keep, err := change(ks, p)
			if err != nil || !keep {
				return err
			}
			batch.PutCF(family, p.Key, value)
			if size += len(p.Key) + len(value); size < rewriteBytes {
				return nil
			}
			return flush(false)
		})
		if err != nil {
			return err
		}
	}
	return flush(true) // syncs all logs
}

// Each calls see for each entry of a store that is open for reading only, including the
// engine's own, in the order of keyspaces and keys.
func (db *DB) Each(ctx context.Context, see func(ks kv.Keyspace, p kv.Pair) error) error {
	if err := db.enter(ctx); err != nil {
		return err
	}
	defer db.users.Leave()
	if !db.readOnly {
		return errChanging
	}
	for _, ks := range kv.Keyspaces() {
		if err := db.each(ks, nil, func(p kv.Pair) error { return errors.Join(ctx.Err(), see(ks, p)) }); err != nil {
			return err
		}
	}
	return nil
}

// each calls see for each entry of a keyspace behind a key, including the engine's own.
func (db *DB) each(ks kv.Keyspace, after []byte, see func(kv.Pair) error) error {
	family, err := db.latest.family(ks)
	if err != nil {
		return err
	}
	reads := grocksdb.NewDefaultReadOptions()
	defer reads.Destroy()
	reads.SetFillCache(false)
	it := db.rocks.NewIteratorCF(reads, family)
	defer it.Close()
	for it.Seek(append(bytes.Clone(after), 0)); it.Valid(); it.Next() {
		key, value := it.Key(), it.Value()
		if err := see(kv.Pair{Key: own(key.Data()), Value: own(value.Data())}); err != nil {
			return err
		}
	}
	if err := it.Err(); err != nil {
		return readError(err)
	}
	return nil
}

// errStop ends a loop that was left.
var errStop = errors.New("rockskv: stop")

// Raw is migration.Source's.
func (db *DB) Raw(ctx context.Context, ks kv.Keyspace, after []byte) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		err := db.enter(ctx)
		if err == nil {
			defer db.users.Leave()
			if !db.readOnly && !db.filling {
				err = errChanging
			}
		}
		if err == nil {
			err = db.each(ks, after, func(p kv.Pair) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				if !yield(p, nil) {
					return errStop
				}
				return nil
			})
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(kv.Pair{}, err)
		}
	}
}

// Last is migration.Target's.
func (db *DB) Last(ctx context.Context, ks kv.Keyspace) ([]byte, error) {
	if err := db.enter(ctx); err != nil {
		return nil, err
	}
	defer db.users.Leave()
	family, err := db.latest.family(ks)
	if err != nil {
		return nil, err
	}
	it := db.rocks.NewIteratorCF(db.latest.reads, family)
	defer it.Close()
	it.SeekToLast()
	if !it.Valid() {
		return nil, readErrorOrNil(it.Err())
	}
	return own(it.Key().Data()), nil
}

func readErrorOrNil(err error) error {
	if err == nil {
		return nil
	}
	return readError(err)
}

// Fill is migration.Target's.
func (db *DB) Fill(ctx context.Context, ks kv.Keyspace, pairs []kv.Pair) error {
	return db.changeRaw(ctx, ks, func(family *grocksdb.ColumnFamilyHandle, batch *grocksdb.WriteBatch) {
		for _, p := range pairs {
			batch.PutCF(family, p.Key, p.Value)
		}
	})
}

// Clear is migration.Target's.
func (db *DB) Clear(ctx context.Context, ks kv.Keyspace) error {
	return db.changeRaw(ctx, ks, func(family *grocksdb.ColumnFamilyHandle, batch *grocksdb.WriteBatch) {
		batch.DeleteRangeCF(family, []byte{}, []byte{0xff}) // tenants are text
	})
}

// changeRaw writes a batch, synced, to a store that is being filled.
func (db *DB) changeRaw(ctx context.Context, ks kv.Keyspace, stage func(*grocksdb.ColumnFamilyHandle, *grocksdb.WriteBatch)) error {
	if err := db.enter(ctx); err != nil {
		return err
	}
	defer db.users.Leave()
	if !db.filling {
		return kv.ErrReadOnly
	}
	family, err := db.latest.family(ks)
	if err != nil {
		return err
	}
	batch := grocksdb.NewWriteBatch()
	defer batch.Destroy()
	stage(family, batch)
	if err := db.write(true, func() error { return db.rocks.Write(db.eager, batch) }); err != nil {
		return writeError(err)
	}
	return nil
}

// Finish is migration.Target's. The caller closes the store next.
func (db *DB) Finish(ctx context.Context) error {
	if err := db.enter(ctx); err != nil {
		return err
	}
	defer db.users.Leave()
	if !db.filling {
		return kv.ErrReadOnly
	}
	return writeMarker(db.dir, ready, "")
}
