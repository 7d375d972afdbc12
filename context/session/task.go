package session

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// Limits of a task. All of one fit one value, and one record of long-term
// memory.
const (
	// MaxTaskIDBytes bounds the ids of a task and of its parent.
	MaxTaskIDBytes = 128
	// MaxActionBytes bounds an action.
	MaxActionBytes = 64
	// MaxParametersBytes bounds the JSON text of the parameters.
	MaxParametersBytes = 64 << 10
	// MaxTaskAgentBytes bounds the names of the agents.
	MaxTaskAgentBytes = 256
	// MaxTaskResultBytes bounds a result.
	MaxTaskResultBytes = 64 << 10
	// MaxTaskTags bounds the tags of a task.
	MaxTaskTags = 64
	// MaxTaskTagBytes bounds one tag.
	MaxTaskTagBytes = 128
)

// ImportantTask is the importance over which a task moves up to the next tier.
const ImportantTask = 0.6

// The statuses of a task.
const (
	// TaskPending: there is no result yet.
	TaskPending = "pending"
	// TaskCompleted: there is a result.
	TaskCompleted = "completed"
)

// otherImportance is the importance of an action without its own.
const otherImportance = 0.5

// ImportanceOf is how important a task of an action is by default, from 0
// to 1.
func ImportanceOf(action string) float64 {
	switch action {
	case "node.error":
		return 0.9
	case "node.planning":
		return 0.8
	case "node.tool_result":
		return 0.75
	case "node.tool_call":
		return 0.7
	case "execute":
		return 0.65
	case "node.complete":
		return 0.6
	case "node.thinking":
		return 0.55
	}
	return otherImportance
}

// Task is a unit of work that an agent took up. A task that a Log handed out
// belongs to the receiver.
type Task struct {
	// ID names it within its agent. Empty when adding: one is made.
	ID string
	// Action says what sort of work it is. Required.
	Action string
	// Parameters are a JSON object, kept as it came, or empty.
	Parameters json.RawMessage
	// SourceAgent asked for it. Empty when adding: the agent itself.
	SourceAgent string
	// TargetAgent shall do it, or empty.
	TargetAgent string
	// SessionID is the session it belongs to. Empty when adding: DefaultSession.
	SessionID string
	// ParentTaskID is the task that it is a part of, or empty.
	ParentTaskID string
	// Result is what came of it; empty while it is pending.
	Result string
	// Tags are labels.
	Tags []string
	// Importance is from 0 to 1; zero is one, too. ImportanceOf knows what to pass
	// by default.
	Importance float64
	// CreateTime is when it was taken up, to the microsecond. Zero when adding: now.
	CreateTime time.Time
	// Number counts the tasks of the session, from 1; set by the log.
	Number uint64
	// After is the position of the session's last entry when the task was added, so of
	// the step that it was recorded with; 0 for none, and of tasks that an earlier
	// version added. Set by the log.
	After uint64
	// Step is the number of the step that it was recorded with, which stands for it in
	// prompts; 0 where there is none.
	Step uint64
}

// Status is TaskCompleted with a result and TaskPending without one.
func (t *Task) Status() string {
	if t.Result == "" {
		return TaskPending
	}
	return TaskCompleted
}

// important reports whether the task moves up.
func (t *Task) important() bool { return t.Importance > ImportantTask }

// Check returns an *invalid.Error for the first field that breaks a rule. Its
// field is named as in the API, without what stands around the task.
func (t *Task) Check() error {
	if field, problem := t.check(); problem != "" {
		return invalid.Field(ErrInvalid, field, "%s", problem)
	}
	_, err := sessionID(t.SessionID)
	return err
}

func (t *Task) check() (field, problem string) {
	for _, f := range []struct {
		name, value string
		limit       int
	}{
		{"task_id", t.ID, MaxTaskIDBytes},
		{"action", t.Action, MaxActionBytes},
		{"source_agent", t.SourceAgent, MaxTaskAgentBytes},
		{"target_agent", t.TargetAgent, MaxTaskAgentBytes},
		{"parent_task_id", t.ParentTaskID, MaxTaskIDBytes},
	} {
		if len(f.value) > f.limit {
			return f.name, fmt.Sprintf("is longer than %d bytes", f.limit)
		}
		if !utf8.ValidString(f.value) || strings.IndexByte(f.value, 0) >= 0 {
			return f.name, "holds NUL or is not UTF-8"
		}
	}
	switch {
	case t.Action == "":
		return "action", "is required"
	case len(t.Result) > MaxTaskResultBytes:
		return "result", fmt.Sprintf("is longer than %d bytes", MaxTaskResultBytes)
	case !utf8.ValidString(t.Result):
		return "result", "is not UTF-8"
	case !(t.Importance >= 0 && t.Importance <= 1):
		return "importance", "is not from 0 to 1"
	}
	if year := t.CreateTime.UTC().Year(); year < 1 || year > 9999 {
		return "create_time", "is not from the year 1 to 9999"
	}
	if problem := checkParameters(t.Parameters); problem != "" {
		return "parameters", problem
	}
	return "tags", checkTaskTags(t.Tags)
}

func checkParameters(s json.RawMessage) string {
	if len(s) == 0 {
		return ""
	}
	if len(s) > MaxParametersBytes {
		return fmt.Sprintf("are longer than %d bytes", MaxParametersBytes)
	}
	value, err := text.DecodeJSON(s)
	if _, ok := value.(map[string]any); !ok || err != nil || !utf8.Valid(s) {
		return "are not a JSON object"
	}
	return ""
}

func checkTaskTags(tags []string) string {
	if len(tags) > MaxTaskTags {
		return fmt.Sprintf("are more than %d", MaxTaskTags)
	}
	for _, tag := range tags {
		switch {
		case tag == "" || len(tag) > MaxTaskTagBytes:
			return fmt.Sprintf("hold a tag that is not 1 to %d bytes long", MaxTaskTagBytes)
		case !utf8.ValidString(tag) || strings.IndexByte(tag, 0) >= 0:
			return "hold one with NUL or that is not UTF-8"
		}
	}
	return ""
}

// StageTask adds a task to the scope's log, and returns it as stored. A task
// whose id is there already is that task if all else is the same, too: nothing is
// written, but that a result that was empty is filled in. The result may be left
// out the second time, and so may the time. Another content is ErrTaskExists. What
// breaks a rule is an *invalid.Error.
func (l *Log) StageTask(ctx context.Context, tx *kv.Tx, scope kv.Scope, t Task) (Task, error) {
	if err := t.Check(); err != nil {
		return Task{}, err
	}
	t.SessionID, _ = sessionID(t.SessionID)
	t.SourceAgent = cmp.Or(t.SourceAgent, scope.Owner)
	if t.ID == "" {
		t.ID = newTaskID()
	}
	place, err := tx.Get(ctx, kv.Log, taskIDKey(scope, t.ID))
	if err != nil {
		return Task{}, fmt.Errorf("session: read task: %w", err)
	}
	if place[0] != nil {
		return l.stageAgain(ctx, tx, scope, place[0], t)
	}
	return l.stageNew(ctx, tx, scope, t)
}

// newTaskID makes a new id.
func newTaskID() string { return "task-" + strings.ToLower(rand.Text()) }

func (l *Log) stageNew(ctx context.Context, tx *kv.Tx, scope kv.Scope, t Task) (Task, error) {
	values, err := tx.Get(ctx, kv.Log, tallyKey(scope, t.SessionID), headKey(scope, t.SessionID))
	if err != nil {
		return Task{}, fmt.Errorf("session: read tally: %w", err)
	}
	tally, err := decodeTally(values[0])
	if err != nil {
		return Task{}, err
	}
	log, err := decodeHead(values[1])
	if err != nil {
		return Task{}, err
	}
	now := l.now()
	if t.CreateTime.IsZero() {
		t.CreateTime = now
	}
	t.CreateTime = t.CreateTime.UTC().Truncate(time.Microsecond)
	tally.Last++
	t.Number, t.After = tally.Last, log.last
	if !t.important() && tally.Through == t.Number-1 {
		tally.Through = t.Number // it stays, so there is nothing to decide later
	}
	tx.Put(kv.Log, tallyKey(scope, t.SessionID), encodeTally(tally))
	putTask(tx, scope, t, now)
	tx.Put(kv.Log, taskIDKey(scope, t.ID), encodePlace(t.SessionID, t.Number))
	if log.ended {
		tx.Put(kv.Log, headKey(scope, t.SessionID), encodeHead(head{last: log.last, gone: log.gone}))
	}
	return t, nil
}

func putTask(tx *kv.Tx, scope kv.Scope, t Task, written time.Time) {
	value := encodeTask(t, written)
	tx.Put(kv.Log, taskKey(scope, t.SessionID, t.Number), value)
	stageMentions(tx, scope, t.SessionID, value)
}

// stageAgain compares a task with the one that has its id, and fills in the
// result.
func (l *Log) stageAgain(ctx context.Context, tx *kv.Tx, scope kv.Scope, place []byte, t Task) (Task, error) {
	session, number, err := decodePlace(place)
	if err != nil {
		return Task{}, err
	}
	values, err := tx.Get(ctx, kv.Log, taskKey(scope, session, number), tallyKey(scope, session))
	if err != nil {
		return Task{}, fmt.Errorf("session: read task: %w", err)
	}
	first, written, err := decodeTask(values[0])
	if err != nil {
		return Task{}, err
	}
	first.SessionID, first.Number = session, number
	switch {
	case !t.repeats(&first):
		return Task{}, &TaskExistsError{ID: t.ID}
	case t.Result == "" || first.Result != "":
		return first, nil
	}
	first.Result = t.Result
	putTask(tx, scope, first, written)
	tally, err := decodeTally(values[1])
	if err != nil {
		return Task{}, err
	}
	if first.important() && number <= tally.Through {
		tally.Filled = insertNumber(tally.Filled, number)
		tx.Put(kv.Log, tallyKey(scope, session), encodeTally(tally))
	}
	return first, nil
}

// repeats reports whether t is the task first, come again.
func (t *Task) repeats(first *Task) bool {
	again := *t
	if again.CreateTime.IsZero() {
		again.CreateTime = first.CreateTime
	}
	return again.Action == first.Action && again.SourceAgent == first.SourceAgent && again.TargetAgent == first.TargetAgent &&
		again.SessionID == first.SessionID && again.ParentTaskID == first.ParentTaskID &&
		again.Importance == first.Importance && slices.Equal(again.Tags, first.Tags) &&
		again.CreateTime.Truncate(time.Microsecond).Equal(first.CreateTime) &&
		sameObject(again.Parameters, first.Parameters) &&
		(again.Result == "" || first.Result == "" || again.Result == first.Result)
}

// sameObject reports whether two JSON objects say the same. None is an empty one.
func sameObject(a, b json.RawMessage) bool {
	return bytes.Equal(a, b) || bytes.Equal(canonicalObject(a), canonicalObject(b))
}

func canonicalObject(s json.RawMessage) []byte {
	if len(s) == 0 {
		return []byte("{}")
	}
	value, err := text.DecodeJSON(s)
	if err != nil {
		return s
	}
	return text.CanonicalJSON(value)
}
