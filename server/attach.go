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
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// Agents is what the handlers need of the directory of agents.
type Agents interface {
	Register(tenant, id string, r agents.Registration) (agents.Agent, error)
	Open(tenant, id string, opts agents.OpenOptions) (*agents.Link, error)
	Tools(tenant string) []agents.AgentTool
	Awaits(tenant, topic string) bool
}

var _ Agents = (*agents.Directory)(nil)

// attachStream is the server's side of one Attach.
type attachStream = grpc.BidiStreamingServer[loombridgev1.AttachRequest, loombridgev1.AttachResponse]

// attachment is one agent on one stream. Three goroutines share it: the
// handler's own reads, one emits what was published, one sends.
type attachment struct {
	stream   attachStream
	events   Events
	agents   Agents
	log      *slog.Logger
	now      func() time.Time
	tenant   string
	agentID  string
	session  string
	interval time.Duration // between heartbeats

	subscription *events.Subscription
	link         *agents.Link
	pending      *pending
	before       time.Time // when the subscription did not stand yet
	topics       topicSet  // belongs to the reader
	framer       framer    // belongs to the sender
}

// Attach serves one agent until it leaves, stalls, or the server stops.
func (s *bridgeService) Attach(stream attachStream) error {
	hello, err := receiveHello(stream, s.limits.ConnectionTimeout)
	if err != nil {
		return err
	}
	a, err := s.attach(stream, hello)
	if err != nil {
		return err
	}
	defer a.close()
	if err := stream.Send(a.ready()); err != nil {
		return err
	}
	if err := a.run(stream.Context()); err != nil {
		return err
	}
	a.link.Leave() // it has closed its side
	return nil
}

// receiveHello returns the first message, checked. Who stays silent for the
// timeout must not keep a stream from others.
func receiveHello(stream attachStream, timeout time.Duration) (*loombridgev1.AttachHello, error) {
	silent := time.AfterFunc(timeout, func() {
		endStream(stream.Context(), validate.Refuse("hello", fmt.Sprintf("did not come within %v", timeout)))
	})
	defer silent.Stop()
	first, err := stream.Recv()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	hello := first.GetHello()
	if hello == nil {
		return nil, validate.Refuse("hello", "is required as the first message")
	}
	return hello, within("hello", validate.AttachHello(hello))
}

// attach makes the agent known. It listens before it can be found, so that what
// is emitted because of it arrives.
func (s *bridgeService) attach(stream attachStream, hello *loombridgev1.AttachHello) (*attachment, error) {
	ctx := stream.Context()
	scope, err := auth.AgentScope(ctx, hello.GetAgentId())
	if err != nil {
		return nil, err
	}
	for _, tool := range hello.GetTools() {
		if err := auth.MayProvide(ctx, tool.GetName()); err != nil {
			return nil, err
		}
	}
	registration, err := registrationOf(hello)
	if err != nil {
		return nil, within("hello", err)
	}
	a := &attachment{
		stream: stream, events: s.events, agents: s.agents, log: s.log, now: s.now,
		tenant: scope.Tenant, agentID: hello.GetAgentId(), session: hello.GetSessionId(),
		interval: intervalOf(hello), before: s.events.Now(), pending: newPending(s.shares.Requests, share.Owner{Tenant: scope.Tenant, Agent: hello.GetAgentId()}), topics: topicSet{},
		framer: framer{form: hello.GetJsonForm(), limit: s.limits.MaxSendBytes, log: s.log},
	}
	a.topics.add(hello.GetTopics())
	selections, err := selectionsOf(hello.GetTopics())
	if err != nil {
		return nil, within("hello", err)
	}
	if a.subscription, err = s.events.Subscribe(ctx, a.tenant, selections, readerOf(ctx)); err != nil {
		return nil, within("hello", err)
	}
	if a.link, err = s.open(a, registration); err != nil {
		a.subscription.Close()
		return nil, within("hello", err)
	}
	return a, nil
}

func (s *bridgeService) open(a *attachment, r agents.Registration) (*agents.Link, error) {
	if _, err := s.agents.Register(a.tenant, a.agentID, r); err != nil {
		return nil, err
	}
	return s.agents.Open(a.tenant, a.agentID, agents.OpenOptions{Heartbeat: a.interval})
}

func (a *attachment) close() {
	a.pending.meter.Close()
	a.link.Close()
	a.subscription.Close()
}

func (a *attachment) ready() *loombridgev1.AttachResponse {
	return &loombridgev1.AttachResponse{Item: &loombridgev1.AttachResponse_Ready{Ready: &loombridgev1.AttachReady{
		Positions: topicPositionsOf(a.subscription.Positions()), Generation: int64(a.link.Generation()),
		HeartbeatInterval: durationpb.New(a.interval), ServerTime: timestampOf(a.before),
	}}}
}

// run serves the stream. When the agent closes its side, what it published is
// emitted and answered first.
func (a *attachment) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	// The first error counts: once it has cancelled ctx, others meet that.
	fail := func(err error) {
		cancel(err)
		endStream(ctx, context.Cause(ctx))
	}
	emitted := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		defer close(emitted)
		a.emit(ctx)
	})
	work.Go(func() {
		if err := a.send(ctx, emitted); err != nil {
			fail(err)
		}
	})
	if err := a.read(ctx); err != nil {
		fail(err)
	}
	a.pending.close()
	work.Wait()
	return context.Cause(ctx)
}

// read handles what the agent sends, until it has closed its side.
func (a *attachment) read(ctx context.Context) error {
	for {
		m, err := a.stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := a.handle(ctx, m); err != nil {
			return err
		}
	}
}

// handle returns an error only if it ends the stream.
func (a *attachment) handle(ctx context.Context, m *loombridgev1.AttachRequest) error {
	if refused, err := a.refuse(ctx, m); refused {
		return err
	}
	switch item := m.GetItem().(type) {
	case *loombridgev1.AttachRequest_Publish:
		return a.publish(ctx, item.Publish)
	case *loombridgev1.AttachRequest_Subscribe:
		return a.pending.reply(ctx, a.subscribe(ctx, item.Subscribe))
	case *loombridgev1.AttachRequest_Unsubscribe:
		return a.pending.reply(ctx, a.unsubscribe(ctx, item.Unsubscribe))
	case *loombridgev1.AttachRequest_ToolResult:
		a.link.Complete(item.ToolResult.GetCallId(), toolResultOf(item.ToolResult))
		return nil
	case *loombridgev1.AttachRequest_Heartbeat:
		a.link.Heartbeat()
		return a.pending.reply(ctx, &loombridgev1.AttachAnswer{Ref: item.Heartbeat.GetRef(), ServerTime: timestampOf(a.now())})
	case *loombridgev1.AttachRequest_Hello:
		return validate.Refuse("hello", "comes first and once")
	}
	return validate.Refuse("item", "is required")
}

// subscribe adds topics to the subscription: all or none.
func (a *attachment) subscribe(ctx context.Context, r *loombridgev1.AttachSubscribe) *loombridgev1.AttachAnswer {
	answer := &loombridgev1.AttachAnswer{Ref: r.GetRef()}
	// Taken first, so that resuming from it can't skip an event.
	now := a.events.Now()
	positions, err := a.addTopics(ctx, r)
	if err != nil {
		answer.Error = a.errorOf(ctx, within("subscribe", err))
		return answer
	}
	answer.Positions, answer.ServerTime = topicPositionsOf(positions), timestampOf(now)
	return answer
}

func (a *attachment) addTopics(ctx context.Context, r *loombridgev1.AttachSubscribe) ([]events.Position, error) {
	if err := validate.AttachSubscribe(r, a.topics); err != nil {
		return nil, err
	}
	selections, err := selectionsOf(r.GetTopics())
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

func (a *attachment) unsubscribe(ctx context.Context, r *loombridgev1.AttachUnsubscribe) *loombridgev1.AttachAnswer {
	answer := &loombridgev1.AttachAnswer{Ref: r.GetRef()}
	if err := validate.AttachUnsubscribe(r); err != nil {
		answer.Error = a.errorOf(ctx, within("unsubscribe", err))
		return answer
	}
	a.subscription.Remove(r.GetTopics()...)
	a.topics.remove(r.GetTopics())
	a.link.SetTopics(a.topics.names())
	return answer
}

// errorOf is a refusal as the agent gets it. Faults of the server are logged
// here: nobody else sees them.
func (a *attachment) errorOf(ctx context.Context, err error) *loombridgev1.AttachError {
	row := classify(ctx, err)
	text := row.public
	if text == "" {
		text = err.Error()
	} else {
		a.log.ErrorContext(ctx, "attach", keyAgent, validate.Printable(a.agentID), keyReason, reasonName(row.reason), keyCause, err.Error())
	}
	out := &loombridgev1.AttachError{Reason: row.reason, Message: validate.Cut(text, maxMessageBytes)}
	for _, v := range violationsOf(err) {
		out.Fields = append(out.Fields, &loombridgev1.AttachFieldViolation{
			Field: validate.Cut(v.Field, maxDescriptionBytes), Description: validate.Cut(v.Description, maxDescriptionBytes),
		})
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
