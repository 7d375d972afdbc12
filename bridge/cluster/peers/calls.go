package peers

import (
	"context"
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/mesh"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/share"
)

// Call is agents.Elsewhere's.
func (p *Peers) Call(ctx context.Context, at mesh.Peer, tenant, id string, c agents.ToolCall) (agents.ToolResult, error) {
	b, err := p.mesh.Request(ctx, at, topicCall, encodeCall(place{tenant, id}, &c))
	if err != nil {
		return agents.ToolResult{}, unreached(id, err)
	}
	result, failure, err := decodeResult(b)
	switch {
	case err != nil:
		return agents.ToolResult{}, fmt.Errorf("the answer of bridge %s can't be read: %w", at.ID, err)
	case failure != nil:
		return agents.ToolResult{}, failure.error(id)
	}
	return result, nil
}

// unreached is the error of a question that the bridge of an agent did not answer.
func unreached(id string, err error) error {
	switch {
	case errors.Is(err, mesh.ErrNotSent):
		return &agents.NotConnectedError{Agent: id}
	case errors.Is(err, mesh.ErrLost), errors.Is(err, mesh.ErrClosed):
		return &agents.NotConnectedError{Agent: id, Sent: true}
	case errors.Is(err, mesh.ErrBusy):
		return fmt.Errorf("%w: %s: %w", agents.ErrBusy, id, err)
	}
	return err
}

func (p *Peers) serveCall(ctx context.Context, _ mesh.Peer, payload []byte) ([]byte, error) {
	at, c, err := decodeCall(payload)
	if err != nil {
		return nil, err
	}
	result, err := p.parts.Agents.CallHere(ctx, at.tenant, at.name, c)
	if err != nil {
		return encodeFailure(failureOf(err)), nil
	}
	return encodeResult(&result), nil
}

// Send is agents.Elsewhere's.
func (p *Peers) Send(ctx context.Context, at mesh.Peer, tenant, id string, e events.Event) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	b, err := p.mesh.Request(ctx, at, topicDirect, encodeEvent(tenant, id, &e, true))
	if err != nil {
		return unreached(id, err)
	}
	_, failure, err := decodeResult(b)
	if err == nil && failure != nil {
		err = failure.error(id)
	}
	return err
}

func (p *Peers) serveDirect(_ context.Context, _ mesh.Peer, payload []byte) ([]byte, error) {
	tenant, id, e, _, err := decodeEvent(payload)
	if err != nil {
		return nil, err
	}
	if err := p.parts.Agents.SendHere(tenant, id, e); err != nil {
		return encodeFailure(failureOf(err)), nil
	}
	return nil, nil
}

// failureKind is why an agent's own bridge could not have a call answered. The numbers are
// on the wire.
type failureKind uint8

const (
	failedOther failureKind = iota + 1
	failedAway              // no stream; nothing was sent
	failedLost              // the stream ended under the call
	failedBusy
	failedClosed
	failedLate
)

type failure struct {
	kind failureKind
	text string
}

func failureOf(err error) failure {
	f := failure{failedOther, err.Error()}
	gone, away := errors.AsType[*agents.NotConnectedError](err)
	switch {
	case away && gone.Sent:
		f.kind = failedLost
	case away:
		f.kind = failedAway
	case errors.Is(err, agents.ErrBusy), errors.Is(err, share.ErrExhausted):
		f.kind = failedBusy
	case errors.Is(err, agents.ErrClosed):
		f.kind = failedClosed
	case errors.Is(err, context.DeadlineExceeded):
		f.kind = failedLate
	case errors.Is(err, context.Canceled): // its bridge stops, or takes this one for gone
		f.kind = failedLost
	}
	return f
}

func (f *failure) error(id string) error {
	switch f.kind {
	case failedAway, failedClosed:
		return &agents.NotConnectedError{Agent: id}
	case failedLost:
		return &agents.NotConnectedError{Agent: id, Sent: true}
	case failedBusy:
		return fmt.Errorf("%w: %s", agents.ErrBusy, id)
	case failedLate:
		return context.DeadlineExceeded
	}
	return errors.New(f.text)
}

// Forward is places.Elsewhere's. A bridge that was taken for dead and went on is registered
// under a later epoch than the one that it joined the mesh with.
func (p *Peers) Forward(ctx context.Context, at mesh.Peer, payload []byte) ([]byte, error) {
	if known := p.mesh.Named(at.ID); !known.IsZero() {
		at = known
	}
	return p.mesh.Request(ctx, at, topicPlace, payload)
}

func (p *Peers) servePlace(ctx context.Context, _ mesh.Peer, payload []byte) ([]byte, error) {
	return p.parts.Places.Handle(ctx, payload), nil
}
