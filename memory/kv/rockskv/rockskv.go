//go:build cgo && !norocksdb

package rockskv

import (
	"context"
	"errors"
	"iter"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/linxGnu/grocksdb"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/internal/tuning"
)

var (
	_ kv.Engine       = (*DB)(nil)
	_ kv.Checkpointer = (*DB)(nil)
	_ kv.RangeDropper = (*DB)(nil)
	_ kv.Verifier     = (*DB)(nil)
	_ kv.Sweeper      = (*DB)(nil)
	_ kv.Monitored    = (*DB)(nil)
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
	// synced says that commits which are not lazy are synced.
	synced bool
	keeper *keeper // nil until the store is open, and while it is read-only
	// readOnly refuses commits; logs is a directory that ends with the store then.
	readOnly bool
	logs     string

	gate    gate
	drained chan struct{} // closed when the gate is shut and all have left

	mu        sync.Mutex
	snapshots map[*snapshot]struct{} // guarded by mu; those not released yet
}

func newDB(rocks *grocksdb.DB, families []*grocksdb.ColumnFamilyHandle, t *tuning.Tuning, d Durability) *DB {
	db := &DB{
		rocks:     rocks,
		families:  families,
		tuning:    t,
		drained:   make(chan struct{}),
		snapshots: make(map[*snapshot]struct{}),
	}
	db.gate.release = func() { close(db.drained) }
	db.synced = d == Sync
	db.eager, db.lazy = writeOptions(d)
	db.latest = view{rocks: rocks, families: families, reads: grocksdb.NewDefaultReadOptions(), health: &db.health}
	db.joiner = newJoiner(db)
	return db
}

// enter lets a call in: it returns why it may not, or nil, and then the caller
// must leave the gate.
func (db *DB) enter(ctx context.Context) error {
	if !db.gate.enter() {
		return kv.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		db.gate.leave()
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
	defer db.gate.leave()
	return db.latest.get(ks, keys)
}

// Scan is kv.Reader's. A scan sees one moment: that at which its loop began.
func (db *DB) Scan(ctx context.Context, ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		if err := db.enter(ctx); err != nil {
			yield(kv.Pair{}, err)
			return
		}
		defer db.gate.leave()
		db.latest.scan(ctx, ks, r, yield)
	}
}

// Sequence is kv.Reader's.
func (db *DB) Sequence(ctx context.Context, refs ...kv.Ref) ([]uint64, error) {
	if err := db.enter(ctx); err != nil {
		return nil, err
	}
	defer db.gate.leave()
	return db.latest.sequences(refs)
}

// Commit is kv.Engine's. It joins the commits that wait; a ctx that ends while
// it waits withdraws it, one that ends later does not.
func (db *DB) Commit(ctx context.Context, c kv.Commit) error {
	if err := db.enter(ctx); err != nil {
		return err
	}
	defer db.gate.leave()
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
	if !db.gate.shut() {
		return kv.ErrClosed
	}
	<-db.drained
	if db.keeper != nil {
		db.keeper.end()
	}
	for s := range db.snapshots {
		s.free()
	}
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
	return errors.Join(err, db.lock.Close())
}

// write runs a write to RocksDB, which syncs the log if eager and the store's
// durability ask for it.
func (db *DB) write(eager bool, write func() error) error {
	return db.keeper.write(eager && db.synced, write)
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

// Stats returns what the store did so far, and nothing after Close.
func (db *DB) Stats() Stats {
	if !db.gate.enter() {
		return Stats{}
	}
	defer db.gate.leave()
	native := db.tuning.Options.GetStatisticsString()
	return Stats{
		SyncTime:    time.Duration(histogramSum(native, "rocksdb.wal.file.sync.micros")) * time.Microsecond,
		WALSyncs:    ticker(native, "rocksdb.wal.synced"),
		WALBytes:    ticker(native, "rocksdb.wal.bytes"),
		KeysWritten: ticker(native, "rocksdb.number.keys.written"),
		Commits:     db.joiner.commits.Load(),
		Conflicts:   db.joiner.conflicts.Load(),
		Joins:       db.joiner.joins.Load(),
	}
}

// Sizes returns what each keyspace takes on disk, the log and what waits in memory
// left out; nothing after Close.
func (db *DB) Sizes() map[kv.Keyspace]uint64 {
	if !db.gate.enter() {
		return nil
	}
	defer db.gate.leave()
	sizes := make(map[kv.Keyspace]uint64, len(db.families))
	for i, family := range db.families {
		for _, property := range []string{"rocksdb.total-sst-files-size", "rocksdb.total-blob-file-size"} {
			size, err := strconv.ParseUint(db.rocks.GetPropertyCF(property, family), 10, 64)
			if err == nil {
				sizes[kv.Keyspace(i)] += size
			}
		}
	}
	return sizes
}

// ticker finds one counter in RocksDB's report, which has lines like
// "rocksdb.wal.synced COUNT : 12".
func ticker(report, name string) uint64 {
	_, rest, _ := strings.Cut(report, name+" COUNT : ")
	number, _, _ := strings.Cut(rest, "\n")
	value, err := strconv.ParseUint(strings.TrimSpace(number), 10, 64)
	if err != nil {
		return 0
	}
	return value
}

// histogramSum finds the sum of one histogram in RocksDB's report, which has lines
// like "rocksdb.wal.file.sync.micros P50 : 1.0 ... COUNT : 12 SUM : 345".
func histogramSum(report, name string) uint64 {
	_, rest, _ := strings.Cut(report, name+" P50 : ")
	line, _, _ := strings.Cut(rest, "\n")
	_, sum, _ := strings.Cut(line, " SUM : ")
	value, err := strconv.ParseUint(strings.TrimSpace(sum), 10, 64)
	if err != nil {
		return 0
	}
	return value
}
