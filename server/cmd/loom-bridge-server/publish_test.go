package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// emitter publishes text on a topic and returns its sequence when that is
// acknowledged.
type emitter func(ctx context.Context, topic, text string) (int64, error)

// emitNative is BridgeService.Emit.
func emitNative(conn *grpc.ClientConn, agent string) emitter {
	client := loombridgev1.NewBridgeServiceClient(conn)
	return func(ctx context.Context, topic, text string) (int64, error) {
		r, err := client.Emit(ctx, emitOf(agent, topic, text))
		return r.GetSequence(), err
	}
}

// emitBus is EventBus.Publish of loom.v1.
func emitBus(conn *grpc.ClientConn) emitter {
	client := loomv1pb.NewEventBusClient(conn)
	return func(ctx context.Context, topic, text string) (int64, error) {
		r, err := client.Publish(ctx, &loomv1pb.PublishRequest{Topic: topic, Event: eventOf(text)})
		if err == nil && !r.GetSuccess() {
			err = errors.New(r.GetErrorMessage())
		}
		return r.GetSequenceNumber(), err
	}
}

// errStreamEnded: the stream ended before a publish on it was answered.
var errStreamEnded = status.Error(codes.Unavailable, "the stream ended")

// asks matches the answers of one Attach stream with those who wait for them.
type asks struct {
	mu      sync.Mutex
	ref     int64
	waiting map[int64]chan *loombridgev1.AttachAnswer // nil when the stream has ended
}

func newAsks() *asks { return &asks{waiting: map[int64]chan *loombridgev1.AttachAnswer{}} }

// emitter is a publish with a ref on the stream.
func (a *asks) emitter(s *peerStream) emitter {
	return func(_ context.Context, topic, text string) (int64, error) {
		ref, answer := a.wait()
		if ref == 0 {
			return 0, errStreamEnded
		}
		if s.publish(topic, text, ref) != nil {
			return 0, errStreamEnded // why, the reader hears
		}
		got := <-answer
		switch {
		case got == nil:
			return 0, errStreamEnded
		case got.GetError() != nil:
			return 0, fmt.Errorf("publish: %v", got.GetError())
		}
		return got.GetEmitted().GetSequence(), nil
	}
}

func (a *asks) wait() (ref int64, answer chan *loombridgev1.AttachAnswer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil {
		return 0, nil
	}
	a.ref++
	answer = make(chan *loombridgev1.AttachAnswer, 1)
	a.waiting[a.ref] = answer
	return a.ref, answer
}

// answered is a hook of a peer.
func (a *asks) answered(answer *loombridgev1.AttachAnswer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if waits, ok := a.waiting[answer.GetRef()]; ok {
		waits <- answer
		delete(a.waiting, answer.GetRef())
	}
}

// end tells all who wait that the stream has ended.
func (a *asks) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, waits := range a.waiting {
		close(waits)
	}
	a.waiting = nil
}

// publisher publishes events of one name, one at a time, each on the next topic,
// and notes in the book what is acknowledged.
type publisher struct {
	name   string
	topics []string
	count  int
	book   book
}

// next publishes one event and waits until it is acknowledged. It reports whether
// the server is still there; other failures are errors of the test.
func (p *publisher) next(tb testing.TB, ctx context.Context, emit emitter) bool {
	topic, text := p.make()
	sequence, err := emit(ctx, topic, text)
	if err == nil {
		p.book[topic].acknowledge(tb, sequence, text)
		return true
	}
	if status.Code(err) != codes.Unavailable {
		tb.Errorf("%s: publish on %s: %v", p.name, topic, err)
	}
	return false
}

func (p *publisher) make() (topic, text string) {
	p.count++
	return p.topics[p.count%len(p.topics)], token{p.name, p.count, time.Now().UnixNano()}.String()
}
