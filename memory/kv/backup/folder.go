package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory/kv/folder"
)

// Folder is a folder of backups.
type Folder struct{ dir string }

// Open opens a folder of backups, and makes it if it is not there; only its owner may read
// what is in it.
func Open(dir string) (*Folder, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return &Folder{dir: dir}, nil
}

// Existing opens a folder of backups that is there already.
func Existing(dir string) (*Folder, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is no directory", dir)
	}
	return &Folder{dir: dir}, nil
}

// Path is the directory of a backup.
func (f *Folder) Path(name string) string { return filepath.Join(f.dir, name) }

func (f *Folder) manifestOf(name string) string { return f.Path(name) + manifestSuffix }

// lock keeps others from changing the folder, until it is given up with folder.Unlock.
func (f *Folder) lock() (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(f.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := folder.Lock(file); err != nil {
		return nil, errors.Join(fmt.Errorf("%w in %s", ErrBusy, f.dir), file.Close())
	}
	return file, nil
}

// clean removes what ended processes have left: never anything but half-made backups.
func (f *Folder) clean() error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := strings.TrimSuffix(strings.TrimSuffix(e.Name(), partialSuffix), manifestSuffix)
		if !validName.MatchString(name) || e.Name() == name+manifestSuffix {
			continue
		}
		if e.Name() == name {
			if _, err := os.Stat(f.manifestOf(name)); !errors.Is(err, fs.ErrNotExist) {
				continue
			}
		}
		if err := os.RemoveAll(filepath.Join(f.dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// Prune removes all but the newest backups, and returns what it removed.
func (f *Folder) Prune(keep int) (removed []string, err error) {
	lock, err := f.lock()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.Unlock(lock)) }()
	if err := f.clean(); err != nil {
		return nil, err
	}
	return f.prune(keep)
}

func (f *Folder) prune(keep int) (removed []string, err error) {
	names, err := f.names()
	if err != nil || len(names) <= keep {
		return nil, err
	}
	for _, name := range names[keep:] {
		// Without a manifest it is no backup any more, whatever happens next.
		if err := os.Remove(f.manifestOf(name)); err != nil {
			return removed, err
		}
		removed = append(removed, name)
		if err := os.RemoveAll(f.Path(name)); err != nil {
			return removed, err
		}
	}
	return removed, folder.Sync(f.dir)
}
