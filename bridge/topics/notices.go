package topics

import (
	"context"
	"encoding/json"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/assemble/fold"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// maxStatusWait is how long a change of a status waits for a subscriber that is full,
// which then misses it: changes that wait hold memory.
const maxStatusWait = 10 * time.Millisecond

// Notices emits the events of the bridge's own topics. An event without a taker is
// no error, nor is a bus that was closed.
type Notices struct{ Bus *events.Bus }

// Status announces a change of an agent, as agents.Options.OnChange.
func (n Notices) Status(tenant string, c agents.Change) {
	ctx, cancel := context.WithTimeout(context.Background(), maxStatusWait)
	defer cancel()
	n.emit(ctx, tenant, events.Event{Topic: Status, Source: c.AgentID}, events.EmitOptions{Legacy: true, Here: c.Lost}, map[string]any{
		"agent_id":     c.AgentID,
		"status":       c.Status.String(),
		"capabilities": c.Capabilities,
		"parent_id":    c.Parent,
		"depth":        c.Depth,
		"last_seen":    c.LastSeen.UTC().Format(time.RFC3339Nano),
	})
}

// Folded announces a batch of folds, as assemble.Options.OnBatch.
func (n Notices) Folded(ctx context.Context, scope kv.Scope, sessionID string, b fold.Batch) {
	n.emit(ctx, scope.Tenant, events.Event{Topic: Folded, Source: scope.Owner, SessionID: sessionID}, events.EmitOptions{}, map[string]any{
		"session_id":    sessionID,
		"batch":         b.Number,
		"reason":        b.Reason.String(),
		"refs":          session.RefRuns(b.Refs),
		"before_tokens": b.Before,
		"after_tokens":  b.After,
	})
}

// Progress says how far a call has come, as hand.Options.OnProgress.
func (n Notices) Progress(ctx context.Context, r hand.Request, tool string, p tools.Progress) {
	n.emit(ctx, r.Scope.Tenant, events.Event{Topic: Progress, Source: r.Scope.Owner, SessionID: r.SessionID}, events.EmitOptions{}, map[string]any{
		"session_id": r.SessionID,
		"call_id":    r.CallID,
		"turn_id":    r.TurnID,
		"tool":       tool,
		"done":       p.Done,
		"total":      p.Total,
		"message":    p.Message,
	})
}

// emit emits a volatile event of the bridge. Only legacy events wait for subscriptions
// that are full.
func (n Notices) emit(ctx context.Context, tenant string, e events.Event, opts events.EmitOptions, payload map[string]any) {
	e.Type = e.Topic
	e.Payload, _ = json.Marshal(payload) // text, numbers and times are JSON
	opts.Volatile, opts.Own = true, true
	_, _ = n.Bus.Emit(ctx, tenant, e, opts)
}
