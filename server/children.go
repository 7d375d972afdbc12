package server

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// Children is what the handlers need to make the children of agents.
type Children interface {
	Spawn(ctx context.Context, r children.Spawn) (children.Child, error)
	Complete(ctx context.Context, scope kv.Scope, r children.Result) (children.Child, error)
	Wait(ctx context.Context, parent kv.Scope, sessionID string, ids []string, timeout time.Duration) (children.Outcome, error)
	// Spawned tells whether an agent was spawned.
	Spawned(scope kv.Scope) bool
	// Given are the tools that an agent may call.
	Given(ctx context.Context, scope kv.Scope) (children.Given, error)
	// Ends finds the child that an agent ends by its id, itself or one of its own.
	Ends(ctx context.Context, agent kv.Scope, id string, failed bool) (kv.Scope, error)
}

var _ Children = (*children.Spawner)(nil)

// SpawnAgent makes a child.
func (s *contextService) SpawnAgent(ctx context.Context, r *loombridgev1.SpawnAgentRequest) (*loombridgev1.SpawnAgentResponse, error) {
	scope, err := agentScope(ctx, r, validate.SpawnAgentRequest)
	if err != nil {
		return nil, err
	}
	if _, err := auth.AgentScope(ctx, r.GetChildId()); err != nil {
		return nil, err
	}
	child, err := s.children.Spawn(ctx, convert.Spawn(scope, r))
	if err != nil {
		return nil, err
	}
	return &loombridgev1.SpawnAgentResponse{Child: convert.ChildAgent(&child)}, nil
}

// CompleteTask ends a task with its conclusion.
func (s *contextService) CompleteTask(ctx context.Context, r *loombridgev1.CompleteTaskRequest) (*loombridgev1.CompleteTaskResponse, error) {
	scope, err := agentScope(ctx, r, validate.CompleteTaskRequest)
	if err != nil {
		return nil, err
	}
	child, err := s.children.Ends(ctx, scope, r.GetTaskId(), r.GetFailed())
	if err != nil {
		return nil, err
	}
	ended, err := s.children.Complete(ctx, child, convert.ChildResult(r))
	if err != nil {
		return nil, err
	}
	return &loombridgev1.CompleteTaskResponse{Child: convert.ChildAgent(&ended)}, nil
}

// WaitAgents waits until children have their results. A call that waits leaves its place
// among the running ones to others.
func (s *contextService) WaitAgents(ctx context.Context, r *loombridgev1.WaitAgentsRequest) (*loombridgev1.WaitAgentsResponse, error) {
	scope, err := agentScope(ctx, r, validate.WaitAgentsRequest)
	if err != nil {
		return nil, err
	}
	resume := share.Pause(ctx)
	outcome, err := s.children.Wait(ctx, scope, r.GetSessionId(), r.GetChildIds(), r.GetTimeout().AsDuration())
	resume()
	if err != nil {
		return nil, err
	}
	out := convert.WaitAgentsResponse(outcome)
	if proto.Size(out) > s.limits.MaxSendBytes {
		for _, c := range out.GetChildren() {
			c.Result = ""
		}
	}
	return out, nil
}
