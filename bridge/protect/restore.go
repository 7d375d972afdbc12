package protect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
)

// Undone is where a workspace keeps what was taken from protected paths, the newest of each.
const Undone = ".loom/undone"

const (
	// rebuilt is where a path is made again, before it takes its place.
	rebuilt = Undone + "/.again"

	ownRights fs.FileMode = 0o700 // what the server needs of a folder to change it
)

// errMeanwhile: another program that still runs was at it. It is tried again.
var errMeanwhile = errors.New("it was changed meanwhile")

// errNotWhole: there was too much to keep.
var errNotWhole = errors.New("protect: too large, or no file, to be put back")

// putBack makes a path what it was, and notes what it is then. On an error it may be as it
// was found.
func putBack(root *os.Root, name string, before *snapshot) error {
	if !before.whole {
		return fmt.Errorf("%w: %s", errNotWhole, name)
	}
	if err := undoneFolder(root); err != nil {
		return fmt.Errorf("protect: put back %s: %w", name, err)
	}
	if err := parents(root, name, len(before.entries) > 0); err != nil {
		return fmt.Errorf("protect: put back %s: %w", name, err)
	}
	if len(before.entries) > 0 {
		if err := rebuild(root, before.entries); err != nil {
			return fmt.Errorf("protect: put back %s: %w", name, err)
		}
	}
	if err := setAside(root, name); err != nil {
		return fmt.Errorf("protect: take away %s: %w", name, err)
	}
	if len(before.entries) == 0 {
		return nil
	}
	if err := root.Rename(rebuilt, name); err != nil {
		return fmt.Errorf("protect: put back %s: %w", name, err)
	}
	now, err := take(root, name, true)
	if err == nil && !now.holds(*before) {
		err = errMeanwhile
	}
	if err != nil {
		return fmt.Errorf("protect: put back %s: %w", name, err)
	}
	*before = now
	return nil
}

// undoneFolder makes the folder, if a program made no other thing of it.
func undoneFolder(root *os.Root) error {
	permit(root, ".")
	for _, folder := range []string{path.Dir(Undone), Undone} {
		info, err := root.Lstat(folder)
		if err == nil && !info.IsDir() {
			err = root.Remove(folder)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := root.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		permit(root, folder)
	}
	return nil
}

// permit lets the server change a folder, whose rights a program may have taken.
func permit(root *os.Root, folder string) {
	if info, err := root.Lstat(folder); err == nil && info.IsDir() && info.Mode().Perm()&ownRights != ownRights {
		_ = root.Chmod(folder, info.Mode().Perm()|ownRights) // else what follows fails
	}
}

// parents sees that folders alone lead to a path, which are needed where something is put
// back.
func parents(root *os.Root, name string, needed bool) error {
	parts := strings.Split(name, "/")
	for i := range parts[:len(parts)-1] {
		folder := path.Join(parts[:i+1]...)
		info, err := root.Lstat(folder)
		if err == nil && !info.IsDir() {
			err = setAside(root, folder)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if needed {
			if err := root.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
		permit(root, folder)
	}
	return nil
}

// setAside moves what is at a path to where nothing uses it.
func setAside(root *os.Root, name string) error {
	if _, err := root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	aside := Undone + "/" + strings.ReplaceAll(name, "/", "_")
	if err := clearAway(root, aside); err != nil {
		return err
	}
	permit(root, name)
	if err := root.Rename(name, aside); err == nil {
		return nil
	}
	return clearAway(root, name)
}

// clearAway removes all at a path, folders that nobody may enter among it.
func clearAway(root *os.Root, name string) error {
	if err := root.RemoveAll(name); err == nil {
		return nil
	}
	_ = fs.WalkDir(root.FS(), name, func(place string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			permit(root, place)
		}
		return nil
	})
	return root.RemoveAll(name)
}

// rebuild makes entries again, with their owners, rights and times.
func rebuild(root *os.Root, entries []entry) error {
	if err := clearAway(root, rebuilt); err != nil {
		return err
	}
	for _, e := range entries {
		if err := e.make(root, path.Join(rebuilt, e.rel)); err != nil {
			return err
		}
	}
	for i := range entries { // what a folder holds before the folder
		e := entries[len(entries)-1-i]
		if e.stamp.mode.Type() == fs.ModeSymlink {
			continue
		}
		place := path.Join(rebuilt, e.rel)
		if err := errors.Join(root.Chmod(place, e.stamp.mode), root.Chtimes(place, time.Time{}, e.modified)); err != nil {
			return err
		}
	}
	return nil
}

func (e entry) make(root *os.Root, place string) error {
	var err error
	switch {
	case e.stamp.mode.IsDir():
		err = root.Mkdir(place, ownRights)
	case e.stamp.mode.Type() == fs.ModeSymlink:
		err = root.Symlink(e.target, place)
	default:
		err = root.WriteFile(place, e.content, 0o600)
	}
	if err == nil && os.Geteuid() == 0 {
		err = root.Lchown(place, int(e.stamp.uid), int(e.stamp.gid))
	}
	return err
}
