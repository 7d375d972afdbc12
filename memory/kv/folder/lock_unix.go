//go:build linux || darwin || freebsd

package folder

import (
	"errors"
	"os"
	"syscall"
)

// Lock locks a file or directory for this open of it, until Unlock or the end of the
// process; ErrLocked when somebody else has. It writes nothing. Where the file system has
// no such locks, nothing is locked.
func Lock(f *os.File) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return nil
}

func unlock(f *os.File) {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // where there are no locks there was none
}
