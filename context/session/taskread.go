package session

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// MaxTasks bounds the tasks of one answer.
const MaxTasks = 1000

// AddTask is StageTask in its own commit.
func (l *Log) AddTask(ctx context.Context, scope kv.Scope, t Task) (Task, error) {
	var added Task
	err := l.writer.Do(ctx, kv.Request{Refs: []kv.Ref{l.Ref(scope)}, Stage: func(ctx context.Context, tx *kv.Tx) (err error) {
		added, err = l.StageTask(ctx, tx, scope, t)
		return err
	}})
	return added, wrap("add task", err)
}

// Task returns the task of an id, of any session, or ErrTaskNotFound.
func (l *Log) Task(ctx context.Context, scope kv.Scope, id string) (Task, error) {
	t := Task{ID: id, Action: "any"}
	if err := t.Check(); err != nil {
		return Task{}, err
	}
	if err := scope.Validate(); err != nil {
		return Task{}, err
	}
	place, err := l.get(ctx, taskIDKey(scope, id))
	if err != nil {
		return Task{}, fmt.Errorf("session: read task: %w", err)
	}
	if place == nil {
		return Task{}, fmt.Errorf("%w: %q", ErrTaskNotFound, id)
	}
	session, number, err := decodePlace(place)
	if err != nil {
		return Task{}, err
	}
	value, err := l.get(ctx, taskKey(scope, session, number))
	if err != nil {
		return Task{}, fmt.Errorf("session: read task: %w", err)
	}
	t, _, err = decodeTask(value)
	if err == nil && t.ID != id {
		err = fmt.Errorf("%w: task %q is not where its index says", ErrDamaged, id)
	}
	t.SessionID, t.Number = session, number
	return t, err
}

// ForeseeTasks adds what LastTasks reads of so many.
func (l *Log) ForeseeTasks(along *kv.Reads, scope kv.Scope, session string, n int) {
	if session, err := scoped(scope, session); err == nil {
		along.Scan(kv.Log, lastTasks(scope, session, n))
	}
}

// lastTasks is the range of the last n tasks of a session, the newest first.
func lastTasks(scope kv.Scope, session string, n int) kv.Range {
	r := kv.Prefix(taskPrefix(scope, session))
	r.Reverse, r.Limit = true, n
	if n < 1 || n > MaxTasks {
		r.Limit = MaxTasks
	}
	return r
}

// LastTasks returns the last n tasks of a session, oldest first. An n outside 1 to
// MaxTasks means MaxTasks.
func (l *Log) LastTasks(ctx context.Context, scope kv.Scope, sessionID string, n int) ([]Task, error) {
	tasks, err := l.tasks(ctx, scope, sessionID, 0, n, true)
	slices.Reverse(tasks)
	return tasks, err
}

// TasksBefore returns up to n tasks of a session whose number is lower than one,
// newest first; 0 is behind them all. An n outside 1 to MaxTasks means MaxTasks.
func (l *Log) TasksBefore(ctx context.Context, scope kv.Scope, sessionID string, number uint64, n int) ([]Task, error) {
	return l.tasks(ctx, scope, sessionID, number, n, true)
}

// TasksAfter returns up to n tasks of a session whose number is higher than one,
// oldest first. An n outside 1 to MaxTasks means MaxTasks.
func (l *Log) TasksAfter(ctx context.Context, scope kv.Scope, sessionID string, number uint64, n int) ([]Task, error) {
	return l.tasks(ctx, scope, sessionID, number, n, false)
}

func (l *Log) tasks(ctx context.Context, scope kv.Scope, id string, from uint64, n int, reverse bool) ([]Task, error) {
	id, err := scoped(scope, id)
	if err != nil {
		return nil, err
	}
	r := lastTasks(scope, id, n)
	r.Reverse = reverse
	switch {
	case from > 0 && reverse:
		r.End = taskKey(scope, id, from)
	case from > 0:
		r.Start = append(taskKey(scope, id, from), 0)
	}
	var tasks []Task
	for t, err := range l.eachTask(ctx, id, r) {
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

// AllTasks yields all tasks of a session, oldest first. A damaged one is an ErrDamaged with its
// Number alone, and others follow it; any other error comes last.
func (l *Log) AllTasks(ctx context.Context, scope kv.Scope, sessionID string) iter.Seq2[Task, error] {
	id, err := scoped(scope, sessionID)
	if err != nil {
		return func(yield func(Task, error) bool) { yield(Task{}, err) }
	}
	return l.eachTask(ctx, id, kv.Prefix(taskPrefix(scope, id)))
}

func (l *Log) eachTask(ctx context.Context, id string, r kv.Range) iter.Seq2[Task, error] {
	return func(yield func(Task, error) bool) {
		for pair, err := range l.engine.Scan(ctx, kv.Log, r) {
			if err != nil {
				yield(Task{}, fmt.Errorf("session: read tasks: %w", err))
				return
			}
			t, _, err := decodeTask(pair.Value)
			t.SessionID, t.Number = id, keyPosition(pair.Key)
			if !yield(t, err) {
				return
			}
		}
	}
}

// StagedTask returns a task of a session as a transaction sees it, or
// ErrTaskNotFound.
func (l *Log) StagedTask(ctx context.Context, tx *kv.Tx, scope kv.Scope, sessionID string, number uint64) (Task, error) {
	id, err := scoped(scope, sessionID)
	if err != nil {
		return Task{}, err
	}
	values, err := tx.Get(ctx, kv.Log, taskKey(scope, id, number))
	if err != nil {
		return Task{}, fmt.Errorf("session: read task: %w", err)
	}
	if values[0] == nil {
		return Task{}, fmt.Errorf("%w: number %d", ErrTaskNotFound, number)
	}
	t, _, err := decodeTask(values[0])
	t.SessionID, t.Number = id, number
	return t, err
}

// TaskDocument is a task as one canonical JSON object. Fields without a value are
// left out. The same task gives the same bytes.
func TaskDocument(t Task) []byte {
	object := map[string]any{
		"task_id": t.ID, "session_id": t.SessionID, "number": t.Number, "action": t.Action, "status": t.Status(),
		"importance": t.Importance, "created_at": t.CreateTime.UTC().Format(time.RFC3339Nano),
	}
	for key, s := range map[string]string{
		"source_agent": t.SourceAgent, "target_agent": t.TargetAgent, "parent_task_id": t.ParentTaskID, "result": t.Result,
	} {
		if s != "" {
			object[key] = s
		}
	}
	if len(t.Parameters) > 0 {
		object["parameters"] = t.Parameters
	}
	if len(t.Tags) > 0 {
		tags := make([]any, len(t.Tags))
		for i, tag := range t.Tags {
			tags[i] = tag
		}
		object["tags"] = tags
	}
	return text.CanonicalJSON(object)
}

// Tags of tasks in the log keyspace (memory/FORMAT.md).
const (
	tagTask   = 't' // session, number: a task
	tagTaskID = 'k' // task id: where the task stands
	tagTally  = 'm' // session: the outcome of its tasks
)

func taskPrefix(scope kv.Scope, session string) []byte {
	return kv.AppendEscaped(scope.Key(tagTask), session)
}

func taskKey(scope kv.Scope, session string, number uint64) []byte {
	return binary.BigEndian.AppendUint64(taskPrefix(scope, session), number)
}

func taskIDKey(scope kv.Scope, id string) []byte { return scope.Key(tagTaskID, []byte(id)) }

func tallyKey(scope kv.Scope, session string) []byte {
	return kv.AppendEscaped(scope.Key(tagTally), session)
}

// Tally says how far the tasks of a session have moved up. The code that moves them keeps
// it; the log counts the tasks and notes the filled-in fields.
type Tally struct {
	// Last is the number of the session's last task.
	Last uint64
	// Through is the last task that was decided about: those important among the
	// tasks up to it are in the second tier or beyond.
	Through uint64
	// Filled are the numbers, ascending, of tasks up to Through that got their
	// result later, which the tiers above don't have yet.
	Filled []uint64
	// Second and Third are how many tasks are in those tiers, or more: deletions are not
	// subtracted.
	Second, Third int
	// Moved counts the tasks that ever entered the third tier.
	Moved uint64
	// Gone is the last task that Delete took.
	Gone uint64
}

// Tally returns the tally of a session; all zero when it has no tasks.
func (l *Log) Tally(ctx context.Context, scope kv.Scope, sessionID string) (Tally, error) {
	return readOne(ctx, l, scope, sessionID, "tally", tallyKey, decodeTally)
}

// StageTally changes the tally of a session. An error of change is returned as it
// is, and nothing is changed.
func (l *Log) StageTally(ctx context.Context, tx *kv.Tx, scope kv.Scope, sessionID string, change func(*Tally) error) error {
	id, err := scoped(scope, sessionID)
	if err != nil {
		return err
	}
	key := tallyKey(scope, id)
	values, err := tx.Get(ctx, kv.Log, key)
	if err != nil {
		return fmt.Errorf("session: read tally: %w", err)
	}
	tally, err := decodeTally(values[0])
	if err != nil {
		return err
	}
	if err := change(&tally); err != nil {
		return err
	}
	if next := encodeTally(tally); !bytes.Equal(next, values[0]) {
		tx.Put(kv.Log, key, next)
	}
	return nil
}

func encodeTally(t Tally) []byte {
	return wire.Marshal(&storev1.Tally{
		Last: &t.Last, Decided: t.Through, Late: appendNumbers(nil, t.Filled), Tier2: uint64(max(0, t.Second)),
		Tier3: uint64(max(0, t.Third)), Entered3: t.Moved, Deleted: t.Gone,
	})
}

func decodeTally(value []byte) (Tally, error) {
	var m storev1.Tally
	if err := wire.Unmarshal(value, &m); err != nil {
		return Tally{}, damaged(err)
	}
	late, err := decodeNumbers(m.Late)
	if err != nil {
		return Tally{}, err
	}
	return Tally{
		Last: m.GetLast(), Through: m.Decided, Filled: late, Second: count(m.Tier2), Third: count(m.Tier3), Moved: m.Entered3, Gone: m.Deleted,
	}, nil
}

// insertNumber puts a number into ascending ones, once.
func insertNumber(numbers []uint64, n uint64) []uint64 {
	at, found := slices.BinarySearch(numbers, n)
	if found {
		return numbers
	}
	return slices.Insert(numbers, at, n)
}
