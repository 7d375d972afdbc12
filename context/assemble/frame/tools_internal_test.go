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
	check := func(what, model string, format provider.Format, tools []Tool) {
		t.Helper()
		for range 2 {
			if s.toolsKey(model, format, tools) != toolsKey(model, format, tools) {
				t.Errorf("another key: %s", what)
			}
		}
	}
	check("the first", "a", provider.Neutral, tools)
	check("another model", "b", provider.Neutral, tools)
	check("another form", "b", provider.Anthropic, tools)
	check("one less", "b", provider.Anthropic, tools[:1])
	check("none", "b", provider.Anthropic, nil)
	for what, changed := range map[string]Tool{"name": renamed, "description": described, "schema": schema} {
		check("as before", "b", provider.Anthropic, tools)
		tools[1] = changed // in place, as a caller may
		check("another "+what, "b", provider.Anthropic, tools)
		tools[1] = tool
	}
}
