package main

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
	"syscall"
)

// What is exported is private to whoever exports it.
const (
	exportDirMode  = 0o700
	exportFileMode = 0o600
)

// fileTree is the directory that is exported to. Nothing is written outside it,
// whatever names and links there are.
type fileTree struct {
	root *os.Root
	// made are the files of this export, which nothing else replaces.
	made map[string]bool
	// force replaces other files.
	force bool
}

// openFileTree makes the directory if it is not there. One that is not empty is
// refused unless force is set.
func openFileTree(dir string, force bool) (*fileTree, error) {
	if err := os.MkdirAll(dir, exportDirMode); err != nil {
		return nil, &ConfigError{"out", dir, err.Error()}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, &ConfigError{"out", dir, err.Error()}
	}
	t := &fileTree{root: root, made: make(map[string]bool), force: force}
	if force {
		return t, nil
	}
	if err := t.checkEmpty(); err != nil {
		return nil, errors.Join(&ConfigError{"out", dir, err.Error()}, root.Close())
	}
	return t, nil
}

func (t *fileTree) checkEmpty() error {
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
func (t *fileTree) Close() error { return t.root.Close() }

// errBadName: a file can't have that name here.
var errBadName = errors.New("the name can't be used")

// create makes a file and the folders above it. A name that can't be used is
// errBadName; anything else is a fault of the disk.
func (t *fileTree) create(name string) (*os.File, error) {
	if err := t.prepare(name); err != nil {
		return nil, err
	}
	file, err := t.root.OpenFile(filepath.FromSlash(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, exportFileMode)
	if err != nil {
		return nil, nameError(name, err)
	}
	t.made[name] = true
	return file, nil
}

// link makes a further name of a file of this export.
func (t *fileTree) link(from, name string) error {
	if err := t.prepare(name); err != nil {
		return err
	}
	if err := t.root.Link(filepath.FromSlash(from), filepath.FromSlash(name)); err != nil {
		return nameError(name, err)
	}
	t.made[name] = true
	return nil
}

// prepare makes the folders above a file and takes away what is replaced.
func (t *fileTree) prepare(name string) error {
	local := filepath.FromSlash(name)
	if !filepath.IsLocal(local) || path.Clean(name) != name || name == "." || t.made[name] {
		return fmt.Errorf("%w: %q", errBadName, name)
	}
	if err := t.root.MkdirAll(filepath.Dir(local), exportDirMode); err != nil {
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
func (t *fileTree) discard(name string) error {
	delete(t.made, name)
	return t.root.Remove(filepath.FromSlash(name))
}

// write makes a file of some bytes.
func (t *fileTree) write(name string, data []byte) error {
	file, err := t.create(name)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// lineFile is a file of lines that is made with its first line.
type lineFile struct {
	tree *fileTree
	name string
	file *os.File
	out  *bufio.Writer
}

func (l *lineFile) add(line []byte) (err error) {
	if l.file == nil {
		if l.file, err = l.tree.create(l.name); err != nil {
			return err
		}
		l.out = bufio.NewWriter(l.file)
	}
	_, err = l.out.Write(append(line, '\n'))
	return err
}

// addObject adds an object with its keys in order. Raw JSON in it keeps its numbers
// as they are written.
func (l *lineFile) addObject(object map[string]any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(object); err != nil {
		return err
	}
	return l.add(bytes.TrimSuffix(line.Bytes(), []byte("\n")))
}

// Close finishes the file, if there is one.
func (l *lineFile) Close() error {
	if l.file == nil {
		return nil
	}
	return errors.Join(l.out.Flush(), l.file.Close())
}

// nameError tells names that can't be used from a disk that can't.
func nameError(name string, err error) error {
	for _, bad := range []error{
		os.ErrExist, syscall.ENAMETOOLONG, syscall.ENOTDIR, syscall.EISDIR, syscall.EINVAL, syscall.EILSEQ, syscall.ENOTEMPTY,
	} {
		if errors.Is(err, bad) {
			return fmt.Errorf("%w: %w", errBadName, err)
		}
	}
	return fmt.Errorf("write %q: %w", name, err)
}
