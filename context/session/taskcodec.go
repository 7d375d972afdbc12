package session

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// kindTask marks an entry that is a task. It stands under its own tag, so
// that what reads a conversation does not step over tasks.
const kindTask = 3

// Fields of a stored entry that only tasks have.
const (
	fieldAfter = fieldBody + 1 + iota
	fieldStepOfTask
)

// Fields of a stored task.
const (
	fieldTaskID = iota + 1
	fieldTaskAction
	fieldTaskParameters
	fieldTaskSource
	fieldTaskTarget
	fieldTaskParent
	fieldTaskResult
	fieldTaskTag
	fieldTaskImportance
	fieldTaskTime
)

// Content is what makes two tasks the same to a request that is repeated: all
// that a caller says.
func (t *Task) Content() []byte {
	const fieldSession = 1000 // of no stored task
	return wire.AppendText(appendTask(nil, t), fieldSession, t.SessionID)
}

func encodeTask(t Task, written time.Time) []byte {
	dst := wire.AppendUint(nil, fieldKind, kindTask)
	dst = wire.AppendTime(dst, fieldTime, written)
	dst = wire.AppendItem(dst, fieldBody, appendTask(nil, &t))
	dst = wire.AppendUint(dst, fieldAfter, t.After)
	return wire.AppendUint(dst, fieldStepOfTask, t.Step)
}

func appendTask(dst []byte, t *Task) []byte {
	dst = wire.AppendText(dst, fieldTaskID, t.ID)
	dst = wire.AppendText(dst, fieldTaskAction, t.Action)
	dst = wire.AppendText(dst, fieldTaskParameters, t.Parameters)
	dst = wire.AppendText(dst, fieldTaskSource, t.SourceAgent)
	dst = wire.AppendText(dst, fieldTaskTarget, t.TargetAgent)
	dst = wire.AppendText(dst, fieldTaskParent, t.ParentTaskID)
	dst = wire.AppendText(dst, fieldTaskResult, t.Result)
	for _, tag := range t.Tags {
		dst = wire.AppendItem(dst, fieldTaskTag, tag)
	}
	dst = wire.AppendFixed64(dst, fieldTaskImportance, math.Float64bits(t.Importance))
	return wire.AppendTime(dst, fieldTaskTime, t.CreateTime)
}

// decodeTask reads what encodeTask wrote; its session and number stand in the
// key.
func decodeTask(value []byte) (t Task, written time.Time, err error) {
	var kind uint64
	var body []byte
	for f, err := range wire.Fields(value) {
		if err != nil {
			return Task{}, time.Time{}, damaged(err)
		}
		switch f.Number {
		case fieldKind:
			kind = f.Value
		case fieldTime:
			written = f.Time()
		case fieldBody:
			body = f.Bytes
		case fieldAfter:
			t.After = f.Value
		case fieldStepOfTask:
			t.Step = f.Value
		}
	}
	if kind != kindTask {
		return Task{}, time.Time{}, fmt.Errorf("%w: kind %d where a task should be", ErrDamaged, kind)
	}
	for f, err := range wire.Fields(body) {
		if err != nil {
			return Task{}, time.Time{}, damaged(err)
		}
		t.set(f)
	}
	return t, written, nil
}

func (t *Task) set(f wire.Field) {
	switch f.Number {
	case fieldTaskID:
		t.ID = string(f.Bytes)
	case fieldTaskAction:
		t.Action = string(f.Bytes)
	case fieldTaskParameters:
		t.Parameters = bytes.Clone(f.Bytes)
	case fieldTaskSource:
		t.SourceAgent = string(f.Bytes)
	case fieldTaskTarget:
		t.TargetAgent = string(f.Bytes)
	case fieldTaskParent:
		t.ParentTaskID = string(f.Bytes)
	case fieldTaskResult:
		t.Result = string(f.Bytes)
	case fieldTaskTag:
		t.Tags = append(t.Tags, string(f.Bytes))
	case fieldTaskImportance:
		t.Importance = math.Float64frombits(f.Value)
	case fieldTaskTime:
		t.CreateTime = f.Time()
	}
}
