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

// L1 returns the last n tasks of a session, oldest first. An n below one, or above the
// capacity of L1, means that capacity.
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

// FoundTask is a task and where it is.
type FoundTask struct {
	// Task is the task, as the log keeps it.
	Task session.Task
	// Tiers are the tiers that have it, the lowest first: 1 while it is among the last
	// of its session, and the tier of its memory record.
	Tiers []int
}

// Find returns a task of any session of the agent, by its id or by the ref of its
// summary, and where it is; session.ErrTaskNotFound when there is none.
func (t *Tiers) Find(ctx context.Context, scope kv.Scope, id string) (FoundTask, error) {
	task, err := t.log.Task(ctx, scope, id)
	if ref, ok := cutRef(id); ok && err != nil {
		// The whole ref may be an id as well, or be too long for one.
		task, err = t.log.Task(ctx, scope, ref)
	}
	if err != nil {
		return FoundTask{}, err
	}
	found := FoundTask{Task: task}
	last, err := t.log.LastTasks(ctx, scope, task.SessionID, 1)
	if err != nil {
		return FoundTask{}, err
	}
	if len(last) > 0 && last[0].Number < task.Number+uint64(t.opts.L1) {
		found.Tiers = append(found.Tiers, tierLog)
	}
	record, err := t.store.GetByKey(ctx, scope, Key(task.ID))
	switch {
	case errors.Is(err, memory.ErrNotFound):
	case err != nil:
		return FoundTask{}, err
	default:
		found.Tiers = append(found.Tiers, record.Tier)
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
	members, err := t.members(ctx, sessionKeyOf(scope, sessionID), tierWorking)
	slices.Reverse(members)
	slices.SortStableFunc(members, func(a, b record.Record) int { return cmp.Compare(b.Importance, a.Importance) })
	return first(members, n), err
}

// L3 returns up to n summaries of a session, last entered first. An n below one means all.
func (t *Tiers) L3(ctx context.Context, scope kv.Scope, sessionID string, n int) ([]record.Record, error) {
	members, err := t.members(ctx, sessionKeyOf(scope, sessionID), tierSummary)
	sortByMoved(members)
	slices.Reverse(members)
	return first(members, n), err
}

// L4 finds records of all kinds in an agent's long-term memory, of all sessions or of
// one.
func (t *Tiers) L4(ctx context.Context, scope kv.Scope, sessionID, query string, n int) (memory.Answer, error) {
	q := question.Question{Text: query, Limit: n}
	if sessionID != "" {
		q.Filter = "session_id = " + quoted(sessionID)
	}
	return t.store.Query(ctx, scope, q)
}

// Record returns a record of long-term memory by its id, or memory.ErrNotFound.
func (t *Tiers) Record(ctx context.Context, scope kv.Scope, id string) (record.Record, error) {
	return t.store.Get(ctx, scope, id)
}

// Save puts a record into long-term memory.
func (t *Tiers) Save(ctx context.Context, scope kv.Scope, r record.Record) (record.Record, error) {
	return t.store.Save(ctx, scope, r, "")
}

func sessionKeyOf(scope kv.Scope, sessionID string) sessionKey {
	return sessionKey{scope, cmp.Or(sessionID, session.DefaultSession)}
}

func first(records []record.Record, n int) []record.Record {
	if n < 1 {
		return records
	}
	return records[:min(n, len(records))]
}
