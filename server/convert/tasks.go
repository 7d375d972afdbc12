package convert

import (
	"encoding/json"
	"errors"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// taskOf converts a task; nil without one. What the domain refuses is a violation
// of the task's field.
func taskOf(t *loombridgev1.Task) (*session.Task, error) {
	if t == nil {
		return nil, nil
	}
	out := session.Task{
		ID: t.GetTaskId(), Action: t.GetAction(), Parameters: json.RawMessage(t.GetParametersJson()),
		SourceAgent: t.GetSourceAgent(), TargetAgent: t.GetTargetAgent(), ParentTaskID: t.GetParentTaskId(),
		Result: t.GetResult(), Tags: t.GetTags(), Importance: session.ImportanceOf(t.GetAction()), CreateTime: timeOf(t.GetCreateTime()),
	}
	if t.Importance != nil {
		out.Importance = t.GetImportance()
	}
	if object := t.GetParameters(); object != nil {
		var err error
		if out.Parameters, err = jsonOf("task.parameters", structpb.NewStructValue(object)); err != nil {
			return nil, err
		}
	}
	err := out.Check()
	if bad, ok := errors.AsType[*invalid.Error](err); ok {
		err = validate.Refuse("task."+bad.Field, bad.Problem)
	}
	return &out, err
}

// Task is the inverse of taskOf.
func Task(t session.Task, asText bool) *loombridgev1.Task {
	out := &loombridgev1.Task{
		TaskId: t.ID, Action: t.Action, SourceAgent: t.SourceAgent, TargetAgent: t.TargetAgent, ParentTaskId: t.ParentTaskID,
		Result: utf8Text(t.Result), Tags: t.Tags, Importance: proto.Float64(t.Importance), CreateTime: Timestamp(t.CreateTime),
	}
	if len(t.Parameters) == 0 {
		return out
	}
	if object, ok := pleasantStruct(t.Parameters, asText); ok {
		out.ParametersForm = &loombridgev1.Task_Parameters{Parameters: object}
	} else {
		out.ParametersForm = &loombridgev1.Task_ParametersJson{ParametersJson: string(t.Parameters)}
	}
	return out
}
