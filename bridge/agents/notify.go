package agents

import (
	"context"
	"encoding/json"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events"
)

// maxStatusWait is how long a change waits for a subscriber that is full, which
// then misses it: changes that wait hold memory.
const maxStatusWait = 10 * time.Millisecond

// NotifyOn returns an Options.OnChange that emits each change as a volatile event on
// events.StatusTopic of a bus. An event that nobody takes is no error, nor is a bus
// that was closed.
func NotifyOn(bus *events.Bus) func(tenant string, c Change) {
	return func(tenant string, c Change) {
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
		_, _ = bus.Emit(ctx, tenant, events.Event{
			Topic: events.StatusTopic, Type: events.StatusTopic, Source: c.AgentID, Payload: payload,
		}, events.EmitOptions{Volatile: true, Legacy: true, Own: true})
	}
}
