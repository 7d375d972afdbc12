package loomv1

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/bridge/stream"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
)

const (
	// maxTopicBytes bounds the topic of a subscription: far more than a stored topic may
	// have.
	maxTopicBytes = 4 << 10
	// publishTime bounds the publishes that were read before a stream broke. When the
	// agent closes its side, they are not bounded.
	publishTime = time.Second
)

// streamLimits bound the queues of a stream: the publishes of one agent in many seconds,
// and twice the largest message. They are low enough for a thousand streams on busy topics
// to end soon after their agents have left.
func streamLimits() stream.Limits {
	return stream.Limits{Publishes: 8192, PublishBytes: 8 << 20, Batch: 256, Replies: 512, LastRounds: 512}
}

// The statuses of streams that the server ends because it stops, and of streams that it
// cuts off.
var (
	errStopping = status.Error(codes.Unavailable, publicStopping)
	errCut      = unavailable("the stream was cut off")
)

func unavailable(format string, args ...any) error {
	return status.Errorf(codes.Unavailable, format, args...)
}

// eventStream is the transport of an agent's stream.
type eventStream = grpc.BidiStreamingServer[loomv1pb.ClientEvent, loomv1pb.ServerEvent]

// agentStream is one open stream of an agent, as stream.Face asks for it.
type agentStream struct {
	*stream.Stream[*loomv1pb.ServerEvent]
	Deps
	transport  eventStream
	tenant, id string
	link       *agents.Link
	stall      *time.Timer // runs during a send
}

// open opens the agent's stream in the directory and subscribes to the topics that it
// registered. Without a registration the stream has no topics.
func (s *bridgeService) open(ctx context.Context, transport eventStream, tenant, id string) (*agentStream, error) {
	if _, err := s.Events.Now(ctx); err != nil {
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	now := func() time.Time {
		now, _ := s.Events.Now(context.WithoutCancel(ctx)) // it is known by now
		return now
	}
	link, err := s.Agents.Open(tenant, id, agents.OpenOptions{})
	if err != nil {
		return nil, unavailable("the stream can't be opened: %s", s.plain(ctx, "open the stream", err))
	}
	a := &agentStream{Deps: s.Deps, transport: transport, tenant: tenant, id: id, link: link}
	var progress *stream.Progress
	if s.Options.Replay >= 0 {
		progress = stream.NewProgress(ctx, stream.ProgressOptions{
			Tenant: tenant, Agent: id, Directory: s.Agents, Link: link, Now: now, Replay: s.Options.Replay, Logger: s.Options.Logger,
		})
	}
	subscription, err := a.subscribe(ctx, progress)
	if err != nil {
		progress.Fail(ctx)
		link.Close()
		return nil, err
	}
	a.Stream = stream.New(a, stream.Config{
		Tenant: tenant, Agent: id, Bus: s.Events, Link: link, Subscription: subscription, Limits: streamLimits(),
		Requests: s.Options.Requests, Progress: progress, PublishTime: publishTime, Stopping: s.Options.Draining,
	})
	return a, nil
}

// subscribe subscribes to the topics that the agent registered, and takes the gap of its
// earlier stream.
func (a *agentStream) subscribe(ctx context.Context, progress *stream.Progress) (*events.Subscription, error) {
	topics := a.topics(ctx)
	selections := make([]events.Subscribed, len(topics))
	for i, topic := range topics {
		selections[i] = selectionOf(topic, events.Batched)
		selections[i].Since = progress.Since(topic)
	}
	subscription, err := a.Events.Subscribe(ctx, a.tenant, selections, a.reader(ctx, a.tenant, a.id))
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, status.FromContextError(ctx.Err()).Err()
	case errors.Is(err, events.ErrClosed), errors.Is(err, kv.ErrClosed):
		return nil, errStopping
	default:
		return nil, unavailable("the topics can't be subscribed: %s", a.plain(ctx, "subscribe the agent's topics", err))
	}
	if left := subscription.PastLeftOut(); left > 0 {
		a.Options.Logger.WarnContext(ctx, "loom.v1 replay leaves topics out: too many match", "agent", a.id, "topics", left)
	}
	progress.Begin(topics, subscription.Positions(), a.Options.Settle)
	return subscription, nil
}

// topics returns the topics that the agent registered, each once. It leaves out topics that
// the bus would refuse, because one such topic must not end the stream: agents that
// register through the native API have patterns of another form.
func (a *agentStream) topics(ctx context.Context) []string {
	registered := a.link.Registration().Topics
	topics := make([]string, 0, len(registered))
	for _, topic := range registered {
		if len(topics) < events.MaxSelections && len(topic) <= maxTopicBytes && pattern.Legacy(topic).CheckLegacy() == nil {
			topics = append(topics, topic)
		}
	}
	if left := len(registered) - len(topics); left > 0 {
		a.Options.Logger.WarnContext(ctx, "loom.v1 topics left out: too many or too long", "agent", a.id, "topics", left)
	}
	return topics
}

// serve serves the stream until it ends, and returns its status: OK after the agent
// has closed its side.
func (a *agentStream) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a.stall = newStall(a.Options.StallTimeout, cancel, unavailable("the agent took nothing for %v", a.Options.StallTimeout))
	defer a.stall.Stop()
	err := a.Run(ctx)
	switch cause := context.Cause(ctx); {
	case err == nil:
		return nil
	case ctx.Err() != nil && status.Code(cause) != codes.Unknown:
		return cause
	case ctx.Err() != nil:
		return errCut
	case status.Code(err) != codes.Unknown:
		return err
	case errors.Is(err, events.ErrSlowSubscriber):
		return unavailable("the agent takes events too slowly")
	case errors.Is(err, stream.ErrRemoved), errors.Is(err, stream.ErrStopping), errors.Is(err, events.ErrClosed), errors.Is(err, events.ErrSubscriptionClosed):
		return errStopping
	}
	a.Options.Logger.ErrorContext(ctx, "loom.v1 stream failed", "agent", a.id, "error", err)
	return unavailable("events can't be read: %s", publicText(err))
}

// newStall returns a timer, stopped, for sends that take too long: gRPC waits as long
// as the reader is connected. When it fires, cancel is called with err.
func newStall(timeout time.Duration, cancel context.CancelCauseFunc, err error) *time.Timer {
	timer := time.AfterFunc(timeout, func() { cancel(err) })
	timer.Stop()
	return timer
}

// Receive passes on what the agent sends. It ignores unknown messages, and acks, because
// deliveries are not acknowledged.
func (a *agentStream) Receive(ctx context.Context) error {
	message, err := a.transport.Recv()
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		return err
	case status.Code(err) == codes.Canceled, status.Code(err) == codes.DeadlineExceeded:
		return errCut
	default:
		return unavailable("a message can't be read: %s", clip(status.Convert(err).Message()))
	}
	switch m := message.GetMsg().(type) {
	case *loomv1pb.ClientEvent_Publish:
		return a.Publish(ctx, a.publicationOf(m.Publish))
	case *loomv1pb.ClientEvent_Ping:
		return a.Heartbeat(ctx, pongOf(a.Options.Now()))
	case *loomv1pb.ClientEvent_ToolResult:
		a.link.Complete(m.ToolResult.GetId(), resultOf(m.ToolResult))
	}
	return nil
}

type publication = stream.Publication[*loomv1pb.ServerEvent]

// publicationOf converts a publish for the bus, or refuses it. It is stored without a
// sync, which survives a kill of the process, so that it can be replayed.
func (a *agentStream) publicationOf(p *loomv1pb.Publish) publication {
	out := publication{Size: proto.Size(p), Options: events.EmitOptions{Legacy: true, Lazy: true, Emitter: a.id}}
	refused := oversizeOf(p)
	if refused == nil {
		out.Event, refused = a.prepared(p.GetTopic(), p.GetEvent())
	}
	if refused != nil {
		out.Refused = new(errorOf(refused.code, refused.message))
	}
	return out
}

// Answer reports to the agent that the bus refused an event.
func (a *agentStream) Answer(ctx context.Context, p *publication, result events.EmitResult) (*loomv1pb.ServerEvent, bool) {
	if result.Err == nil {
		return nil, false
	}
	refused := a.notTaken(ctx, p.Event.Topic, result.Err)
	return errorOf(refused.code, refused.message), true
}

// SendAnswer sends one message, unless it is too large: such a message would end the
// agent's stream each time.
func (a *agentStream) SendAnswer(ctx context.Context, message *loomv1pb.ServerEvent) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if size := proto.Size(message); size > a.Options.MaxSendBytes {
		a.Options.Logger.WarnContext(ctx, "loom.v1 message left out: too large", "agent", a.id,
			"event_id", clip(message.GetDelivery().GetEvent().GetId()), "size", size, "limit", a.Options.MaxSendBytes)
		return nil
	}
	a.stall.Reset(a.Options.StallTimeout)
	defer a.stall.Stop()
	if err := a.transport.Send(message); err != nil {
		return errCut
	}
	return nil
}

// SendEvent delivers an event.
func (a *agentStream) SendEvent(ctx context.Context, d events.Delivery) error {
	return a.SendAnswer(ctx, deliveryOf(d.Pattern.String(), d.Event, a.id))
}

// SendCall asks the agent to run a tool. A call that is too large for every client fails
// at once.
func (a *agentStream) SendCall(ctx context.Context, call agents.PushedCall) error {
	message := toolCallOf(call)
	if size, limit := proto.Size(message), a.Options.MaxSendBytes; size > limit {
		a.link.Complete(call.ID, resultOf(executionFailed("call of %d bytes exceeds the limit of %d", size, limit)))
		return nil
	}
	return a.SendAnswer(ctx, message)
}
