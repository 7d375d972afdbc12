package loomv1

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
)

// lastSends bounds what is sent to an agent after it has closed its side: one
// that listens to busy topics would never come to an end.
const lastSends = 512

// sendError is a failed send: the stream is at an end.
type sendError struct{ err error }

func (e *sendError) Error() string { return "loomv1: send: " + e.err.Error() }

func (e *sendError) Unwrap() error { return e.err }

// send sends what there is for the agent, until ctx ends, a send fails, there is
// nothing to take from any more, or everything is flushed. Only the last is nil.
func (a *agentStream) send(ctx context.Context) error {
	flush, left := a.flush, -1
	for {
		if left < 0 && isClosed(flush) {
			flush, left = nil, lastSends
		}
		busy, err := a.sendOne(ctx)
		switch {
		case err != nil:
			return err
		case busy && left != 0:
			left = max(left-1, -1)
			continue
		case left >= 0:
			return nil
		}
		if err := a.await(ctx, flush); err != nil {
			return err
		}
	}
}

// sendOne sends what waits, if anything does: at most one answer, call or direct
// event, and one delivery, so that neither sort holds up the other.
func (a *agentStream) sendOne(ctx context.Context) (busy bool, err error) {
	select {
	case message := <-a.answers:
		busy, err = true, a.sendMessage(ctx, message)
	case call, open := <-a.calls():
		busy, err = true, a.sendCall(ctx, call, open)
	case e := <-a.link.Direct():
		busy, err = true, a.sendDirect(ctx, e)
	default:
	}
	if err != nil {
		return false, err
	}
	idle := a.log.now()
	delivery, ok, err := a.next(ctx)
	switch {
	case err != nil:
		return false, a.ended(ctx, err)
	case ok:
		return true, a.sendDelivery(ctx, delivery)
	case a.held == nil:
		a.log.caughtUp(idle)
	}
	return busy, nil
}

// calls yields what the agent is to answer; nothing once it has closed its side.
func (a *agentStream) calls() <-chan agents.PushedCall {
	if isClosed(a.left) {
		return nil
	}
	return a.link.Calls()
}

// next takes the next delivery. The first of a replay is held until the stream has
// settled, and all that comes behind it.
func (a *agentStream) next(ctx context.Context) (events.Delivery, bool, error) {
	if a.held == nil {
		delivery, ok, err := a.tap.take(ctx)
		if err != nil || !ok || !a.log.holds(delivery) {
			return delivery, ok, err
		}
		a.held = &delivery
	}
	if !a.settled() {
		return events.Delivery{}, false, nil
	}
	delivery := *a.held
	a.held = nil
	return delivery, true, nil
}

// settled tells whether a replay need not be held any more: its time is up, a newer
// stream has it, or the agent leaves.
func (a *agentStream) settled() bool {
	select {
	case <-a.log.replay.settled:
	case <-a.link.GapTaken():
	case <-a.left:
	default:
		return false
	}
	a.log.replay.settled = nil
	return true
}

// await waits for anything to send.
func (a *agentStream) await(ctx context.Context, flush <-chan struct{}) error {
	ready := a.tap.from.Ready()
	var settled <-chan time.Time
	var taken <-chan struct{}
	if a.held != nil {
		ready, settled, taken = nil, a.log.replay.settled, a.link.GapTaken()
	}
	select {
	case <-ready:
		return nil
	case <-settled:
		a.log.replay.settle()
		return nil
	case <-taken:
		return nil
	case message := <-a.answers:
		return a.sendMessage(ctx, message)
	case call, open := <-a.calls():
		return a.sendCall(ctx, call, open)
	case e := <-a.link.Direct():
		return a.sendDirect(ctx, e)
	case <-flush:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ended is why there is nothing to take from any more.
func (a *agentStream) ended(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, events.ErrSlowSubscriber):
		return unavailable("the agent takes events too slowly")
	case errors.Is(err, events.ErrClosed), errors.Is(err, events.ErrSubscriptionClosed):
		return errStopping
	}
	a.Options.Logger.ErrorContext(ctx, "loom.v1 stream failed", "agent", a.id, "error", err)
	return unavailable("events can't be read: %s", publicText(err))
}

func (a *agentStream) sendDelivery(ctx context.Context, d events.Delivery) error {
	pattern := d.Pattern.String()
	if !a.log.wants(d) {
		return nil
	}
	if err := a.sendMessage(ctx, deliveryOf(pattern, d.Event, a.id)); err != nil {
		return err
	}
	a.log.note(pattern, d.Event)
	return nil
}

// sendDirect delivers what is meant for this agent alone, as if it came to its
// mailbox.
func (a *agentStream) sendDirect(ctx context.Context, e events.Event) error {
	e.Topic = topics.Mailbox(a.id)
	return a.sendMessage(ctx, deliveryOf(e.Topic, e, a.id))
}

// sendCall asks the agent to run a tool.
func (a *agentStream) sendCall(ctx context.Context, call agents.PushedCall, open bool) error {
	switch {
	case !open && isClosed(a.left):
		return nil
	case !open:
		return errStopping
	}
	if !a.link.Waiting(call.ID) {
		return nil
	}
	message := toolCallOf(call)
	if size, limit := proto.Size(message), a.Options.MaxSendBytes; size > limit {
		failure := executionFailed("call of %d bytes exceeds the limit of %d", size, limit)
		a.link.Complete(call.ID, resultOf(failure))
		return nil
	}
	return a.sendMessage(ctx, message)
}

// sendMessage sends one message. One that is too large is left out: it would
// cost the agent its stream, again and again.
func (a *agentStream) sendMessage(ctx context.Context, message *loomv1pb.ServerEvent) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if size := proto.Size(message); size > a.Options.MaxSendBytes {
		a.Options.Logger.WarnContext(ctx, "loom.v1 message left out: too large", "agent", a.id,
			"event_id", clip(message.GetDelivery().GetEvent().GetId()), "size", size, "limit", a.Options.MaxSendBytes)
		return nil
	}
	a.stall.begin()
	defer a.stall.end()
	if err := a.stream.Send(message); err != nil {
		return &sendError{err}
	}
	return nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// stallWatch notices when one send takes longer than a timeout: gRPC waits as
// long as the reader is connected. One goroutine sends.
type stallWatch struct {
	timeout time.Duration
	timer   *time.Timer
	stalled chan struct{} // closed when a send takes too long
	told    atomic.Bool
}

func newStallWatch(timeout time.Duration) *stallWatch {
	w := &stallWatch{timeout: timeout, stalled: make(chan struct{})}
	w.timer = time.AfterFunc(timeout, w.tell)
	w.timer.Stop()
	return w
}

func (w *stallWatch) tell() {
	if w.told.CompareAndSwap(false, true) {
		close(w.stalled)
	}
}

func (w *stallWatch) begin() { w.timer.Reset(w.timeout) }

func (w *stallWatch) end() { w.timer.Stop() }
