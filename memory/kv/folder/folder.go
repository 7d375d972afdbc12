// Package folder makes the names in a directory durable, and keeps other processes out of one.
package folder

import (
	"errors"
	"os"
)

// ErrLocked: another open of the same file or directory has the lock.
var ErrLocked = errors.New("folder: is locked")

// Sync makes the names in dir durable.
func Sync(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Unlock ends a lock and closes its file. It does not leave the first to the second: a
// process that is starting another one shares its open files with it for a moment.
func Unlock(f *os.File) error {
	unlock(f)
	return f.Close()
}
