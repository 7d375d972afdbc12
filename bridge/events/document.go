package events

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"iter"
	"strings"
	"time"
)

// OfAgent yields the durable events that an agent emitted, and the events of topics named
// after it.
func (b *Bus) OfAgent(ctx context.Context, tenant, agent string) iter.Seq2[Event, error] {
	own := "agent." + agent
	return func(yield func(Event, error) bool) {
		for event, err := range b.All(ctx, tenant) {
			if err == nil && event.Source != agent && event.Topic != own && !strings.HasPrefix(event.Topic, own+".") {
				continue
			}
			if !yield(event, err) {
				return
			}
		}
	}
}

// Document is an event as a JSON object; a payload that is no JSON is payload_base64.
func Document(event Event) map[string]any {
	document := map[string]any{
		"topic": event.Topic, "sequence": event.Sequence, "id": event.ID, "source": event.Source,
		"time": event.Time.UTC().Format(time.RFC3339Nano),
	}
	for name, text := range map[string]string{"session_id": event.SessionID, "type": event.Type} {
		if text != "" {
			document[name] = text
		}
	}
	if len(event.Tags) > 0 {
		document["tags"] = event.Tags
	}
	if len(event.Headers) > 0 {
		document["headers"] = event.Headers
	}
	if event.Priority != 0 {
		document["priority"] = event.Priority
	}
	if event.Confidence != 0 {
		document["confidence"] = event.Confidence
	}
	if event.PayloadKind == JSON && json.Valid(event.Payload) {
		document["payload"] = json.RawMessage(event.Payload)
	} else {
		document["payload_base64"] = base64.StdEncoding.EncodeToString(event.Payload)
	}
	return document
}
