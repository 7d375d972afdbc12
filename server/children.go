package server

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/conduct"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// SpawnAgent makes a child.
func (s *contextService) SpawnAgent(ctx context.Context, r *loombridgev1.SpawnAgentRequest) (*loombridgev1.ChildAgent, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
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
	return convert.ChildAgent(&child), nil
}

// CompleteTask ends a task with its conclusion: that of a child, or any other.
func (s *contextService) CompleteTask(ctx context.Context, r *loombridgev1.CompleteTaskRequest) (*loombridgev1.CompleteTaskResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	child, err := s.children.Ends(ctx, scope, r.GetTaskId(), r.GetFailed())
	if errors.Is(err, children.ErrNotChild) {
		found, none := s.tasks.Find(ctx, scope, r.GetTaskId())
		if none == nil {
			return s.concludeTask(ctx, scope, found.Task, r)
		}
	}
	if err != nil {
		return nil, err
	}
	if len(r.GetStepIds()) > 0 {
		return nil, validate.Refuse("step_ids", "are not for a child")
	}
	ended, err := s.children.Complete(ctx, child, convert.ChildResult(r))
	if err != nil {
		return nil, err
	}
	return &loombridgev1.CompleteTaskResponse{Child: convert.ChildAgent(&ended)}, nil
}

// concludeTask gives a task its result and folds its steps.
func (s *contextService) concludeTask(ctx context.Context, scope kv.Scope, task session.Task, r *loombridgev1.CompleteTaskRequest) (*loombridgev1.CompleteTaskResponse, error) {
	if err := s.children.Acts(ctx, scope); err != nil {
		return nil, err
	}
	if err := validate.ConcludedTask(r, task.SessionID); err != nil {
		return nil, err
	}
	ask := convert.ConcludeRequest(scope, task, r)
	ask.Settle = func(ctx context.Context) error {
		task.Result = ask.Conclusion
		_, err := s.tasks.Add(ctx, scope, task)
		return err
	}
	concluded, err := s.assembler.Conclude(ctx, ask)
	if err != nil {
		return nil, err
	}
	s.metrics.Folded(concluded.Batch)
	return convert.CompleteTaskResponse(concluded), nil
}

// WaitAgents waits until children have their results. A call that waits leaves its place
// among the running ones to others.
func (s *contextService) WaitAgents(ctx context.Context, r *loombridgev1.WaitAgentsRequest) (*loombridgev1.WaitAgentsResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
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
		out.Cut = true
	}
	return out, nil
}

// mayAct refuses what an agent does that has ended: the one place for all methods that
// name an agent. Who may not act for the agent hears that from the method itself. The
// context is that for the method, which asks on its way where the store is far and the
// method reads it anyway.
func (s *Server) mayAct(ctx context.Context, method string, message any) (context.Context, error) {
	if !conduct.Acts(method) {
		return ctx, nil
	}
	agent := actorOf(message)
	if dry, ok := message.(interface{ GetDryRun() bool }); agent == "" || ok && dry.GetDryRun() {
		return ctx, nil
	}
	scope, err := auth.AgentScope(ctx, agent)
	if err != nil {
		return ctx, nil //nolint:nilerr // the method says it
	}
	if asksItself(method, message) {
		if permit := s.services.Children.Permit(scope); permit != nil {
			return kv.WithPermit(ctx, permit), nil
		}
	}
	return ctx, s.services.Children.Acts(ctx, scope)
}

// asksItself reports whether a method that is asked so changes nothing before it has asked
// whether its agent acts. An event that is not stored is not asked for.
func asksItself(method string, message any) bool {
	m, emits := message.(*loombridgev1.EmitRequest)
	return conduct.Of(method).GetAsksItself() && (!emits || m.GetDelivery() != loombridgev1.Delivery_DELIVERY_VOLATILE && topics.Plain(m.GetTopic()))
}

// actorOf is the agent that a message names; empty for none.
func actorOf(message any) string {
	switch m := message.(type) {
	case interface{ GetAgentId() string }:
		return m.GetAgentId()
	case *loombridgev1.AttachRequest:
		return m.GetHello().GetAgentId()
	case *loombridgev1.UploadStepRequest:
		return m.GetStep().GetAgentId()
	case *loomv1pb.ClientEvent:
		return m.GetAck().GetMessageId()
	}
	return ""
}
