//go:build cgo && !norocksdb

package rockskv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/linxGnu/grocksdb"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/folder"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/internal/tuning"
)

// Open opens the store in dir and creates it if dir is empty or absent; a new
// dir is readable by its owner alone. The caller closes the DB.
//
// The errors, all wrapped with dir: kv.ErrLocked, kv.ErrForeign, kv.ErrNewer,
// kv.ErrDamaged, kv.ErrFull, fs.ErrPermission, ErrOptions. A foreign, newer or
// locked directory is left as it was.
func Open(dir string, opts *Options) (*DB, error) {
	filled, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	limitArenas()
	db, err := open(dir, filled)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w%s", dir, err, advice(err))
	}
	return db, nil
}

// advice is what to do about an error of opening.
func advice(err error) string {
	switch {
	case errors.Is(err, kv.ErrLocked):
		return ": stop the other server or choose another data directory"
	case errors.Is(err, kv.ErrForeign):
		return ": choose an empty or absent directory"
	case errors.Is(err, kv.ErrUnfinished):
		return ": finish it with the same migrate command, or remove the directory"
	case errors.Is(err, kv.ErrNewer):
		return ": use the version that wrote it, or a later one"
	case errors.Is(err, kv.ErrDamaged):
		if damage, ok := errors.AsType[*kv.DamageError](err); ok && damage.Repairable {
			return ": no file was changed; restore the store from a backup, or repair it, which loses all data behind the damage"
		}
		return ": restore it from a backup"
	case errors.Is(err, fs.ErrPermission):
		return ": the data directory must be readable and writable by the user that runs the server"
	}
	return ""
}

// minFreeBytes is the room an open needs for RocksDB's log, manifest and LOG. Without
// it, RocksDB would find out while it writes its LOG, and end the process.
const minFreeBytes = 4 << 20

func open(dir string, o Options) (*DB, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := ensureDir(dir); err != nil {
		return nil, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	db, err := openLocked(dir, o)
	if err != nil {
		return nil, errors.Join(err, folder.Unlock(lock))
	}
	db.lock = lock
	return db, nil
}

// ensureDir makes dir unless it is there.
func ensureDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return makeDir(dir)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%w: not a directory", kv.ErrForeign)
	}
	return nil
}

// openLocked opens or makes the database. The marker is written before and
// after the making, so that a crash at any point leaves a directory that this
// function finishes, and a ready store is never completed silently.
func openLocked(dir string, o Options) (*DB, error) {
	found, err := inspect(dir)
	if err == nil {
		err = found.admits(o.Fill)
	}
	if err != nil {
		return nil, err
	}
	if found.state == ready {
		if err := verify(context.Background(), dir, found.format >= markedFormat); err != nil {
			return nil, err
		}
	}
	if err := checkRoom(dir, "an open", minFreeBytes); err != nil {
		return nil, err
	}
	if found.state == absent {
		making := creating
		if o.Fill != "" {
			making = filling
		}
		if err := writeMarker(dir, making, o.Fill); err != nil {
			return nil, err
		}
	}
	db, err := openRocks(dir, o, found.state != ready)
	if err != nil {
		return nil, openError(err)
	}
	if db.keeper, err = newKeeper(dir, o.Durability != None, db.firstLog, db.beat); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	db.keeper.start()
	if db.filling = o.Fill != ""; db.filling {
		return db, nil
	}
	if found.state != ready || found.format < kv.Format {
		if err := writeMarker(dir, ready, ""); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return db, nil
}

func openRocks(dir string, o Options, create bool) (*DB, error) {
	t := tuning.New(tuning.Settings{
		WriteBufferBytes: uint64(o.WriteBufferBytes),
		BlockCacheBytes:  uint64(o.BlockCacheBytes),
		Create:           create,
		AtomicFlush:      o.Durability == None,
	})
	rocks, families, err := t.Open(dir)
	if err != nil {
		t.Destroy()
		return nil, err
	}
	db := newDB(rocks, families, t, o)
	db.dir = dir
	return db, nil
}

// writeOptions returns the native options of eager commits and of lazy ones.
func writeOptions(d Durability) (eager, lazy *grocksdb.WriteOptions) {
	eager, lazy = grocksdb.NewDefaultWriteOptions(), grocksdb.NewDefaultWriteOptions()
	eager.SetSync(d == Sync)
	eager.DisableWAL(d == None)
	lazy.DisableWAL(d == None)
	return eager, lazy
}
