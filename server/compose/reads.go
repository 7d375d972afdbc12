package compose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/server"
)

// reads gives back what prompts leave out, by the names that prompts show:
// blobs from the blob store, steps, messages and tasks from the log. What comes
// from the log, or is made of a blob, is an entry without a ref, whose path says
// what it is. A log only grows, so it reads the same whenever it is read; a task
// may get a result.
type reads struct {
	blobs *blob.Store
	log   *session.Log
	// lines make the one-line files of steps.
	lines step.Templates
	// use keeps a blob that was looked up from being collected before the tool
	// call which reads it is recorded.
	use bool
}

var (
	_ native.Blobs = reads{}
	_ server.Reads = reads{}
)

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
func (r reads) Lookup(ctx context.Context, scope kv.Scope, sessionID, name string) (blob.Entry, error) {
	o, ok := parseOriginal(name)
	if !ok {
		return r.stored(ctx, scope, name)
	}
	return r.original(ctx, scope, sessionID, o)
}

// LookupView is Lookup for another form of the result of the step that a name
// belongs to. index chooses one of several media.
func (r reads) LookupView(ctx context.Context, scope kv.Scope, sessionID, name string, view step.View, index int) (blob.Entry, error) {
	if view == step.ViewDefault {
		return r.Lookup(ctx, scope, sessionID, name)
	}
	o, ok := parseOriginal(name)
	if !ok || o.isMessage() || o.form == formTask {
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
		o.number = number
	}
	o.index = index
	o.form = map[step.View]form{
		step.ViewText: formText, step.ViewStdout: formStdout, step.ViewStderr: formStderr, step.ViewMedia: formMedia,
	}[view]
	if o.form == formResult {
		return r.given(ctx, scope, o)
	}
	return r.original(ctx, scope, sessionID, o)
}

// original finds something of the log.
func (r reads) original(ctx context.Context, scope kv.Scope, sessionID string, o original) (blob.Entry, error) {
	switch o.form {
	case formResult:
		return r.result(ctx, scope, o)
	case formText, formStdout, formStderr, formMedia:
		return r.view(ctx, scope, o)
	}
	found, err := r.logged(ctx, scope, sessionID, o)
	if err != nil {
		return blob.Entry{}, err
	}
	return found.entry(scope, cmp.Or(sessionID, session.DefaultSession), o), nil
}

// stored finds a blob.
func (r reads) stored(ctx context.Context, scope kv.Scope, name string) (blob.Entry, error) {
	if r.use {
		return r.blobs.Use(ctx, scope, name)
	}
	return r.blobs.Lookup(ctx, scope, name)
}

// step finds a step of the agent, of any session.
func (r reads) step(ctx context.Context, scope kv.Scope, number uint64) (session.Entry, error) {
	e, err := r.log.Step(ctx, scope, number)
	if errors.Is(err, session.ErrStepNotFound) {
		err = &blob.MissingError{Name: step.ID(number), Reason: "the agent has no such step"}
	}
	return e, err
}

// message finds a message of the session.
func (r reads) message(ctx context.Context, scope kv.Scope, sessionID string, position uint64) (session.Entry, error) {
	e, found, err := r.log.Entry(ctx, scope, sessionID, position)
	if err != nil || e.Message != nil {
		return e, err
	}
	missing := &blob.MissingError{Name: session.MessageID(position), Reason: "the session has no such message"}
	if found {
		missing.Reason = fmt.Sprintf("entry %d of the session is %s", position, e.Step.ID())
	}
	return session.Entry{}, missing
}

// task finds a task of the agent, of any session.
func (r reads) task(ctx context.Context, scope kv.Scope, id string) (logged, error) {
	t, err := r.log.Task(ctx, scope, id)
	if _, bad := errors.AsType[*invalid.Error](err); bad || errors.Is(err, session.ErrTaskNotFound) {
		err = &blob.MissingError{Name: id, Reason: "the agent has no such task"}
	}
	if err != nil {
		return logged{}, err
	}
	return logged{sessionID: t.SessionID, time: t.CreateTime, data: session.TaskDocument(t), kind: blob.KindJSON}, nil
}

// Read yields the bytes of what Lookup found, as blob.Store.Read does.
func (r reads) Read(ctx context.Context, scope kv.Scope, e blob.Entry, offset, limit int64) iter.Seq2[[]byte, error] {
	o, ok := parseOriginal(e.Path)
	if e.Ref != "" || !ok {
		return r.blobs.Read(ctx, scope, e, offset, limit)
	}
	return func(yield func([]byte, error) bool) {
		found, err := r.logged(ctx, scope, e.SessionID, o)
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
func (r reads) Search(ctx context.Context, scope kv.Scope, e blob.Entry, p *blob.Pattern, from blob.From) iter.Seq2[blob.Match, error] {
	if _, ok := parseOriginal(e.Path); e.Ref != "" || !ok {
		return r.blobs.Search(ctx, scope, e, p, from)
	}
	return r.blobs.SearchPieces(ctx, scope, r.Read(ctx, scope, e, from.Offset, -1), p, from)
}
