package loomv1

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/plans"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	"github.com/loom-bridge/loom-bridge/server/forward"
)

// Defaults of Options.
const (
	// DefaultMaxSendBytes stays below the 4 MiB that clients take, by enough for
	// what gRPC may add.
	DefaultMaxSendBytes = 4<<20 - 64<<10
	// DefaultReplay is how old the events of a gap may be: an agent must not act on
	// requests of long ago.
	DefaultReplay = 60 * time.Second
	// DefaultSettle outlasts what loom-py does after an outage: it may connect
	// twice in a row, and leaves the first stream unread.
	DefaultSettle = 250 * time.Millisecond
	// DefaultStallTimeout is how long a stream may take nothing before it is
	// ended: longer than a network hiccup, and than loom-py waits to connect
	// again.
	DefaultStallTimeout = 60 * time.Second
)

// Hand runs the server's own tools.
type Hand interface {
	// Run runs a tool and records nothing. See hand.Hand.
	Run(ctx context.Context, req hand.Request) (hand.RawAnswer, error)
	// Relay lets a call pass on to an agent, within the limits of its tool.
	Relay(ctx context.Context, req hand.Request, d tools.Descriptor, run func() hand.Relayed) error
}

// Deps are what the services work with. All but Options are required; they stay
// the caller's to close, after the gRPC server has stopped.
type Deps struct {
	Events *events.Bus
	Agents *agents.Directory
	Hand   Hand
	Tools  *tools.Catalogue
	Plans  *plans.Store
	// Spawned reports whether an agent was spawned. Default: none was.
	Spawned func(agent kv.Scope) bool
	// Acts is an error for an agent that does nothing any more. Default: every agent does.
	Acts func(ctx context.Context, agent kv.Scope) error
	// Forward has calls of a method taken to the server that has the workspace which they
	// touch. Default: they run here.
	Forward func(method string, r forward.Route)
	// Tenant returns whose data a call works on. Its error ends the call as it
	// is.
	Tenant func(ctx context.Context) (string, error)
	// Options adjusts the services. Zero fields mean the defaults.
	Options Options
}

// Options adjusts the services. Zero fields mean the defaults.
type Options struct {
	// MaxSendBytes bounds every message sent, encoded. Default
	// DefaultMaxSendBytes.
	MaxSendBytes int
	// Replay is the age of the oldest event that an agent is given again after
	// its stream broke. Default DefaultReplay; negative: nothing is replayed.
	Replay time.Duration
	// Settle is how long a stream with something to replay is open before that
	// begins, and what comes behind it: if the agent opens another one meanwhile,
	// that one gets it all. Default DefaultSettle; negative: no time.
	Settle time.Duration
	// Requests are the bytes of requests in memory, which what streams have published
	// and the bus has not taken yet counts against. Default nil: it is not counted.
	Requests *share.Pool
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger logs faults of the server's own. Default silent.
	Logger *slog.Logger
	// Draining is closed when the server begins to stop: streams then end with
	// UNAVAILABLE. Default: never.
	Draining <-chan struct{}
	// StallTimeout is how long a stream may take nothing before it is ended.
	// Default DefaultStallTimeout.
	StallTimeout time.Duration
}

func (o Options) withDefaults() Options {
	if o.MaxSendBytes <= 0 {
		o.MaxSendBytes = DefaultMaxSendBytes
	}
	if o.Replay == 0 {
		o.Replay = DefaultReplay
	}
	if o.Settle == 0 {
		o.Settle = DefaultSettle
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.StallTimeout <= 0 {
		o.StallTimeout = DefaultStallTimeout
	}
	return o
}

// Register puts the services on a gRPC server, before it serves.
func Register(r grpc.ServiceRegistrar, d Deps) {
	d.Options = d.Options.withDefaults()
	if d.Acts == nil {
		d.Acts = func(context.Context, kv.Scope) error { return nil }
	}
	bridge, caller := newBridgeService(d), &toolService{toolCaller: toolCaller{d}}
	loomv1pb.RegisterBridgeServer(r, bridge)
	loomv1pb.RegisterMemoryServiceServer(r, &memoryService{Deps: d})
	loomv1pb.RegisterToolServiceServer(r, caller)
	if d.Forward != nil {
		d.Forward(loomv1pb.Bridge_ForwardToolCall_FullMethodName, forward.To(bridge.ForwardToolCall, caller.touches))
		d.Forward(loomv1pb.ToolService_Call_FullMethodName, forward.To(caller.Call, caller.touches))
	}
	loomv1pb.RegisterEventBusServer(r, &eventBusService{Deps: d, open: make(map[subscriptionKey]*events.Subscription)})
	loomv1pb.RegisterAgentRuntimeServer(r, &agentRuntimeService{Deps: d})
}
