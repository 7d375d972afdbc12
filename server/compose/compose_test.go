package compose_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/server/compose"
)

const tenant = "default"

type folder struct{ root *os.Root }

func (f folder) Root(kv.Scope) (*os.Root, error) { return f.root, nil }

func MustOpen(tb testing.TB) *compose.Domain {
	tb.Helper()
	engine := memkv.New(nil)
	root, err := os.OpenRoot(tb.TempDir())
	must(tb, err)
	d, err := compose.Open(engine, folder{root}, nil)
	must(tb, err)
	tb.Cleanup(func() {
		must(tb, d.Close())
		must(tb, d.Close()) // harmless
		must(tb, root.Close())
		must(tb, engine.Close())
	})
	return d
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// MustProvide opens a stream of an agent that answers its tool with result.
func MustProvide(tb testing.TB, d *compose.Domain, agent, tool string, result agents.ToolResult) {
	tb.Helper()
	_, err := d.Agents.Register(tenant, agent, agents.Registration{Tools: []agents.ProvidedTool{{Name: tool, Schema: "{}"}}})
	must(tb, err)
	link, err := d.Agents.Open(tenant, agent, agents.OpenOptions{})
	must(tb, err)
	tb.Cleanup(link.Close)
	go func() {
		for call := range link.Calls() {
			link.Complete(call.ID, result)
		}
	}()
}

func call(tb testing.TB, d *compose.Domain, tool string) hand.Answer {
	tb.Helper()
	a, err := d.Hand.Call(tb.Context(), hand.Request{Scope: kv.AgentScope(tenant, "caller"), Name: tool, Args: json.RawMessage(`{"n":1}`)})
	must(tb, err)
	if !a.Recorded {
		tb.Errorf("%s: not recorded: %v", tool, a.RecordError)
	}
	return a
}

// The tool of another agent is called as the server's own are: its answer, of
// any form, its failure under a code of ours, and a step of the caller.
func TestToolsOfAgents(t *testing.T) {
	d := MustOpen(t)
	for name, test := range map[string]struct {
		result agents.ToolResult
		output string
		code   tools.Code
	}{
		"object":       {result: agents.ToolResult{Output: `{"b":2,"a":9007199254740993}`}, output: `{"b":2,"a":9007199254740993}`},
		"number":       {result: agents.ToolResult{Output: `3`}, output: `3`},
		"text":         {result: agents.ToolResult{Output: "a\x00b", Form: step.FormText}, output: `"a\u0000b"`},
		"nothing":      {result: agents.ToolResult{}, output: `null`},
		"no_json":      {result: agents.ToolResult{Output: `{`}, code: tools.Failed},
		"failed":       {result: agents.ToolResult{Status: agents.ResultError, ErrorCode: "TOOL_ERROR", ErrorMessage: "no luck"}, code: tools.Failed},
		"denied":       {result: agents.ToolResult{Status: agents.ResultError, ErrorCode: "PERMISSION_DENIED", ErrorMessage: "no"}, code: tools.PermissionDenied},
		"its_timeout":  {result: agents.ToolResult{Status: agents.ResultTimeout, ErrorMessage: "slow"}, code: tools.Timeout},
		"its_notfound": {result: agents.ToolResult{Status: agents.ResultNotFound, ErrorMessage: "gone"}, code: tools.NotFound},
	} {
		MustProvide(t, d, "agent-"+name, "demo:"+name, test.result)
		a := call(t, d, "demo:"+name)
		if string(a.Output) != test.output || a.ErrorCode != test.code || a.Success != (test.code == "") {
			t.Errorf("%s: success %v, output %s, code %q, message %q", name, a.Success, a.Output, a.ErrorCode, a.ErrorMessage)
		}
	}
}

// A long text of an agent's tool stays a text where it is cut, and is whole in its
// blob; bytes are bytes.
func TestLongResultsOfAgents(t *testing.T) {
	d := MustOpen(t)
	long := strings.Repeat("a line\n", 200_000)
	quoted := string(text.CanonicalJSON(long))
	for name, test := range map[string]struct {
		result agents.ToolResult
		blob   string
	}{
		"text": {agents.ToolResult{Output: long, Form: step.FormText}, long},
		"nul":  {agents.ToolResult{Output: strings.ReplaceAll(long, "line", "li\x00e"), Form: step.FormText}, strings.ReplaceAll(long, "line", "li\x00e")},
		"json": {agents.ToolResult{Output: quoted}, quoted},
	} {
		MustProvide(t, d, "agent-"+name, "demo:"+name, test.result)
		a := call(t, d, "demo:"+name)
		var shown string
		must(t, json.Unmarshal(a.Output, &shown))
		whole := test.result.Output
		if test.result.Form != step.FormText {
			must(t, json.Unmarshal([]byte(whole), &whole))
		}
		if !a.Truncated || shown == "" || !strings.HasPrefix(whole, shown) || len(a.Output) > hand.MaxOutputBytes {
			t.Errorf("%s: truncated %t, %d bytes", name, a.Truncated, len(a.Output))
		}
		var stored strings.Builder
		for piece, err := range d.Blobs.Read(t.Context(), kv.AgentScope(tenant, "caller"), *a.Blob, 0, -1) {
			must(t, err)
			stored.Write(piece)
		}
		if stored.String() != test.blob {
			t.Errorf("%s: the blob has %d bytes, want %d", name, stored.Len(), len(test.blob))
		}
	}
	MustProvide(t, d, "agent-bytes", "demo:bytes", agents.ToolResult{Output: "\xff\x00", Form: step.FormBytes, MediaType: "x/y"})
	if a := call(t, d, "demo:bytes"); a.Output != nil || a.Bytes == nil || string(a.Bytes.Data) != "\xff\x00" || a.Bytes.MediaType != "x/y" {
		t.Errorf("bytes: %+v", a)
	}
}

// An agent that has gone fails the call at once; the server's own tools stay.
func TestToolOfAnAgentThatLeft(t *testing.T) {
	d := MustOpen(t)
	_, err := d.Agents.Register(tenant, "gone", agents.Registration{Tools: []agents.ProvidedTool{{Name: "demo:gone"}}})
	must(t, err)
	if a := call(t, d, "demo:gone"); a.ErrorCode != tools.ProviderAway || a.ErrorMessage != "Execution failed: its provider gone is not attached; nothing ran" {
		t.Errorf("%+v", a)
	}
}

// An agent that goes away while it runs a tool may have done its work: that is
// what the caller is told, and what the step says.
func TestAgentLeavesDuringItsTool(t *testing.T) {
	d := MustOpen(t)
	_, err := d.Agents.Register(tenant, "worker", agents.Registration{Tools: []agents.ProvidedTool{{Name: "demo:work"}}})
	must(t, err)
	link, err := d.Agents.Open(tenant, "worker", agents.OpenOptions{})
	must(t, err)
	go func() {
		<-link.Calls()
		link.Close()
	}()
	a := call(t, d, "demo:work")
	if a.Success || a.ErrorCode != tools.OutcomeUnknown || !strings.HasPrefix(a.ErrorMessage, "Outcome unknown: agent worker is not connected") {
		t.Errorf("%+v", a)
	}
	if a.Step.Outcome != step.Unknown {
		t.Errorf("the step's outcome is %v", a.Step.Outcome)
	}
}

// Whoever listens to agent.status hears agents come and go.
func TestStatusEvents(t *testing.T) {
	d := MustOpen(t)
	topic, err := pattern.Parse(topics.Status)
	must(t, err)
	s, err := d.Events.Subscribe(t.Context(), tenant, []events.Subscribed{{Pattern: topic}}, nil)
	must(t, err)
	defer s.Close()
	link, err := d.Agents.Open(tenant, "worker", agents.OpenOptions{})
	must(t, err)
	link.Close()
	for _, want := range []string{"active", "disconnected"} {
		got, err := s.Next(t.Context())
		must(t, err)
		var told struct {
			AgentID string `json:"agent_id"`
			Status  string `json:"status"`
		}
		must(t, json.Unmarshal(got.Event.Payload, &told))
		if told.AgentID != "worker" || told.Status != want {
			t.Errorf("told %+v, want %s", told, want)
		}
	}
}
