package loomv1

import (
	"context"
	"errors"
	"sync"

	"github.com/loom-bridge/loom-bridge/context/text"

	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
)

// What a stream's publishes may take while they wait for the bus. When it is
// full the stream is not read on, so that the agent waits: many seconds' worth of
// what one agent publishes, and twice the largest message.
const (
	maxQueuedPublishes    = 8192
	maxQueuedPublishBytes = 8 << 20
	// maxBatchEvents bounds the events that go to the bus at once.
	maxBatchEvents = 256
)

// Codes of what is refused on a stream.
const (
	codeInvalidArgument   = "INVALID_ARGUMENT"
	codeResourceExhausted = "RESOURCE_EXHAUSTED"
	codeUnavailable       = "UNAVAILABLE"
	codeInternal          = "INTERNAL"
)

// refusal says why an event was not taken.
type refusal struct{ code, message string }

// maxRefusalBytes bounds what is said of an event that was refused: its topic
// may be as long as a message.
const maxRefusalBytes = 1 << 10

// prepared is a published event ready for the bus, or why it is refused.
func (d Deps) prepared(topic string, e *loomv1pb.Event) (events.Event, *refusal) {
	if e == nil {
		return events.Event{}, &refusal{codeInvalidArgument, "event is required"}
	}
	ready := eventOf(topic, e, d.Options.Now())
	// No pattern that matches the topic is longer by more than its star.
	if size, limit := proto.Size(deliveryOf(topic+"*", ready, "")), d.Options.MaxSendBytes; size > limit {
		return events.Event{}, tooLarge(size, limit)
	}
	return ready, nil
}

// notTaken is why the bus did not take an event.
func (d Deps) notTaken(ctx context.Context, topic string, err error) *refusal {
	large, isLarge := errors.AsType[*events.SizeError](err)
	switch {
	case isLarge: // the limit is a little below that of a message
		return tooLarge(large.Size, large.Limit)
	case errors.Is(err, events.ErrInvalid), errors.Is(err, topics.ErrReserved):
		return &refusal{codeInvalidArgument, d.plain(ctx, "publish event", err)}
	case errors.Is(err, events.ErrClosed), errors.Is(err, kv.ErrClosed):
		return &refusal{codeUnavailable, publicStopping}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &refusal{codeUnavailable, "the call ended before the event was taken"}
	}
	d.Options.Logger.ErrorContext(ctx, "loom.v1 publish failed", "topic", clip(topic), "error", err)
	return &refusal{codeInternal, publicText(err)}
}

func tooLarge(size, limit int) *refusal {
	return &refusal{codeResourceExhausted, "event " + TooLarge(size, limit)}
}

// publishQueue holds what an agent published until the bus takes it, so that
// pings and tool results behind it need not wait. All methods are safe for
// concurrent use.
type publishQueue struct {
	room, some chan struct{} // one token each

	mu     sync.Mutex // guards the fields below
	items  []*loomv1pb.Publish
	bytes  int
	closed bool

	meter *share.Meter // of the bytes
}

// meterStep is how much a stream takes at once of the share of its agent.
const meterStep = 64 << 10

func newPublishQueue(meter *share.Meter) *publishQueue {
	return &publishQueue{room: make(chan struct{}, 1), some: make(chan struct{}, 1), meter: meter}
}

// put adds a publish, when there is room.
func (q *publishQueue) put(ctx context.Context, p *loomv1pb.Publish) error {
	size := proto.Size(p)
	for !q.offer(p, size) {
		select {
		case <-q.room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (q *publishQueue) offer(p *loomv1pb.Publish, size int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch full := len(q.items) >= maxQueuedPublishes || q.bytes+size > maxQueuedPublishBytes; {
	case len(q.items) == 0:
		q.meter.Note(int64(size)) // one is always taken
	case full || q.meter.Add(int64(size)) != nil:
		return false
	}
	q.items = append(q.items, p)
	q.bytes += size
	give(q.some)
	return true
}

// take waits for publishes and takes the first of them. It returns none when the
// queue is closed and empty.
func (q *publishQueue) take() []*loomv1pb.Publish {
	for {
		batch, closed := q.poll()
		if len(batch) > 0 || closed {
			return batch
		}
		<-q.some
	}
}

func (q *publishQueue) poll() (batch []*loomv1pb.Publish, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.items), maxBatchEvents)
	batch = append(batch, q.items[:n]...)
	before := q.bytes
	for _, p := range batch {
		q.bytes -= proto.Size(p)
	}
	q.meter.Sub(int64(before - q.bytes))
	clear(q.items[:n])
	q.items = q.items[n:]
	give(q.room)
	return batch, q.closed
}

// close ends the queue; what is in it can still be taken.
func (q *publishQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.meter.Close()
	give(q.some)
}

func give(token chan struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}

// clip makes text of any length fit for a message.
func clip(s string) string { return text.Valid(text.Head(s, maxRefusalBytes)) }
