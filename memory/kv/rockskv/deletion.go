//go:build cgo && !norocksdb

package rockskv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/linxGnu/grocksdb"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/internal/rocksfile"
)

// DropRange is kv.RangeDropper's. It writes one range tombstone for each scope
// in the range and leaves the scope's sequence, which lies before its other
// keys. Open snapshots still see the dropped entries; the space comes back as RocksDB
// compacts.
func (db *DB) DropRange(ctx context.Context, ks kv.Keyspace, r kv.Range) error {
	if err := db.enter(ctx); err != nil {
		return err
	}
	defer db.users.Leave()
	if db.readOnly {
		return kv.ErrReadOnly
	}
	family, err := db.latest.family(ks)
	if err != nil {
		return err
	}
	for start := r.Start; ; {
		scope, ok, err := db.firstScope(ctx, ks, kv.Range{Start: start, End: r.End})
		if err != nil || !ok {
			return err
		}
		if err := db.dropScope(family, scope, r); err != nil {
			return fmt.Errorf("drop range: %w", writeError(err))
		}
		if start = kv.After(scope.AppendPrefix(nil)); !before(start, r.End) {
			return nil
		}
	}
}

// firstScope returns the scope of the first key in r, if there is one.
func (db *DB) firstScope(ctx context.Context, ks kv.Keyspace, r kv.Range) (scope kv.Scope, found bool, err error) {
	r.Limit = 1
	db.scan(ctx, ks, r, func(p kv.Pair, failed error) bool {
		if err = failed; err == nil {
			scope, _, err = kv.SplitKey(p.Key)
			found = err == nil
		}
		return false
	})
	return scope, found, err
}

// dropScope drops the part of r that lies in scope, behind its sequence.
func (db *DB) dropScope(family *grocksdb.ColumnFamilyHandle, scope kv.Scope, r kv.Range) error {
	start := append(kv.SequenceKey(scope), 0x00)
	if bytes.Compare(start, r.Start) < 0 {
		start = r.Start
	}
	end := kv.After(scope.AppendPrefix(nil))
	if r.End != nil && bytes.Compare(r.End, end) < 0 {
		end = r.End
	}
	return db.write(true, func() error { return db.rocks.DeleteRangeCF(db.eager, family, start, end) })
}

// before reports whether key lies before a range's end.
func before(key, end []byte) bool { return end == nil || bytes.Compare(key, end) < 0 }

const (
	// reclaimLook is the time between two looks at what RocksDB still holds: it does not say
	// when it lets go of a snapshot or removes a file.
	reclaimLook = 5 * time.Millisecond
	// reclaimSlack is how much longer than SnapshotLife deleted data may stay.
	reclaimSlack = 30 * time.Second
)

// wholeGarbage has a compaction of blobs write all values anew that it meets, so that every
// file before it goes; usualGarbage is RocksDB's own share of the oldest files.
const (
	garbageShare = "blob_garbage_collection_age_cutoff"
	wholeGarbage = "1.0"
	usualGarbage = "0.25"
)

// Reclaim is kv.Reclaimer's. If it must rewrite any blob, it rewrites all of them: a blob
// file holds the blobs of many owners.
func (db *DB) Reclaim(ctx context.Context, ranges []kv.KeyRange) error {
	if err := db.enter(ctx); err != nil {
		return err
	}
	defer db.users.Leave()
	if db.readOnly {
		return kv.ErrReadOnly
	}
	db.reclaiming.Lock()
	defer db.reclaiming.Unlock()
	if err := db.reclaim(ctx, ranges); err != nil {
		return fmt.Errorf("reclaim: %w", err)
	}
	return nil
}

func (db *DB) reclaim(ctx context.Context, ranges []kv.KeyRange) error {
	before, err := os.ReadDir(db.dir)
	if err != nil {
		return err
	}
	// A compaction keeps what an open snapshot sees.
	latest := db.rocks.GetLatestSequenceNumber()
	if err := db.until(ctx, "snapshots are open", func() (bool, error) {
		if db.rocks.GetProperty("rocksdb.num-snapshots") == "0" {
			return true, nil
		}
		oldest, err := strconv.ParseUint(db.rocks.GetProperty("rocksdb.oldest-snapshot-sequence"), 10, 64)
		return oldest >= latest, err
	}); err != nil {
		return err
	}
	if err := db.flushAll(); err != nil {
		return err
	}
	compact := grocksdb.NewCompactRangeOptions()
	defer compact.Destroy()
	compact.SetExclusiveManualCompaction(false)
	compact.SetBottommostLevelCompaction(grocksdb.KForce)
	blobs := false
	for _, r := range ranges {
		if r.Keyspace == kv.Blobs {
			blobs = true
			continue
		}
		if err := db.compact(ctx, r, compact); err != nil {
			return err
		}
	}
	if blobs {
		if err := db.rewriteBlobs(ctx, compact); err != nil {
			return err
		}
	}
	// A flush may have written tables since, which the compactions replaced.
	now, err := os.ReadDir(db.dir)
	if err != nil {
		return err
	}
	return db.removed(ctx, before, now)
}

// flushAll writes all buffers into tables.
func (db *DB) flushAll() error {
	flush := grocksdb.NewDefaultFlushOptions()
	defer flush.Destroy()
	for _, family := range db.families {
		if err := db.rocks.FlushCF(family, flush); err != nil {
			return writeError(err)
		}
	}
	return nil
}

// compact rewrites all tables with keys in r. RocksDB takes the deepest level that has some when
// it begins; what an automatic compaction moves below it meanwhile would be passed by, with the
// deleted values that it kept for a snapshot or in a blob file. So compact goes on until nothing
// lies deeper than before.
func (db *DB) compact(ctx context.Context, r kv.KeyRange, how *grocksdb.CompactRangeOptions) error {
	family, err := db.latest.family(r.Keyspace)
	if err != nil {
		return err
	}
	for last, now := -1, db.deepest(r); now > last; now = db.deepest(r) {
		if err := ctx.Err(); err != nil {
			return err
		}
		last = now
		db.rocks.CompactRangeCFOpt(family, grocksdb.Range{Start: r.Range.Start, Limit: r.Range.End}, how)
	}
	return nil
}

// deepest returns the deepest level at which a table has keys of r, -1 where none has.
func (db *DB) deepest(r kv.KeyRange) int {
	level := -1
	for _, table := range db.rocks.GetLiveFilesMetaData() {
		if table.ColumnFamilyName == r.Keyspace.String() && table.Level > level &&
			before(table.SmallestKey, r.Range.End) && bytes.Compare(table.LargestKey, r.Range.Start) >= 0 {
			level = table.Level
		}
	}
	return level
}

func (db *DB) rewriteBlobs(ctx context.Context, how *grocksdb.CompactRangeOptions) error {
	family := db.families[kv.Blobs]
	if err := db.rocks.SetOptionsCF(family, []string{garbageShare}, []string{wholeGarbage}); err != nil {
		return err
	}
	err := db.compact(ctx, kv.KeyRange{Keyspace: kv.Blobs}, how)
	return errors.Join(err, db.rocks.SetOptionsCF(family, []string{garbageShare}, []string{usualGarbage}))
}

// removed waits until the logs in before, and the tables in before and in now that are no
// longer needed, are gone: open iterators keep them for a while.
func (db *DB) removed(ctx context.Context, before, now []fs.DirEntry) error {
	isLog := func(entry fs.DirEntry) bool { return filepath.Ext(entry.Name()) == ".log" }
	all := append(slices.Clip(before), slices.DeleteFunc(now, isLog)...)
	return db.until(ctx, "files are in use", func() (bool, error) {
		number, err := rocksfile.Current(db.dir)
		if err != nil {
			return false, err
		}
		manifest, err := rocksfile.ReadManifest(db.dir, number)
		if err != nil {
			return false, err
		}
		for _, entry := range all {
			switch filepath.Ext(entry.Name()) {
			case ".sst", ".blob":
				if manifest.Needs(entry.Name()) {
					continue
				}
			case ".log":
			default:
				continue
			}
			info, err := os.Stat(filepath.Join(db.dir, entry.Name()))
			if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 { // the log that nothing was written to
				continue
			}
			return false, err
		}
		return true, nil
	})
}

// until looks again and again whether something has happened.
func (db *DB) until(ctx context.Context, what string, happened func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, db.life+reclaimSlack, errors.New(what))
	defer cancel()
	look := time.NewTicker(reclaimLook)
	defer look.Stop()
	for {
		if done, err := happened(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
		}
	}
}
