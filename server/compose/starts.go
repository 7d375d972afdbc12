package compose

import (
	"context"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/tiers"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// firstPosition is where a session begins.
const firstPosition = 1

// startingHand has an agent's garbage collected when one of its sessions begins
// with a tool call, and moves up the tasks that steps bring.
type startingHand struct {
	*hand.Hand
	blobs *blob.Store
	tiers *tiers.Tiers
}

// Call is the hand's.
func (h startingHand) Call(ctx context.Context, r hand.Request) (hand.Answer, error) {
	answer, err := h.Hand.Call(ctx, r)
	if answer.Position == firstPosition {
		h.blobs.Nudge(r.Scope)
	}
	return answer, err
}

// Record is the hand's.
func (h startingHand) Record(ctx context.Context, r hand.Recorded) (hand.Answer, error) {
	answer, err := h.Hand.Record(ctx, r)
	if err == nil && r.Task != nil {
		h.tiers.Added(ctx, r.Scope, answer.Step.SessionID)
	}
	if answer.Position == firstPosition {
		h.blobs.Nudge(r.Scope)
	}
	return answer, err
}

// startingLog does so when a session begins with a message.
type startingLog struct {
	*session.Log
	blobs *blob.Store
}

// AppendMessages is the log's.
func (l startingLog) AppendMessages(ctx context.Context, scope kv.Scope, sessionID string, messages []session.Message, requestID string) ([]uint64, error) {
	positions, err := l.Log.AppendMessages(ctx, scope, sessionID, messages, requestID)
	if len(positions) > 0 && positions[0] == firstPosition {
		l.blobs.Nudge(scope)
	}
	return positions, err
}
