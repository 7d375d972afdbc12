package frame

import (
	"encoding/json"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
)

// Tools have the key of what they are now, whatever the last ones were.
func TestKeyOfToolsThatChange(t *testing.T) {
	t.Parallel()
	s := New(Sources{})
	tool := Tool{Name: "fs:read_file", Description: "Reads a file.", Schema: json.RawMessage(`{"type":"object"}`)}
	renamed, described, schema := tool, tool, tool
	renamed.Name, described.Description, schema.Schema = "fs:read", "Reads it.", json.RawMessage(`{"type":"object","properties":{}}`)
	tools := []Tool{tool, tool}
	for _, changed := range []Tool{renamed, tool, described, tool, schema, tool} {
		tools[1] = changed // in place, as a caller may
		for _, model := range []string{"a", "b", "b"} {
			for _, format := range []provider.Format{provider.OpenAIChat, provider.Anthropic} {
				if s.toolsKey(model, format, tools) != toolsKey(model, format, tools) {
					t.Errorf("model %s, format %v: another key for %+v", model, format, changed)
				}
			}
			if s.toolsKey(model, provider.Neutral, tools[:1]) != toolsKey(model, provider.Neutral, tools[:1]) || s.toolsKey(model, provider.Neutral, nil) != toolsKey(model, provider.Neutral, nil) {
				t.Errorf("model %s: another key for less", model)
			}
		}
	}
	s.toolsKey("a", provider.Neutral, tools)
	if tools[1] = renamed; s.toolsKey("a", provider.Neutral, tools) != toolsKey("a", provider.Neutral, tools) {
		t.Error("another key for a tool that was changed in place")
	}
}
