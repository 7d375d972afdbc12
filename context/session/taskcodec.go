package session

import (
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// kindTask marks an entry that is a task. It stands under its own tag, so
// that what reads a conversation does not step over tasks.
const kindTask = 3

// Content is what makes two tasks the same to a request that is repeated: all
// that a caller says.
func (t *Task) Content() []byte {
	const fieldSession = 1000 // of no stored task
	return wire.AppendText(appendTask(nil, t), fieldSession, t.SessionID)
}

func encodeTask(t Task, written time.Time) []byte {
	return wire.Marshal(&storev1.LogEntry{
		Kind: kindTask, Time: wire.Micros(written), Body: appendTask([]byte{}, &t), Position: t.After, Step: t.Step,
	})
}

func appendTask(dst []byte, t *Task) []byte {
	return append(dst, wire.Marshal(&storev1.Task{
		Id: t.ID, Action: t.Action, Parameters: t.Parameters, Requester: t.SourceAgent, Assignee: t.TargetAgent, Parent: t.ParentTaskID,
		Result: t.Result, Tags: t.Tags, Importance: &t.Importance, Time: wire.Micros(t.CreateTime),
	})...)
}

// decodeTask reads what encodeTask wrote; its session and number stand in the
// key.
func decodeTask(value []byte) (t Task, written time.Time, err error) {
	var entry storev1.LogEntry
	if err := wire.Unmarshal(value, &entry); err != nil {
		return Task{}, time.Time{}, damaged(err)
	}
	if entry.Kind != kindTask {
		return Task{}, time.Time{}, fmt.Errorf("%w: kind %d where a task should be", ErrDamaged, entry.Kind)
	}
	var m storev1.Task
	if err := wire.Unmarshal(entry.Body, &m); err != nil {
		return Task{}, time.Time{}, damaged(err)
	}
	return Task{
		ID: m.Id, Action: m.Action, Parameters: m.Parameters, SourceAgent: m.Requester, TargetAgent: m.Assignee, ParentTaskID: m.Parent,
		Result: m.Result, Tags: m.Tags, Importance: m.GetImportance(), CreateTime: wire.TimeOf(m.Time), After: entry.Position, Step: entry.Step,
	}, wire.TimeOf(entry.Time), nil
}
