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
func (p *Peers) Call(ctx context.Context, at, tenant, id string, c agents.ToolCall) (agents.ToolResult, error) {
	return p.answered(ctx, at, topicCall, id, mesh.Encode(call{topicName{tenant, id}, c}))
}

// answered asks the bridge of an agent.
func (p *Peers) answered(ctx context.Context, at, topic, id string, payload []byte) (agents.ToolResult, error) {
	b, err := p.mesh.Request(ctx, mesh.ParsePeer(at), topic, payload)
	if err != nil {
		return agents.ToolResult{}, unreached(id, err)
	}
	a, err := mesh.Decode[callAnswer](b)
	if err == nil {
		err = a.error(id)
	}
	return a.Result, err
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
	c, err := mesh.Decode[call](payload)
	if err != nil {
		return nil, err
	}
	result, err := p.parts.Agents.CallHere(ctx, c.At.Tenant, c.At.Name, c.Call)
	return mesh.Encode(answerOf(result, err)), nil
}

// Send is agents.Elsewhere's.
func (p *Peers) Send(ctx context.Context, at, tenant, id string, e events.Event) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	_, err := p.answered(ctx, at, topicDirect, id, encodeEvent(tenant, id, &e, true))
	return err
}

func (p *Peers) serveDirect(_ context.Context, _ mesh.Peer, payload []byte) ([]byte, error) {
	at, e, _, err := decodeEvent(payload)
	if err != nil {
		return nil, err
	}
	return mesh.Encode(answerOf(agents.ToolResult{}, p.parts.Agents.SendHere(at.Tenant, at.Name, e))), nil
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

func answerOf(result agents.ToolResult, err error) callAnswer {
	if err == nil {
		return callAnswer{Result: result}
	}
	f := callAnswer{Failed: failedOther, Text: err.Error()}
	gone, away := errors.AsType[*agents.NotConnectedError](err)
	switch {
	case away && gone.Sent:
		f.Failed = failedLost
	case away:
		f.Failed = failedAway
	case errors.Is(err, agents.ErrBusy), errors.Is(err, share.ErrExhausted):
		f.Failed = failedBusy
	case errors.Is(err, agents.ErrClosed):
		f.Failed = failedClosed
	case errors.Is(err, context.DeadlineExceeded):
		f.Failed = failedLate
	case errors.Is(err, context.Canceled): // its bridge stops, or takes this one for gone
		f.Failed = failedLost
	}
	return f
}

// error is that of the call; nil where it did not fail.
func (a *callAnswer) error(id string) error {
	switch a.Failed {
	case 0:
		return nil
	case failedAway, failedClosed:
		return &agents.NotConnectedError{Agent: id}
	case failedLost:
		return &agents.NotConnectedError{Agent: id, Sent: true}
	case failedBusy:
		return fmt.Errorf("%w: %s", agents.ErrBusy, id)
	case failedLate:
		return context.DeadlineExceeded
	}
	return errors.New(a.Text)
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
