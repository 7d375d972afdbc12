package hand_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// Run gives the whole result and leaves no trace: no step, no blob, no intent.
func TestRunRecordsNothing(t *testing.T) {
	text := strings.Repeat("line of text\n", 200<<10/13)
	w := MustWorld(t, map[string]string{"long.txt": text}, nil)
	a, err := w.Run(t.Context(), request("fs:read_file", map[string]any{"path": "long.txt"}))
	if err != nil || a.Failure != nil {
		t.Fatal(err, a.Failure)
	}
	if got := field(t, a.Output, "content"); got != text {
		t.Errorf("content has %d bytes, want %d", len(got.(string)), len(text))
	}
	if _, err := w.Run(t.Context(), request("fs:write_file", map[string]any{"path": "new.txt", "content": "x"})); err != nil {
		t.Fatal(err)
	}
	if got := w.steps("default"); len(got) != 0 {
		t.Errorf("%d steps were recorded", len(got))
	}
	if got := w.intents(); len(got) != 0 {
		t.Errorf("%d intents were written", len(got))
	}
}

func TestRunLimits(t *testing.T) {
	w := MustWorld(t, map[string]string{"long.txt": strings.Repeat("x", 5000), "binary": "\xff\xfe\x00"}, nil)
	for name, limit := range map[string]int{"body": 1000, "escapes and the rest": 5005} {
		req := request("fs:read_file", map[string]any{"path": "long.txt"})
		req.MaxOutput = limit
		a, err := w.Run(t.Context(), req)
		if err != nil || a.Failure == nil || a.Failure.Code != tools.TooLarge || a.Output != nil {
			t.Errorf("%s: %v, %+v", name, err, a)
		}
	}
	a, err := w.Run(t.Context(), request("fs:read_file", map[string]any{"path": "binary"}))
	if err != nil || a.Failure == nil || a.Failure.Code != tools.Failed {
		t.Errorf("binary: %v, %+v", err, a)
	}
	if _, err := w.Run(t.Context(), request("fs:read_file", nil)); !errors.Is(err, tools.ErrInvalidArguments) {
		t.Errorf("no path: %v", err)
	}
	if _, err := w.Run(t.Context(), request("no:such", nil)); !errors.Is(err, tools.ErrToolNotFound) {
		t.Errorf("unknown tool: %v", err)
	}
}

// relay supplies one tool to one tenant.
type relay struct{ tool *tools.Tool }

func (relay) Offers(string) iter.Seq[tools.Offer] { return func(func(tools.Offer) bool) {} }

func (r relay) Find(tenant, name string) (*tools.Tool, bool) {
	return r.tool, tenant == agent.Tenant && name == r.tool.Descriptor().Name
}

// The registry's own tools win over relayed ones; a relayed call is a step.
func TestRelay(t *testing.T) {
	w := MustWorld(t, map[string]string{"a.txt": "own"}, nil)
	echo, err := tools.NewRemote(tools.Descriptor{Name: "demo:echo", Level: tools.LevelFunction, Schema: json.RawMessage(`not a schema`)},
		func(_ context.Context, c tools.Input) (tools.Output, error) {
			return tools.Output{Values: map[string]any{"echo": c.Args["text"]}}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	w.Tools.Add(relay{echo})
	a := w.must(request("demo:echo", map[string]any{"text": "hello"}))
	if got := field(t, a.Output, "echo"); got != "hello" {
		t.Errorf("echo %v", got)
	}
	if a.Step.ToolName != "demo:echo" {
		t.Errorf("step of %q", a.Step.ToolName)
	}
	foreign := request("demo:echo", nil)
	foreign.Scope.Tenant = "acme"
	if _, err := w.Call(t.Context(), foreign); !errors.Is(err, tools.ErrToolNotFound) {
		t.Errorf("another tenant: %v", err)
	}
	own, err := tools.NewRemote(tools.Descriptor{Name: "fs:read_file", Level: tools.LevelFunction},
		func(context.Context, tools.Input) (tools.Output, error) {
			t.Error("the relayed tool ran in place of the server's own")
			return tools.Output{}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	w.Tools.Add(relay{own})
	w.must(request("fs:read_file", map[string]any{"path": "a.txt"}))
}

// reported is what a caller ran itself.
func reported(name string, args map[string]any, output string) hand.Recorded {
	return hand.Recorded{Request: request(name, args), Output: asJSON(output)}
}

// reportedText is a report of a result that was given as text.
func reportedText(name, text string) hand.Recorded {
	return hand.Recorded{Request: request(name, nil), Output: step.Original{Form: step.FormText, Data: []byte(text)}}
}

// asJSON is a result that was given as JSON text; no text is no result.
func asJSON(text string) step.Original {
	if text == "" {
		return step.Original{}
	}
	return step.Original{Form: step.FormJSON, Data: []byte(text)}
}

// A step of the caller's own tool is reduced and offloaded as the server's own
// are.
func TestRecord(t *testing.T) {
	w := MustWorld(t, nil, nil)
	text := strings.Repeat("a line that was read\n", 500)
	content, err := json.Marshal(map[string]any{"content": text})
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]hand.Recorded{
		"a file":     reported("fs:read_file", map[string]any{"path": "a.txt"}, string(content)),
		"plain text": reportedText("my.tool", text),
	} {
		a, err := w.Record(t.Context(), r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if a.Blob == nil || w.content(a.Blob.Path) != text {
			t.Errorf("%s: the text is not in a blob: %+v", name, a.Blob)
		}
		if !a.Success || a.Step.ToolName != r.Name || a.Step.OutcomePath != a.Blob.Path {
			t.Errorf("%s: %+v", name, a.Step)
		}
	}
	failed := reported("my.tool", nil, "")
	failed.Failed, failed.ErrorMessage = true, "no luck"
	if a, err := w.Record(t.Context(), failed); err != nil || a.Success || a.Step.Error != "no luck" {
		t.Errorf("failed: %v %+v", err, a)
	}
	if got := len(w.steps("default")); got != 3 {
		t.Errorf("%d steps, want 3", got)
	}
}

// The same report under the same request id is one step; another is refused.
func TestRecordOnce(t *testing.T) {
	w := MustWorld(t, nil, nil)
	r := reported("my.tool", map[string]any{"n": 1}, `{"sum":3}`)
	r.RequestID = "once"
	first, err := w.Record(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.Record(t.Context(), r)
	if err != nil || !again.Replayed || again.Step.Number != first.Step.Number {
		t.Errorf("again: %v %+v", err, again)
	}
	r.Output = asJSON(`{"sum":4}`)
	if _, err := w.Record(t.Context(), r); err == nil {
		t.Error("another result under the same request id was taken")
	}
	if got := len(w.steps("default")); got != 1 {
		t.Errorf("%d steps, want 1", got)
	}
}

func TestRecordRefuses(t *testing.T) {
	w := MustWorld(t, nil, nil)
	for name, r := range map[string]hand.Recorded{
		"output is no JSON": reported("my.tool", nil, `{"a":`),
		"two values":        reported("my.tool", nil, `1 2`),
		"too long":          reported("my.tool", nil, `"`+strings.Repeat("x", hand.MaxOutputBytes)+`"`),
		"name":              reported("my tool", nil, `1`),
		"no name":           reported("", nil, `1`),
	} {
		if _, err := w.Record(t.Context(), r); !errors.Is(err, hand.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := len(w.steps("default")); got != 0 {
		t.Errorf("%d steps were recorded", got)
	}
}
