package stream

import (
	"context"
	"sync"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/share"
)

// Limits bound what waits for one stream.
type Limits struct {
	// Publishes bounds the events that were published and are not answered yet, or
	// not emitted where they get no answer.
	Publishes int
	// PublishBytes bounds what those hold that are not emitted yet; one is always
	// taken.
	PublishBytes int
	// Batch bounds the events that go to the bus at once.
	Batch int
	// Replies bounds the other answers. They are counted apart: a heartbeat does not
	// wait for a publish.
	Replies int
	// LastRounds bounds what is sent after the agent has closed its side and all it
	// published is answered: in each round one event at most.
	LastRounds int
}

// Publication is an event on its way to the bus.
type Publication[A any] struct {
	// Ref is what the agent calls it.
	Ref     int64
	Event   events.Event
	Options events.EmitOptions
	// Size is what it takes in memory, in bytes.
	Size int
	// Refused is the answer to an event that must not be emitted; nil for any other.
	Refused *A
}

// agentAnswer is the answer to one message of the agent.
type agentAnswer[A any] struct {
	message A
	publish bool
}

// pending is what waits between the goroutines of a stream: publishes for the bus,
// answers for the agent.
type pending[A any] struct {
	limits Limits
	// meter counts the bytes against the agent's share of what is in memory.
	meter *share.Meter

	// Each holds one token.
	room chan struct{} // for who reads: there may be room again
	work chan struct{} // for who emits: publishes or the end
	mail chan struct{} // for who sends: answers

	mu         sync.Mutex // guards the fields below
	publishes  []Publication[A]
	answers    []agentAnswer[A]
	unanswered int // publishes, from when they are read until their answer is sent
	bytes      int // of the publishes that are not emitted yet
	replies    int // answers to other messages that are not sent yet
	closed     bool
}

func newPending[A any](limits Limits, meter *share.Meter) *pending[A] {
	return &pending[A]{
		limits: limits, meter: meter,
		room: make(chan struct{}, 1), work: make(chan struct{}, 1), mail: make(chan struct{}, 1),
	}
}

func signal(token chan struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}

// publish queues an event and waits while there is no room for it.
func (p *pending[A]) publish(ctx context.Context, one Publication[A]) error {
	return p.whenRoom(ctx, p.work, func() bool {
		if !p.hasRoom(one.Size) {
			return false
		}
		p.unanswered++
		p.bytes += one.Size
		p.publishes = append(p.publishes, one)
		return true
	})
}

// hasRoom reports whether a publish of that size may wait, and counts it then. One is
// always taken, so that the stream goes on when the share of its agent is used up.
func (p *pending[A]) hasRoom(size int) bool {
	switch {
	case p.unanswered >= p.limits.Publishes:
		return false
	case p.bytes == 0:
		p.meter.Note(int64(size))
		return true
	}
	return p.bytes+size <= p.limits.PublishBytes && p.meter.Add(int64(size)) == nil
}

// reply queues an answer to another message and waits while there is no room for it.
func (p *pending[A]) reply(ctx context.Context, message A) error {
	return p.whenRoom(ctx, p.mail, func() bool {
		if p.replies >= p.limits.Replies {
			return false
		}
		p.replies++
		p.answers = append(p.answers, agentAnswer[A]{message: message})
		return true
	})
}

// whenRoom calls put until it has found room, and gives the token then.
func (p *pending[A]) whenRoom(ctx context.Context, token chan struct{}, put func() bool) error {
	for {
		p.mu.Lock()
		done := put()
		p.mu.Unlock()
		if done {
			signal(token)
			return nil
		}
		select {
		case <-p.room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// close says that no more publishes come.
func (p *pending[A]) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	signal(p.work)
}

// takePublishes waits for publishes and returns the first of them; none at the end.
// The empty slice is for those to come.
func (p *pending[A]) takePublishes(ctx context.Context, empty []Publication[A]) []Publication[A] {
	for ctx.Err() == nil {
		batch, closed := p.firstPublishes(empty)
		if len(batch) > 0 || closed {
			return batch
		}
		select {
		case <-p.work:
		case <-ctx.Done():
		}
	}
	return nil
}

func (p *pending[A]) firstPublishes(empty []Publication[A]) (batch []Publication[A], closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch n := p.limits.Batch; {
	case len(p.publishes) == 0: // the empty slice is not used yet
	case len(p.publishes) <= n:
		batch, p.publishes = p.publishes, empty
	default:
		batch = append(empty, p.publishes[:n]...)
		clear(p.publishes[:n])
		p.publishes = p.publishes[n:]
	}
	return batch, p.closed
}

// answer queues the answers to publishes that took so many bytes; silent ones get
// none.
func (p *pending[A]) answer(answers []agentAnswer[A], silent, bytes int) {
	p.mu.Lock()
	p.answers = append(p.answers, answers...)
	p.unanswered -= silent
	p.bytes -= bytes
	p.mu.Unlock()
	p.meter.Sub(int64(bytes))
	signal(p.room)
	if len(answers) > 0 {
		signal(p.mail)
	}
}

// takeAnswers returns all answers there are, in order. The empty slice is for those
// to come.
func (p *pending[A]) takeAnswers(empty []agentAnswer[A]) []agentAnswer[A] {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.answers) == 0 {
		return nil
	}
	taken := p.answers
	p.answers = empty
	return taken
}

// sent makes room for as many messages as were answered.
func (p *pending[A]) sent(answers []agentAnswer[A]) {
	p.mu.Lock()
	for i := range answers {
		if answers[i].publish {
			p.unanswered--
		} else {
			p.replies--
		}
	}
	p.mu.Unlock()
	signal(p.room)
}

// keepItems is how many items a stream keeps memory for between two batches: a
// thousand streams must not keep what each needed once.
const keepItems = 128

// reuse returns the memory of a batch for the next one, if it is small.
func reuse[T any](batch []T) []T {
	if cap(batch) > keepItems {
		return nil
	}
	clear(batch)
	return batch[:0]
}
