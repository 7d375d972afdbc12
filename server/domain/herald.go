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

// herald tells of agents' changes on the bus.
type herald struct{ bus *events.Bus }

// tell publishes one change. Nobody may be listening, and the bus may have been
// closed: neither is worth a line.
func (h herald) tell(tenant string, a agents.Agent) {
	payload, err := json.Marshal(map[string]any{
		"agent_id":     a.ID,
		"status":       a.Status.String(),
		"capabilities": a.Capabilities,
		"parent_id":    a.Parent,
		"depth":        a.Depth,
		"last_seen":    a.LastSeen.UTC().Format(time.RFC3339Nano),
	})
	if err != nil {
		return // text, numbers and times are JSON
	}
	_, _ = h.bus.Emit(context.Background(), tenant, events.Event{
		Topic: StatusTopic, Type: StatusTopic, Source: a.ID, Payload: payload,
	}, events.EmitOptions{Volatile: true, Legacy: true})
}
