package compose

import (
	"context"
	"errors"
	"time"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// logged is what is read of a log, and what is known of it.
type logged struct {
	data            []byte
	kind, mediaType string
	stepID          string
	sessionID       string
	time            time.Time
}

// entry describes it as a blob is described, without a ref.
func (l logged) entry(scope kv.Scope, sessionID string, o original) blob.Entry {
	if l.sessionID != "" {
		sessionID = l.sessionID
	}
	return blob.Entry{
		Path: o.path(), Size: int64(len(l.data)), Kind: l.kind, MediaType: l.mediaType, Owner: scope.Owner,
		Time: l.time, SessionID: sessionID, StepID: l.stepID,
	}
}

// logged reads something of the log.
func (r reads) logged(ctx context.Context, scope kv.Scope, sessionID string, o original) (logged, error) {
	if o.form == formTask {
		return r.task(ctx, scope, o.task)
	}
	if o.isMessage() {
		e, err := r.message(ctx, scope, sessionID, o.number)
		if err != nil {
			return logged{}, err
		}
		l := logged{time: e.Time, data: []byte(e.Message.Text()), kind: blob.KindText}
		if o.form == formMessageJSON {
			l.data, l.kind = session.Document(e), blob.KindJSON
		}
		return l, nil
	}
	e, err := r.step(ctx, scope, o.number)
	if err != nil {
		return logged{}, err
	}
	l := logged{stepID: e.Step.ID(), sessionID: e.Step.SessionID, time: e.Time, kind: blob.KindText}
	switch o.form {
	case formStepJSON:
		err = r.addArgs(ctx, scope, e.Step)
		l.data, l.kind = step.Document(*e.Step), blob.KindJSON
	case formStepCompact:
		l.data = []byte(r.lines.Compact(*e.Step).Summary)
	default:
		err = r.form(ctx, scope, e.Step, o, &l)
	}
	return l, err
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
	s.Args, err = r.all(ctx, scope, e)
	return err
}

// all reads all of a blob.
func (r reads) all(ctx context.Context, scope kv.Scope, e blob.Entry) ([]byte, error) {
	data := make([]byte, 0, e.Size)
	for piece, err := range r.blobs.Read(ctx, scope, e, 0, -1) {
		if err != nil {
			return nil, err
		}
		data = append(data, piece...)
	}
	return data, nil
}
