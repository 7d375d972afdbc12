package server

import (
	"context"

	"google.golang.org/grpc"

	"github.com/loom-bridge/loom-bridge/bridge/approval"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// Approvals is what the handlers need of the calls that wait for a person.
type Approvals interface {
	Watch(by approval.Decider) *approval.Watcher
	Decide(ctx context.Context, by approval.Decider, id string, answer approval.Answer) (approval.Request, error)
	Grants(ctx context.Context, by approval.Decider) ([]approval.Grant, error)
	Revoke(ctx context.Context, by approval.Decider, id string) error
}

var _ Approvals = (*approval.Broker)(nil)

// deciderOf is who makes the call behind ctx, speaking as an agent that it may act for.
func deciderOf(ctx context.Context, agent string) (approval.Decider, error) {
	scope, err := auth.AgentScope(ctx, agent)
	if err != nil {
		return approval.Decider{}, err
	}
	id, _ := auth.Of(ctx)
	return approval.Decider{Tenant: scope.Tenant, Agent: agent, Owns: id.Owns, All: id.OwnsAll()}, nil
}

// WatchApprovals streams the calls that wait, until the caller leaves or the server stops.
func (s *toolService) WatchApprovals(r *loombridgev1.WatchApprovalsRequest, stream grpc.ServerStreamingServer[loombridgev1.WatchApprovalsResponse]) error {
	if err := validate.WatchApprovalsRequest(r); err != nil {
		return err
	}
	by, err := deciderOf(stream.Context(), r.GetAgentId())
	if err != nil {
		return err
	}
	watcher := s.approvals.Watch(by)
	defer watcher.Close()
	if err := stream.SendHeader(nil); err != nil { // whoever waits for the headers is watching
		return err
	}
	for {
		came, gone, err := watcher.Next(stream.Context())
		if err != nil {
			return err
		}
		for _, change := range convert.ApprovalChanges(came, gone) {
			if err := stream.Send(change); err != nil {
				return err
			}
		}
	}
}

// ApproveCall answers a call that waits.
func (s *toolService) ApproveCall(ctx context.Context, r *loombridgev1.ApproveCallRequest) (*loombridgev1.ApproveCallResponse, error) {
	if err := validate.ApproveCallRequest(r); err != nil {
		return nil, err
	}
	by, err := deciderOf(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	request, err := s.approvals.Decide(ctx, by, r.GetId(), convert.ApprovalAnswer(r.GetDecision()))
	if err != nil {
		return nil, err
	}
	return &loombridgev1.ApproveCallResponse{Approval: convert.PendingApproval(request)}, nil
}

// ListApprovals returns the answers that are remembered.
func (s *toolService) ListApprovals(ctx context.Context, r *loombridgev1.ListApprovalsRequest) (*loombridgev1.ListApprovalsResponse, error) {
	if err := validate.ListApprovalsRequest(r); err != nil {
		return nil, err
	}
	by, err := deciderOf(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	grants, err := s.approvals.Grants(ctx, by)
	if err != nil {
		return nil, err
	}
	return &loombridgev1.ListApprovalsResponse{Approvals: convert.Grants(grants)}, nil
}

// RevokeApproval takes a remembered answer back.
func (s *toolService) RevokeApproval(ctx context.Context, r *loombridgev1.RevokeApprovalRequest) (*loombridgev1.RevokeApprovalResponse, error) {
	if err := validate.RevokeApprovalRequest(r); err != nil {
		return nil, err
	}
	by, err := deciderOf(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	return &loombridgev1.RevokeApprovalResponse{}, s.approvals.Revoke(ctx, by, r.GetId())
}
