package tiers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// Limits of a promotion.
const (
	// maxAttempts bounds how often a move is tried again because the session changed
	// meanwhile.
	maxAttempts = 16
	// lookAhead is how many undecided tasks are read at once. There is one, unless
	// earlier promotions failed.
	lookAhead = 64
)

// errMoved: the tasks or records that a move was made from have changed.
var errMoved = errors.New("tiers: the session changed meanwhile")

// Promote moves up what is due in a session. It may be called at any time. An error says
// what could not be moved and stays where it was.
func (t *Tiers) Promote(ctx context.Context, scope kv.Scope, sessionID string) error {
	if sessionID == "" {
		sessionID = session.DefaultSession
	}
	p := sessionKey{scope, sessionID}
	leave, err := t.enter(ctx, p)
	if err != nil {
		return fmt.Errorf("tiers: promote: %w", err)
	}
	defer leave()
	var failed []error // one sort of move that fails does not stop the others
	for _, s := range []struct {
		name string
		step func(context.Context, sessionKey, session.Tally) (again bool, err error)
	}{
		{"to L2", t.raise},
		{"a result", t.fill},
		{"to L3", t.summarize},
		{"to L4", t.archive},
	} {
		if err := t.repeat(ctx, p, s.step); err != nil {
			failed = append(failed, fmt.Errorf("tiers: promote %s: %w", s.name, err))
		}
	}
	return errors.Join(failed...)
}

// repeat makes the moves of one sort until none is due.
func (t *Tiers) repeat(ctx context.Context, p sessionKey, step func(context.Context, sessionKey, session.Tally) (bool, error)) error {
	for failed := 0; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		tally, err := t.log.Tally(ctx, p.scope, p.session)
		if err != nil {
			return err
		}
		again, err := step(ctx, p, tally)
		// Reports whether a move is to be tried again because the session or its memory
		// has changed.
		if (errors.Is(err, errMoved) || errors.Is(err, memory.ErrVersionConflict) || errors.Is(err, memory.ErrNotFound)) && failed < maxAttempts {
			failed++
			continue
		}
		if err != nil || !again {
			return err
		}
	}
}

// hopeless reports whether a task can never be moved: its record is invalid or too large,
// or its id or key is taken.
func hopeless(err error) bool {
	return errors.Is(err, memory.ErrInvalid) || errors.Is(err, memory.ErrExists) || errors.Is(err, kv.ErrLimit)
}

// raise gives the next important task its record in L2.
func (t *Tiers) raise(ctx context.Context, p sessionKey, tally session.Tally) (again bool, err error) {
	if tally.Through >= tally.Last {
		return false, nil
	}
	tasks, err := t.log.TasksAfter(ctx, p.scope, p.session, tally.Through, lookAhead)
	if err != nil || len(tasks) == 0 {
		return false, err
	}
	next := slices.IndexFunc(tasks, func(task session.Task) bool { return task.Importance > session.ImportantTask })
	if next < 0 {
		return true, t.pass(ctx, p, tally.Through, tasks[len(tasks)-1].Number)
	}
	task := tasks[next]
	err = t.remember(ctx, p, tally.Through, task)
	if hopeless(err) {
		t.opts.Logger.WarnContext(ctx, "task stays in the log alone", "scope", p.scope.String(), "task", task.ID, "error", err)
		err = t.pass(ctx, p, tally.Through, task.Number)
	}
	return true, err
}

// pass notes that all tasks up to one are decided.
func (t *Tiers) pass(ctx context.Context, p sessionKey, from, through uint64) error {
	return t.commit(ctx, p, nil, func(ctx context.Context, tx *kv.Tx) error {
		return t.decided(ctx, tx, p, from, through, 0)
	})
}

func (t *Tiers) decided(ctx context.Context, tx *kv.Tx, p sessionKey, from, through uint64, added int) error {
	return t.log.StageTally(ctx, tx, p.scope, p.session, func(tally *session.Tally) error {
		if tally.Through != from {
			return errMoved
		}
		tally.Through = through
		tally.Second += added
		return nil
	})
}

// remember saves the record of a task.
func (t *Tiers) remember(ctx context.Context, p sessionKey, from uint64, task session.Task) error {
	r, err := recordOf(task)
	if err != nil {
		return err
	}
	save, err := t.store.StageSave(p.scope, r, "")
	if err != nil {
		return err
	}
	return t.commit(ctx, p, []*memory.Staging{save}, func(ctx context.Context, tx *kv.Tx) error {
		if err := t.unchanged(ctx, tx, p, task); err != nil {
			return err
		}
		return t.decided(ctx, tx, p, from, task.Number, 1)
	})
}

// unchanged returns errMoved if the task got its result meanwhile.
func (t *Tiers) unchanged(ctx context.Context, tx *kv.Tx, p sessionKey, task session.Task) error {
	now, err := t.log.StagedTask(ctx, tx, p.scope, p.session, task.Number)
	if err == nil && !bytes.Equal(now.Content(), task.Content()) {
		err = errMoved
	}
	return err
}

// fill adds the late result of a task to its record.
func (t *Tiers) fill(ctx context.Context, p sessionKey, tally session.Tally) (again bool, err error) {
	if len(tally.Filled) == 0 {
		return false, nil
	}
	number := tally.Filled[0]
	tasks, err := t.log.TasksAfter(ctx, p.scope, p.session, number-1, 1)
	if err != nil || len(tasks) == 0 || tasks[0].Number != number {
		return false, err
	}
	changes, err := t.filled(ctx, p, tasks[0])
	if err != nil {
		return false, err
	}
	done := func(ctx context.Context, tx *kv.Tx) error {
		return t.log.StageTally(ctx, tx, p.scope, p.session, func(tally *session.Tally) error {
			tally.Filled = slices.DeleteFunc(tally.Filled, func(n uint64) bool { return n == number })
			return nil
		})
	}
	if err = t.commit(ctx, p, changes, done); hopeless(err) {
		t.opts.Logger.WarnContext(ctx, "result stays in the log alone", "scope", p.scope.String(), "task", tasks[0].ID, "error", err)
		err = t.commit(ctx, p, nil, done)
	}
	return true, err
}

// filled prepares the change of the task's record; nothing when it has none.
func (t *Tiers) filled(ctx context.Context, p sessionKey, task session.Task) ([]*memory.Staging, error) {
	r, err := t.store.GetByKey(ctx, p.scope, Key(task.ID))
	if errors.Is(err, memory.ErrNotFound) || err == nil && r.Kind != Kind {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	pending := task
	pending.Result = ""
	s := Summarize(task)
	update, err := t.update(ctx, p, r, memory.TextField|memory.MetadataField, record.Record{
		Text: kept(r, recordText(pending, r.Tier), recordText(task, r.Tier)),
	}, map[string]any{"result": s.Result, "status": s.Status, "tags": s.Tags})
	return []*memory.Staging{update}, err
}

// kept returns the text that a record gets: next, unless somebody changed the text that
// the record had.
func kept(r record.Record, was, next string) string {
	if r.Text != was {
		return r.Text
	}
	return next
}

func (t *Tiers) update(ctx context.Context, p sessionKey, r record.Record, fields memory.Fields, values record.Record, metadata map[string]any) (*memory.Staging, error) {
	if fields&memory.MetadataField != 0 {
		var err error
		if values.Metadata, err = withFields(r.Metadata, metadata); err != nil {
			return nil, err
		}
	}
	if values.Text == r.Text {
		fields &^= memory.TextField
	}
	return t.store.StageUpdate(ctx, p.scope, memory.Update{ID: r.ID, ExpectedVersion: r.Version, Fields: fields, Values: values}, "")
}

// commit makes changes of the session's memory and of its log in one commit.
func (t *Tiers) commit(ctx context.Context, p sessionKey, changes []*memory.Staging, own kv.Stage) error {
	req := kv.Request{Refs: []kv.Ref{t.log.Ref(p.scope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		if err := own(ctx, tx); err != nil {
			return err
		}
		for _, change := range changes {
			if err := change.Stage(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	}}
	if len(changes) == 0 {
		return t.writer.Do(ctx, req)
	}
	for _, change := range changes {
		req.Refs = append(req.Refs, change.Refs()...)
		req.Blind = append(req.Blind, change.Blind()...)
	}
	// All are of one scope, so the Do of the first one rebuilds its index if necessary.
	if err := changes[0].Do(ctx, func() error { return t.writer.Do(ctx, req) }); err != nil {
		return err
	}
	for _, change := range changes {
		change.Done(ctx)
	}
	return nil
}
