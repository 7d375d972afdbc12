package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Entry returns what stands at a position of a session, and false when nothing
// does.
func (l *Log) Entry(ctx context.Context, scope kv.Scope, id string, position uint64) (e Entry, found bool, err error) {
	id, err = sessionID(id)
	if err = errors.Join(err, scope.Validate()); err != nil {
		return Entry{}, false, err
	}
	value, err := l.get(ctx, entryKey(scope, id, position))
	if err != nil {
		return Entry{}, false, fmt.Errorf("session: read entry %d: %w", position, err)
	}
	if value == nil {
		return Entry{}, false, nil
	}
	e, err = decodeEntry(value)
	if errors.Is(err, errUnknownKind) {
		return Entry{}, false, nil
	}
	e.Position = position
	return e, err == nil, err
}

// Text is a message for reading: the content, or the provider's blocks as they
// came, and behind it each call that it asks for, with its arguments as the
// model wrote them, and the provider's further fields. A message without calls
// and further fields is its content, byte for byte.
func (m Message) Text() string {
	parts := make([]string, 0, 1+len(m.ToolCalls))
	if body := m.Content + string(m.BlocksJSON); body != "" {
		parts = append(parts, body)
	}
	for _, c := range m.ToolCalls {
		parts = append(parts, fmt.Sprintf("[call %s] %s\n%s", c.ID, c.Name, c.Arguments))
		if c.Extra != "" {
			parts = append(parts, c.Extra)
		}
	}
	if len(m.ExtraJSON) > 0 {
		parts = append(parts, string(m.ExtraJSON))
	}
	return strings.Join(parts, "\n")
}

// Document is a message entry as one canonical JSON object: what the file
// message_017.json of a history holds. Fields without a value are left out. The
// same entry gives the same bytes. An entry without a message is null.
func Document(e Entry) []byte {
	if e.Message == nil {
		return text.CanonicalJSON(nil)
	}
	m := e.Message
	object := map[string]any{
		"id": MessageID(e.Position), "position": e.Position, "time": e.Time.UTC().Format(time.RFC3339Nano), "role": m.Role.String(),
	}
	for key, s := range map[string]string{"content": m.Content, "name": m.Name, "tool_call_id": m.ToolCallID} {
		if s != "" {
			object[key] = s
		}
	}
	for key, set := range map[string]bool{"pinned": m.Pinned, "observation": m.Observation} {
		if set {
			object[key] = true
		}
	}
	if len(m.BlocksJSON) > 0 {
		object["blocks"] = m.BlocksJSON
	}
	if len(m.ExtraJSON) > 0 {
		object["extra"] = m.ExtraJSON
	}
	if len(m.ToolCalls) > 0 {
		object["tool_calls"] = callsDocument(m.ToolCalls)
	}
	return text.CanonicalJSON(object)
}

func callsDocument(calls []ToolCall) []any {
	list := make([]any, len(calls))
	for i, c := range calls {
		// The arguments need not be JSON, so they stay the text they came as.
		call := map[string]any{"id": c.ID, "name": c.Name, "arguments": c.Arguments}
		if c.Extra != "" {
			call["extra"] = json.RawMessage(c.Extra)
		}
		list[i] = call
	}
	return list
}
