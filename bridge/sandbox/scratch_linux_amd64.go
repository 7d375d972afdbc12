package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	scratchPrefix = "loom-scratch-"
	scratchLock   = "lock"
	// scratchAge is how old a folder without a lock is before it counts as left behind:
	// another server may be about to lock it.
	scratchAge = time.Minute
)

// scratches is the folder of a runner's temporary files, in tier L. Its lock is held while
// the process lives, so that others see what a killed one left behind.
type scratches struct {
	once, ended sync.Once
	top         string
	lock        *os.File
	err         error
}

// scratch makes a private folder for the temporary files of a run.
func (l *Local) scratch(who identity) (string, error) {
	s := &l.scratches
	s.once.Do(func() {
		l.sweep()
		s.err = s.make(l.opts.TempDir)
	})
	if s.err != nil {
		return "", s.err
	}
	place, err := os.MkdirTemp(s.top, "run-")
	if err == nil && who.uid != os.Geteuid() {
		err = os.Chown(place, who.uid, who.gid)
	}
	if err != nil {
		return "", fmt.Errorf("sandbox: temporary files: %w", err)
	}
	return place, nil
}

func (s *scratches) make(dir string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("sandbox: temporary files: %w", err)
		}
	}()
	if s.top, err = os.MkdirTemp(dir, scratchPrefix); err != nil {
		return err
	}
	if s.top, err = filepath.EvalSymlinks(s.top); err != nil {
		return err
	}
	// A tool that runs as another user has to pass through.
	if err = os.Chmod(s.top, 0o711); err != nil {
		return err
	}
	// It is locked before anybody can find it: without a holder the folder is swept.
	draft := filepath.Join(s.top, scratchLock+".new")
	if s.lock, err = os.OpenFile(draft, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if err = unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	return os.Rename(draft, filepath.Join(s.top, scratchLock))
}

// release removes the folder. No run is left that uses it.
func (s *scratches) release() (err error) {
	s.once.Do(func() { s.err = ErrClosed })
	s.ended.Do(func() {
		if s.top != "" {
			err = os.RemoveAll(s.top)
		}
		if s.lock != nil {
			err = errors.Join(err, s.lock.Close())
		}
	})
	return err
}

// sweep removes the folders of processes of this user that are gone.
func (l *Local) sweep() {
	dir := l.opts.TempDir
	if dir == "" {
		dir = os.TempDir()
	}
	left, err := filepath.Glob(filepath.Join(dir, scratchPrefix+"*"))
	if err != nil {
		return // the name of the folder is a pattern
	}
	for _, place := range left {
		if abandoned(place) {
			l.discard(place)
		}
	}
}

// abandoned reports whether a folder is this user's, and its lock is free.
func abandoned(place string) bool {
	info, err := os.Lstat(place)
	if err != nil || !info.IsDir() {
		return false
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Geteuid() {
		return false
	}
	lock, err := os.OpenFile(filepath.Join(place, scratchLock), os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return time.Since(info.ModTime()) > scratchAge
	}
	if err != nil {
		return false
	}
	defer lock.Close()
	return unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}
