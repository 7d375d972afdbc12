package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

const (
	// maxHeldBytes is about how many bytes of results wait for the end of their session,
	// which stores them; of more the first are stored before it.
	maxHeldBytes = 32 << 20
	// maxCommitBytes is about how many bytes of results are stored in one commit.
	maxCommitBytes = 4 << 20
	// maxResults bounds the results of one session.
	maxResults = 100_000
	// overlap is how much of a result is looked at again for secrets with what follows.
	overlap = 4 << 10
	// maxDepth bounds the messages within messages that are looked into.
	maxDepth = 6
)

// Imported counts the outcome of the sessions of an import.
type Imported struct {
	// Saved are new or continued, Unchanged were there already as they came, Skipped were there
	// as something else.
	Saved, Unchanged, Skipped int
	// Results are the offloaded results of all, Bytes what they have.
	Results int
	Bytes   int64
}

// LineError says which line of an import is at fault.
type LineError struct {
	// Line counts the lines from 1.
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("transfer: line %d: %v", e.Line, e.Err) }

// Unwrap returns the error itself.
func (e *LineError) Unwrap() error { return e.Err }

// Importer takes the lines of an Export into an agent. A session appears at its last line,
// whole or not at all.
// Results of a session that is cut off may be there, and are collected as garbage unless it
// comes again. An import that is made again finds what is there. It is not safe for
// concurrent use.
type Importer struct {
	mover *Mover
	scope kv.Scope
	ImportOptions
	line int

	id      string // of the session; empty between two
	begun   int    // the line it began with
	parts   []session.StoredPart
	size    int
	waiting []restoring
	held    int64 // bytes of the waiting ones
	results int
	bytes   int64
	paths   map[string]bool // that its steps lead to; set by its first result
	home    string          // of its last result

	entry  *blob.Entry // that bytes come for
	upload *blob.Upload
	sum    *summing // in place of the upload, in a dry run
	tail   string   // of the bytes before

	counts Imported
}

// restoring is a result that waits to be stored.
type restoring struct {
	stored blob.Stored
	entry  blob.Entry
	line   int
}

// ImportOptions say how sessions are imported.
type ImportOptions struct {
	// Skip leaves a session as it is that comes with another content, or with steps and tasks
	// that the agent has elsewhere. Default: that is a session.ErrExists.
	Skip bool
	// DryRun checks and counts, and stores nothing.
	DryRun bool
}

// Import begins an import into an agent.
func (m *Mover) Import(scope kv.Scope, o ImportOptions) *Importer {
	return &Importer{mover: m, scope: scope, ImportOptions: o}
}

// Take takes one more line. Errors come as a *LineError: ErrLine, session.ErrPart,
// session.ErrTooLong, session.ErrExists, session.ErrInvalid, blob.ErrExists, blob.ErrInvalid,
// *blob.QuotaError, ErrBusy.
func (i *Importer) Take(ctx context.Context, text []byte) error {
	i.line++
	l, err := parse(text)
	if err == nil {
		err = i.take(ctx, l)
	}
	if err == nil {
		return nil
	}
	i.Abort()
	if e, ok := errors.AsType[*LineError](err); ok {
		return e
	}
	return &LineError{i.line, err}
}

func (i *Importer) take(ctx context.Context, l jsonLine) error {
	switch {
	case l.Kind == kindSession && i.id == "":
		if l.Format != format {
			return fmt.Errorf("%w: its format is %d, this server reads %d", ErrLine, l.Format, format)
		}
		i.id, i.begun = l.Session, i.line
		if l.Session == "" {
			return fmt.Errorf("%w: session is missing", ErrLine)
		}
	case l.Kind == kindPart && i.id != "" && i.results == 0 && i.entry == nil:
		return i.part(l)
	case l.Kind == kindResult && i.id != "" && l.Result != nil:
		if err := i.finish(ctx); err != nil {
			return err
		}
		return i.begin(ctx, l.Result)
	case l.Kind == kindBytes && i.entry != nil && len(l.Bytes) > 0:
		return i.write(l.Bytes)
	case l.Kind == kindEnd && i.id != "" && l.Session == i.id && l.Lines == i.line-i.begun:
		return i.end(ctx)
	default:
		return fmt.Errorf("%w: a line %q can't stand here", ErrLine, l.Kind)
	}
	return nil
}

func (i *Importer) part(l jsonLine) error {
	if i.size+len(l.Stored) > session.MaxPartsBytes {
		return fmt.Errorf("%w: session %q has more than %d bytes", session.ErrTooLong, i.id, session.MaxPartsBytes)
	}
	if err := i.mover.hold(len(l.Stored)); err != nil {
		return err
	}
	i.size += len(l.Stored)
	if i.secret(l.Stored, maxDepth) {
		return ErrSecret
	}
	i.parts = append(i.parts, session.StoredPart{Kind: l.Part, Number: l.Number, Value: l.Stored})
	return nil
}

// secret looks into the fields of a stored message, and of those in it.
func (i *Importer) secret(message []byte, depth int) bool {
	for f, err := range wire.Fields(message) {
		if err != nil {
			return false
		}
		if len(f.Bytes) > 0 && (i.mover.secret(string(f.Bytes)) || depth > 1 && i.secret(f.Bytes, depth-1)) {
			return true
		}
	}
	return false
}

func (i *Importer) begin(ctx context.Context, r *result) error {
	if i.results++; i.results > maxResults {
		return fmt.Errorf("%w: session %q has more than %d results", ErrLine, i.id, maxResults)
	}
	e, err := r.entry()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(slices.Concat(e.Paths(), e.Archive.Tags, []string{e.TaskID, e.Kind, e.MediaType, e.Category, e.Archive.Category}), i.mover.secret) {
		return ErrSecret
	}
	if i.paths == nil {
		i.paths = make(map[string]bool)
		for _, path := range session.PathsIn(i.parts) {
			i.paths[path] = true
		}
	}
	if e.SessionID != i.id && !slices.ContainsFunc(e.Paths(), func(path string) bool { return i.paths[path] }) {
		return fmt.Errorf("%w: nothing of session %q leads to %s", ErrLine, i.id, e.Home())
	}
	if e.Home() <= i.home {
		return fmt.Errorf("%w: %s is twice there or out of order", ErrLine, e.Home())
	}
	i.home = e.Home()
	i.entry, i.tail = &e, ""
	if i.DryRun {
		i.sum = &summing{Hash: sha256.New()}
	} else {
		i.upload = i.mover.blobs.Create(ctx, i.scope)
	}
	return nil
}

// summing takes the bytes of a result and keeps their hash and number.
type summing struct {
	hash.Hash
	size int64
}

func (s *summing) Write(piece []byte) (int, error) {
	s.size += int64(len(piece))
	return s.Hash.Write(piece)
}

func (i *Importer) write(piece []byte) error {
	text := i.tail + string(piece)
	if i.mover.secret(text) {
		return ErrSecret
	}
	i.tail = text[max(0, len(text)-overlap):]
	if i.DryRun {
		_, err := i.sum.Write(piece)
		return err
	}
	_, err := i.upload.Write(piece)
	return err
}

// finish ends the result that bytes came for.
func (i *Importer) finish(ctx context.Context) error {
	if i.entry == nil {
		return nil
	}
	otherwise := fmt.Errorf("%w: the bytes of %s have another hash", ErrLine, i.entry.Home())
	if i.DryRun {
		if hex.EncodeToString(i.sum.Sum(nil)) != i.entry.Ref || i.sum.size != i.entry.Size {
			return otherwise
		}
		i.bytes += i.sum.size
		i.entry, i.sum = nil, nil
		return nil
	}
	stored, err := i.upload.Finish(ctx)
	if err != nil {
		return err
	}
	if stored.Ref() != i.entry.Ref || stored.Size != i.entry.Size {
		return otherwise
	}
	i.waiting = append(i.waiting, restoring{stored, *i.entry, i.line})
	i.held, i.bytes = i.held+stored.Held(), i.bytes+stored.Size
	i.entry, i.upload = nil, nil
	if i.held > maxHeldBytes {
		return i.store(ctx)
	}
	return nil
}

// store stores the results that wait.
func (i *Importer) store(ctx context.Context) error {
	for all := i.waiting; len(all) > 0; {
		n, size := 0, int64(0)
		for n < len(all) && (n == 0 || size+all[n].stored.Held() <= maxCommitBytes) {
			size += all[n].stored.Held()
			n++
		}
		part := all[:n]
		all = all[n:]
		err := i.mover.writer.Do(ctx, kv.Request{Refs: []kv.Ref{i.mover.blobs.Ref(i.scope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
			for _, r := range part {
				if err := i.mover.blobs.Restore(ctx, tx, i.scope, r.stored, r.entry); err != nil {
					return &LineError{r.line, err}
				}
			}
			return nil
		}})
		if err != nil {
			return err
		}
	}
	i.waiting, i.held = nil, 0
	return nil
}

// end stores the session: its results, which nothing leads to before it is there, and then
// all of its parts at once.
func (i *Importer) end(ctx context.Context) error {
	if err := i.finish(ctx); err != nil {
		return err
	}
	there, err := i.mover.log.CheckImport(ctx, i.scope, i.id, i.parts)
	if err == nil && !i.DryRun {
		if err = i.store(ctx); err == nil {
			there, err = i.mover.log.Import(ctx, i.scope, i.id, i.parts)
		}
	}
	switch {
	case err != nil && i.Skip && errors.Is(err, session.ErrExists):
		i.counts.Skipped++
	case err != nil:
		return err
	case there:
		i.counts.Unchanged++
	default:
		i.counts.Saved++
	}
	i.counts.Results, i.counts.Bytes = i.counts.Results+i.results, i.counts.Bytes+i.bytes
	i.mover.release(i.size)
	i.id, i.parts, i.size, i.results, i.bytes, i.paths, i.home = "", nil, 0, 0, 0, nil, ""
	i.waiting, i.held = nil, 0 // of a session that is skipped
	return nil
}

// End returns the outcome of all; a session whose last line has not come is an ErrLine.
func (i *Importer) End() (Imported, error) {
	defer i.Abort()
	if i.id != "" {
		return i.counts, &LineError{i.line, fmt.Errorf("%w: the end of session %q is missing behind it", ErrLine, i.id)}
	}
	return i.counts, nil
}

// Abort gives up what has not been stored.
func (i *Importer) Abort() {
	if i.upload != nil {
		i.upload.Abort()
	}
	i.mover.release(i.size)
	i.waiting, i.parts, i.size, i.entry, i.upload = nil, nil, 0, nil, nil
}
