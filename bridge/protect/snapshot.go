package protect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Limits of what is kept of one path, to be put back.
const (
	MaxBytes   = 8 << 20
	MaxEntries = 2000
	// maxDepth bounds the folders within each other.
	maxDepth = 64
)

// errMuch: there is more than is looked at.
var errMuch = errors.New("protect: too much to look at")

// stamp is what tells one state of a file, a folder or a link from another. Whoever changes
// one changes its time of change.
type stamp struct {
	dev, ino uint64
	size     int64
	mode     fs.FileMode
	uid, gid uint32
	changed  syscall.Timespec
}

// entry is a file, a folder or a link.
type entry struct {
	rel      string // below the path of its snapshot; . for that itself
	stamp    stamp
	modified time.Time
	content  []byte // of a file
	target   string // of a link
}

// snapshot is a path as it was: no entry where nothing was, else a folder before what it
// holds.
type snapshot struct {
	entries []entry
	whole   bool // it can be put back
}

// same tells whether nothing was changed.
func (s snapshot) same(other snapshot) bool {
	return slices.EqualFunc(s.entries, other.entries, func(a, b entry) bool { return a.rel == b.rel && a.stamp == b.stamp })
}

// holds tells whether there is the same in both, whenever it was written.
func (s snapshot) holds(other snapshot) bool {
	return s.whole && slices.EqualFunc(s.entries, other.entries, func(a, b entry) bool {
		x, y := a.stamp, b.stamp
		return a.rel == b.rel && x.mode == y.mode && x.uid == y.uid && x.gid == y.gid && a.target == b.target && bytes.Equal(a.content, b.content)
	})
}

// kind is what a protected path leads to.
type kind int

const (
	absent   kind = iota
	ordinary      // a file or a folder, behind folders alone
	odd           // a link, or something behind one, or what is neither file nor folder
)

// placeOf is what to keep for a path: that itself, or the link on the way to it.
func placeOf(root *os.Root, name string) (string, kind) {
	parts := strings.Split(name, "/")
	for i := range parts {
		prefix := path.Join(parts[:i+1]...)
		info, err := root.Lstat(prefix)
		switch {
		case err != nil:
			return name, absent
		case info.Mode().Type() == fs.ModeSymlink:
			return prefix, odd
		case i == len(parts)-1 && !info.Mode().IsRegular() && !info.IsDir():
			return name, odd
		}
	}
	return name, ordinary
}

// take looks at a path. With contents it can be put back, unless there is too much.
func take(root *os.Root, name string, contents bool) (snapshot, error) {
	t := taking{root: root, top: name, contents: contents, left: MaxBytes}
	t.s.whole = true
	if err := t.add(".", 0); err != nil {
		return snapshot{}, err
	}
	return t.s, nil
}

type taking struct {
	root     *os.Root
	top      string
	contents bool
	left     int64
	s        snapshot
}

func (t *taking) add(rel string, depth int) error {
	name := path.Join(t.top, rel)
	info, err := t.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(t.s.entries) >= 4*MaxEntries || depth > maxDepth {
		return errMuch
	}
	if len(t.s.entries) >= MaxEntries {
		t.s.whole = false
	}
	e := entry{rel: rel, stamp: stampOf(info), modified: info.ModTime()}
	switch {
	case info.Mode().Type() == fs.ModeSymlink:
		if e.target, err = t.root.Readlink(name); err != nil {
			return err
		}
	case info.Mode().IsRegular() && t.contents:
		if t.left -= info.Size(); t.left < 0 {
			t.s.whole = false
		} else if e.content, err = read(t.root, name, e.stamp); err != nil {
			return err
		}
	case !info.Mode().IsRegular() && !info.IsDir():
		t.s.whole = false
	}
	t.s.entries = append(t.s.entries, e)
	if !info.IsDir() {
		return nil
	}
	names, err := namesIn(t.root, name)
	if err != nil {
		return err
	}
	for _, one := range names {
		if err := t.add(path.Join(rel, one), depth+1); err != nil {
			return err
		}
	}
	return nil
}

func stampOf(info fs.FileInfo) stamp {
	s := info.Sys().(*syscall.Stat_t)
	return stamp{s.Dev, s.Ino, info.Size(), info.Mode(), s.Uid, s.Gid, s.Ctim}
}

// read reads the file that was seen, and no other one.
func read(root *os.Root, name string, seen stamp) ([]byte, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, seen.size+1))
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || stampOf(info) != seen {
		return nil, fmt.Errorf("protect: %s changed while it was read", name)
	}
	return content, nil
}

func namesIn(root *os.Root, name string) ([]string, error) {
	folder, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	names, err := folder.Readdirnames(4*MaxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}
