package readback

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/media"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// maxViewBytes bounds a result whose other forms are made: all of it is in memory
	// for that. A longer one is read as it is.
	maxViewBytes = 8 << 20
	// maxViewParts bounds the values of JSON that is decoded for that: each takes many
	// times its length.
	maxViewParts = 1 << 17
)

// result finds what the id of a step leads to: the result as it was given, or what
// the call wrote, if that was kept and the result is short.
func (r *Reader) result(ctx context.Context, scope kv.Scope, t target) (blob.Entry, error) {
	e, err := r.step(ctx, scope, t.number)
	if err != nil {
		return blob.Entry{}, err
	}
	if s := e.Step; s.OutcomePath == "" && s.Given.Path == "" {
		kept, err := r.stored(ctx, scope, s.ID())
		if !errors.Is(err, blob.ErrNotFound) {
			return kept, err
		}
	}
	return r.givenOf(ctx, scope, e, t)
}

// given finds the result of a step as it was given.
func (r *Reader) given(ctx context.Context, scope kv.Scope, t target) (blob.Entry, error) {
	e, err := r.step(ctx, scope, t.number)
	if err != nil {
		return blob.Entry{}, err
	}
	return r.givenOf(ctx, scope, e, t)
}

// givenOf says where the result of a step is: in a blob, in what was read back, or
// in the log itself.
func (r *Reader) givenOf(ctx context.Context, scope kv.Scope, e session.Entry, t target) (blob.Entry, error) {
	s := e.Step
	switch s.Given.Source {
	case step.SourceBlob:
		return r.stored(ctx, scope, s.Given.Path)
	case step.SourceInline, step.SourceStep, step.SourceFrame:
		return r.made(ctx, scope, s.SessionID, target{number: t.number, form: formResult})
	}
	if s.OutcomePath == "" {
		return r.made(ctx, scope, s.SessionID, target{number: t.number, form: formResult})
	}
	elsewhere, isTarget := parseTarget(s.OutcomePath)
	switch {
	case !isTarget:
		return r.stored(ctx, scope, s.OutcomePath)
	case elsewhere.form == formTask || elsewhere.isMessage() || elsewhere.number < t.number: // so that this ends
		return r.found(ctx, scope, s.SessionID, elsewhere)
	}
	return blob.Entry{}, fmt.Errorf("%w: %s says that its result is in %s", session.ErrDamaged, s.ID(), s.OutcomePath)
}

// view finds a form of a step's result other than the original. Where the result
// is the form already, that is the result.
func (r *Reader) view(ctx context.Context, scope kv.Scope, t target) (blob.Entry, error) {
	e, err := r.step(ctx, scope, t.number)
	if err != nil {
		return blob.Entry{}, err
	}
	if g := e.Step.Given; t.form == formMedia && t.index == 0 && g.Form == step.FormBytes && g.MediaType != "" {
		return r.givenOf(ctx, scope, e, t)
	}
	if t.form != formText {
		return r.made(ctx, scope, e.Step.SessionID, t)
	}
	given, err := r.result(ctx, scope, t)
	isText := given.Kind == blob.KindText || given.Kind == blob.KindLog
	if err != nil || given.Ref != "" && isText || given.Size > maxViewBytes || e.Step.Given.Form == step.FormUnknown {
		return given, err
	}
	return r.made(ctx, scope, e.Step.SessionID, t)
}

// made describes forms that are not stored but made on reading.
func (r *Reader) made(ctx context.Context, scope kv.Scope, sessionID string, t target) (blob.Entry, error) {
	c, err := r.content(ctx, scope, sessionID, t)
	if err != nil {
		return blob.Entry{}, err
	}
	return c.entry(scope, sessionID, t), nil
}

// form makes a form of a step's result.
func (r *Reader) form(ctx context.Context, scope kv.Scope, s *step.Step, t target, to *content) error {
	given, err := r.bytes(ctx, scope, s)
	if err != nil {
		return err
	}
	if t.form != formResult && given.Form == step.FormJSON && bytes.Count(given.Data, []byte{','}) > maxViewParts {
		return &blob.MissingError{Name: t.path(), Reason: fmt.Sprintf("the JSON has more than %d parts, so no other form of it is made", maxViewParts)}
	}
	ok := true
	switch t.form {
	case formText:
		to.data = given.Text()
	case formStdout, formStderr:
		to.data, ok = printed(s, given, t.form == formStderr)
	case formMedia:
		if found := given.Media(); t.index < len(found) {
			to.data, to.mediaType = found[t.index].Data, found[t.index].Type
			to.kind = media.Kind(to.mediaType)
		} else {
			ok = false
		}
	default:
		to.data = given.Data
		to.kind, to.mediaType = blob.KindOf(given.Data)
		to.mediaType = cmp.Or(given.MediaType, to.mediaType)
	}
	if !ok {
		return &blob.MissingError{Name: t.path(), Reason: "the result of " + s.ID() + " has no such form"}
	}
	return nil
}

// printed is what a program printed, of its output or its errors. Steps of earlier
// versions say how long each is.
func printed(s *step.Step, given step.Original, stderr bool) ([]byte, bool) {
	out, known := s.Figure("stdout_bytes")
	said, both := s.Figure("stderr_bytes")
	if given.Form == step.FormJSON || !known || !both || out+said > int64(len(given.Data)) {
		return given.Printed(stderr)
	}
	if stderr {
		return given.Data[out : out+said], true
	}
	return given.Data[:out], true
}

// bytes reads all of a step's result as it was given. That of a step without one is
// why it failed.
func (r *Reader) bytes(ctx context.Context, scope kv.Scope, s *step.Step) (step.Original, error) {
	g := s.Given
	given := step.Original{Form: g.Form, MediaType: g.MediaType, Name: cmp.Or(s.OutcomePath, s.ID())}
	switch g.Source {
	case step.SourceInline:
		given.Data = []byte(s.Inline)
		return given, nil
	case step.SourceStep:
		given.Data = g.Data
		return given, nil
	}
	p := s.OutcomePath
	if g.Source == step.SourceBlob {
		p = g.Path
	}
	if p == "" {
		given.Form, given.Data = step.FormText, []byte(s.ResultText())
		return given, nil
	}
	e, err := r.Lookup(ctx, scope, s.SessionID, p)
	if err != nil {
		return step.Original{}, err
	}
	if e.Size > maxViewBytes {
		return step.Original{}, &blob.MissingError{Name: p, Reason: fmt.Sprintf("it has %d bytes, and other forms are made of at most %d", e.Size, maxViewBytes)}
	}
	if given.Data, err = r.all(ctx, scope, e); err != nil {
		return step.Original{}, err
	}
	if g.Source == step.SourceFrame {
		given.Data, err = step.Unframe(g.Data, given.Data)
	}
	if given.Form == step.FormUnknown || given.Form == step.FormNone {
		given.Form = step.FormText
	}
	return given, err
}

// all reads all of what Lookup found.
func (r *Reader) all(ctx context.Context, scope kv.Scope, e blob.Entry) ([]byte, error) {
	data := make([]byte, 0, e.Size)
	for piece, err := range r.Read(ctx, scope, e, 0, -1) {
		if err != nil {
			return nil, err
		}
		data = append(data, piece...)
	}
	return data, nil
}
