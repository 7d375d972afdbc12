//go:build cgo && !norocksdb && (linux || darwin || freebsd)

package rockskv

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/folder"
)

// checkRoom returns kv.ErrFull for a directory that has less than some bytes of room
// for what needs them.
func checkRoom(dir, what string, need int64) error {
	// No answer is no reason to refuse.
	if free, known := freeBytes(dir); known && free < need {
		return fmt.Errorf("%w: %d bytes free, %s needs %d", kv.ErrFull, free, what, need)
	}
	return nil
}

// freeBytes is the room on a directory's disk; false when it is not known.
func freeBytes(dir string) (int64, bool) {
	free, _, known := roomOf(dir)
	return free, known
}

// roomOf is the room on a directory's disk and how large that is; false when it is not
// known.
func roomOf(dir string) (free, total int64, known bool) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return 0, 0, false
	}
	return int64(fs.Bavail * uint64(fs.Bsize)), int64(fs.Blocks * uint64(fs.Bsize)), true
}

// lockDir locks a directory for this open of it. It writes nothing, so it can
// come before anything is known about the directory; RocksDB's own lock comes
// too late, after it has renamed its information log, and stands behind this one where
// the file system has no such locks.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := folder.Lock(f); err != nil {
		return nil, errors.Join(kv.ErrLocked, f.Close())
	}
	return f, nil
}
