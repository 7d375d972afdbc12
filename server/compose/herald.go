package compose

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/server"
)

// maxStatusWait is how long a change waits for a subscriber that is full, which
// then misses it: changes that wait hold memory.
const maxStatusWait = 10 * time.Millisecond

// herald tells on the bus what happens elsewhere.
type herald struct{ bus *events.Bus }

// tell publishes one change. Nobody may be listening, and the bus may have been
// closed: neither is worth a line.
func (h herald) tell(tenant string, c agents.Change) {
	payload, err := json.Marshal(map[string]any{
		"agent_id":     c.AgentID,
		"status":       c.Status.String(),
		"capabilities": c.Capabilities,
		"parent_id":    c.Parent,
		"depth":        c.Depth,
		"last_seen":    c.LastSeen.UTC().Format(time.RFC3339Nano),
	})
	if err != nil {
		return // text, numbers and times are JSON
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxStatusWait)
	defer cancel()
	_, _ = h.bus.Emit(ctx, tenant, events.Event{
		Topic: topics.Status, Type: topics.Status, Source: c.AgentID, Payload: payload,
	}, events.EmitOptions{Volatile: true, Legacy: true, Own: true})
}

// folded publishes one batch; nil is none. It waits for nobody, and a call whose
// folds are stored does not fail for it.
func (h herald) folded(ctx context.Context, scope kv.Scope, sessionID string, made *assemble.Batch) {
	if made == nil {
		return
	}
	sessionID = cmp.Or(sessionID, session.DefaultSession)
	payload, err := json.Marshal(map[string]any{
		"session_id":    sessionID,
		"batch":         made.Number,
		"reason":        made.Reason.String(),
		"refs":          server.RefRuns(made.Refs),
		"before_tokens": made.Before,
		"after_tokens":  made.After,
	})
	if err != nil {
		return // text and numbers are JSON
	}
	_, _ = h.bus.Emit(ctx, scope.Tenant, events.Event{
		Topic: topics.Folded, Type: topics.Folded, Source: scope.Owner, SessionID: sessionID, Payload: payload,
	}, events.EmitOptions{Volatile: true, Own: true})
}
