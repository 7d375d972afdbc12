package policy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

const (
	// File is where a workspace says what tools may not do in it.
	File = ".loom/sandbox.toml"
	// MaxFileBytes bounds it.
	MaxFileBytes = 64 << 10

	fileFolder, fileName = ".loom", "sandbox.toml"
)

// stamp distinguishes states of the file.
type stamp struct {
	dev, ino uint64
	size     int64
	changed  syscall.Timespec
	modified time.Time
}

// stampOf looks at a file that was found without following links; an error says why it is
// not to be trusted.
func stampOf(info fs.FileInfo) (stamp, error) {
	s := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode().Type() == fs.ModeSymlink:
		return stamp{}, errors.New("is a link; it must be a file")
	case !info.Mode().IsRegular():
		return stamp{}, errors.New("is no regular file")
	case info.Size() > MaxFileBytes:
		return stamp{}, fmt.Errorf("has %d bytes, at most %d are read", info.Size(), MaxFileBytes)
	case s.Nlink != 1:
		return stamp{}, errors.New("has another name too (a hard link), by which it could be changed")
	}
	return stamp{s.Dev, s.Ino, info.Size(), s.Ctim, info.ModTime()}, nil
}

// look finds the file of a workspace; the zero stamp where there is none.
func look(root *os.Root) (stamp, error) {
	folder, err := root.Lstat(fileFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return stamp{}, nil
	}
	if err != nil {
		return stamp{}, err
	}
	if folder.Mode().Type() == fs.ModeSymlink {
		return stamp{}, errors.New("its folder is a link")
	}
	info, err := root.Lstat(File)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return stamp{}, nil
	}
	if err != nil {
		return stamp{}, err
	}
	return stampOf(info)
}

// read reads the file that was seen, and no other one.
func read(root *os.Root, seen stamp) ([]byte, error) {
	folder, err := root.OpenRoot(fileFolder)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	file, err := folder.OpenFile(fileName, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if s, err := stampOf(info); err != nil || s != seen {
		return nil, errors.Join(errors.New("changed while it was read"), err)
	}
	written, err := io.ReadAll(io.LimitReader(file, MaxFileBytes+1))
	if err == nil && int64(len(written)) != seen.size {
		err = errors.New("changed while it was read")
	}
	return written, err
}
