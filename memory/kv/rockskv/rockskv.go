//go:build cgo && !norocksdb

package rockskv

import (
	"context"
	"errors"
	"math"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/linxGnu/grocksdb"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/folder"
	"github.com/loom-bridge/loom-bridge/memory/kv/lifetime"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/internal/recent"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/internal/tuning"
)

var (
	_ kv.Engine       = (*DB)(nil)
	_ kv.Checkpointer = (*DB)(nil)
	_ kv.RangeDropper = (*DB)(nil)
	_ kv.Reclaimer    = (*DB)(nil)
	_ kv.Verifier     = (*DB)(nil)
	_ kv.Sweeper      = (*DB)(nil)
	_ kv.Monitored    = (*DB)(nil)
	_ kv.Reserver     = (*DB)(nil)
	_ kv.Snapshot     = (*snapshot)(nil)
)

// DB is an open store. All methods are safe for concurrent use.
type DB struct {
	dir      string
	lock     *os.File
	rocks    *grocksdb.DB
	families []*grocksdb.ColumnFamilyHandle // by keyspace
	tuning   *tuning.Tuning
	eager    *grocksdb.WriteOptions
	lazy     *grocksdb.WriteOptions
	latest   view
	joiner   *joiner
	health   kv.Health
	// faults is how often RocksDB had failed in the background; only beat's.
	faults uint64
	// room is the number of bytes that may be written before only the reserve is left on
	// the disk: as of the last beat, less the bytes written since. buffers is the size of
	// the buffers.
	room    atomic.Int64
	buffers int64
	// synced says that commits which are not lazy are synced.
	synced bool
	// logless says that commits are not logged.
	logless bool
	recent  *recent.Keys
	keeper  *keeper // nil until the store is open, and while it is read-only
	// readOnly refuses commits; logs is a directory that ends with the store then.
	readOnly bool
	logs     string
	filling  bool // another store is being copied into this one

	reclaiming sync.Mutex // one Reclaim at a time: it changes a setting for its time

	users   lifetime.Users
	drained chan struct{} // closed when no user is let in any more and all have left

	life time.Duration     // of a snapshot
	open lifetime.Holdings // of snapshots that are not released yet and scans that run
}

func newDB(rocks *grocksdb.DB, families []*grocksdb.ColumnFamilyHandle, t *tuning.Tuning, o Options) *DB {
	db := &DB{
		rocks:    rocks,
		families: families,
		tuning:   t,
		drained:  make(chan struct{}),
		life:     o.SnapshotLife,
		buffers:  o.WriteBufferBytes,
		recent:   recent.New(),
	}
	db.room.Store(math.MaxInt64)
	db.users.Release = func() { close(db.drained) }
	db.synced, db.logless = o.Durability == Sync, o.Durability == None
	db.eager, db.lazy = writeOptions(o.Durability)
	db.latest = view{rocks: rocks, families: families, reads: grocksdb.NewDefaultReadOptions(), health: &db.health, open: &db.open, recent: db.recent, moment: recent.Latest}
	db.joiner = newJoiner(db)
	return db
}

// enter counts a call as a user of the DB: it returns why it may not be one, or nil,
// and then the caller must leave.
func (db *DB) enter(ctx context.Context) error {
	if !db.users.Enter() {
		return kv.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		db.users.Leave()
		return err
	}
	return nil
}

// Get is kv.Reader's: all keys of one call are read at one moment, in memory
// of the size of all their values.
func (db *DB) Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error) {
	if err := db.enter(ctx); err != nil {
		return nil, err
	}
	defer db.users.Leave()
	return db.latest.get(ks, keys)
}

// Sequence is kv.Reader's.
func (db *DB) Sequence(ctx context.Context, refs ...kv.Ref) ([]uint64, error) {
	if err := db.enter(ctx); err != nil {
		return nil, err
	}
	defer db.users.Leave()
	return db.latest.sequences(refs)
}

// LastCommits is kv.Engine's.
func (db *DB) LastCommits(ctx context.Context, refs ...kv.Ref) ([]kv.LastCommit, error) {
	if err := db.enter(ctx); err != nil {
		return nil, err
	}
	defer db.users.Leave()
	return db.latest.lastCommits(refs)
}

// Commit is kv.Engine's. It joins the commits that wait; a ctx that ends while
// it waits withdraws it, one that ends later does not.
func (db *DB) Commit(ctx context.Context, c kv.Commit) error {
	if err := db.enter(ctx); err != nil {
		return err
	}
	defer db.users.Leave()
	if err := c.Check(); err != nil {
		return err
	}
	if db.readOnly {
		return kv.ErrReadOnly
	}
	return db.joiner.commit(ctx, c)
}

// Close is kv.Engine's. Snapshots still open are released with it.
func (db *DB) Close() error {
	if !db.users.Close() {
		return kv.ErrClosed
	}
	<-db.drained
	if db.keeper != nil {
		db.keeper.end()
	}
	db.open.Close()
	for _, family := range db.families {
		family.Destroy()
	}
	db.eager.Destroy()
	db.lazy.Destroy()
	db.latest.reads.Destroy()
	db.rocks.Close()
	db.tuning.Destroy()
	err := removeAll(db.logs)
	if db.keeper != nil {
		err = errors.Join(err, db.keeper.finish())
	}
	if db.lock == nil { // an open that failed closes what it had
		return err
	}
	return errors.Join(err, folder.Unlock(db.lock))
}

// write runs a write to RocksDB, which syncs the log if eager and the store's
// durability ask for it. It may change any key; see writeKeys.
func (db *DB) write(eager bool, write func() error) error {
	return db.writeKeys(eager, db.recent.BeginAll(), write)
}

// writeKeys is write for what changes only keys that have begun to.
func (db *DB) writeKeys(eager bool, keys []recent.Write, write func() error) error {
	err := db.keeper.write(eager && db.synced, write)
	db.recent.End(keys, err == nil)
	return err
}

// firstLog is the number of the first log that RocksDB still needs, as far as its
// manifest says.
func (db *DB) firstLog() uint64 {
	number, err := strconv.ParseUint(db.rocks.GetProperty("rocksdb.min-log-number-to-keep"), 10, 64)
	if err != nil {
		return 0
	}
	return number
}
