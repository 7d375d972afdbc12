package server

import (
	"context"
	"encoding/json"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/loom-bridge/loom-bridge/bridge/tiers"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
)

// Tasks is what the handlers need of the tiers of tasks.
type Tasks interface {
	// Find returns a task of any session, by its id or the ref of its summary, and
	// where it is.
	Find(ctx context.Context, scope kv.Scope, id string) (tiers.Found, error)
}

var _ Tasks = (*tiers.Tiers)(nil)

// task checks the form of a task.
func (c *check) task(prefix string, t *loombridgev1.Task) {
	if t == nil {
		return
	}
	c.name(prefix+"task_id", t.GetTaskId(), session.MaxTaskIDBytes)
	c.requiredName(prefix+"action", t.GetAction(), session.MaxActionBytes)
	c.text(prefix+"parameters_json", t.GetParametersJson(), session.MaxParametersBytes)
	c.name(prefix+"source_agent", t.GetSourceAgent(), session.MaxTaskAgentBytes)
	c.name(prefix+"target_agent", t.GetTargetAgent(), session.MaxTaskAgentBytes)
	c.name(prefix+"parent_task_id", t.GetParentTaskId(), session.MaxTaskIDBytes)
	c.text(prefix+"result", t.GetResult(), session.MaxTaskResultBytes)
	c.count(prefix+"tags", len(t.GetTags()), session.MaxTaskTags)
	c.texts(prefix+"tags", t.GetTags(), session.MaxTaskTagBytes)
	if t.Importance != nil {
		c.share(prefix+"importance", t.GetImportance())
	}
	c.time(prefix+"create_time", t.GetCreateTime())
}

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
	return &out, within("task", out.Check())
}

// GetTask returns one task.
func (s *contextService) GetTask(ctx context.Context, r *loombridgev1.GetTaskRequest) (*loombridgev1.GetTaskResponse, error) {
	if err := checkGetTaskRequest(r); err != nil {
		return nil, err
	}
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	found, err := s.tasks.Find(ctx, scope, r.GetTaskId())
	if err != nil {
		return nil, err
	}
	out := &loombridgev1.GetTaskResponse{
		Task: taskMessage(found.Task, r.GetJsonForm()), SessionId: found.Task.SessionID, Number: int64(found.Task.Number), RecordId: found.RecordID,
	}
	for _, tier := range found.Tiers {
		out.Tiers = append(out.Tiers, clampInt32(tier))
	}
	return out, nil
}

func checkGetTaskRequest(r *loombridgev1.GetTaskRequest) error {
	var c check
	c.agent(r.GetAgentId())
	c.requiredName("task_id", r.GetTaskId(), session.MaxTaskIDBytes+len(tiers.Key("")))
	c.enum("json_form", r.GetJsonForm())
	return c.err()
}

// taskMessage is the inverse of taskOf.
func taskMessage(t session.Task, form loombridgev1.JsonForm) *loombridgev1.Task {
	out := &loombridgev1.Task{
		TaskId: t.ID, Action: t.Action, SourceAgent: t.SourceAgent, TargetAgent: t.TargetAgent, ParentTaskId: t.ParentTaskID,
		Result: utf8Text(t.Result), Tags: t.Tags, Importance: proto.Float64(t.Importance), CreateTime: timestampOf(t.CreateTime),
	}
	if len(t.Parameters) == 0 {
		return out
	}
	if object, ok := pleasantStruct(t.Parameters, form); ok {
		out.ParametersForm = &loombridgev1.Task_Parameters{Parameters: object}
	} else {
		out.ParametersForm = &loombridgev1.Task_ParametersJson{ParametersJson: string(t.Parameters)}
	}
	return out
}
