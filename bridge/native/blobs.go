package native

import (
	"context"
	"errors"
	"io"
	"iter"
	"path"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Blobs reads the content that prompts leave out: offloaded results, and the steps,
// messages and tasks of the log.
type Blobs interface {
	// Lookup returns what a path, step id, message id or ref leads to in a
	// session, or blob.ErrNotFound. An entry without a ref is a step or message.
	Lookup(ctx context.Context, scope kv.Scope, sessionID, name string) (blob.Entry, error)
	// Read yields its bytes from an offset on; a limit below zero means to the
	// end.
	Read(ctx context.Context, scope kv.Scope, e blob.Entry, offset, limit int64) iter.Seq2[[]byte, error]
}

// source opens the content at a path. Stored content wins under the long names of the
// folders of outputs and history, and the log wins under the bare id of a step or message,
// as prompts give it: a file of that name must not pass for the agent's own history. Under
// any other name a file of the workspace wins over stored content.
func (f *files) source(ctx context.Context, c tools.Input, part byteRange) (readSource, error) {
	name := c.String("path", "")
	rel, _ := inside(c.Root, name) // what lies outside is refused as a file
	first := isID(name) || hasFolder(rel, "workspace/outputs/", "workspace/history/", blob.ResultsFolder)
	missing := blob.ErrNotFound
	if first {
		var s readSource
		if s, missing = f.stored(ctx, c, rel, part); !errors.Is(missing, blob.ErrNotFound) {
			return s, missing
		}
		if isID(name) && errors.Is(missing, blob.ErrCollected) {
			// The step is there, so a file of its name is not what it gave.
			return readSource{}, notThere(name, missing, missing)
		}
	}
	s, err := f.file(ctx, c, name, part)
	if failed, ok := errors.AsType[*tools.Error](err); !ok || failed.Code != tools.NotFound {
		return s, err
	}
	if strings.HasPrefix(name, taskFolder) {
		rel = name // an id may contain dots and slashes
	}
	if !first && namesStored(rel) {
		if s, missing = f.stored(ctx, c, rel, part); !errors.Is(missing, blob.ErrNotFound) {
			return s, missing
		}
	}
	return readSource{}, notThere(name, err, missing)
}

// taskFolder begins the reference of a task.
const taskFolder = "task/"

// isID reports whether a path is, letter by letter, the id of a step or message.
func isID(name string) bool {
	_, isStep := step.ParseID(name)
	_, isMessage := session.ParseMessageID(name)
	return isStep || isMessage
}

// namesStored reports whether a path has one of the forms that can name what is
// stored, so that a file which is missing costs no look into the store.
func namesStored(name string) bool {
	if hasFolder(name, "outputs/", "history/", blob.PersistentFolder, blob.ArchiveFolder, taskFolder) {
		return true
	}
	if _, ok := session.ParseMessageID(name); ok {
		return true
	}
	if _, ok := step.ParseID(strings.TrimSuffix(name, path.Ext(name))); ok {
		return true
	}
	return len(name) >= blob.MinRefDigits && strings.Trim(name, "0123456789abcdefABCDEF") == ""
}

func hasFolder(name string, folders ...string) bool {
	for _, folder := range folders {
		if strings.HasPrefix(name, folder) {
			return true
		}
	}
	return false
}

// stored opens what the store has under a name.
func (f *files) stored(ctx context.Context, c tools.Input, name string, part byteRange) (readSource, error) {
	if f.blobs == nil {
		return readSource{}, blob.ErrNotFound
	}
	entry, err := f.blobs.Lookup(ctx, c.Scope, c.SessionID, name)
	if err != nil {
		return readSource{}, storedFailure(name, err)
	}
	pieces := f.blobs.Read(ctx, c.Scope, entry, part.first, part.count)
	return readSource{
		body:   &storedReader{ReadCloser: blob.NewReader(pieces), name: name},
		size:   entry.Size,
		stored: &entry,
	}, nil
}

// notThere is the failure when neither the workspace nor the store has a name.
func notThere(name string, file, stored error) error {
	if collected, ok := errors.AsType[*blob.CollectedError](stored); ok {
		return wrapped(tools.NotFound, "File not found: "+name+": the stored result expired and was removed at "+
			collected.Time.Format(time.RFC3339)+"; to have it again, make the call again", stored)
	}
	if missing, ok := errors.AsType[*blob.MissingError](stored); ok {
		return wrapped(tools.NotFound, "File not found: "+name+": "+missing.Reason, stored)
	}
	return file
}

// storedFailure says for the model what went wrong with the stored data.
func storedFailure(name string, err error) error {
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return err // a file may have the name
	case errors.Is(err, blob.ErrAmbiguous):
		return wrapped(tools.Failed, ""+name+" fits several stored results; give more of it", err)
	case errors.Is(err, blob.ErrDamaged), errors.Is(err, session.ErrDamaged):
		return wrapped(tools.Failed, ""+name+": the stored result is damaged", err)
	}
	return failure(name, err)
}

// storedReader makes the errors of reading from the store ones for the model.
type storedReader struct {
	io.ReadCloser
	name string
}

func (b *storedReader) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		// It may have been collected while it was read.
		err = notThere(b.name, storedFailure(b.name, err), err)
	}
	return n, err
}
