//go:build cgo && !norocksdb

package rockskv

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/linxGnu/grocksdb"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

var (
	_ kv.Sizer   = (*DB)(nil)
	_ kv.Settler = (*DB)(nil)
)

// Stats returns what the store did so far, and nothing after Close.
func (db *DB) Stats() Stats {
	if !db.users.Enter() {
		return Stats{}
	}
	defer db.users.Leave()
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
	if !db.users.Enter() {
		return nil
	}
	defer db.users.Leave()
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

// farKey lies behind every key: none is longer, and none has only such bytes.
var farKey = func() []byte {
	key := make([]byte, kv.MaxKeyBytes)
	for i := range key {
		key[i] = 0xff
	}
	return key
}()

// Size is kv.Sizer's, by the tables that the range touches. What is in the write
// buffers is missing until Settle.
func (db *DB) Size(ctx context.Context, ks kv.Keyspace, r kv.Range) (int64, error) {
	if err := db.enter(ctx); err != nil {
		return 0, err
	}
	defer db.users.Leave()
	end := r.End
	if end == nil {
		end = farKey
	}
	sizes, err := db.rocks.GetApproximateSizesCF(db.families[ks], []grocksdb.Range{{Start: r.Start, Limit: end}})
	if err != nil {
		return 0, fmt.Errorf("size of %s: %w", ks, err)
	}
	return int64(sizes[0]), nil
}

// Settle is kv.Settler's: it writes the buffers into tables.
func (db *DB) Settle(ctx context.Context) error {
	if err := db.enter(ctx); err != nil {
		return err
	}
	defer db.users.Leave()
	if db.readOnly {
		return kv.ErrReadOnly
	}
	return db.flushAll()
}

// Free is kv.Sizer's.
func (db *DB) Free() (int64, bool) { return freeBytes(db.lock.Name()) }
