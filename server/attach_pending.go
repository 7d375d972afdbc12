package server

import (
	"context"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	// maxUnanswered bounds the publishes of one stream that are not answered
	// yet. With as many on their way the stream is not read any further: enough
	// to fill one commit, and few enough that a thousand streams fit in memory.
	maxUnanswered = 1024
	// maxUnansweredBytes bounds what those hold that are not emitted yet; one is
	// always taken.
	maxUnansweredBytes = 8 * mib
	// maxReplies bounds the other answers that wait for an agent that does not
	// read. They are counted apart: a heartbeat does not wait for a publish.
	maxReplies = 256
)

// publication is one publish on its way through the server.
type publication struct {
	ref     int64
	event   events.Event
	opts    events.EmitOptions
	refused *loombridgev1.AttachError // set if it must not be emitted
	size    int
}

// answer is what the agent is told about one message of its own.
type answer struct {
	// reply is the whole answer; nil for a publish that was emitted as the
	// fields below say.
	reply   *loombridgev1.AttachAnswer
	publish bool

	ref      int64
	id       string
	sequence uint64
	time     time.Time
}

// pending is what waits between the three goroutines of a stream: publishes
// for the emitter, answers for the sender.
type pending struct {
	mu         sync.Mutex
	publishes  []publication
	answers    []answer
	unanswered int // publishes, from when they are read until their answer is sent
	bytes      int // of the publishes that are not emitted yet
	replies    int // answers to other messages that are not sent yet
	closed     bool
	// meter counts the bytes against the agent's share of what is in memory.
	meter *share.Meter

	// Each holds one token.
	room chan struct{} // for the reader: there may be room again
	work chan struct{} // for the emitter: publishes or the end
	mail chan struct{} // for the sender: answers
}

// meterStep is how much a stream takes at once of the share of its agent.
const meterStep = 64 * kib

func newPending(requests *share.Pool, o share.Owner) *pending {
	return &pending{
		room: make(chan struct{}, 1), work: make(chan struct{}, 1), mail: make(chan struct{}, 1),
		meter: share.NewMeter(requests, o, meterStep, 0),
	}
}

func signal(token chan struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}

// publish queues a publish and waits while there is no room for it.
func (p *pending) publish(ctx context.Context, one publication) error {
	for {
		p.mu.Lock()
		if p.hasRoom(one.size) {
			p.unanswered++
			p.bytes += one.size
			p.publishes = append(p.publishes, one)
			p.mu.Unlock()
			signal(p.work)
			return nil
		}
		p.mu.Unlock()
		if err := p.waitForRoom(ctx); err != nil {
			return err
		}
	}
}

// hasRoom tells whether a publish of that size may wait, and counts it then. One is
// always taken, so that the stream goes on when the share of its agent is used up.
func (p *pending) hasRoom(size int) bool {
	switch {
	case p.unanswered >= maxUnanswered:
		return false
	case p.bytes == 0:
		p.meter.Note(int64(size))
		return true
	}
	return p.bytes+size <= maxUnansweredBytes && p.meter.Add(int64(size)) == nil
}

// reply queues an answer to another message and waits while there is no room
// for it.
func (p *pending) reply(ctx context.Context, reply *loombridgev1.AttachAnswer) error {
	for {
		p.mu.Lock()
		if p.replies < maxReplies {
			p.replies++
			p.answers = append(p.answers, answer{reply: reply})
			p.mu.Unlock()
			signal(p.mail)
			return nil
		}
		p.mu.Unlock()
		if err := p.waitForRoom(ctx); err != nil {
			return err
		}
	}
}

func (p *pending) waitForRoom(ctx context.Context) error {
	select {
	case <-p.room:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// close says that no more publishes come.
func (p *pending) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	signal(p.work)
}

// takePublishes waits for publishes and returns all there are, in order; none
// at the end. The empty slice is for those to come.
func (p *pending) takePublishes(ctx context.Context, empty []publication) []publication {
	for ctx.Err() == nil {
		p.mu.Lock()
		if batch := p.publishes; len(batch) > 0 {
			p.publishes = empty
			p.mu.Unlock()
			return batch
		}
		closed := p.closed
		p.mu.Unlock()
		if closed {
			return nil
		}
		select {
		case <-p.work:
		case <-ctx.Done():
		}
	}
	return nil
}

// answer queues the answers to publishes that took so many bytes; silent ones
// get none.
func (p *pending) answer(answers []answer, silent, bytes int) {
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

// takeAnswers returns all answers there are, in order. The empty slice is for
// those to come.
func (p *pending) takeAnswers(empty []answer) []answer {
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
func (p *pending) sent(answers []answer) {
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
