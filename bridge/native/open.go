package native

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
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

// Reader reads files of workspaces for others than tools, confined as the tools are. It
// is safe for concurrent use.
type Reader struct{ files files }

// NewReader returns a reader that never touches the directory of the store; empty is
// none.
func NewReader(store string) (*Reader, error) {
	r := &Reader{files{locks: pathLocks{seed: maphash.MakeSeed()}}}
	if store == "" {
		return r, nil
	}
	info, err := os.Stat(store)
	if err != nil {
		return nil, fmt.Errorf("native: store: %w", err)
	}
	r.files.store = info
	return r, nil
}

// Head returns the first limit bytes of a regular file, and its file info. Its errors are
// *tools.Error, like the tools' errors, or the error of ctx.
func (r *Reader) Head(ctx context.Context, root *os.Root, name string, limit int) ([]byte, fs.FileInfo, error) {
	file, info, _, err := r.files.open(ctx, root, name)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	head, err := io.ReadAll(io.LimitReader(file, int64(limit)))
	if err != nil {
		return nil, nil, failure(name, err)
	}
	return head, info, nil
}
