package hosts

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/aymanbagabas/go-udiff"
)

// maxFileBytes bounds a file that is edited: that of Claude Code holds what was done, too.
const maxFileBytes = 64 << 20

var (
	// ErrLink: a file is a symbolic link, or leads out of its folder by one.
	ErrLink = errors.New("hosts: a symbolic link")
	// ErrChanged: a file is not what it was when the change was shown.
	ErrChanged = errors.New("hosts: changed meanwhile")
	// ErrTooLarge: a file is longer than is edited.
	ErrTooLarge = errors.New("hosts: too large")
)

// Change is one file as it is and as it is to be.
type Change struct {
	// Path is the whole path of the file.
	Path string
	// Before and After are its bytes. Nil means that there is no file.
	Before, After []byte

	base, name string
	clean      []byte // without anything of ours
	mode       fs.FileMode
	keep       keep
}

// Changes are what an installation would write. kept is the folder that remembers what
// was there before.
func (i Install) Changes(kept string) ([]Change, error) {
	return i.changes(kept, func(c *Change, edits []edit) error {
		c.After, c.clean = c.Before, c.Before
		for _, e := range edits {
			var err error
			if c.clean, err = e.take(c.clean); err != nil {
				return err
			}
			if c.After, err = e.put(c.After); err != nil {
				return err
			}
		}
		return nil
	})
}

// Removals are what would take the installation away: each file as it was before where
// it was not changed since, otherwise as it is without what is ours. The last one
// written comes first.
func (i Install) Removals(kept string) ([]Change, error) {
	all, err := i.changes(kept, func(c *Change, edits []edit) error {
		then, err := c.keep.load()
		if err != nil {
			return err
		}
		if then != nil && then.wrote(c.Before) {
			c.After = then.Before
			return nil
		}
		c.After = c.Before
		for _, e := range edits {
			if c.After, err = e.take(c.After); err != nil {
				return err
			}
		}
		return nil
	})
	slices.Reverse(all)
	return all, err
}

func (i Install) changes(kept string, set func(*Change, []edit) error) ([]Change, error) {
	files, err := i.files()
	if err != nil {
		return nil, err
	}
	var all []Change
	for _, f := range files {
		c := Change{Path: f.whole(), base: f.base, name: f.path, keep: keep{filepath.Join(kept, digest([]byte(f.whole()))[:32]+".json")}}
		if c.Before, c.mode, err = c.read(); err == nil {
			err = set(&c, f.edits)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Path, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// Same reports whether there is nothing to write.
func (c Change) Same() bool {
	return bytes.Equal(c.Before, c.After) && (c.Before == nil) == (c.After == nil)
}

// Diff shows what would change, as a unified diff. It is empty if nothing would.
func (c Change) Diff() string {
	from, to := c.Path, c.Path
	if c.Before == nil {
		from = os.DevNull
	}
	if c.After == nil {
		to = os.DevNull
	}
	return udiff.Unified(from, to, string(c.Before), string(c.After))
}

// read returns the file's bytes and mode; none where there is no file.
func (c Change) read() ([]byte, fs.FileMode, error) {
	root, err := os.OpenRoot(c.base)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = root.Close() }()
	info, err := root.Lstat(c.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, 0o644, nil
	case err != nil:
		return nil, 0, escaped(err)
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, 0, fmt.Errorf("%w: edit the file that it leads to by hand", ErrLink)
	case !info.Mode().IsRegular():
		return nil, 0, fmt.Errorf("%w: it is no file", ErrMalformed)
	case info.Size() > maxFileBytes:
		return nil, 0, fmt.Errorf("%w: it has %d bytes, at most %d are edited", ErrTooLarge, info.Size(), maxFileBytes)
	}
	text, err := root.ReadFile(c.name)
	if text == nil {
		text = []byte{}
	}
	return text, info.Mode().Perm(), escaped(err)
}

// escaped names the error of a path that leads out of its folder.
func escaped(err error) error {
	var failed *fs.PathError
	if errors.As(err, &failed) && failed.Err != nil && failed.Err.Error() == "path escapes from parent" {
		return fmt.Errorf("%w leads out of the folder", ErrLink)
	}
	return err
}

// Apply keeps what is there and writes the change: the file is the old one or the new
// one, whole, at every moment.
func (c Change) Apply() error {
	if c.Same() {
		return nil
	}
	then, err := c.keep.load()
	if err != nil {
		return err
	}
	now := savedFile{Path: c.Path, Before: c.Before}
	switch {
	case then != nil && then.wrote(c.Before):
		now.Before, now.Made = then.Before, then.Made // what was there before the first time
	case !bytes.Equal(c.clean, c.Before):
		now.Before = c.clean
	}
	return c.write(func(root *os.Root) error {
		made, err := makeFolders(root, path.Dir(c.name))
		if err != nil {
			return escaped(err)
		}
		now.Made = append(made, now.Made...)
		now.After = digest(c.After)
		return c.keep.save(now)
	})
}

// Undo writes what Removals said, and forgets what was kept.
func (c Change) Undo() error {
	then, err := c.keep.load()
	if err != nil {
		return err
	}
	if !c.Same() {
		if err := c.write(func(*os.Root) error { return nil }); err != nil {
			return err
		}
	}
	if then != nil && c.After == nil {
		root, err := os.OpenRoot(c.base)
		if err != nil {
			return err
		}
		defer func() { _ = root.Close() }()
		for _, folder := range then.Made {
			_ = root.Remove(folder) // stays if others have put something there
		}
	}
	return c.keep.forget()
}

// write puts After in the place of Before, which must still be there.
func (c Change) write(first func(root *os.Root) error) error {
	root, err := os.OpenRoot(c.base)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if current, _, err := c.read(); err != nil || !bytes.Equal(current, c.Before) || (current == nil) != (c.Before == nil) {
		return errors.Join(fmt.Errorf("%s: %w; run it again", c.Path, ErrChanged), err)
	}
	if err := first(root); err != nil {
		return err
	}
	if c.After == nil {
		return escaped(root.Remove(c.name))
	}
	temporary := path.Join(path.Dir(c.name), "."+path.Base(c.name)+"."+rand.Text()[:8])
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, c.mode)
	if err != nil {
		return escaped(err)
	}
	_, err = f.Write(c.After)
	err = errors.Join(err, f.Chmod(c.mode), f.Sync(), f.Close())
	if err == nil {
		err = root.Rename(temporary, c.name)
	}
	if err != nil {
		_ = root.Remove(temporary)
		return err
	}
	return syncFolder(root, path.Dir(c.name))
}

// makeFolders makes a folder and those above it, and returns the new ones, the deepest
// first.
func makeFolders(root *os.Root, folder string) (made []string, err error) {
	for at := folder; at != "." && at != "/"; at = path.Dir(at) {
		if _, err := root.Stat(at); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		made = append(made, at)
	}
	return made, root.MkdirAll(filepath.FromSlash(folder), 0o755)
}

func syncFolder(root *os.Root, folder string) error {
	f, err := root.Open(folder)
	if err != nil {
		return err
	}
	_ = f.Sync() // not every system has it for folders
	return f.Close()
}
