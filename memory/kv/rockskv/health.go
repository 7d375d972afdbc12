//go:build cgo && !norocksdb

package rockskv

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/linxGnu/grocksdb"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Health is kv.Monitored's. Each commit and each read that meets a fault notes it.
// Once a second the store itself looks whether something is amiss, and whether a
// commit would succeed then.
func (db *DB) Health() *kv.Health { return &db.health }

// fullBytes is the room below which a disk counts as full: less than a commit of
// ordinary size takes.
const fullBytes = 64 << 10

// beat is the look that a store takes at itself. A disk without room is a fault even
// while commits still go into the room that RocksDB has set aside for its log: the
// next flush fails. Where a commit has failed, or RocksDB in the background, it tries
// to write. A store that was
// full is well again only when there is as much room as an open needs, so that it does
// not change from one commit to the next.
func (db *DB) beat() {
	db.lookAtRoom()
	condition, _ := db.health.Condition()
	if errors.Is(condition.Failed, kv.ErrFailed) {
		return
	}
	if err := checkRoom(db.dir, "a commit", fullBytes); err != nil {
		db.health.Fail(err)
		return
	}
	faults := db.backgroundFaults()
	if condition.Failed == nil && faults == db.faults {
		return
	}
	db.faults = faults
	if err := db.probe(); err != nil {
		db.health.Fail(err)
	} else if checkRoom(db.dir, "an open", minFreeBytes) == nil {
		db.health.Recover()
	}
}

// reservedShare is the part of a small disk (a quarter) that is kept for what frees room.
const reservedShare = 4

// largestCompaction is what a compaction writes at most before what it read can go: RocksDB's
// default of 25 tables of 64 MiB.
const largestCompaction = 25 * 64 << 20

// reserved is the room of a disk that is kept back: enough to write the buffers into tables,
// to make some of them smaller, and for a compaction that is due, so that who deletes on a full
// disk gets room again.
func (db *DB) reserved(total int64) int64 {
	return min(2*db.buffers+min(db.pending(), largestCompaction), total/reservedShare)
}

// pending is about how many bytes RocksDB has yet to compact.
func (db *DB) pending() (bytes int64) {
	for _, family := range db.families {
		n, err := strconv.ParseInt(db.rocks.GetPropertyCF("rocksdb.estimate-pending-compaction-bytes", family), 10, 64)
		if err == nil {
			bytes += n
		}
	}
	return bytes
}

// lookAtRoom notes how much may be written before the room is used up that is not reserved.
func (db *DB) lookAtRoom() {
	left := int64(math.MaxInt64)
	if free, total, known := roomOf(db.dir); known {
		left = free - db.reserved(total)
	}
	db.room.Store(left)
}

// writtenTwice is by how much more than it has a commit counts: it is in the log and then
// in a table.
const writtenTwice = 2

// Reserved is kv.Reserver's.
func (db *DB) Reserved() error {
	if left := db.room.Load(); left <= 0 {
		return fmt.Errorf("%w: the rest of the disk is reserved for deletions", kv.ErrFull)
	}
	return nil
}

// probe deletes a key that no store has, as a commit would. An empty batch would do as well,
// but it would stay in the log: RocksDB begins a new log only where a buffer has something to
// flush, and Reclaim waits until the logs before it are gone.
func (db *DB) probe() error {
	var b batch
	b.reset()
	b.delete(db.families[kv.Records].ID(), nil)
	native := grocksdb.WriteBatchFrom(b.finished())
	defer native.Destroy()
	if err := db.write(true, func() error { return db.rocks.Write(db.eager, native) }); err != nil {
		return writeError(err)
	}
	return nil
}

// backgroundFaults is how often RocksDB has failed at flushing and compacting.
func (db *DB) backgroundFaults() uint64 {
	faults, err := strconv.ParseUint(db.rocks.GetProperty("rocksdb.background-errors"), 10, 64)
	if err != nil {
		return 0
	}
	return faults
}
