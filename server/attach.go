package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/loom-bridge/loom-bridge/bridge/a2a"
	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/stream"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/observe"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// attachStream is the server's side of one Attach.
type attachStream = grpc.BidiStreamingServer[loombridgev1.AttachRequest, loombridgev1.AttachResponse]

// attachment is one agent on one stream, as stream.Face asks for it.
type attachment struct {
	*stream.Stream[streamAnswer]
	transport attachStream
	events    Events
	given     *a2a.Tasks
	agents    *agents.Directory
	log       *slog.Logger
	now       func() time.Time
	signals   topics.Signals
	children  *children.Spawner
	tenant    string
	agentID   string
	session   string
	interval  time.Duration // between heartbeats

	subscription *events.Subscription
	link         *agents.Link
	before       time.Time // when the subscription did not stand yet
	topics       topicSet  // belongs to Receive
	framer       framer    // belongs to the sender
}

// streamAnswer is the answer to one message of the agent.
type streamAnswer struct {
	// reply is the whole answer; nil for a publish that was emitted as the
	// fields below say.
	reply *loombridgev1.AttachAnswer

	ref      int64
	id       string
	sequence uint64
	time     time.Time
}

// Attach serves one agent until it leaves, stalls, or the server stops.
func (s *bridgeService) Attach(transport attachStream) error {
	hello, err := receiveHello(transport, s.limits.ConnectionTimeout)
	if err != nil {
		return err
	}
	a, err := s.attach(transport, hello)
	if err != nil {
		return err
	}
	ctx := transport.Context()
	if err := transport.Send(a.ready()); err != nil {
		a.Close(ctx)
		return err
	}
	if err := a.Run(ctx); !errors.Is(err, stream.ErrRemoved) {
		return err
	}
	return fmt.Errorf("%w: the agent was taken out of the directory; attach again", ErrShuttingDown)
}

// receiveHello returns the first message, checked. Who stays silent for the
// timeout must not keep a stream from others.
func receiveHello(transport attachStream, timeout time.Duration) (*loombridgev1.AttachHello, error) {
	silent := time.AfterFunc(timeout, func() {
		endStream(transport.Context(), validate.Refuse("hello", fmt.Sprintf("did not come within %v", timeout)))
	})
	defer silent.Stop()
	first, err := transport.Recv()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	hello := first.GetHello()
	if hello == nil {
		return nil, validate.Refuse("hello", "is required as the first message")
	}
	return hello, within("hello", validate.Request(hello))
}

// attach makes the agent known. It listens before it can be found, so that what
// is emitted because of it arrives.
func (s *bridgeService) attach(transport attachStream, hello *loombridgev1.AttachHello) (*attachment, error) {
	ctx := transport.Context()
	scope, err := auth.AgentScope(ctx, hello.GetAgentId())
	if err != nil {
		return nil, err
	}
	for _, tool := range hello.GetTools() {
		if err := auth.MayProvide(ctx, tool.GetName()); err != nil {
			return nil, err
		}
	}
	registration, err := convert.Registration(hello)
	if err != nil {
		return nil, within("hello", err)
	}
	before, err := s.events.Now(ctx)
	if err != nil {
		return nil, err
	}
	a := &attachment{
		transport: transport, events: s.events, given: s.given, agents: s.agents, log: s.log, now: s.now, signals: s.signals, children: s.children,
		tenant: scope.Tenant, agentID: hello.GetAgentId(), session: hello.GetSessionId(),
		interval: convert.Interval(hello), before: before, topics: topicSet{},
		framer: framer{asText: convert.AsText(ctx), limit: s.limits.MaxSendBytes, log: s.log},
	}
	a.topics.add(hello.GetTopics())
	selections, err := convert.Selections(hello.GetTopics())
	if err != nil {
		return nil, within("hello", err)
	}
	if a.subscription, err = s.events.Subscribe(ctx, a.tenant, selections, readerOf(ctx, scope, s.children)); err != nil {
		return nil, within("hello", err)
	}
	if a.link, err = s.open(a, registration); err != nil {
		a.subscription.Close()
		return nil, within("hello", err)
	}
	// Bound what waits for a stream: enough publishes to fill one commit, and
	// few enough that a thousand streams fit in memory.
	a.Stream = stream.New(a, stream.Config{
		Tenant: a.tenant, Agent: a.agentID, Bus: s.events, Link: a.link, Subscription: a.subscription,
		Limits: stream.Limits{Publishes: 1024, PublishBytes: 8 * mib, Batch: 1024, Replies: 256}, Requests: s.shares.Requests,
	})
	return a, nil
}

func (s *bridgeService) open(a *attachment, r agents.Registration) (*agents.Link, error) {
	if _, err := s.agents.Register(a.tenant, a.agentID, r); err != nil {
		return nil, err
	}
	return s.agents.Open(a.tenant, a.agentID, agents.OpenOptions{Heartbeat: a.interval})
}

func (a *attachment) ready() *loombridgev1.AttachResponse {
	return &loombridgev1.AttachResponse{Item: &loombridgev1.AttachResponse_Ready{Ready: &loombridgev1.SubscriptionReady{
		Positions: convert.TopicPositions(a.subscription.Positions()), HeartbeatInterval: durationpb.New(a.interval), ServerTime: convert.Timestamp(a.before),
	}}}
}

// Receive hands a message of the agent to the stream.
func (a *attachment) Receive(ctx context.Context) error {
	m, err := a.transport.Recv()
	if err != nil {
		return err
	}
	if refused, err := a.refuse(ctx, m); refused {
		return err
	}
	switch item := m.GetItem().(type) {
	case *loombridgev1.AttachRequest_Publish:
		return a.Publish(ctx, a.publicationOf(ctx, m.GetRef(), item.Publish))
	case *loombridgev1.AttachRequest_Subscribe:
		return a.Reply(ctx, a.subscribe(ctx, m.GetRef(), item.Subscribe))
	case *loombridgev1.AttachRequest_Unsubscribe:
		return a.Reply(ctx, a.unsubscribe(ctx, m.GetRef(), item.Unsubscribe))
	case *loombridgev1.AttachRequest_ToolResult:
		a.link.Complete(item.ToolResult.GetCallId(), convert.ToolResult(item.ToolResult))
		return nil
	case *loombridgev1.AttachRequest_Heartbeat:
		return a.Heartbeat(ctx, a.beat(ctx, m.GetRef(), item.Heartbeat))
	case *loombridgev1.AttachRequest_Hello:
		return validate.Refuse("hello", "comes first and once")
	}
	return validate.Refuse("item", "is required")
}

// beat notes a heartbeat with what it brings, and answers it.
func (a *attachment) beat(ctx context.Context, ref int64, r *loombridgev1.AttachHeartbeat) streamAnswer {
	reply := &loombridgev1.AttachAnswer{Ref: ref, Ready: &loombridgev1.SubscriptionReady{ServerTime: convert.Timestamp(a.now())}}
	scope := kv.AgentScope(a.tenant, a.agentID)
	err := a.children.Acts(ctx, scope)
	if err == nil {
		reply.InterruptRequested, err = a.signals.Beat(ctx, scope, a.session, convert.Signals(r.GetSignals()))
	}
	if err != nil {
		reply.Error = a.errorOf(ctx, within("heartbeat", err))
	}
	return streamAnswer{reply: reply}
}

// subscribe adds topics to the subscription: all or nothing.
func (a *attachment) subscribe(ctx context.Context, ref int64, r *loombridgev1.SubscribeRequest) streamAnswer {
	// Taken first, so that resuming from it can't skip an event.
	now, err := a.events.Now(ctx)
	if err != nil {
		return a.refusal(ctx, ref, err)
	}
	positions, err := a.addTopics(ctx, r)
	if err != nil {
		return a.refusal(ctx, ref, within("subscribe", err))
	}
	ready := &loombridgev1.SubscriptionReady{Positions: convert.TopicPositions(positions), ServerTime: convert.Timestamp(now)}
	return streamAnswer{reply: &loombridgev1.AttachAnswer{Ref: ref, Ready: ready}}
}

func (a *attachment) addTopics(ctx context.Context, r *loombridgev1.SubscribeRequest) ([]events.Position, error) {
	if err := validate.AttachSubscribe(r, a.agentID, a.topics); err != nil {
		return nil, err
	}
	selections, err := convert.Selections(r.GetTopics())
	if err != nil {
		return nil, err
	}
	positions, err := a.subscription.Add(ctx, selections)
	if err == nil {
		a.topics.add(r.GetTopics())
		a.link.SetTopics(a.topics.names())
	}
	return positions, err
}

func (a *attachment) unsubscribe(ctx context.Context, ref int64, r *loombridgev1.AttachUnsubscribe) streamAnswer {
	if err := validate.Request(r); err != nil {
		return a.refusal(ctx, ref, within("unsubscribe", err))
	}
	a.subscription.Remove(r.GetTopics()...)
	a.topics.remove(r.GetTopics())
	a.link.SetTopics(a.topics.names())
	return streamAnswer{reply: &loombridgev1.AttachAnswer{Ref: ref}}
}

// errorOf is a refusal as the agent gets it. Faults of the server are logged
// here: no other code sees them.
func (a *attachment) errorOf(ctx context.Context, err error) *loombridgev1.AttachError {
	row := classify(ctx, err)
	text := row.public
	if text == "" {
		text = err.Error()
	} else {
		a.log.ErrorContext(ctx, "attach", observe.KeyAgent, validate.Printable(a.agentID), observe.KeyReason, observe.ReasonName(row.reason), observe.KeyCause, err.Error())
	}
	out := &loombridgev1.AttachError{Reason: row.reason, Message: validate.Cut(text, maxMessageBytes)}
	for _, v := range violationsOf(err) {
		if out.Fields == nil {
			out.Fields = make(map[string]string)
		}
		out.Fields[validate.Cut(v.Field, maxDescriptionBytes)] = validate.Cut(v.Description, maxDescriptionBytes)
	}
	return out
}

// within puts the fields that err refuses behind the name of the message that
// they are part of.
func within(field string, err error) error {
	violations := violationsOf(err)
	if len(violations) == 0 || classify(context.Background(), err).reason != reasonInvalid {
		return err
	}
	return &validate.RequestError{Violations: placed(violations, func(inner string) string {
		return strings.TrimSuffix(field+"."+inner, ".")
	})}
}

// topicSet is what a stream is subscribed to, as it was written.
type topicSet map[string]struct{}

func (t topicSet) add(topics []*loombridgev1.TopicPosition) {
	for _, p := range topics {
		t[p.GetTopic()] = struct{}{}
	}
}

func (t topicSet) names() []string { return slices.Sorted(maps.Keys(t)) }

func (t topicSet) remove(topics []string) {
	for _, topic := range topics {
		delete(t, topic)
	}
}

type publication = stream.Publication[streamAnswer]

// publicationOf is what an agent published, for the bus, or refused.
func (a *attachment) publicationOf(ctx context.Context, ref int64, r *loombridgev1.EmitRequest) publication {
	event, err := a.eventOf(r)
	if err != nil {
		err = within("publish", err)
	} else {
		err = heard(a.events, a.agents, a.tenant, r, event)
	}
	if err != nil {
		return a.refusedPublish(ctx, ref, err)
	}
	one := publication{Ref: ref, Event: event, Options: convert.EmitOptions(r, ownsOf(ctx)), Size: len(event.Payload)}
	for key, value := range event.Headers {
		one.Size += len(key) + len(value)
	}
	return one
}

// eventOf fills in what a publish may leave out.
func (a *attachment) eventOf(r *loombridgev1.EmitRequest) (events.Event, error) {
	if r.GetAgentId() == "" {
		r.AgentId = a.agentID
	}
	if r.GetSessionId() == "" {
		r.SessionId = a.session
	}
	if err := validate.Published(r, a.agentID); err != nil {
		return events.Event{}, err
	}
	return convert.Event(r)
}

// refusal answers a message that is refused.
func (a *attachment) refusal(ctx context.Context, ref int64, err error) streamAnswer {
	return streamAnswer{reply: &loombridgev1.AttachAnswer{Ref: ref, Error: a.errorOf(ctx, err)}}
}

func (a *attachment) refusedPublish(ctx context.Context, ref int64, err error) publication {
	return publication{Ref: ref, Refused: new(a.refusal(ctx, ref, err))}
}

// Answer says the outcome of a publish, unless the agent wants failures
// only.
func (a *attachment) Answer(ctx context.Context, p *publication, result events.EmitResult) (streamAnswer, bool) {
	if result.Err != nil {
		return a.refusal(ctx, p.Ref, within("publish", result.Err)), true
	}
	taken := &result.Event
	return streamAnswer{ref: p.Ref, id: taken.ID, sequence: taken.Sequence, time: taken.Time}, p.Ref != 0
}

// SendAnswer sends one answer.
func (a *attachment) SendAnswer(_ context.Context, one streamAnswer) error {
	if one.reply == nil {
		return a.transport.SendMsg(a.framer.emitted(one))
	}
	return a.transport.Send(&loombridgev1.AttachResponse{Item: &loombridgev1.AttachResponse_Answer{Answer: one.reply}})
}

// SendEvent delivers an event that clients take.
func (a *attachment) SendEvent(ctx context.Context, d events.Delivery) error {
	if !a.given.Waits(ctx, a.tenant, &d.Event) {
		return nil
	}
	f := a.framer.event(d)
	if !a.framer.fits(d.Event) {
		return nil
	}
	return a.transport.SendMsg(f)
}

// SendCall passes a tool call on. One that no client could take fails at once.
func (a *attachment) SendCall(_ context.Context, call agents.PushedCall) error {
	m := &loombridgev1.AttachResponse{Item: &loombridgev1.AttachResponse_ToolCall{ToolCall: convert.AttachToolCall(call, a.framer.asText)}}
	if size := proto.Size(m); size > a.framer.limit {
		a.link.Complete(call.ID, convert.TooLarge(size, a.framer.limit))
		return nil
	}
	return a.transport.Send(m)
}
