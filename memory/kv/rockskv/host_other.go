//go:build cgo && !norocksdb && !linux && !darwin && !freebsd

package rockskv

import "os"

// lockDir only opens the directory here; RocksDB's own lock does the work.
func lockDir(dir string) (*os.File, error) { return os.Open(dir) }

// checkRoom asks nothing here.
func checkRoom(string, string, uint64) error { return nil }

// freeBytes knows nothing here.
func freeBytes(string) (int64, bool) { return 0, false }

// roomOf knows nothing here.
func roomOf(string) (int64, int64, bool) { return 0, 0, false }
