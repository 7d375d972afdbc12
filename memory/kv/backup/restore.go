package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/loom-bridge/loom-bridge/memory/kv/folder"
)

// Verify reads every file of a backup back and returns it. The first file that is changed
// or missing gives ErrDamaged.
func (f *Folder) Verify(ctx context.Context, name string, progress func(done, total int64)) (Backup, error) {
	b, err := f.read(name)
	if err != nil {
		return Backup{}, err
	}
	c := &copying{ctx: ctx, total: b.Bytes, progress: progress}
	for _, file := range b.Files {
		if err := c.verify(filepath.Join(f.Path(name), file.Name), file); err != nil {
			return Backup{}, err
		}
	}
	return b, nil
}

func (c *copying) verify(path string, file File) error {
	in, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	defer in.Close()
	bytes, digest, err := digestOf(c.ctx, in, c.report)
	if err != nil {
		return err
	}
	return file.compare(path, bytes, digest)
}

func (file File) compare(path string, bytes int64, digest string) error {
	if bytes != file.Bytes || digest != file.SHA256 {
		return fmt.Errorf("%w: %s has %d bytes with SHA-256 %s, it was made with %d and %s", ErrDamaged, path, bytes, digest, file.Bytes, file.SHA256)
	}
	return nil
}

// Restore copies a backup to a directory that does not exist or is empty, and reads each
// byte against its digest on the way. The directory appears whole or not at all.
func (f *Folder) Restore(ctx context.Context, name, to string, progress func(done, total int64)) (_ Backup, err error) {
	b, err := f.read(name)
	if err != nil {
		return Backup{}, err
	}
	if to, err = filepath.Abs(to); err != nil {
		return Backup{}, err
	}
	if err := makeRoom(to); err != nil {
		return Backup{}, fmt.Errorf("restore to %s: %w", to, err)
	}
	partial := to + partialSuffix
	if err := os.RemoveAll(partial); err != nil {
		return Backup{}, err
	}
	if err := os.MkdirAll(partial, 0o700); err != nil {
		return Backup{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(partial))
		}
	}()
	c := &copying{ctx: ctx, total: b.Bytes, progress: progress}
	for _, file := range b.Files {
		from := filepath.Join(f.Path(name), file.Name)
		bytes, digest, err := copyFile(ctx, from, filepath.Join(partial, file.Name), 0o600, c.report)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if err == nil {
			err = file.compare(from, bytes, digest)
		}
		if err != nil {
			return Backup{}, err
		}
	}
	if err := folder.Sync(partial); err != nil {
		return Backup{}, err
	}
	return b, errors.Join(os.Rename(partial, to), folder.Sync(filepath.Dir(to)))
}

// makeRoom removes an empty directory; anything else there is somebody's.
func makeRoom(at string) error {
	info, err := os.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir() || os.Remove(at) != nil:
		return fs.ErrExist
	}
	return nil
}
