package native

import (
	"context"
	"errors"
	"io"
	"iter"
	"path"
	"strings"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Blobs is what was offloaded before. A *blob.Store is one.
type Blobs interface {
	// Lookup returns the blob of a path, step id or ref, or blob.ErrNotFound.
	Lookup(ctx context.Context, scope kv.Scope, name string) (blob.Entry, error)
	// Read yields a blob's bytes from an offset on; a limit below zero means to
	// the end.
	Read(ctx context.Context, scope kv.Scope, e blob.Entry, offset, limit int64) iter.Seq2[[]byte, error]
}

var _ Blobs = (*blob.Store)(nil)

// source opens what a path leads to. Under the long name of the outputs folder
// a blob wins, under any other name a file of the workspace; a step's id or a
// ref names a blob too, when no file is called so.
func (f *files) source(ctx context.Context, c tools.Call) (source, error) {
	name := c.String("path", "")
	if longOutput(name) {
		if s, err := f.blobSource(ctx, c, name); !errors.Is(err, blob.ErrNotFound) {
			return s, err
		}
	}
	file, info, rel, err := f.open(ctx, c.Root, name)
	if err == nil {
		return source{body: file, size: info.Size(), file: rel}, nil
	}
	if failed, ok := errors.AsType[*tools.Error](err); !ok || failed.Code != tools.NotFound || !namesBlob(name) {
		return source{}, err
	}
	s, blobErr := f.blobSource(ctx, c, name)
	if errors.Is(blobErr, blob.ErrNotFound) {
		return source{}, err
	}
	return s, blobErr
}

func longOutput(name string) bool {
	name = path.Clean(name)
	return strings.HasPrefix(name, "workspace/outputs/") || strings.HasPrefix(name, "workspace/history/")
}

// namesBlob tells whether a path has one of the forms that can name a blob, so
// that a file which is missing costs no look into the store.
func namesBlob(name string) bool {
	name = path.Clean(name)
	for _, folder := range []string{"outputs/", "history/", blob.PersistentFolder, blob.ArchiveFolder} {
		if strings.HasPrefix(name, folder) {
			return true
		}
	}
	id := strings.TrimSuffix(name, path.Ext(name))
	if _, ok := step.ParseID(id); ok {
		return true
	}
	return len(name) >= blob.MinRefDigits && strings.Trim(name, "0123456789abcdefABCDEF") == ""
}

func (f *files) blobSource(ctx context.Context, c tools.Call, name string) (source, error) {
	if f.blobs == nil {
		return source{}, blob.ErrNotFound
	}
	entry, err := f.blobs.Lookup(ctx, c.Scope, path.Clean(name))
	if err != nil {
		return source{}, blobFailure(name, err)
	}
	pieces := f.blobs.Read(ctx, c.Scope, entry, 0, -1)
	return source{
		body: &blobReader{ReadCloser: blob.NewReader(pieces), name: name},
		size: entry.Size,
		blob: &entry,
	}, nil
}

// blobFailure says for the model what went wrong with a blob.
func blobFailure(name string, err error) error {
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return err // a file may have the name
	case errors.Is(err, blob.ErrAmbiguous):
		return wrapped(tools.Failed, ""+name+" fits several stored results; give more of it", err)
	case errors.Is(err, blob.ErrDamaged):
		return wrapped(tools.Failed, ""+name+": the stored result is damaged", err)
	}
	return failure(name, err)
}

// blobReader makes the errors of reading a blob ones for the model.
type blobReader struct {
	io.ReadCloser
	name string
}

func (b *blobReader) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = blobFailure(b.name, err)
	}
	return n, err
}
