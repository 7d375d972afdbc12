package stream

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/share"
)

// Why a stream ends.
var (
	// ErrRemoved: the directory has ended the agent's link, because it was closed
	// itself or the agent was taken out of it.
	ErrRemoved = errors.New("stream: agent was taken out of the directory")
	// ErrStopping: Config.Stopping was closed.
	ErrStopping = errors.New("stream: server is stopping")
)

// Face converts messages of one protocol into calls of a Stream, and back. A is an answer.
// One goroutine calls Receive, one Answer, and one all Send methods; an error of
// Receive or Send ends the stream.
type Face[A any] interface {
	// Receive waits for a message of the agent and hands it to the stream. io.EOF
	// says that the agent has closed its side. It may go on when Run has returned,
	// until the transport ends.
	Receive(ctx context.Context) error
	// Answer is the answer to an event that the agent published; false:
	// nothing.
	Answer(ctx context.Context, p *Publication[A], result events.EmitResult) (A, bool)
	// SendAnswer, SendCall and SendEvent send one message.
	SendAnswer(ctx context.Context, message A) error
	SendCall(ctx context.Context, call agents.PushedCall) error
	SendEvent(ctx context.Context, d events.Delivery) error
}

// Bus takes what agents publish.
type Bus interface {
	EmitAll(ctx context.Context, tenant string, all []events.Event, opts []events.EmitOptions) []events.EmitResult
}

// Config is what a stream is made of. Fields without a default are required. The
// stream closes the link and the subscription.
type Config struct {
	Tenant, Agent string
	Bus           Bus
	Link          *agents.Link
	Subscription  *events.Subscription
	Limits        Limits
	// Requests are the bytes of requests in memory, which publishes that wait count
	// against. Default nil: they are not counted.
	Requests *share.Pool
	// Progress marks what is sent. Default nil: nothing does.
	Progress *Progress
	// PublishTime is how long publishes already read may still take once the stream has
	// ended, unless the agent closed its side. Default 0: publishes that the bus does not
	// have yet are dropped.
	PublishTime time.Duration
	// Stopping is closed when the server begins to stop. Default nil: the context of
	// Run ends then.
	Stopping <-chan struct{}
}

// Stream is one open stream of an agent. Publish, Reply and Heartbeat are for its
// Face's Receive; Run or Close is called once.
type Stream[A any] struct {
	Config
	face      Face[A]
	pending   *pending[A]
	held      *events.Delivery // the first of a replay; the sender's
	left      chan struct{}    // closed when the agent has closed its side: it means to leave
	published chan struct{}    // closed when all that was published is answered
	sending   chan struct{}    // closed when the sender has ended; nil before it begins
}

// meterStep is how many bytes a stream takes at once of the share of its agent.
const meterStep = 64 << 10

// sendTime is how long an ending stream waits for its sender to record its last sends:
// unrecorded ones are sent again on the agent's next stream. A sender blocked in a send is
// freed only by the end.
const sendTime = 500 * time.Millisecond

// New returns a stream that is not served yet.
func New[A any](face Face[A], c Config) *Stream[A] {
	meter := share.NewMeter(c.Requests, share.Owner{Tenant: c.Tenant, Agent: c.Agent}, meterStep, 0)
	return &Stream[A]{
		Config: c, face: face, pending: newPending[A](c.Limits, meter),
		left: make(chan struct{}), published: make(chan struct{}),
	}
}

// Publish queues an event for the bus, even a refused one, so that the answers keep the
// order of the publishes. It waits while the queue is full; the error is the cause of ctx.
func (s *Stream[A]) Publish(ctx context.Context, p Publication[A]) error {
	return s.pending.publish(ctx, p)
}

// Reply queues the answer to another message, and waits as Publish does.
func (s *Stream[A]) Reply(ctx context.Context, message A) error {
	return s.pending.reply(ctx, message)
}

// Heartbeat says that the agent is alive, and replies.
func (s *Stream[A]) Heartbeat(ctx context.Context, reply A) error {
	s.Link.Heartbeat()
	return s.Reply(ctx, reply)
}

// Run serves the stream until it ends, and closes it: nil after the agent has closed
// its side and what it published is answered, else the first error of the face or the
// subscription, ErrRemoved, ErrStopping, or the cause of ctx.
func (s *Stream[A]) Run(ctx context.Context) error {
	work, cancel := context.WithCancel(ctx)
	publishing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	read, sent := make(chan error, 1), make(chan error, 1)
	s.sending = make(chan struct{})
	go func() { read <- s.read(work) }()
	go func() {
		defer close(s.sending)
		sent <- s.send(work)
	}()
	go func() {
		defer close(s.published)
		s.emit(publishing)
	}()
	err := s.wait(ctx, read, sent)
	cancel()
	s.Close(ctx)
	s.finish(stop)
	return err
}

// wait returns when the stream has ended, and why.
func (s *Stream[A]) wait(ctx context.Context, read, sent <-chan error) error {
	for {
		select {
		case err := <-read:
			if !errors.Is(err, io.EOF) {
				return err
			}
			s.leave(ctx)
		case err := <-sent:
			return err
		case <-s.Stopping:
			return ErrStopping
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *Stream[A]) read(ctx context.Context) error {
	for {
		if err := s.face.Receive(ctx); err != nil {
			return err
		}
	}
}

// leave is the end for an agent that has closed its side, however the rest of the
// stream goes: it answers no calls any more, and misses nothing.
func (s *Stream[A]) leave(ctx context.Context) {
	close(s.left)
	s.pending.close()
	s.Link.Leave()
	s.Progress.end(ctx, false)
}

// Close gives everything back that the stream owns; only a stream that is not run is
// closed by others. An agent that has not closed its side did not mean to leave: what
// it misses until it is back is replayed.
func (s *Stream[A]) Close(ctx context.Context) {
	s.pending.close()
	s.pending.meter.Close()
	s.Link.Close() // first of what may take a moment: calls that wait for the agent fail
	s.Subscription.Close()
	if s.sending != nil {
		await(s.sending, sendTime)
	}
	s.Progress.end(ctx, true)
}

// finish waits for the publisher, and stops it when it takes too long.
func (s *Stream[A]) finish(stop context.CancelFunc) {
	if !await(s.published, s.PublishTime) {
		stop()
		<-s.published
	}
}

// await waits for a channel to be closed; false when that takes longer.
func await(closed <-chan struct{}, atMost time.Duration) bool {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-closed:
		return true
	case <-timer.C:
		return isClosed(closed)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// emit passes publishes to the bus, in order, until the end. Publishes made during a commit
// share the next one.
func (s *Stream[A]) emit(ctx context.Context) {
	var e emitter[A]
	var batch []Publication[A]
	for {
		batch = s.pending.takePublishes(ctx, batch)
		if len(batch) == 0 {
			return
		}
		e.emit(ctx, s, batch)
		batch = reuse(batch)
	}
}

// emitter keeps the memory of one batch for the next.
type emitter[A any] struct {
	events  []events.Event
	opts    []events.EmitOptions
	answers []agentAnswer[A]
}

func (e *emitter[A]) emit(ctx context.Context, s *Stream[A], batch []Publication[A]) {
	bytes := 0
	for i := range batch {
		bytes += batch[i].Size
		if batch[i].Refused == nil {
			e.events, e.opts = append(e.events, batch[i].Event), append(e.opts, batch[i].Options)
		}
	}
	var results []events.EmitResult
	if len(e.events) > 0 {
		results = s.Bus.EmitAll(ctx, s.Tenant, e.events, e.opts)
	}
	for i := range batch {
		if batch[i].Refused != nil {
			e.answers = append(e.answers, agentAnswer[A]{*batch[i].Refused, true})
			continue
		}
		if message, wanted := s.face.Answer(ctx, &batch[i], results[0]); wanted {
			e.answers = append(e.answers, agentAnswer[A]{message, true})
		}
		results = results[1:]
	}
	s.pending.answer(e.answers, len(batch)-len(e.answers), bytes)
	e.events, e.opts, e.answers = reuse(e.events), reuse(e.opts), reuse(e.answers)
}
