package loomv1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
)

// statusOK answers heartbeats and pings.
const statusOK = "ok"

// Errors of a stream with a wrong first message. Clients know these texts.
var (
	errNoFirstMessage = status.Error(codes.InvalidArgument, "no first message")
	errNoAck          = status.Error(codes.InvalidArgument, "first stream message must be Ack carrying agent_id")
)

// bridgeService lets agents register, open their stream, and call tools.
type bridgeService struct {
	loomv1pb.UnimplementedBridgeServer
	toolCaller
}

func newBridgeService(d Deps) *bridgeService {
	return &bridgeService{toolCaller: toolCaller{d}}
}

// RegisterAgent replaces the registration of an agent. Its open streams keep the
// registration that they were opened with.
func (s *bridgeService) RegisterAgent(ctx context.Context, r *loomv1pb.AgentRegisterRequest) (*loomv1pb.AgentRegisterResponse, error) {
	tenant, err := s.Tenant(ctx)
	if err != nil {
		return nil, err
	}
	registration, broken, first := registrationOf(r)
	if refused := s.register(ctx, tenant, r.GetAgentId(), registration); refused != "" {
		return &loomv1pb.AgentRegisterResponse{ErrorMessage: refused}, nil
	}
	if broken > 0 {
		s.Options.Logger.WarnContext(ctx, "an agent's tools have broken schemas and take any object instead",
			"agent", clip(r.GetAgentId()), "tools", broken, "first", first)
	}
	return &loomv1pb.AgentRegisterResponse{Success: true}, nil
}

// register enters an agent into the directory, or returns why that is refused. It also
// refuses topics that a stream could not subscribe to, for which the agent would
// otherwise wait for ever.
func (d Deps) register(ctx context.Context, tenant, id string, r agents.Registration) (refused string) {
	distinct := make(map[string]bool, len(r.Topics))
	for _, topic := range r.Topics {
		if len(topic) > maxTopicBytes {
			return fmt.Sprintf("subscribed_topics has a topic of %d bytes, over the limit of %d", len(topic), maxTopicBytes)
		}
		distinct[topic] = true
	}
	if len(distinct) > events.MaxSelections {
		return fmt.Sprintf("subscribed_topics has %d topics, over the limit of %d", len(distinct), events.MaxSelections)
	}
	if err := d.Acts(ctx, kv.AgentScope(tenant, id)); err != nil {
		if refused := ofFamily(err); refused != nil {
			return refused.message
		}
		return d.plain(ctx, "register the agent", err)
	}
	registered, err := d.Agents.Register(tenant, id, r)
	if err == nil {
		d.tellTaken(ctx, tenant, id, r, registered)
		return ""
	}
	return d.plain(ctx, "register the agent", err)
}

// tellTaken logs the tools of a registration whose names are taken, so that calls do not
// reach them. The protocol has no way to inform the client.
func (d Deps) tellTaken(ctx context.Context, tenant, id string, asked agents.Registration, registered agents.Agent) {
	has := make(map[string]bool, len(registered.Tools))
	for _, t := range registered.Tools {
		has[t.Name] = true
	}
	for _, t := range asked.Tools {
		if !has[t.Name] {
			d.Options.Logger.WarnContext(ctx, "loom.v1 tool left out: the tools of the agent, or of all agents, are too large", "agent", id, "tool", clip(t.Name))
			continue
		}
		if reached, ok := d.Agents.Lookup(tenant, t.Name); ok && reached.AgentID != id {
			d.Options.Logger.WarnContext(ctx, "loom.v1 tool belongs to another agent, which is called while it has a stream",
				"agent", id, "tool", clip(t.Name), "owner", clip(reached.AgentID))
		}
	}
}

// ForwardToolCall runs a tool of the server or of an agent. Its gRPC status is
// always OK: how the call went is in the result.
func (s *bridgeService) ForwardToolCall(ctx context.Context, call *loomv1pb.ToolCall) (*loomv1pb.ToolResult, error) {
	return s.serve(ctx, call)
}

// Heartbeat says that the server is there. The request names no agent, so it does not keep
// one active.
func (s *bridgeService) Heartbeat(_ context.Context, r *loomv1pb.HeartbeatRequest) (*loomv1pb.HeartbeatResponse, error) {
	return &loomv1pb.HeartbeatResponse{TimestampMs: r.GetTimestampMs(), Status: statusOK}, nil
}

// EventStream is one agent's connection: it publishes and answers tool calls,
// and gets events and tool calls. It ends with OK only after the agent has
// closed its side, and else with UNAVAILABLE, after which loom-py connects again.
func (s *bridgeService) EventStream(stream eventStream) error {
	ctx := stream.Context()
	tenant, err := s.Tenant(ctx)
	if err != nil {
		return err
	}
	id, err := s.handshake(stream)
	if err != nil {
		return err
	}
	if _, err := s.tenantOf(ctx, id); err != nil {
		return err
	}
	opened, err := s.open(ctx, stream, tenant, id)
	if err != nil {
		return err
	}
	// Some clients wait for the headers before they do anything else, and gRPC
	// would hold them back until the first message.
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		opened.Close(ctx)
		return err
	}
	return opened.serve(ctx)
}

// handshake reads the first message and returns the agent's id, which may be
// empty.
func (s *bridgeService) handshake(stream eventStream) (string, error) {
	first, err := s.first(stream)
	switch {
	case errors.Is(err, io.EOF):
		return "", errNoFirstMessage
	case err != nil:
		return "", err
	}
	ack, ok := first.GetMsg().(*loomv1pb.ClientEvent_Ack)
	if !ok {
		return "", errNoAck
	}
	return ack.Ack.GetMessageId(), nil
}

// first waits for the first message, at most StallTimeout, or until the server stops.
func (s *bridgeService) first(stream eventStream) (*loomv1pb.ClientEvent, error) {
	type message struct {
		event *loomv1pb.ClientEvent
		err   error
	}
	// Recv ends when this handler has returned, at the latest.
	came := make(chan message, 1)
	go func() {
		event, err := stream.Recv()
		came <- message{event, err}
	}()
	timer := time.NewTimer(s.Options.StallTimeout)
	defer timer.Stop()
	select {
	case m := <-came:
		return m.event, m.err
	case <-timer.C:
		return nil, errNoFirstMessage
	case <-s.Options.Draining:
		return nil, errStopping
	}
}
