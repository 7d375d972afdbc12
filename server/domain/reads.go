package domain

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/server"
)

// reads gives back what prompts leave out, by the names that prompts show:
// blobs from the blob store, steps and messages from the log. What comes from
// the log is an entry without a ref, whose path says what it is. A log only
// grows, so it reads the same whenever it is read.
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
//   - step_012: the result of a step, in its blob or, when it was not offloaded,
//     in the log; that of a step which read something back is what it read
//   - message_017: a message of the session
//   - the files of the folder workspace/history (short: history): step_012.json,
//     step_012.compact, message_017.json, and step_012.txt and message_017.txt
//     for the two above
//
// Nothing is blob.ErrNotFound, with a text that says what to do.
func (r reads) Lookup(ctx context.Context, scope kv.Scope, sessionID, name string) (blob.Entry, error) {
	o, ok := parseOriginal(name)
	if !ok {
		return r.stored(ctx, scope, name)
	}
	return r.original(ctx, scope, sessionID, o)
}

// original finds a step or a message.
func (r reads) original(ctx context.Context, scope kv.Scope, sessionID string, o original) (blob.Entry, error) {
	if o.form == formResult {
		return r.result(ctx, scope, o)
	}
	e, err := r.logged(ctx, scope, sessionID, o)
	return o.entry(scope, sessionID, e, r.lines), err
}

// result finds what a step gave. Its step says where that is: in a blob, in what
// was read back, or in the log itself.
func (r reads) result(ctx context.Context, scope kv.Scope, o original) (blob.Entry, error) {
	e, err := r.step(ctx, scope, o.number)
	if err != nil {
		return blob.Entry{}, err
	}
	s := e.Step
	if s.OutcomePath == "" {
		// What the call wrote, if that was kept.
		kept, err := r.stored(ctx, scope, s.ID())
		if errors.Is(err, blob.ErrNotFound) {
			return o.entry(scope, "", e, r.lines), nil
		}
		return kept, err
	}
	elsewhere, isOriginal := parseOriginal(s.OutcomePath)
	switch {
	case !isOriginal:
		return r.stored(ctx, scope, s.OutcomePath)
	case elsewhere.isMessage() || elsewhere.number < o.number: // so that this ends
		return r.original(ctx, scope, s.SessionID, elsewhere)
	}
	return blob.Entry{}, fmt.Errorf("%w: %s says that its result is in %s", session.ErrDamaged, s.ID(), s.OutcomePath)
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
		text := o.text(found, r.lines)
		text = text[min(offset, int64(len(text))):]
		if limit >= 0 {
			text = text[:min(limit, int64(len(text)))]
		}
		for len(text) > 0 {
			n := min(len(text), blob.ChunkBytes)
			if !yield(text[:n:n], nil) {
				return
			}
			text = text[n:]
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

// logged reads what stands in the log.
func (r reads) logged(ctx context.Context, scope kv.Scope, sessionID string, o original) (session.Entry, error) {
	if o.isMessage() {
		return r.message(ctx, scope, sessionID, o.number)
	}
	e, err := r.step(ctx, scope, o.number)
	if err == nil && o.form == formStepJSON {
		err = r.addArgs(ctx, scope, e.Step)
	}
	if err != nil {
		return session.Entry{}, err
	}
	return e, nil
}

// addArgs puts arguments that were too long for the log back into a step, unless
// they were collected.
func (r reads) addArgs(ctx context.Context, scope kv.Scope, s *step.Step) error {
	if s.ArgsPath == "" {
		return nil
	}
	e, err := r.blobs.Lookup(ctx, scope, s.ArgsPath)
	if errors.Is(err, blob.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	args := make([]byte, 0, e.Size)
	for piece, err := range r.blobs.Read(ctx, scope, e, 0, -1) {
		if err != nil {
			return err
		}
		args = append(args, piece...)
	}
	s.Args = args
	return nil
}
