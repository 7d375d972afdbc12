package loomv1

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
)

const (
	// maxTopicBytes bounds what an agent can subscribe: far more than any topic
	// that can be stored.
	maxTopicBytes = 4 << 10
	// queuedAnswers bounds the pongs and errors that wait for a stream.
	queuedAnswers = 512
	// publishGrace is how long publishes that were read may still take once the
	// stream has ended from another cause than the agent's closing of its side.
	publishGrace = time.Second
	// sendGrace is how long a stream that ends waits for its sender to note what it
	// has just sent: what is not noted is sent again on the agent's next stream. One
	// that stands in a send is freed only by the end.
	sendGrace = 500 * time.Millisecond
)

// errStopping ends streams when the server stops.
var errStopping = status.Error(codes.Unavailable, publicStopping)

func unavailable(format string, args ...any) error {
	return status.Errorf(codes.Unavailable, format, args...)
}

// agentStream is one open stream of an agent. All it owns is its own, whatever
// other streams the same agent has open.
//
// Three goroutines work for it. One reads, and hands pings and tool results on
// at once; one gives the publishes to the bus, behind a queue; one sends. The
// handler's own waits for what ends the stream.
type agentStream struct {
	Deps
	stream     grpc.BidiStreamingServer[loomv1pb.ClientEvent, loomv1pb.ServerEvent]
	tenant, id string
	link       *agents.Link
	tap        *tap
	log        *sentLog
	publishes  *publishQueue
	answers    chan *loomv1pb.ServerEvent
	held       *events.Delivery // the first of a replay; the sender's
	stall      *stallWatch
	left       chan struct{} // closed when the agent has closed its side: it means to leave
	flush      chan struct{} // closed when the sender is to send what there is, and end
	gone       chan struct{} // closed when the stream has ended
	sending    chan struct{} // closed when the sender has ended; nil before it begins
}

func newAgentStream(d Deps, stream grpc.BidiStreamingServer[loomv1pb.ClientEvent, loomv1pb.ServerEvent], tenant, id string, link *agents.Link) *agentStream {
	return &agentStream{
		Deps:      d,
		stream:    stream,
		tenant:    tenant,
		id:        id,
		link:      link,
		tap:       &tap{},
		publishes: newPublishQueue(share.NewMeter(d.Options.Requests, share.Owner{Tenant: tenant, Agent: id}, meterStep, 0)),
		answers:   make(chan *loomv1pb.ServerEvent, queuedAnswers),
		stall:     newStallWatch(d.Options.StallTimeout),
		left:      make(chan struct{}),
		flush:     make(chan struct{}),
		gone:      make(chan struct{}),
	}
}

// subscribe begins to listen to what the agent registered, and takes up the gap
// that an earlier stream of it left.
func (a *agentStream) subscribe(ctx context.Context) error {
	a.log = a.resume(ctx)
	topics := a.topics(ctx)
	selections := make([]events.Selection, len(topics))
	for i, topic := range topics {
		selections[i] = selectionOf(topic, events.Batched)
		selections[i].Since = a.log.since(topic)
	}
	subscription, err := a.Events.Subscribe(ctx, a.tenant, selections, &events.SubscribeOptions{PerSelection: true, Wait: true})
	if err != nil {
		a.log.keepOn()
		return a.notSubscribed(ctx, err)
	}
	a.tap.from = subscription
	if left := subscription.PastLeftOut(); left > 0 {
		a.Options.Logger.WarnContext(ctx, "loom.v1 replay leaves topics out: too many match", "agent", a.id, "topics", left)
	}
	a.log.begin(topics, subscription.Positions(), a.Options.Settle)
	return nil
}

// topics are those that the agent registered, each once. What the bus would
// refuse is left out: the native API registers other topics than this one, and one
// topic must not cost the agent its stream.
func (a *agentStream) topics(ctx context.Context) []string {
	registered := a.link.Registration().Topics
	topics := make([]string, 0, len(registered))
	for _, topic := range registered {
		if len(topics) < events.MaxSelections && len(topic) <= maxTopicBytes && events.LegacyPattern(topic).CheckLegacy() == nil {
			topics = append(topics, topic)
		}
	}
	if left := len(registered) - len(topics); left > 0 {
		a.Options.Logger.WarnContext(ctx, "loom.v1 topics left out: too many or too long", "agent", a.id, "topics", left)
	}
	return topics
}

func (a *agentStream) notSubscribed(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	case errors.Is(err, events.ErrClosed), errors.Is(err, kv.ErrClosed):
		return errStopping
	}
	return unavailable("the topics can't be subscribed: %s", a.plain(ctx, "subscribe the agent's topics", err))
}

// run serves the stream until it ends.
func (a *agentStream) run(ctx context.Context) error {
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	// What the agent has published is taken even if it has gone since.
	publishing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	read, sent, published := make(chan error, 1), make(chan error, 1), make(chan struct{})
	go func() { read <- a.read(work) }()
	a.sending = make(chan struct{})
	go func() {
		defer close(a.sending)
		sent <- a.send(work)
	}()
	go func() {
		a.publish(publishing)
		close(published)
	}()
	err := a.wait(ctx, read, sent, published)
	cancel()
	a.close(ctx)
	finish(published, stop)
	return err
}

// finish waits for the publisher, and stops it when it takes too long.
func finish(published <-chan struct{}, stop context.CancelFunc) {
	timer := time.NewTimer(publishGrace)
	defer timer.Stop()
	select {
	case <-published:
	case <-timer.C:
		stop()
		<-published
	}
}

// wait returns when the stream has ended, with what the agent is told: nil after it
// has closed its side.
func (a *agentStream) wait(ctx context.Context, read, sent <-chan error, published <-chan struct{}) error {
	for {
		select {
		case err := <-read:
			if !errors.Is(err, io.EOF) {
				return unread(err)
			}
			a.leave(ctx)
		case <-published:
			published = nil
			close(a.flush)
		case err := <-sent:
			return unsent(ctx, err)
		case <-a.stall.stalled:
			return unavailable("the agent took nothing for %v", a.Options.StallTimeout)
		case <-a.Options.Draining:
			return errStopping
		case <-ctx.Done():
			return errCut
		}
	}
}

// leave is the end for an agent that has closed its side, however the rest of the
// stream goes: it answers no calls any more, and misses nothing.
func (a *agentStream) leave(ctx context.Context) {
	close(a.left)
	a.publishes.close()
	a.link.Leave()
	a.endGap(ctx, false)
}

// errCut ends a stream that nobody is there to read about.
var errCut = unavailable("the stream was cut off")

// unread is the end of a stream that can't be read any more.
func unread(err error) error {
	switch status.Code(err) {
	case codes.Canceled, codes.DeadlineExceeded:
		return errCut
	}
	return unavailable("a message can't be read: %s", clip(status.Convert(err).Message()))
}

// unsent is the end of a stream whose sender has ended: when everything was
// flushed, when the stream was cut, or for a reason of the server's own.
func unsent(ctx context.Context, err error) error {
	if _, failed := errors.AsType[*sendError](err); failed || err != nil && ctx.Err() != nil {
		return errCut
	}
	return err
}

// close gives everything back that the stream owns. An agent that has not closed
// its side did not mean to leave, also where it cancelled the call, as loom-py does
// when a handler fails: what it misses until it is back is replayed.
func (a *agentStream) close(ctx context.Context) {
	close(a.gone)
	a.publishes.close()
	a.stall.end()
	a.link.Close() // first of what may take a moment: calls that wait for the agent fail
	a.tap.close()
	a.awaitSender()
	a.endGap(ctx, true)
}

// awaitSender waits for the sender, whose context has ended, for a while.
func (a *agentStream) awaitSender() {
	if a.sending == nil {
		return
	}
	timer := time.NewTimer(sendGrace)
	defer timer.Stop()
	select {
	case <-a.sending:
	case <-timer.C:
	}
}

// read hands on what the agent sends, until it closes its side or can't be read.
func (a *agentStream) read(ctx context.Context) error {
	for {
		message, err := a.stream.Recv()
		if err != nil {
			return err
		}
		if err := a.receive(ctx, message); err != nil {
			return err
		}
	}
}

// receive leaves alone what it does not know, and acks: deliveries are not
// acknowledged.
func (a *agentStream) receive(ctx context.Context, message *loomv1pb.ClientEvent) error {
	switch m := message.GetMsg().(type) {
	case *loomv1pb.ClientEvent_Publish:
		if err := a.publishes.put(ctx, m.Publish); err != nil {
			return status.FromContextError(err).Err()
		}
	case *loomv1pb.ClientEvent_Ping:
		a.link.Heartbeat()
		a.answer(ctx, pongOf(a.Options.Now()))
	case *loomv1pb.ClientEvent_ToolResult:
		a.link.Complete(m.ToolResult.GetId(), resultOf(m.ToolResult))
	}
	return nil
}

// answer queues a message for the agent. It waits for room while the stream is
// open.
func (a *agentStream) answer(ctx context.Context, message *loomv1pb.ServerEvent) {
	select {
	case a.answers <- message:
	case <-a.gone:
	case <-ctx.Done():
	}
}

// publish gives the agent's events to the bus, in order, until the queue is
// closed.
func (a *agentStream) publish(ctx context.Context) {
	for batch := a.publishes.take(); len(batch) > 0; batch = a.publishes.take() {
		a.emit(ctx, batch)
	}
}

// emit gives a batch of events to the bus and reports those it did not take.
func (a *agentStream) emit(ctx context.Context, batch []*loomv1pb.Publish) {
	var ready []events.Event
	var opts []events.EmitOptions
	for _, p := range batch {
		if text := oversizeOf(p); text != "" {
			a.answer(ctx, errorOf(codeResourceExhausted, text))
			continue
		}
		e, refused := a.prepared(p.GetTopic(), p.GetEvent())
		if refused != nil {
			a.answer(ctx, errorOf(refused.code, refused.message))
			continue
		}
		ready = append(ready, e)
		// What is stored unsynced survives a kill, so that it can be replayed.
		opts = append(opts, events.EmitOptions{Legacy: true, Lazy: true})
	}
	for i, result := range a.Events.EmitAll(ctx, a.tenant, ready, opts) {
		if result.Err != nil {
			refused := a.notTaken(ctx, ready[i].Topic, result.Err)
			a.answer(ctx, errorOf(refused.code, refused.message))
		}
	}
}

// tap takes from a subscription. Closing it waits for a take that is under way,
// so that the store may be closed next. All methods are safe for concurrent use.
type tap struct {
	mu     sync.Mutex // held during a take
	closed bool       // guarded by mu
	from   *events.Subscription
}

// take returns the next delivery if there is one.
func (t *tap) take(ctx context.Context) (events.Delivery, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return events.Delivery{}, false, events.ErrSubscriptionClosed
	}
	return t.from.Take(ctx)
}

// wait waits until there may be something to take.
func (t *tap) wait(ctx context.Context) error {
	select {
	case <-t.from.Ready():
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

func (t *tap) close() {
	if t.from == nil {
		return
	}
	t.from.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}
