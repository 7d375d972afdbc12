package server

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/a2a"
	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/grants"
	"github.com/loom-bridge/loom-bridge/memory/question"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/sharing"
)

// Events is what the handlers need of the bus.
type Events interface {
	Emit(ctx context.Context, tenant string, e events.Event, opts events.EmitOptions) (events.Event, error)
	EmitAll(ctx context.Context, tenant string, all []events.Event, opts []events.EmitOptions) []events.EmitResult
	Subscribe(ctx context.Context, tenant string, selections []events.Subscribed, opts *events.SubscribeOptions) (*events.Subscription, error)
	Now(ctx context.Context) (time.Time, error)
	Heard(tenant string, e events.Event) bool
}

var _ Events = (*events.Bus)(nil)

type bridgeService struct {
	loombridgev1.UnimplementedBridgeServiceServer
	memory   Memory
	grants   *grants.Store
	hand     *hand.Hand
	events   Events
	given    *a2a.Tasks
	children *children.Spawner
	agents   *agents.Directory
	// signals takes in what heartbeats bring.
	signals topics.Signals
	limits  Limits
	shares  *Shares
	now     func() time.Time
	log     *slog.Logger
}

// MemorySave saves one record.
func (s *bridgeService) MemorySave(ctx context.Context, r *loombridgev1.MemorySaveRequest) (*loombridgev1.MemorySaveResponse, error) {
	ctx, scope, err := sharing.Writing(ctx, s.grants, r)
	if err != nil {
		return nil, err
	}
	record, err := convert.Record(r)
	if err != nil {
		return nil, err
	}
	saved, err := s.memory.SaveAs(ctx, scope, record, memory.Saving{
		RequestID: r.GetRequestId(), Duplicates: memory.Duplicates(r.GetDuplicates()), Replace: r.GetReplace(),
	})
	if err != nil {
		return nil, err
	}
	return convert.Saved(saved), nil
}

// MemoryQuery finds the records that fit best.
func (s *bridgeService) MemoryQuery(ctx context.Context, r *loombridgev1.MemoryQueryRequest) (*loombridgev1.MemoryQueryResponse, error) {
	scopes, err := sharing.Searched(ctx, s.grants, r)
	if err != nil {
		return nil, err
	}
	view := convert.RecordView{AsText: convert.AsText(ctx), Embeddings: r.GetIncludeEmbeddings()}
	query := convert.Query(r)
	query.MaxBytes = s.limits.MaxSendBytes
	for before := question.MaxLimit + 1; ; {
		found, err := s.memory.QueryScopes(ctx, scopes, query)
		if err != nil {
			return nil, err
		}
		out := view.Result(found, len(r.GetOwners()) > 0)
		// Metadata as a Struct, explanations and vectors take more on the wire than
		// the store counted.
		fit := sendable(out, s.limits.MaxSendBytes)
		if fit == len(out.GetHits()) || before <= len(out.GetHits()) {
			return out, nil
		}
		before, query.MaxBytes = len(out.GetHits()), 0
		for _, hit := range found.Hits[:fit] {
			query.MaxBytes += hit.Record.Bytes()
		}
	}
}

// sendable is how many hits of an answer fit in one message. It is at least one,
// as there is no use in a message without.
func sendable(out *loombridgev1.MemoryQueryResponse, limit int) int {
	if proto.Size(out) <= limit {
		return len(out.GetHits())
	}
	size := proto.Size(&loombridgev1.MemoryQueryResponse{Receipt: out.GetReceipt()}) + receiptSlack
	for i, hit := range out.GetHits() {
		size += proto.Size(&loombridgev1.MemoryQueryResponse{Hits: []*loombridgev1.MemoryHit{hit}})
		if size > limit {
			return max(1, i)
		}
	}
	return len(out.GetHits())
}

// receiptSlack is more than a receipt grows by when it has more to count.
const receiptSlack = 64

// Tool runs one tool and records the call.
func (s *bridgeService) Tool(ctx context.Context, r *loombridgev1.ToolRequest) (*loombridgev1.ToolResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	call, err := convert.ToolRequest(scope, r)
	if err != nil {
		return nil, err
	}
	answer, err := s.hand.Call(ctx, call)
	if err != nil {
		return nil, err
	}
	return convert.ToolResponse(answer, convert.AsText(ctx), s.limits.MaxSendBytes, publicText), nil
}

// Emit publishes one event.
func (s *bridgeService) Emit(ctx context.Context, r *loombridgev1.EmitRequest) (*loombridgev1.EmitResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	event, err := convert.Event(r)
	if err != nil {
		return nil, err
	}
	if err := heard(s.events, s.agents, scope.Tenant, r, event); err != nil {
		return nil, err
	}
	taken, err := s.events.Emit(ctx, scope.Tenant, event, convert.EmitOptions(r, ownsOf(ctx)))
	if err != nil {
		return nil, err
	}
	return &loombridgev1.EmitResponse{
		EventId: taken.ID, Sequence: int64(taken.Sequence), CreateTime: convert.Timestamp(taken.Time),
	}, nil
}
