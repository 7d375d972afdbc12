package main

import (
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// TestMCPTakesArgumentsAsHostsWriteThem sends lists, objects, numbers and booleans as texts,
// and what is none of those.
func TestMCPTakesArgumentsAsHostsWriteThem(t *testing.T) {
	t.Parallel()
	s := MustRun(t, t.TempDir(), "--mcp-addr", "127.0.0.1:0")
	session, err := dialMCP(t.Context(), s.mcpURL(t), "2025-06-18", "", nil)
	must(t, err)
	defer session.Close()
	call := func(name, arguments string) (string, bool) {
		t.Helper()
		got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)})
		must(t, err)
		return got.Content[0].(*sdk.TextContent).Text, !got.IsError
	}
	for _, tt := range []struct{ name, arguments string }{
		{"memory_save", `{"text":"t","tags":"[\"a\",\"b\"]","metadata":"{\"a\":1}"}`},
		{"memory_query", `{"query":"t","limit":"5"}`},
		{"memory_query", `{"query":"t","limit":5.0}`},
		{"tool_run", `{"name":"fs:list_dir","arguments":"{\"path\":\".\"}","timeout_seconds":"10"}`},
		{"tool_run", `{"name":"fs:read_file","arguments":{"path":"long","limit":"3"}}`},
	} {
		if tt.name == "tool_run" {
			call("tool_run", `{"name":"fs:write_file","arguments":{"path":"long","content":"`+strings.Repeat(`some words in a line\n`, 40_000)+`"}}`)
		}
		if text, ok := call(tt.name, tt.arguments); !ok {
			t.Errorf("%s %s: %s", tt.name, tt.arguments, text)
		}
	}
	for _, tt := range []struct{ name, arguments, says string }{
		{"memory_query", `{"query":"t","limit":"five"}`, "limit: must be integer, not string"},
		{"memory_query", `{"query":"t","limits":5}`, "limits: is not known"},
		{"memory_query", `{"query":"t","limit":99999999999999}`, "limit"},
		{"memory_save", `{}`, "text: is required"},
		{"tool_run", `{"name":"fs:read_fil","arguments":{}}`, "did you mean fs_read_file?"},
		{"tool_run", `{"name":"fs:read_file","arguments":{"file":"a"}}`, "path: is required"},
	} {
		text, ok := call(tt.name, tt.arguments)
		if ok || !strings.Contains(text, tt.says) || strings.Contains(text, "Go ") || strings.Contains(text, "unmarshal") {
			t.Errorf("%s %s: %v %s", tt.name, tt.arguments, ok, text)
		}
	}
	if text, ok := call("tool_run", `{"name":"fs:read_file","arguments":{"path":"long"}}`); !ok || len(text) > 32<<10 || !strings.Contains(text, "blob_read ") {
		t.Errorf("a long result: %v, %d bytes: %.200s", ok, len(text), text)
	}
	steps, err := contexts.New(s.conn).ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: "mcp", PageSize: 100})
	must(t, err)
	if !strings.Contains(steps.String(), "Tool not found: fs:read_fil") || !strings.Contains(steps.String(), "path: is required") {
		t.Errorf("the calls that were wrong are no steps: %v", steps)
	}
}
