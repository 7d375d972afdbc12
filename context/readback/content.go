package readback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// content is a text read from a log, with its properties.
type content struct {
	data            []byte
	kind, mediaType string
	stepID          string
	sessionID       string // empty of a message
	time            time.Time
}

// entry describes content as a blob is described, without a ref.
func (c content) entry(scope kv.Scope, sessionID string, t target) blob.Entry {
	return blob.Entry{
		Path: t.path(), Size: int64(len(c.data)), Kind: c.kind, MediaType: c.mediaType, Owner: scope.Owner,
		Time: c.time, SessionID: cmp.Or(c.sessionID, sessionID, session.DefaultSession), StepID: c.stepID,
	}
}

// content reads something of the log.
func (r *Reader) content(ctx context.Context, scope kv.Scope, sessionID string, t target) (content, error) {
	switch {
	case t.form == formTask:
		return r.task(ctx, scope, t.task)
	case t.isMessage():
		return r.message(ctx, scope, sessionID, t)
	}
	e, err := r.step(ctx, scope, t.number)
	if err != nil {
		return content{}, err
	}
	c := content{stepID: e.Step.ID(), sessionID: e.Step.SessionID, time: e.Time, kind: blob.KindText}
	switch t.form {
	case formStepJSON:
		c.data, err = r.document(ctx, scope, *e.Step)
		c.kind = blob.KindJSON
	case formStepCompact:
		c.data = []byte(r.lines.Compact(*e.Step).Summary)
	default:
		err = r.form(ctx, scope, e.Step, t, &c)
	}
	return c, err
}

// document is a step as a JSON document, its arguments included where they were too
// long for the log, unless they were collected.
func (r *Reader) document(ctx context.Context, scope kv.Scope, s step.Step) ([]byte, error) {
	if s.ArgsPath != "" {
		e, err := r.blobs.Lookup(ctx, scope, s.ArgsPath)
		if err == nil {
			s.Args, err = r.all(ctx, scope, e)
		}
		if err != nil && !errors.Is(err, blob.ErrNotFound) {
			return nil, err
		}
	}
	return step.Document(s), nil
}

// step finds a step of the agent, of any session.
func (r *Reader) step(ctx context.Context, scope kv.Scope, number uint64) (session.Entry, error) {
	e, err := r.log.Step(ctx, scope, number)
	if errors.Is(err, session.ErrStepNotFound) {
		err = &blob.MissingError{Name: step.ID(number), Reason: "the agent has no such step"}
	}
	return e, err
}

// message reads a message of the session.
func (r *Reader) message(ctx context.Context, scope kv.Scope, sessionID string, t target) (content, error) {
	e, found, err := r.log.Entry(ctx, scope, sessionID, t.number)
	switch {
	case err != nil:
		return content{}, err
	case found && e.Message == nil:
		return content{}, &blob.MissingError{
			Name: session.MessageID(t.number), Reason: fmt.Sprintf("entry %d of the session is %s", t.number, e.Step.ID()),
		}
	case e.Message == nil:
		return content{}, &blob.MissingError{Name: session.MessageID(t.number), Reason: "the session has no such message"}
	case t.form == formMessageJSON:
		return content{time: e.Time, data: session.Document(e), kind: blob.KindJSON}, nil
	}
	return content{time: e.Time, data: []byte(e.Message.Text()), kind: blob.KindText}, nil
}

// task reads a task of the agent, of any session.
func (r *Reader) task(ctx context.Context, scope kv.Scope, id string) (content, error) {
	t, err := r.log.Task(ctx, scope, id)
	if _, bad := errors.AsType[*invalid.Error](err); bad || errors.Is(err, session.ErrTaskNotFound) {
		err = &blob.MissingError{Name: id, Reason: "the agent has no such task"}
	}
	if err != nil {
		return content{}, err
	}
	return content{sessionID: t.SessionID, time: t.CreateTime, data: session.TaskDocument(t), kind: blob.KindJSON}, nil
}
