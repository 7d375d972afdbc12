package policy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/loom-bridge/loom-bridge/bridge/stamp"
)

const (
	// File is where a workspace says what tools may not do in it.
	File = ".loom/sandbox.toml"
	// MaxFileBytes bounds it.
	MaxFileBytes = 64 << 10

	fileFolder, fileName = ".loom", "sandbox.toml"
)

// stampOf looks at a file that was found without following links; an error says why it is
// not to be trusted.
func stampOf(info fs.FileInfo) (stamp.Stamp, error) {
	s := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode().Type() == fs.ModeSymlink:
		return stamp.Stamp{}, errors.New("is a link; it must be a file")
	case !info.Mode().IsRegular():
		return stamp.Stamp{}, errors.New("is no regular file")
	case info.Size() > MaxFileBytes:
		return stamp.Stamp{}, fmt.Errorf("has %d bytes, at most %d are read", info.Size(), MaxFileBytes)
	case s.Nlink != 1:
		return stamp.Stamp{}, errors.New("has another name too (a hard link), by which it could be changed")
	}
	return stamp.Of(info), nil
}

// look finds the file of a workspace; the zero stamp where there is none.
func look(root *os.Root) (stamp.Stamp, error) {
	folder, err := root.Lstat(fileFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return stamp.Stamp{}, nil
	}
	if err != nil {
		return stamp.Stamp{}, err
	}
	if folder.Mode().Type() == fs.ModeSymlink {
		return stamp.Stamp{}, errors.New("its folder is a link")
	}
	info, err := root.Lstat(File)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return stamp.Stamp{}, nil
	}
	if err != nil {
		return stamp.Stamp{}, err
	}
	return stampOf(info)
}

// read reads the file that was seen, and no other one.
func read(root *os.Root, seen stamp.Stamp) ([]byte, error) {
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
	if err == nil && int64(len(written)) != info.Size() {
		err = errors.New("changed while it was read")
	}
	return written, err
}
