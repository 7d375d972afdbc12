package native

import (
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
)

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

// Head returns the first limit bytes of a regular file, and what the system says of it.
// Its errors are *tools.Error, as those of the tools are, or that of ctx.
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
