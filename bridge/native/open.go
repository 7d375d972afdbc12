package native

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

// openRegular opens the file at a target, if it is a regular file and still the
// one that was seen. A pipe put there meanwhile does not hang the open.
func openRegular(p *target, flags int) (*os.File, fs.FileInfo, error) {
	if err := checkRegular(p.info); err != nil {
		return nil, nil, err
	}
	file, err := p.dir.OpenFile(p.name, flags|syscall.O_NONBLOCK, 0)
	if moved(err) {
		err = errRaced
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !os.SameFile(p.info, info) {
		err = errRaced
	}
	if err != nil {
		_ = file.Close() // nothing was done with it
		return nil, nil, err
	}
	return file, info, nil
}

// checkRegular returns why something seen can't be read or written as a file.
func checkRegular(info fs.FileInfo) error {
	switch {
	case info == nil:
		return fs.ErrNotExist
	case info.IsDir():
		return syscall.EISDIR
	case !info.Mode().IsRegular():
		return tools.Errorf(tools.Failed, "not a regular file: %s", info.Name())
	}
	return nil
}

// open finds and opens a regular file for reading. It returns its path in the
// workspace too.
func (f *files) open(ctx context.Context, root *os.Root, name string) (file *os.File, info fs.FileInfo, rel string, err error) {
	for range maxRaces {
		p, err := f.find(ctx, root, name, want{})
		if err != nil {
			return nil, nil, "", err
		}
		file, info, err = openRegular(p, os.O_RDONLY)
		p.close()
		if err == nil {
			return file, info, p.rel, nil
		}
		if !errors.Is(err, errRaced) {
			return nil, nil, "", failure(name, err)
		}
	}
	return nil, nil, "", failure(name, errRaced)
}
