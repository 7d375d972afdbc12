package tiers

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// View is the lower tiers as they are at one moment.
type View struct {
	log     *session.Log
	records memory.View
	l1      int
}

// At returns the tiers as a snapshot of the engine has them.
func (t *Tiers) At(view kv.Reader) View { return View{t.log.At(view), t.store.At(view), t.opts.L1} }

// Foresee adds what L1 reads of so many tasks.
func (t *Tiers) Foresee(along *kv.Reads, scope kv.Scope, sessionID string, n int) {
	t.log.ForeseeTasks(along, scope, sessionID, min(n, t.opts.L1))
}

// L1 is Tiers.L1 at that moment.
func (v View) L1(ctx context.Context, scope kv.Scope, sessionID string, n int) ([]session.Task, error) {
	if n < 1 || n > v.l1 {
		n = v.l1
	}
	return v.log.LastTasks(ctx, scope, sessionID, n)
}

// L2 returns up to n important tasks of a session, the most important first and the
// newest among equals: whole, or as in their records if the log no longer has them.
func (v View) L2(ctx context.Context, scope kv.Scope, sessionID string, n int) ([]session.Task, error) {
	members, err := members(ctx, v.records.List, sessionKeyOf(scope, sessionID), tierWorking)
	if err != nil {
		return nil, err
	}
	slices.Reverse(members)
	slices.SortStableFunc(members, func(a, b record.Record) int { return cmp.Compare(b.Importance, a.Importance) })
	members = first(members, n)
	tasks := make([]session.Task, 0, len(members))
	for i := range members {
		task, err := v.log.Task(ctx, scope, strings.TrimPrefix(members[i].Key, session.TaskFolder))
		switch {
		case errors.Is(err, session.ErrTaskNotFound), errors.Is(err, session.ErrInvalid):
			s, ok := SummaryOf(members[i])
			if !ok {
				continue
			}
			task = session.Task{
				ID: s.TaskID, Action: s.Action, Parameters: []byte(s.Parameters), Result: s.Result, SourceAgent: s.SourceAgent,
				TargetAgent: s.TargetAgent, SessionID: s.SessionID, ParentTaskID: s.ParentTaskID, Importance: s.Importance, CreateTime: s.CreateTime,
			}
		case err != nil:
			return nil, err
		}
		tasks = append(tasks, task)
	}
	return tasks, nil
}
