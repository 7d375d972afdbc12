//go:build cgo && !norocksdb

package rockskv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/folder"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/internal/mark"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/internal/rocksfile"
)

// partialSuffix marks a checkpoint that is being written.
const partialSuffix = ".loom-partial"

const (
	// logShare is the part of a store's tables that its log may be in a copy, within
	// minCopiedLog and maxCopiedLog bytes. Beyond it the log is written out as tables
	// first. Every table written out this way adds to the compaction work, and after four
	// of them RocksDB writes all tables anew that they overlap, which the next backup has
	// to copy; while a log that is short is copied by each backup.
	logShare     = 8
	minCopiedLog = 256 << 10
	maxCopiedLog = 32 << 20
)

// Checkpoint is kv.Checkpointer's. On the same file system the table files are
// hard links, so it is quick and small. The copy appears in dir whole or not
// at all; a crash may leave a partial copy next to dir with the suffix ".loom-partial", and
// the next checkpoint to dir removes it. A dir that exists is an fs.ErrExist.
func (db *DB) Checkpoint(ctx context.Context, dir string) error {
	if err := db.enter(ctx); err != nil {
		return err
	}
	defer db.users.Leave()
	if db.readOnly {
		return kv.ErrReadOnly
	}
	if err := db.checkpoint(dir); err != nil {
		if noSpace(err.Error()) {
			err = writeError(err)
		}
		return fmt.Errorf("checkpoint to %s: %w", dir, err)
	}
	return nil
}

func (db *DB) checkpoint(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fs.ErrExist)
	}
	partial := dir + partialSuffix
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	if err := db.copyTo(partial); err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	if err := os.Rename(partial, dir); err != nil {
		return err
	}
	return folder.Sync(filepath.Dir(dir))
}

// copyTo writes a marked copy to dir.
func (db *DB) copyTo(dir string) error {
	native, err := db.rocks.NewCheckpoint()
	if err != nil {
		return err
	}
	defer native.Destroy()
	if err := native.CreateCheckpoint(dir, db.copiedLog()); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return err
	}
	if err := markCopy(dir); err != nil {
		return err
	}
	return writeMarker(dir, ready, "")
}

// copiedLog is how long the log may be, in bytes, that a copy has of it. Zero writes
// everything out as tables.
func (db *DB) copiedLog() uint64 {
	if db.logless {
		return 0
	}
	tables := uint64(0)
	for _, size := range db.Sizes() {
		tables += size
	}
	return min(max(tables/logShare, minCopiedLog), maxCopiedLog)
}

// markCopy syncs a copy of a store and marks all of it.
func markCopy(dir string) error {
	manifest, err := syncManifest(dir, mark.File{})
	if err != nil {
		return err
	}
	content, err := rocksfile.ReadManifest(dir, manifest.Number)
	if err != nil {
		return err
	}
	logs, err := neededLogs(dir, content)
	if err != nil {
		return err
	}
	m := mark.Mark{Manifest: manifest}
	for _, number := range logs {
		length, err := syncLog(dir, number)
		if err != nil {
			return err
		}
		if length > 0 {
			m.Logs = append(m.Logs, mark.File{Number: number, Length: length})
		}
	}
	w, err := mark.Create(dir, m)
	if err != nil {
		return err
	}
	return w.Close()
}

// syncLog syncs a log and returns where its records end.
func syncLog(dir string, number uint64) (int64, error) {
	f, err := os.Open(filepath.Join(dir, rocksfile.LogName(number)))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	log, _, err := rocksfile.ReadLog(rocksfile.LogName(number), f, 0, nil)
	return log.End, errors.Join(err, f.Sync())
}
