package server

import (
	"context"

	"github.com/loom-bridge/loom-bridge/bridge/tiers"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// Tasks is what the handlers need of the tiers of tasks.
type Tasks interface {
	// Find returns a task of any session, by its id or the ref of its summary, and
	// where it is.
	Find(ctx context.Context, scope kv.Scope, id string) (tiers.Found, error)
}

var _ Tasks = (*tiers.Tiers)(nil)

// GetTask returns one task.
func (s *contextService) GetTask(ctx context.Context, r *loombridgev1.GetTaskRequest) (*loombridgev1.GetTaskResponse, error) {
	if err := validate.GetTaskRequest(r); err != nil {
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
		Task: convert.Task(found.Task, r.GetJsonForm()), SessionId: found.Task.SessionID, Number: int64(found.Task.Number), RecordId: found.RecordID,
	}
	for _, tier := range found.Tiers {
		out.Tiers = append(out.Tiers, convert.Int32(tier))
	}
	return out, nil
}
