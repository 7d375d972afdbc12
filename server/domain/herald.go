package domain

import (
	"context"
	"encoding/json"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
)

// StatusTopic gets one volatile event for each change of an agent's status.
const StatusTopic = "agent.status"

// maxStatusWait is how long a change waits for a subscriber that is full, which
// then misses it: changes that wait hold memory.
const maxStatusWait = 10 * time.Millisecond

// herald tells of agents' changes on the bus.
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
		Topic: StatusTopic, Type: StatusTopic, Source: c.AgentID, Payload: payload,
	}, events.EmitOptions{Volatile: true, Legacy: true})
}
