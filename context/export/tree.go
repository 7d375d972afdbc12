package export

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// The files are private to the exporting user.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// Tree is the directory that is exported to. Nothing is written outside it,
// whatever names and links there are. It is not safe for concurrent use.
type Tree struct {
	root *os.Root
	// made are the files of this export, which nothing else replaces.
	made map[string]bool
	// own are names at the top that are the export's own, made or not: files of Lines, true,
	// and folders, false.
	own map[string]bool
	// force replaces other files.
	force bool
}

// OpenTree makes the directory if it is not there. One that is not empty is
// refused unless force is set.
func OpenTree(dir string, force bool) (*Tree, error) {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	t := &Tree{root: root, made: make(map[string]bool), own: make(map[string]bool), force: force}
	if force {
		return t, nil
	}
	if err := t.checkEmpty(); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return t, nil
}

func (t *Tree) checkEmpty() error {
	dir, err := t.root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	switch names, err := dir.Readdirnames(1); {
	case len(names) > 0:
		return errors.New("is not empty; give a new directory, or --force to write into this one")
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// Close closes the directory.
func (t *Tree) Close() error { return t.root.Close() }

// ErrBadName: a file can't have that name here.
var ErrBadName = errors.New("the name can't be used")

// create makes a file and the folders above it. A name that can't be used is
// ErrBadName; anything else is a fault of the disk.
func (t *Tree) create(name string) (*os.File, error) {
	if err := t.free(name); err != nil {
		return nil, err
	}
	return t.open(name)
}

// KeepFolders has no file made under those names of folders, which may end in a slash.
func (t *Tree) KeepFolders(names ...string) {
	for _, name := range names {
		t.own[strings.TrimSuffix(name, "/")] = false
	}
}

// free says so when a name is the export's own, or lies below such a file.
func (t *Tree) free(name string) error {
	first, _, below := strings.Cut(name, "/")
	if file, own := t.own[first]; own && (file || !below) {
		return fmt.Errorf("%w: %q is the export's own", ErrBadName, first)
	}
	return nil
}

func (t *Tree) open(name string) (*os.File, error) {
	if err := t.prepare(name); err != nil {
		return nil, err
	}
	file, err := t.root.OpenFile(filepath.FromSlash(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return nil, nameError(name, err)
	}
	t.made[name] = true
	return file, nil
}

// link makes a further name of a file of this export.
func (t *Tree) link(from, name string) error {
	if err := t.free(name); err != nil {
		return err
	}
	if err := t.prepare(name); err != nil {
		return err
	}
	if err := t.root.Link(filepath.FromSlash(from), filepath.FromSlash(name)); err != nil {
		return nameError(name, err)
	}
	t.made[name] = true
	return nil
}

// prepare makes the folders above a file and removes the file that it replaces.
func (t *Tree) prepare(name string) error {
	local := filepath.FromSlash(name)
	if !filepath.IsLocal(local) || path.Clean(name) != name || name == "." || t.made[name] {
		return fmt.Errorf("%w: %q", ErrBadName, name)
	}
	if err := t.root.MkdirAll(filepath.Dir(local), dirMode); err != nil {
		return nameError(name, err)
	}
	if t.force {
		if err := t.root.Remove(local); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nameError(name, err)
		}
	}
	return nil
}

// discard takes away a file that could not be finished.
func (t *Tree) discard(name string) error {
	delete(t.made, name)
	return t.root.Remove(filepath.FromSlash(name))
}

// Write makes a file of some bytes. A name that can't be used is ErrBadName.
func (t *Tree) Write(name string, data []byte) error {
	file, err := t.create(name)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// Lines is a file of lines that is made with its first line.
type Lines struct {
	tree *Tree
	name string
	file *os.File
	out  *bufio.Writer
}

// Lines returns a file of lines of that name, which nothing else gets from then on.
func (t *Tree) Lines(name string) *Lines {
	t.own[name] = true
	return &Lines{tree: t, name: name}
}

// Add adds a line, which is given without its end.
func (l *Lines) Add(line []byte) (err error) {
	if l.file == nil {
		if l.file, err = l.tree.open(l.name); err != nil {
			return err
		}
		l.out = bufio.NewWriter(l.file)
	}
	_, err = l.out.Write(append(line, '\n'))
	return err
}

// AddObject adds an object with its keys in order. Raw JSON in it keeps its numbers
// as they are written.
func (l *Lines) AddObject(object map[string]any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(object); err != nil {
		return err
	}
	return l.Add(bytes.TrimSuffix(line.Bytes(), []byte("\n")))
}

// Close finishes the file, if there is one.
func (l *Lines) Close() error {
	if l.file == nil {
		return nil
	}
	return errors.Join(l.out.Flush(), l.file.Close())
}

// nameError distinguishes names that can't be used from a disk that can't.
func nameError(name string, err error) error {
	for _, bad := range []error{
		os.ErrExist, syscall.ENAMETOOLONG, syscall.ENOTDIR, syscall.EISDIR, syscall.EINVAL, syscall.EILSEQ, syscall.ENOTEMPTY,
	} {
		if errors.Is(err, bad) {
			return fmt.Errorf("%w: %w", ErrBadName, err)
		}
	}
	return fmt.Errorf("write %q: %w", name, err)
}
