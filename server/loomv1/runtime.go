package loomv1

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
)

// textNoAgent says that a request names no agent.
const textNoAgent = "agent_id cannot be empty"

// agentRuntimeService serves the directory entries and states of agents.
type agentRuntimeService struct {
	loomv1pb.UnimplementedAgentRuntimeServer
	Deps
}

// CreateAgent puts an agent into the directory. If the agent has registered, it keeps its
// tools.
func (s *agentRuntimeService) CreateAgent(ctx context.Context, config *loomv1pb.AgentConfig) (*loomv1pb.CreateAgentResponse, error) {
	tenant, err := s.Tenant(ctx)
	if err != nil {
		return nil, err
	}
	id := config.GetAgentId()
	if id == "" {
		return &loomv1pb.CreateAgentResponse{ErrorMessage: textNoAgent}, nil
	}
	known, _ := s.Agents.Get(tenant, id)
	entry := known.Registration
	entry.Topics = config.GetSubscribedTopics()
	entry.Metadata = config.GetParameters()
	entry.Capabilities = config.GetCapabilities()
	entry.Kind = config.GetAgentType()
	if refused := s.register(ctx, tenant, id, entry); refused != "" {
		return &loomv1pb.CreateAgentResponse{ErrorMessage: refused}, nil
	}
	return &loomv1pb.CreateAgentResponse{Success: true}, nil
}

// DeleteAgent removes an agent's entry and state.
func (s *agentRuntimeService) DeleteAgent(ctx context.Context, req *loomv1pb.DeleteAgentRequest) (*loomv1pb.DeleteAgentResponse, error) {
	tenant, err := s.Tenant(ctx)
	if err != nil {
		return nil, err
	}
	found, err := s.Agents.Delete(ctx, tenant, req.GetAgentId())
	if err != nil {
		return nil, s.stateFault(ctx, "delete the agent", err)
	}
	return &loomv1pb.DeleteAgentResponse{Success: found}, nil
}

// GetAgentState reads the state of an agent. It is empty if the agent has stored none;
// for an unknown agent the status is NOT_FOUND.
func (s *agentRuntimeService) GetAgentState(ctx context.Context, req *loomv1pb.GetAgentStateRequest) (*loomv1pb.AgentState, error) {
	tenant, err := s.Tenant(ctx)
	if err != nil {
		return nil, err
	}
	state, stored, err := s.stateOf(ctx, tenant, req.GetAgentId())
	if err != nil {
		return nil, err
	}
	if _, known := s.Agents.Get(tenant, req.GetAgentId()); !stored && !known {
		return nil, status.Errorf(codes.NotFound, "agent %s not found", clip(req.GetAgentId()))
	}
	return sized(s.Deps, state)
}

// UpdateAgentState replaces the state of an agent.
func (s *agentRuntimeService) UpdateAgentState(ctx context.Context, state *loomv1pb.AgentState) (*loomv1pb.UpdateAgentStateResponse, error) {
	tenant, err := s.tenantOf(ctx, state.GetAgentId())
	if err != nil {
		return nil, err
	}
	if state.GetAgentId() == "" {
		return nil, status.Error(codes.InvalidArgument, textNoAgent)
	}
	// The state must fit the answer to SendEvent, or it could not be read again.
	answer := &loomv1pb.AgentResponse{AgentId: state.GetAgentId(), UpdatedState: state}
	if size, limit := proto.Size(answer), s.Options.MaxSendBytes; size > limit {
		return nil, status.Errorf(codes.ResourceExhausted, "state of %d bytes exceeds the limit of %d", size, limit)
	}
	err = s.Agents.SaveState(ctx, tenant, state.GetAgentId(), agents.State{
		Persistent:    state.GetPersistentState(),
		Ephemeral:     state.GetEphemeralContext(),
		UpdatedMillis: state.GetLastUpdateMs(),
		Metadata:      state.GetMetadata(),
	})
	if err != nil {
		return nil, s.stateFault(ctx, "store the state", err)
	}
	return &loomv1pb.UpdateAgentStateResponse{Success: true}, nil
}

// SendEvent hands an event to an agent's newest stream, under the agent's
// mailbox.
func (s *agentRuntimeService) SendEvent(ctx context.Context, req *loomv1pb.SendEventRequest) (*loomv1pb.AgentResponse, error) {
	tenant, err := s.Tenant(ctx)
	if err != nil {
		return nil, err
	}
	if req.GetEvent() == nil {
		return nil, status.Error(codes.InvalidArgument, "Event is required")
	}
	// Read the state first: if that fails, the event must not be sent.
	state, _, err := s.stateOf(ctx, tenant, req.GetAgentId())
	if err != nil {
		return nil, err
	}
	response, err := sized(s.Deps, &loomv1pb.AgentResponse{AgentId: req.GetAgentId(), UpdatedState: state})
	if err != nil {
		return nil, err
	}
	if err := s.send(ctx, tenant, req.GetAgentId(), req.GetEvent()); err != nil {
		return nil, err
	}
	return response, nil
}

func (s *agentRuntimeService) send(ctx context.Context, tenant, id string, message *loomv1pb.Event) error {
	event, refused := s.prepared(topics.Mailbox(id), message)
	if refused != nil {
		return status.Error(codes.ResourceExhausted, refused.message)
	}
	err := s.Agents.Send(ctx, tenant, id, event)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, agents.ErrBusy):
		return status.Errorf(codes.ResourceExhausted, "too many events wait for agent %s", clip(id))
	case errors.Is(err, agents.ErrClosed):
		return errStopping
	}
	return unavailable("agent %s is not connected", clip(id))
}

// stateOf is an agent's stored state, or an empty one.
func (s *agentRuntimeService) stateOf(ctx context.Context, tenant, id string) (state *loomv1pb.AgentState, stored bool, err error) {
	kept, err := s.Agents.LoadState(ctx, tenant, id)
	switch {
	case errors.Is(err, agents.ErrNotFound), errors.Is(err, agents.ErrInvalid):
		return &loomv1pb.AgentState{AgentId: id}, false, nil
	case err != nil:
		return nil, false, s.stateFault(ctx, "read the state", err)
	}
	return &loomv1pb.AgentState{
		AgentId:          id,
		PersistentState:  kept.Persistent,
		EphemeralContext: kept.Ephemeral,
		LastUpdateMs:     kept.UpdatedMillis,
		Metadata:         kept.Metadata,
	}, true, nil
}

// stateFault is the status of a call that could not read or write an agent's state.
func (s *agentRuntimeService) stateFault(ctx context.Context, operation string, err error) error {
	switch {
	case errors.Is(err, agents.ErrInvalid):
		return status.Error(codes.InvalidArgument, s.plain(ctx, operation, err))
	case errors.Is(err, agents.ErrClosed):
		return errStopping
	}
	return s.fault(ctx, operation, err)
}
