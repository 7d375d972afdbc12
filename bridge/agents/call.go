package agents

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// DefaultCallTimeout ends a call without its own limit, which would otherwise wait
// for ever.
const DefaultCallTimeout = 30 * time.Second

// MaxCallTimeout bounds the limit of every call: a waiting call holds memory and a place
// among the pending calls of the agent.
const MaxCallTimeout = time.Hour

// ToolCall is a tool call for an agent to answer. Nothing in it is checked.
type ToolCall struct {
	// Name is the tool's.
	Name string
	// Arguments is JSON text, as the caller wrote it.
	Arguments string
	// CallerID is the agent that calls, or empty.
	CallerID string
	// CorrelationID and Headers are passed on as they are.
	CorrelationID string
	Headers       map[string]string
	// Timeout bounds the call. Zero and less mean DefaultCallTimeout; more than
	// MaxCallTimeout means that.
	Timeout time.Duration
	// TimeoutMillis is the limit as the caller wrote it, for agents that get it in
	// milliseconds. It may exceed the range of a Duration, and bounds nothing. 0: the
	// caller gave none.
	TimeoutMillis int64
	// QoS is the loom.v1 number as it came.
	QoS int32
	// SessionID is the caller's session, or empty.
	SessionID string
}

// The statuses of a Result; the numbers are loom.v1's.
const (
	ResultOK               int32 = 0
	ResultError            int32 = 1
	ResultTimeout          int32 = 2
	ResultNotFound         int32 = 3
	ResultInvalidArguments int32 = 4
)

// ToolResult is what an agent answered, as it came.
type ToolResult struct {
	// Status is one of the Result numbers.
	Status int32
	// Output is JSON text, or empty; or text or bytes, where Form says so.
	Output string
	// Form is step.FormText or step.FormBytes. Default: JSON.
	Form step.Form
	// MediaType is the format of bytes, where it is known.
	MediaType string
	// ErrorCode, ErrorMessage and Details say what went wrong.
	ErrorCode, ErrorMessage string
	Details                 map[string]string
	// HasError says that the agent sent an error, even if there is nothing in it.
	HasError bool
}

// PushedCall is a call on its way through a link.
type PushedCall struct {
	// ID is made by the directory and can't be guessed. The answer must have it.
	ID string
	ToolCall
	// Deadline is when the caller stops waiting.
	Deadline time.Time
}

// outcome ends a pending call.
type outcome struct {
	result ToolResult
	err    error
}

// Call has a tool run by the agent that provides it, the latest registration
// with an open stream, over its newest stream. Every call ends: with a result;
// with ErrNotFound when no agent registered the tool; with a *NotConnectedError
// when no provider has a stream or the stream ends meanwhile, which says whether
// the agent may have got the call; with ErrBusy; with a *share.ExhaustedError when
// the caller waits for as many calls as it may; with the error of ctx, which Timeout
// bounds; or with ErrClosed.
//
// While it waits for the agent, the call gives back the place of share.Pause: the
// agent may need one like it to answer.
func (d *Directory) Call(ctx context.Context, tenant string, c ToolCall) (ToolResult, error) {
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = DefaultCallTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, min(timeout, MaxCallTimeout))
	defer cancel()
	deadline, _ := ctx.Deadline() // the caller's own may be earlier
	place, err := d.calls.TryTake(share.Owner{Tenant: tenant, Agent: c.CallerID}, 1)
	if err != nil {
		return ToolResult{}, fmt.Errorf("agents: call: %w", err)
	}
	defer place.Leave()
	defer share.Pause(ctx)()
	for {
		link, far, err := d.provider(tenant, c.Name)
		switch {
		case err != nil:
			return ToolResult{}, err
		case far != nil:
			return d.opts.Elsewhere.Call(ctx, far.at, tenant, far.ID, c)
		}
		if result, ended, err := link.run(ctx, c, deadline); !ended {
			return result, err
		}
	}
}

// run has the agent of a link run a call. ended says that the link has left the directory,
// and the next one is to be asked.
func (l *Link) run(ctx context.Context, c ToolCall, deadline time.Time) (result ToolResult, ended bool, err error) {
	id, answer, err := l.push(c, deadline)
	if err != nil {
		return ToolResult{}, isEnded(err), err
	}
	result, err = l.await(ctx, id, answer)
	return result, false, err
}

func isEnded(err error) bool { return errors.Is(err, errEnded) }

// Send hands an event to the newest stream of an agent alone. A full queue is
// ErrBusy, no stream a *NotConnectedError.
func (d *Directory) Send(ctx context.Context, tenant, id string, e events.Event) error {
	if at, far := d.elsewhereFor(tenant, id); far {
		return d.opts.Elsewhere.Send(ctx, at, tenant, id, e)
	}
	return d.SendHere(tenant, id, e)
}

// busy is an ErrBusy that names the agent whose queue is full.
func busy(id string, err error) error {
	if errors.Is(err, errFull) {
		return fmt.Errorf("%w: %s", ErrBusy, id)
	}
	return err
}

// push queues a call and returns its id and the channel of its outcome.
func (l *Link) push(c ToolCall, deadline time.Time) (string, <-chan outcome, error) {
	id, answer, size := rand.Text(), make(chan outcome, 1), c.size()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return "", nil, errEnded
	}
	if len(l.pending) > 0 && l.bytes+size > l.directory.opts.PendingBytes {
		return "", nil, busy(l.id, errFull)
	}
	place, err := l.callers.TryTake(share.Owner{Agent: c.CallerID}, 1)
	if err != nil {
		return "", nil, busy(l.id, errFull)
	}
	if err := l.calls.push(PushedCall{ID: id, ToolCall: c, Deadline: deadline}); err != nil {
		place.Leave()
		return "", nil, busy(l.id, err)
	}
	l.pending[id] = pendingCall{answer, size, place}
	l.bytes += size
	return id, answer, nil
}

// size is roughly what the call takes in memory.
func (c ToolCall) size() int {
	return len(c.Name) + len(c.Arguments) + len(c.CallerID) + len(c.CorrelationID) + len(c.SessionID) + pairBytes(c.Headers)
}

// await waits for the outcome of a pushed call.
func (l *Link) await(ctx context.Context, id string, answer <-chan outcome) (ToolResult, error) {
	select {
	case o := <-answer:
		return o.result, o.err
	case <-ctx.Done():
	}
	if l.settle(id) == nil { // it was settled this very moment
		o := <-answer
		return o.result, o.err
	}
	l.calls.drop(func(p PushedCall) bool { return p.ID == id })
	return ToolResult{}, ctx.Err()
}

// settle removes a call from the pending ones; nil if it is not pending.
func (l *Link) settle(id string) chan<- outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	call := l.pending[id]
	delete(l.pending, id)
	l.bytes -= call.bytes
	call.place.Leave()
	return call.answer
}

// Complete answers a call of this link. False means that no call waits for it:
// the id is unknown or of another link, or the answer is late. It is dropped.
func (l *Link) Complete(callID string, r ToolResult) bool {
	l.directory.seen(l)
	answer := l.settle(callID)
	if answer == nil {
		return false
	}
	answer <- outcome{result: r}
	return true
}

// Waiting reports whether a caller still waits for a call. One without a waiter
// for need not be sent.
func (l *Link) Waiting(callID string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, waiting := l.pending[callID]
	return waiting
}
