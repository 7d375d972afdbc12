// Package stamp tells states of a file apart without reading it.
//
// # Concurrency
//
// A Stamp is a value; all functions may be called at once.
package stamp

import (
	"io/fs"
	"syscall"
)

// Stamp distinguishes states of a file or folder: two that are equal are of the same file, which
// was not written to in between. The zero Stamp is of no file.
//
// Caveat: within one tick of the file system's clock (up to 10 ms) a change that keeps the size
// goes unseen.
type Stamp struct {
	dev, ino uint64
	size     int64
	changed  syscall.Timespec // of the inode: no program can set it
	modified int64            // Unix nanoseconds
}

// Of returns the stamp of what os.Stat, os.Lstat or a method of os.Root found.
func Of(info fs.FileInfo) Stamp {
	s := info.Sys().(*syscall.Stat_t)
	return Stamp{uint64(s.Dev), s.Ino, s.Size, changeTime(s), info.ModTime().UnixNano()} //nolint:unconvert // Dev is an int32 on macOS
}
