package folder

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exchange gives two directories of one file system each other's name, in one step. What
// is open in them stays open. Make it durable with Sync of the directories they lie in.
func Exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// Like gives dir the rights of another directory, and dir and the files in it its owner.
func Like(dir, other string) error {
	info, err := os.Stat(other)
	if err != nil {
		return err
	}
	if err := os.Chmod(dir, info.Mode().Perm()); err != nil {
		return err
	}
	of, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(of.Uid) == os.Geteuid() {
		return nil
	}
	files, err := os.ReadDir(dir)
	errs := []error{err, os.Lchown(dir, int(of.Uid), int(of.Gid))}
	for _, f := range files {
		errs = append(errs, os.Lchown(filepath.Join(dir, f.Name()), int(of.Uid), int(of.Gid)))
	}
	return errors.Join(errs...)
}
