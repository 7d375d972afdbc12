package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Hand is what the handlers need of the place where a tool call becomes a
// recorded step.
type Hand interface {
	Call(ctx context.Context, r hand.Request) (hand.Answer, error)
	Record(ctx context.Context, r hand.Recorded) (hand.Answer, error)
	Compress(ctx context.Context, r hand.CompressRequest) (hand.CompressAnswer, error)
}

// Events is what the handlers need of the bus.
type Events interface {
	Emit(ctx context.Context, tenant string, e events.Event, opts events.EmitOptions) (events.Event, error)
	EmitAll(ctx context.Context, tenant string, all []events.Event, opts []events.EmitOptions) []events.EmitResult
	Subscribe(ctx context.Context, tenant string, selections []events.Selection, opts *events.SubscribeOptions) (*events.Subscription, error)
}

var (
	_ Hand   = (*hand.Hand)(nil)
	_ Events = (*events.Bus)(nil)
)

type bridgeService struct {
	loombridgev1.UnimplementedBridgeServiceServer
	memory Memory
	hand   Hand
	events Events
	agents Agents
	limits Limits
	now    func() time.Time
	log    *slog.Logger
}

// MemorySave saves one record.
func (s *bridgeService) MemorySave(ctx context.Context, r *loombridgev1.MemorySaveRequest) (*loombridgev1.MemorySaveResponse, error) {
	if err := checkMemorySaveRequest(r); err != nil {
		return nil, err
	}
	scope, err := memoryScope(ctx, r.GetAgentId(), r.GetUserId())
	if err != nil {
		return nil, err
	}
	record, err := recordToSave(r)
	if err != nil {
		return nil, err
	}
	saved, err := s.memory.Save(ctx, scope, record, r.GetRequestId())
	if err != nil {
		return nil, err
	}
	return &loombridgev1.MemorySaveResponse{
		Id: saved.ID, CreateTime: timestampOf(saved.CreateTime), ExpireTime: timestampOf(saved.ExpireTime),
	}, nil
}

// MemoryQuery finds records by their words.
func (s *bridgeService) MemoryQuery(ctx context.Context, r *loombridgev1.MemoryQueryRequest) (*loombridgev1.MemoryQueryResponse, error) {
	if err := checkMemoryQueryRequest(r); err != nil {
		return nil, err
	}
	scope, err := memoryScope(ctx, r.GetAgentId(), r.GetUserId())
	if err != nil {
		return nil, err
	}
	found, err := s.memory.Query(ctx, scope, queryOf(r))
	if err != nil {
		return nil, err
	}
	view := recordView{r.GetJsonForm(), r.GetIncludeEmbeddings()}
	return view.result(found), nil
}

// Tool runs one tool and records the call.
func (s *bridgeService) Tool(ctx context.Context, r *loombridgev1.ToolRequest) (*loombridgev1.ToolResponse, error) {
	if err := checkToolRequest(r); err != nil {
		return nil, err
	}
	scope, err := agentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	call, err := callOf(scope, r)
	if err != nil {
		return nil, err
	}
	answer, err := s.hand.Call(ctx, call)
	if err != nil {
		return nil, err
	}
	return toolResponse(answer, r.GetJsonForm(), s.limits.MaxSendBytes), nil
}

// Emit publishes one event.
func (s *bridgeService) Emit(ctx context.Context, r *loombridgev1.EmitRequest) (*loombridgev1.EmitResponse, error) {
	if err := checkEmitRequest(r); err != nil {
		return nil, err
	}
	scope, err := agentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	event, err := eventToEmit(r)
	if err != nil {
		return nil, err
	}
	taken, err := s.events.Emit(ctx, scope.Tenant, event, emitOptionsOf(r))
	if err != nil {
		return nil, err
	}
	return &loombridgev1.EmitResponse{
		EventId: taken.ID, Sequence: int64(taken.Sequence), CreateTime: timestampOf(taken.Time),
	}, nil
}
