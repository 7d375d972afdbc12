package tiers

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// L1 returns the last n tasks of a session, oldest first; at most as many as L1
// holds, which n below one means.
func (t *Tiers) L1(ctx context.Context, scope kv.Scope, sessionID string, n int) ([]session.Task, error) {
	if n < 1 || n > t.opts.L1 {
		n = t.opts.L1
	}
	return t.log.LastTasks(ctx, scope, sessionID, n)
}

// Task returns a task of a session by its id or by the ref of its summary, whichever
// tier it is in; session.ErrTaskNotFound when the session has none.
func (t *Tiers) Task(ctx context.Context, scope kv.Scope, sessionID, id string) (session.Task, error) {
	task, err := t.log.Task(ctx, scope, id)
	if ref, ok := cutRef(id); ok && errors.Is(err, session.ErrTaskNotFound) {
		task, err = t.log.Task(ctx, scope, ref)
	}
	if err != nil {
		return session.Task{}, err
	}
	if task.SessionID != cmp.Or(sessionID, session.DefaultSession) {
		return session.Task{}, session.ErrTaskNotFound
	}
	return task, nil
}

// Found is a task and where it is.
type Found struct {
	// Task is the task, as the log keeps it.
	Task session.Task
	// Tiers are those that have it, the lowest first: 1 while it is among the last of
	// its session, and the tier of its record of memory.
	Tiers []int
	// RecordID is that record; empty without one.
	RecordID string
}

// Find returns a task of any session of the agent, by its id or by the ref of its
// summary, and where it is; session.ErrTaskNotFound when there is none.
func (t *Tiers) Find(ctx context.Context, scope kv.Scope, id string) (Found, error) {
	task, err := t.log.Task(ctx, scope, id)
	if ref, ok := cutRef(id); ok && err != nil {
		// The whole may be an id, too, or too long for one.
		task, err = t.log.Task(ctx, scope, ref)
	}
	if err != nil {
		return Found{}, err
	}
	found := Found{Task: task}
	last, err := t.log.LastTasks(ctx, scope, task.SessionID, 1)
	if err != nil {
		return Found{}, err
	}
	if len(last) > 0 && last[0].Number < task.Number+uint64(t.opts.L1) {
		found.Tiers = append(found.Tiers, tierLog)
	}
	record, err := t.store.GetByKey(ctx, scope, Key(task.ID))
	switch {
	case errors.Is(err, memory.ErrNotFound):
	case err != nil:
		return Found{}, err
	default:
		found.Tiers, found.RecordID = append(found.Tiers, record.Tier), record.ID
	}
	return found, nil
}

func cutRef(id string) (string, bool) {
	if len(id) <= len(session.TaskFolder) || id[:len(session.TaskFolder)] != session.TaskFolder {
		return "", false
	}
	return id[len(session.TaskFolder):], true
}

// L2 returns up to n important tasks of a session, the most important first and the
// newest among equals. An n below one means all.
func (t *Tiers) L2(ctx context.Context, scope kv.Scope, sessionID string, n int) ([]record.Record, error) {
	members, err := t.members(ctx, placeOf(scope, sessionID), tierWorking)
	slices.Reverse(members)
	slices.SortStableFunc(members, func(a, b record.Record) int { return cmp.Compare(b.Importance, a.Importance) })
	return first(members, n), err
}

// L3 returns up to n summaries of a session, those that entered last first. An n
// below one means all.
func (t *Tiers) L3(ctx context.Context, scope kv.Scope, sessionID string, n int) ([]record.Record, error) {
	members, err := t.members(ctx, placeOf(scope, sessionID), tierSummary)
	sortByMoved(members)
	slices.Reverse(members)
	return first(members, n), err
}

// L4 finds what an agent has in long-term memory: tasks and all else, of all
// sessions or, when one is named, of that one.
func (t *Tiers) L4(ctx context.Context, scope kv.Scope, sessionID, query string, n int) (memory.Answer, error) {
	q := question.Question{Text: query, Limit: n}
	if sessionID != "" {
		q.Filter = "session_id = " + quoted(sessionID)
	}
	return t.store.Query(ctx, scope, q)
}

// Save puts a record into long-term memory.
func (t *Tiers) Save(ctx context.Context, scope kv.Scope, r record.Record) (record.Record, error) {
	return t.store.Save(ctx, scope, r, "")
}

func placeOf(scope kv.Scope, sessionID string) place {
	return place{scope, cmp.Or(sessionID, session.DefaultSession)}
}

func first(records []record.Record, n int) []record.Record {
	if n < 1 {
		return records
	}
	return records[:min(n, len(records))]
}
