package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loom-bridge/loom-bridge/server/mcp"
)

// openSession opens a session of an older protocol, and returns its id, or none if it is
// refused for want of room.
func openSession(tb testing.TB, url, token string) string {
	tb.Helper()
	request := post(tb, url, initializeBody)
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(request)
	must(tb, err)
	must(tb, answer.Body.Close())
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusServiceUnavailable {
		tb.Fatalf("opening a session: %s", answer.Status)
	}
	return answer.Header.Get("Mcp-Session-Id")
}

// A tenant that opens all the sessions that it can leaves one for another tenant, and an
// agent one for another agent; a session that ends makes room.
func TestHostSessionsAreShared(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir, "--mcp-addr", "127.0.0.1:0", "--credentials", MustCallers(t, dir, "acme", "umbrella"))
	url := p.mcpURL(t)
	var held []string
	const all = 1024
	for len(held) < all {
		id := openSession(t, url+"?agent=greedy", "acme")
		if id == "" {
			break
		}
		held = append(held, id)
	}
	if len(held) < all/2 || len(held) == all {
		t.Fatalf("one agent holds %d of %d sessions", len(held), all)
	}
	if openSession(t, url+"?agent=modest", "acme") == "" {
		t.Error("another agent of the tenant has no room")
	}
	if openSession(t, url, "umbrella") == "" {
		t.Error("another tenant has no room")
	}
	for _, id := range held[:5] {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
		must(t, err)
		request.Header.Set("Mcp-Session-Id", id)
		request.Header.Set("Authorization", "Bearer acme")
		if code := statusOf(t, request); code >= 300 {
			t.Fatalf("the end of a session: %d", code)
		}
	}
	if openSession(t, url+"?agent=greedy", "acme") == "" {
		t.Error("a session that ended makes no room")
	}
	// Hosts of the newest protocol have none, and are served.
	MustHost(t, url+"?agent=greedy", "2026-07-28", "acme", nil).works("memory_save", object{"text": "x"}, nil)
}

// The lists of a served host are the same for each that asks, say how long they may be
// kept, and hold every tool, template and prompt.
func TestHostLists(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir(), "--mcp-addr", "127.0.0.1:0")
	var seen string
	for n, version := range []string{"2026-07-28", "2026-07-28", "2025-11-25"} {
		h := MustHost(t, p.mcpURL(t)+"?agent=a"+fmt.Sprint(n), version, "", nil)
		tools, err := h.ListTools(t.Context(), nil)
		must(t, err)
		templates, err := h.ListResourceTemplates(t.Context(), nil)
		must(t, err)
		prompts, err := h.ListPrompts(t.Context(), nil)
		must(t, err)
		if version == mcp.Versions()[0] && (tools.TTLMs < 1000 || templates.TTLMs < 1000 || prompts.TTLMs < 1000 || tools.CacheScope != "public") {
			t.Errorf("kept for %d, %d, %d ms by %q", tools.TTLMs, templates.TTLMs, prompts.TTLMs, tools.CacheScope)
		}
		if len(tools.Tools) != 14 || len(templates.ResourceTemplates) != 3 || len(prompts.Prompts) != 2 {
			t.Errorf("%d tools, %d templates, %d prompts", len(tools.Tools), len(templates.ResourceTemplates), len(prompts.Prompts))
		}
		text, err := json.Marshal([]any{tools.Tools, templates.ResourceTemplates, prompts.Prompts})
		must(t, err)
		if seen == "" {
			seen = string(text)
		} else if seen != string(text) {
			t.Errorf("the lists differ: %s and %s", seen, text)
		}
	}
}

// A record and a step are resources; each caller reads its own alone.
func TestHostResources(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir(), "--mcp-addr", "127.0.0.1:0")
	anna := MustHost(t, p.mcpURL(t)+"?agent=anna", "", "", nil)
	ben := MustHost(t, p.mcpURL(t)+"?agent=ben", "", "", nil)
	var saved struct{ ID string }
	anna.works("memory_save", object{"text": "the key lies under the mat"}, &saved)
	var step struct{ Step string }
	anna.works("step_record", object{"tool": "bash", "arguments": object{"command": "ls"}, "result": "mat"}, &step)
	for uri, want := range map[string]string{"loom://record/" + saved.ID: "the key lies under the mat", "loom://step/" + step.Step: `"tool_name":"bash"`} {
		read, err := anna.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		must(t, err)
		if text := read.Contents[0].Text; !strings.Contains(text, want) || read.Contents[0].MIMEType != "application/json" || read.CacheScope == "public" {
			t.Errorf("%s is %s (%s, kept by %q)", uri, text, read.Contents[0].MIMEType, read.CacheScope)
		}
		if read, err := ben.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s is read by somebody else: %s", uri, read.Contents[0].Text)
		}
	}
	for _, uri := range []string{"loom://record/", "loom://nothing/x", "http://record/" + saved.ID, "loom:record", "loom://step/../" + step.Step} {
		if _, err := anna.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s was read", uri)
		}
	}
}

// The trace that a host's call belongs to stands in the server's log, be it said in the
// message or in the HTTP header; what is no trace does not.
func TestHostTrace(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir(), "--mcp-addr", "127.0.0.1:0")
	const trace, other = "0af7651916cd43dd8448eb211c80319c", "1bf7651916cd43dd8448eb211c80319d"
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		h := MustHost(t, p.mcpURL(t), version, "", nil)
		params := &sdk.CallToolParams{Name: "memory_get", Arguments: object{"id": "no-such"}}
		params.SetMeta(map[string]any{"traceparent": "00-" + trace + "-00f067aa0ba902b7-01"})
		_, err := h.CallTool(t.Context(), params)
		must(t, err)
	}
	request := post(t, p.mcpURL(t), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_get","arguments":{"id":"no-such"},"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
	for key, value := range map[string]string{
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "memory_get", "traceparent": "00-" + other + "-00f067aa0ba902b7-01",
	} {
		request.Header.Set(key, value)
	}
	if code := statusOf(t, request); code != http.StatusOK {
		t.Errorf("a call with a trace in its header: %d", code)
	}
	bad := &sdk.CallToolParams{Name: "memory_get", Arguments: object{"id": "no-such"}}
	bad.SetMeta(map[string]any{"traceparent": "00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01"})
	_, err := MustHost(t, p.mcpURL(t), "", "", nil).CallTool(t.Context(), bad)
	must(t, err)
	must(t, p.Stop())
	p.toldTimes(t, "trace_id=", 3)
	log := p.Log.String()
	if strings.Count(log, "trace_id="+trace) != 2 || strings.Count(log, "trace_id="+other) != 1 || strings.Count(log, "trace_id=") != 3 {
		t.Errorf("the log: %s", log)
	}
}

// The tools of the bridge through tool_list and tool_run: described (E02), listed with
// their levels and schemas (E01, E04), confined (E05), and refused with what is wrong (E07).
func TestHostTools(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir(), "--mcp-addr", "127.0.0.1:0", "--shell-allow", "true")
	h := MustHost(t, p.mcpURL(t), "", "", nil)
	var all, some struct {
		Tools []struct {
			Name, Description string
			Schema            map[string]any
		}
	}
	h.works("tool_list", object{}, &all)
	h.works("tool_list", object{"match": "fs:read_file"}, &some)
	names := map[string]bool{}
	for _, tool := range all.Tools {
		if tool.Description == "" || tool.Schema != nil {
			t.Errorf("a look around shows %+v", tool)
		}
		names[tool.Name] = true
	}
	for _, want := range []string{"fs:read_file", "system:shell", "shell:run", "web:fetch"} {
		if !names[want] {
			t.Errorf("%s is not listed", want)
		}
	}
	if len(some.Tools) == 0 || some.Tools[0].Name != "fs:read_file" || some.Tools[0].Schema["type"] != "object" {
		t.Errorf("found %+v", some.Tools)
	}
	for _, test := range []struct {
		name      string
		arguments object
		want      string
	}{
		{"system:shell", object{"command": "rm", "args": []string{"-rf", "."}}, "PERMISSION_DENIED: Permission denied: Command 'rm' is not allowed"},
		{"fs:read_file", object{"path": 7}, "path"},
		{"no:such", object{}, "no:such"},
	} {
		if text, failed := h.call("tool_run", object{"name": test.name, "arguments": test.arguments}); !failed || !strings.Contains(text, test.want) {
			t.Errorf("%s: %s", test.name, text)
		}
	}
}
