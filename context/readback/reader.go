package readback

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Reader gives back what prompts leave out: blobs from the blob store, steps,
// messages and tasks from the log. All methods are safe for concurrent use.
type Reader struct {
	blobs *blob.Store
	log   *session.Log
	lines step.Templates
	uses  bool
	// granted is that of Options; nil for none.
	granted func(ctx context.Context, scope kv.Scope, name string) (Granted, error)
}

// Granted is a blob of another agent's that an agent may read.
type Granted struct {
	// Owner is whose it is, Ref its hash; empty where there is none.
	Owner kv.Scope
	Ref   string
	// Path is what the reader calls it.
	Path string
}

// Options adjusts a Reader. Nil and zero fields mean the defaults.
type Options struct {
	// Lines make the one-line files of steps. Default none: a step's own line.
	Lines step.Templates
	// Granted finds the blobs of others that an agent may read, by their refs and by the
	// paths of Granted. Default: there are none.
	Granted func(ctx context.Context, scope kv.Scope, name string) (Granted, error)
	// Uses keeps a blob that was looked up from being collected before the tool call
	// that reads it is recorded. Default: it may be collected.
	Uses bool
}

// New returns a reader of a blob store and a log. Both stay the caller's.
func New(blobs *blob.Store, log *session.Log, opts *Options) *Reader {
	r := &Reader{blobs: blobs, log: log}
	if opts != nil {
		r.lines, r.uses, r.granted = opts.Lines, opts.Uses, opts.Granted
	}
	return r
}

// Lookup finds what a name leads to: what blob.Store.Lookup finds, and
//
//   - step_012: the result of a step as it was given, in its blob or, when it was
//     not offloaded, in the log; that of a step which read something back is what
//     it read, that of one which wrote what it wrote; step_012.txt is the result
//     for reading
//   - message_017: a message of the session
//   - the files of the folder workspace/history (short: history): step_012.json,
//     step_012.compact, message_017.json; step_012.original, .txt, .stdout, .stderr
//     and .media are the result in its forms, message_017.txt the message
//   - task/t1: a task
//
// Nothing is blob.ErrNotFound, with a text that says what to do.
func (r *Reader) Lookup(ctx context.Context, scope kv.Scope, sessionID, name string) (blob.Entry, error) {
	t, ok := parseTarget(name)
	if !ok {
		return r.stored(ctx, scope, name)
	}
	return r.found(ctx, scope, sessionID, t)
}

// LookupView is Lookup for another form of the result of the step that a name
// belongs to. index chooses one of several media.
func (r *Reader) LookupView(ctx context.Context, scope kv.Scope, sessionID, name string, view step.ResultView, index int) (blob.Entry, error) {
	if view == step.ViewDefault {
		return r.Lookup(ctx, scope, sessionID, name)
	}
	t, ok := parseTarget(name)
	if !ok || t.isMessage() || t.form == formTask {
		e, err := r.Lookup(ctx, scope, sessionID, name)
		if err != nil {
			return blob.Entry{}, err
		}
		number, ofStep := step.ParseID(e.StepID)
		switch {
		case !ofStep && view == step.ViewOriginal:
			return e, nil
		case !ofStep:
			return blob.Entry{}, &blob.MissingError{Name: name, Reason: "it is no result of a step, so it has one form"}
		}
		t.number = number
	}
	t.index = index
	t.form = map[step.ResultView]form{
		step.ViewText: formText, step.ViewStdout: formStdout, step.ViewStderr: formStderr, step.ViewMedia: formMedia,
	}[view]
	if t.form == formResult {
		return r.given(ctx, scope, t)
	}
	return r.found(ctx, scope, sessionID, t)
}

// found finds something of the log.
func (r *Reader) found(ctx context.Context, scope kv.Scope, sessionID string, t target) (blob.Entry, error) {
	switch t.form {
	case formResult:
		return r.result(ctx, scope, t)
	case formText, formStdout, formStderr, formMedia:
		return r.view(ctx, scope, t)
	}
	return r.made(ctx, scope, sessionID, t)
}

// stored finds a blob: the agent's own, else one that was granted to it.
func (r *Reader) stored(ctx context.Context, scope kv.Scope, name string) (e blob.Entry, err error) {
	if r.uses {
		e, err = r.blobs.Use(ctx, scope, name)
	} else {
		e, err = r.blobs.Lookup(ctx, scope, name)
	}
	if r.granted == nil || !errors.Is(err, blob.ErrNotFound) {
		return e, err
	}
	g, grantErr := r.granted(ctx, scope, name)
	if grantErr != nil || g.Ref == "" {
		return e, errors.Join(err, grantErr)
	}
	theirs, err := r.blobs.Lookup(ctx, g.Owner, g.Ref)
	if err != nil {
		return blob.Entry{}, err
	}
	// Nothing but the bytes and what they are was granted.
	return blob.Entry{
		Path: g.Path, Ref: theirs.Ref, Owner: theirs.Owner, Kind: theirs.Kind, MediaType: theirs.MediaType, Size: theirs.Size,
		Time: theirs.Time, Tier: theirs.Tier,
	}, nil
}

// ownerOf is whose blob an entry is that a scope's agent may read.
func ownerOf(scope kv.Scope, e blob.Entry) kv.Scope {
	if e.Ref == "" || e.Owner == "" || e.Owner == scope.Owner {
		return scope
	}
	return kv.AgentScope(scope.Tenant, e.Owner)
}

// Read yields the bytes of what Lookup found, as blob.Store.Read does.
func (r *Reader) Read(ctx context.Context, scope kv.Scope, e blob.Entry, offset, limit int64) iter.Seq2[[]byte, error] {
	t, ok := parseTarget(e.Path)
	if e.Ref != "" || !ok {
		return r.blobs.Read(ctx, ownerOf(scope, e), e, offset, limit)
	}
	return func(yield func([]byte, error) bool) {
		found, err := r.content(ctx, scope, e.SessionID, t)
		if err == nil && offset < 0 {
			err = fmt.Errorf("%w: negative offset", blob.ErrInvalid)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		data := found.data
		data = data[min(offset, int64(len(data))):]
		if limit >= 0 {
			data = data[:min(limit, int64(len(data)))]
		}
		for len(data) > 0 {
			n := min(len(data), blob.ChunkBytes)
			if !yield(data[:n:n], nil) {
				return
			}
			data = data[n:]
		}
	}
}

// Search yields the lines of what Lookup found that match, as blob.Store.Search
// does.
func (r *Reader) Search(ctx context.Context, scope kv.Scope, e blob.Entry, p *blob.LinePattern, from blob.From) iter.Seq2[blob.Match, error] {
	if _, ok := parseTarget(e.Path); e.Ref != "" || !ok {
		return r.blobs.Search(ctx, ownerOf(scope, e), e, p, from)
	}
	return r.blobs.SearchPieces(ctx, scope, r.Read(ctx, scope, e, from.Offset, -1), p, from)
}
