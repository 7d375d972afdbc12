package provider

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/session"
)

// libraryMessage is a message as the library's encoder is told to write it.
type libraryMessage struct {
	Role       string        `json:"role"`
	Content    any           `json:"content"`
	Name       string        `json:"name,omitempty"`
	ToolCalls  []libraryCall `json:"tool_calls,omitempty"`
	ToolCallID string        `json:"tool_call_id,omitempty"`
}

type libraryCall struct {
	ID       string          `json:"id"`
	Type     string          `json:"type"`
	Function libraryFunction `json:"function"`
}

type libraryFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func byLibrary(t *testing.T, m session.Message) string {
	t.Helper()
	wire := libraryMessage{Role: m.Role.String(), Content: m.Content, Name: m.Name, ToolCallID: m.ToolCallID}
	for _, c := range m.ToolCalls {
		wire.ToolCalls = append(wire.ToolCalls, libraryCall{c.ID, "function", libraryFunction{c.Name, c.Arguments}})
	}
	switch {
	case len(m.BlocksJSON) > 0:
		wire.Content = m.BlocksJSON
	case m.Content == "" && len(m.ToolCalls) > 0:
		wire.Content = nil
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(wire); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A message is written as the library writes it, byte for byte.
func TestEncode(t *testing.T) {
	call := session.ToolCall{ID: "c<1>", Name: `fs:"read"`, Arguments: "{\"path\":\"a\\n\"}"}
	for name, m := range map[string]session.Message{
		"empty":       {Role: session.User},
		"text":        {Role: session.User, Content: "a\n\"b\" <é→\u2028\xff>", Name: "a\tb"},
		"blocks":      {Role: session.User, BlocksJSON: json.RawMessage(" [ {\"a\" : \"<\u2028é>\"},\n1 ] ")},
		"call":        {Role: session.Assistant, ToolCalls: []session.ToolCall{call}},
		"calls":       {Role: session.Assistant, Content: "I look.", ToolCalls: []session.ToolCall{call, {}, call}},
		"blocks call": {Role: session.Assistant, BlocksJSON: json.RawMessage(`[]`), ToolCalls: []session.ToolCall{call}},
		"result":      {Role: session.Tool, ToolCallID: "c\\1", Content: "done"},
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := encode(&got, m); err != nil {
				t.Fatal(err)
			}
			if want := byLibrary(t, m); got.String()+"\n" != want {
				t.Errorf("got %s\nwant %s", got.String(), want)
			}
		})
	}
	if encode(new(bytes.Buffer), session.Message{BlocksJSON: json.RawMessage(`[`)}) == nil {
		t.Error("blocks that are no JSON were written")
	}
}
