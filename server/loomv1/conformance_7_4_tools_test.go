package loomv1_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	"github.com/loom-bridge/loom-bridge/server/loomv1"
)

const (
	statusOK       = loomv1pb.ToolStatus_TOOL_OK
	statusError    = loomv1pb.ToolStatus_TOOL_ERROR
	statusTimeout  = loomv1pb.ToolStatus_TOOL_TIMEOUT
	statusNotFound = loomv1pb.ToolStatus_TOOL_NOT_FOUND
	statusInvalid  = loomv1pb.ToolStatus_TOOL_INVALID_ARGUMENTS
)

// addDemoTools adds tools of the server that end in every way a tool can.
func addDemoTools(tb testing.TB, w *toolWorld) {
	tb.Helper()
	fail := func(err error) tools.Func {
		return func(context.Context, tools.Input) (tools.Output, error) { return tools.Output{}, err }
	}
	for name, run := range map[string]tools.Func{
		"demo:echo": func(_ context.Context, c tools.Input) (tools.Output, error) {
			return tools.Output{Values: map[string]any{"text": c.String("text", ""), "agent": c.Scope.Owner, "empty": len(c.Args) == 0}}, nil
		},
		"demo:place":  fail(tools.Errorf(tools.NotFound, "Location not found: Atlantis")),
		"demo:deny":   fail(tools.Errorf(tools.PermissionDenied, "Permission denied: Command 'rm' is not allowed")),
		"demo:refuse": fail(tools.Errorf(tools.PermissionDenied, "not yours")),
		"demo:fail":   fail(errors.New("no luck")),
		"demo:large":  fail(tools.Errorf(tools.TooLarge, "too much to read")),
		"demo:bytes":  fail(tools.Errorf(tools.Failed, "file \xff is damaged")),
		"demo:picky":  fail(&tools.ArgumentsError{Violations: []tools.Violation{{Path: "text", Problem: "must rhyme"}}}),
		"demo:panic":  func(context.Context, tools.Input) (tools.Output, error) { panic("a secret") },
		"demo:slow": func(ctx context.Context, _ tools.Input) (tools.Output, error) {
			<-ctx.Done()
			return tools.Output{}, ctx.Err()
		},
		"demo:stubborn": func(context.Context, tools.Input) (tools.Output, error) {
			<-tb.Context().Done()
			return tools.Output{}, nil
		},
	} {
		w.must(w.Registry.Add(tools.Descriptor{
			Name: name, Level: tools.LevelFunction, Mutates: name == "demo:stubborn",
			Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`),
		}, run))
	}
}

// Every row of the table of results: status, code and text, with an empty output
// after every failure.
func TestConformance74ResultTable(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{})
	addDemoTools(t, w)
	w.write("notes.txt", "hello")
	for name, tt := range map[string]struct {
		tool, arguments string
		millis          int64
		status          loomv1pb.ToolStatus
		code, message   string
		output          string
	}{
		"success, keys sorted, compact": {tool: "demo:echo", arguments: `{"text": "a b"}`, output: `{"agent":"loom","empty":false,"text":"a b"}`},
		"no arguments":                  {tool: "demo:echo", arguments: "", output: `{"agent":"loom","empty":true,"text":""}`},
		"null counts as missing":        {tool: "demo:echo", arguments: `{"text":null}`, output: `{"agent":"loom","empty":true,"text":""}`},
		"further keys are fine":         {tool: "demo:echo", arguments: `{"text":"x","more":1}`, output: `{"agent":"loom","empty":false,"text":"x"}`},
		"characters stay as they are":   {tool: "demo:echo", arguments: `{"text":"<é>"}`, output: `{"agent":"loom","empty":false,"text":"<é>"}`},

		"not JSON":                     {tool: "demo:echo", arguments: `{"text":`, status: statusInvalid, code: "INVALID_ARGUMENTS", message: "unexpected end of JSON input"},
		"blank":                        {tool: "demo:echo", arguments: " ", status: statusInvalid, code: "INVALID_ARGUMENTS", message: "unexpected end of JSON input"},
		"not JSON, to an unknown tool": {tool: "no:such", arguments: `{"text":`, status: statusInvalid, code: "INVALID_ARGUMENTS", message: "unexpected end of JSON input"},
		"wrong type":                   {tool: "demo:echo", arguments: `{"text":7}`, status: statusInvalid, code: "INVALID_ARGUMENTS", message: "Invalid arguments: text: must be string, not number"},
		"no object":                    {tool: "demo:echo", arguments: `[1]`, status: statusInvalid, code: "INVALID_ARGUMENTS", message: "Invalid arguments: arguments must be a JSON object"},
		"missing":                      {tool: "fs:read_file", arguments: `{}`, status: statusInvalid, code: "INVALID_ARGUMENTS", message: "Invalid arguments: path: is required"},
		"refused by the tool":          {tool: "demo:picky", arguments: `{}`, status: statusInvalid, code: "INVALID_ARGUMENTS", message: "Invalid arguments: text: must rhyme"},

		"unknown tool":              {tool: "no:such", arguments: `{}`, status: statusNotFound, code: "NOT_FOUND", message: "Tool not found: no:such"},
		"unknown tool, no object":   {tool: "no:such", arguments: `[1]`, status: statusNotFound, code: "NOT_FOUND", message: "Tool not found: no:such"},
		"no name":                   {tool: "", arguments: `{}`, status: statusNotFound, code: "NOT_FOUND", message: "Tool not found: "},
		"missing file":              {tool: "fs:read_file", arguments: `{"path":"gone.txt"}`, status: statusNotFound, code: "NOT_FOUND", message: "Tool not found: File not found: gone.txt"},
		"missing file to delete":    {tool: "fs:delete", arguments: `{"path":"gone.txt"}`, status: statusNotFound, code: "NOT_FOUND", message: "Tool not found: File not found: gone.txt"},
		"missing folder":            {tool: "fs:list_dir", arguments: `{"path":"gone"}`, status: statusNotFound, code: "NOT_FOUND", message: "Tool not found: File not found: gone"},
		"other things not found":    {tool: "demo:place", status: statusNotFound, code: "NOT_FOUND", message: "Tool not found: Location not found: Atlantis"},
		"over time":                 {tool: "demo:slow", millis: 50, status: statusTimeout, code: "TIMEOUT", message: "Timeout"},
		"over time, does not stop":  {tool: "demo:stubborn", millis: 50, status: statusTimeout, code: "TIMEOUT", message: "Timeout"},
		"refused":                   {tool: "demo:deny", status: statusError, code: "EXECUTION_ERROR", message: "Permission denied: Command 'rm' is not allowed"},
		"refused in other words":    {tool: "demo:refuse", status: statusError, code: "EXECUTION_ERROR", message: "Permission denied: not yours"},
		"failed":                    {tool: "demo:fail", status: statusError, code: "EXECUTION_ERROR", message: "Execution failed: no luck"},
		"over a limit of its own":   {tool: "demo:large", status: statusError, code: "EXECUTION_ERROR", message: "Execution failed: too much to read"},
		"text that is not UTF-8":    {tool: "demo:bytes", status: statusError, code: "EXECUTION_ERROR", message: "Execution failed: file \uFFFD is damaged"},
		"crashed, and says not how": {tool: "demo:panic", status: statusError, code: "EXECUTION_ERROR", message: "Internal error: the tool crashed"},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.call(&loomv1pb.ToolCall{Id: "call-1", Name: tt.tool, Arguments: tt.arguments, TimeoutMs: tt.millis})
			want := &loomv1pb.ToolResult{Id: "call-1", Status: tt.status, Output: tt.output}
			if tt.code != "" {
				want.Error = &loomv1pb.ToolError{Code: tt.code, Message: tt.message}
			}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
			same, err := w.tools.Call(t.Context(), &loomv1pb.ToolCall{Id: "call-1", Name: tt.tool, Arguments: tt.arguments, TimeoutMs: tt.millis})
			if diff := cmp.Diff(got, same, protocmp.Transform()); err != nil || diff != "" {
				t.Errorf("ToolService.Call: %v %s", err, diff)
			}
		})
	}
}

// What the server's own tools answer has the keys that agents know.
func TestConformance74FileTools(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{})
	for _, tt := range []struct{ tool, arguments, output string }{
		{"fs:write_file", `{"path":"a/b.txt","content":"héllo"}`, `{"bytes_written":6,"path":"a/b.txt","success":true}`},
		{"fs:read_file", `{"path":"a/b.txt"}`, `{"content":"héllo"}`},
		{"fs:list_dir", `{"path":"a"}`, `{"entries":[{"is_dir":false,"name":"b.txt","size":6}],"path":"a"}`},
		{"fs:delete", `{"path":"a/b.txt"}`, `{"path":"a/b.txt","success":true,"was_directory":false}`},
		{"fs:delete", `{"path":"a"}`, `{"path":"a","success":true,"was_directory":true}`},
	} {
		if got := w.call(&loomv1pb.ToolCall{Name: tt.tool, Arguments: tt.arguments}); got.GetOutput() != tt.output || got.GetStatus() != statusOK {
			t.Errorf("%s: %v, want %s", tt.tool, got, tt.output)
		}
	}
}

func TestConformance74ListDirIsSorted(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{})
	for _, name := range []string{"list/c", "list/a", "list/B", "list/b.txt", "list/.hidden"} {
		w.write(name, "")
	}
	got := w.call(&loomv1pb.ToolCall{Name: "fs:list_dir", Arguments: `{"path":"list"}`})
	var listing struct{ Entries []struct{ Name string } }
	w.must(json.Unmarshal([]byte(got.GetOutput()), &listing))
	var names []string
	for _, e := range listing.Entries {
		names = append(names, e.Name)
	}
	if diff := cmp.Diff([]string{".hidden", "B", "a", "b.txt", "c"}, names); diff != "" {
		t.Error(diff)
	}
}

// Nothing outside the workspace is read, written, listed or deleted, whatever
// the way there.
func TestConformance74Confinement(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{})
	outside := filepath.Join(filepath.Dir(w.folder), "outside")
	w.must(os.MkdirAll(outside, 0o755))
	w.must(os.WriteFile(filepath.Join(outside, "x"), []byte("secret"), 0o644))
	w.must(os.Symlink(outside, filepath.Join(w.folder, "link")))
	w.must(os.Symlink(filepath.Join(outside, "x"), filepath.Join(w.folder, "filelink")))
	w.write("sub/y", "own")
	for name, path := range map[string]string{
		"up":                    "../outside/x",
		"up behind a folder":    "sub/../../outside/x",
		"absolute":              filepath.Join(outside, "x"),
		"a system file":         "/etc/passwd",
		"begins like the root":  w.folder + "-other/x",
		"through a linked dir":  "link/x",
		"a link to the outside": "filelink",
	} {
		for _, tool := range []string{"fs:read_file", "fs:write_file", "fs:list_dir", "fs:delete"} {
			if tool == "fs:delete" && name == "a link to the outside" {
				continue // deleting a link does not touch what it leads to
			}
			got := w.call(&loomv1pb.ToolCall{Name: tool, Arguments: mustJSON(t, map[string]any{"path": path, "content": "x"})})
			if got.GetStatus() != statusError || got.GetError().GetCode() != "EXECUTION_ERROR" ||
				got.GetError().GetMessage() != "Permission denied: Path traversal detected" {
				t.Errorf("%s, %s: %v", name, tool, got)
			}
		}
	}
	kept, err := os.ReadFile(filepath.Join(outside, "x"))
	if err != nil || string(kept) != "secret" {
		t.Errorf("the file outside: %q, %v", kept, err)
	}
	if got := w.call(&loomv1pb.ToolCall{Name: "fs:read_file", Arguments: mustJSON(t, map[string]any{"path": filepath.Join(w.folder, "sub/y")})}); got.GetStatus() != statusOK {
		t.Errorf("absolute, inside: %v", got)
	}
}

// The folder where loom-py offloads results is open; the store beside it is not.
func TestConformance74CacheIsReadableAndStoreIsNot(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{})
	got := w.call(&loomv1pb.ToolCall{Name: "fs:read_file", Arguments: `{"path":".loom/cache/shell_output/step_001.txt"}`})
	if got.GetOutput() != `{"content":"kept output"}` {
		t.Errorf("cache: %v", got)
	}
	w.must(os.Symlink(".loom/store", filepath.Join(w.folder, "way")))
	for _, path := range []string{".loom/store/CURRENT", "way/CURRENT", ".loom/cache/../store/CURRENT"} {
		for _, tool := range []string{"fs:read_file", "fs:write_file", "fs:delete"} {
			got := w.call(&loomv1pb.ToolCall{Name: tool, Arguments: mustJSON(t, map[string]any{"path": path, "content": "x"})})
			if got.GetStatus() != statusError || !strings.HasPrefix(got.GetError().GetMessage(), "Permission denied") {
				t.Errorf("%s of %s: %v", tool, path, got)
			}
		}
	}
}

var tooLargeText = regexp.MustCompile(`^Execution failed: result of \d+ bytes exceeds the limit of 4128768$`)

// A result that clients would refuse becomes an error, of the server's tools and
// of agents' alike; one just below the limit comes whole, and the agent's stream
// stays.
func TestConformance74ResultNearFourMiB(t *testing.T) {
	const limit = 4<<20 - 64<<10
	w := MustToolWorld(t, loomv1.Options{})
	const around = 100 // the JSON and the message around the text
	w.write("fits", strings.Repeat("x", limit-around))
	w.write("too-long", strings.Repeat("x", limit))
	w.write("escapes", strings.Repeat(`"`, limit/2+around))
	agent := w.agent("large", "large:text")
	agent.serve(func(call *loomv1pb.ToolCall) *loomv1pb.ToolResult {
		var size int
		if err := json.Unmarshal([]byte(call.GetArguments()), &size); err != nil {
			return &loomv1pb.ToolResult{Status: statusInvalid}
		}
		return &loomv1pb.ToolResult{Output: `"` + strings.Repeat("x", size) + `"`}
	})
	for name, tt := range map[string]struct {
		tool, arguments string
		fits            bool
	}{
		"file below":    {"fs:read_file", `{"path":"fits"}`, true},
		"file above":    {"fs:read_file", `{"path":"too-long"}`, false},
		"file escaped":  {"fs:read_file", `{"path":"escapes"}`, false},
		"agent's below": {"large:text", fmt.Sprint(limit - around), true},
		"agent's above": {"large:text", fmt.Sprint(limit), false},
	} {
		got := w.call(&loomv1pb.ToolCall{Id: name, Name: tt.tool, Arguments: tt.arguments})
		switch {
		case tt.fits && (got.GetStatus() != statusOK || len(got.GetOutput()) < limit-2*around):
			t.Errorf("%s: status %v, %d bytes, %v", name, got.GetStatus(), len(got.GetOutput()), got.GetError())
		case !tt.fits && (got.GetStatus() != statusError || got.GetOutput() != "" || !tooLargeText.MatchString(got.GetError().GetMessage())):
			t.Errorf("%s: status %v, %d bytes, %v", name, got.GetStatus(), len(got.GetOutput()), got.GetError())
		}
	}
	if got := w.call(&loomv1pb.ToolCall{Name: "large:text", Arguments: "1"}); got.GetOutput() != `"x"` {
		t.Errorf("afterwards: %v", got)
	}
}

// A call that would break the agent's stream does not get there.
func TestConformance74CallNearFourMiB(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{})
	agent := w.agent("large", "large:text")
	agent.serve(func(*loomv1pb.ToolCall) *loomv1pb.ToolResult { return &loomv1pb.ToolResult{Output: "1"} })
	arguments := `"` + strings.Repeat("x", 4<<20-64<<10) + `"`
	got := w.call(&loomv1pb.ToolCall{Name: "large:text", Arguments: arguments})
	if got.GetStatus() != statusError || !strings.Contains(got.GetError().GetMessage(), "exceeds the limit of 4128768") {
		t.Errorf("%v", got)
	}
	if got := w.call(&loomv1pb.ToolCall{Name: "large:text"}); got.GetOutput() != "1" {
		t.Errorf("afterwards: %v", got)
	}
	if got := w.call(&loomv1pb.ToolCall{Name: "no:such", Arguments: arguments}); got.GetStatus() != statusNotFound {
		t.Errorf("nobody's tool: %v", got)
	}
}

// A call of a tool that an agent gives reaches that agent and comes back.
func TestConformance72EchoTool(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{})
	w.agent("echoer", "test.echo").serve(func(call *loomv1pb.ToolCall) *loomv1pb.ToolResult {
		return &loomv1pb.ToolResult{Output: call.GetArguments()}
	})
	got := w.call(&loomv1pb.ToolCall{Id: "e-1", Name: "test.echo", Arguments: `{"text":"hello tool"}`, TimeoutMs: 5000})
	if got.GetStatus() != statusOK || got.GetError() != nil || !strings.Contains(got.GetOutput(), "hello tool") {
		t.Errorf("%v", got)
	}
}

func TestConformance72UnknownTool(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{})
	got := w.call(&loomv1pb.ToolCall{Id: "u-1", Name: "nonexistent.tool", Arguments: "{}"})
	if got.GetStatus() != statusNotFound || got.GetError().GetCode() != "NOT_FOUND" || !strings.Contains(got.GetError().GetMessage(), "not found") {
		t.Errorf("%v", got)
	}
}

// The agent gets a call as it was made, under an id of the relay's own; the
// caller gets the answer as it was given, under the id of the call.
func TestConformance74RelayPassesUnchanged(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{})
	agent := w.agent("worker", "work:do")
	for name, tt := range map[string]struct {
		arguments string
		millis    int64
		answer    *loomv1pb.ToolResult
	}{
		"output":            {`{"b":1, "a":"é"}`, 5000, &loomv1pb.ToolResult{Output: `{"z": 1}`}},
		"no arguments":      {"", 0, &loomv1pb.ToolResult{Output: ""}},
		"no object":         {`[1,2]`, 5000, &loomv1pb.ToolResult{Status: statusError, Error: &loomv1pb.ToolError{Code: "INVALID_INPUT", Message: "no object"}}},
		"an error of its":   {`{}`, -1, &loomv1pb.ToolResult{Status: statusError, Error: &loomv1pb.ToolError{Code: "TOOL_ERROR", Message: "division by zero", Details: map[string]string{"line": "7"}}}},
		"its own not found": {`{}`, 1 << 62, &loomv1pb.ToolResult{Status: statusError, Error: &loomv1pb.ToolError{Code: "NOT_FOUND", Message: "no such tool"}}},
		"error and output":  {`{}`, 5000, &loomv1pb.ToolResult{Status: statusTimeout, Output: `"half"`, Error: &loomv1pb.ToolError{Code: "LATE", Message: "late"}}},
		"a status unheard":  {`{}`, 5000, &loomv1pb.ToolResult{Status: 42, Output: `1`}},
	} {
		t.Run(name, func(t *testing.T) {
			call := &loomv1pb.ToolCall{
				Id: "caller's own", Name: "work:do", Arguments: tt.arguments, TimeoutMs: tt.millis,
				Headers: map[string]string{
					"x-agent-id": "boss", "x-correlation-id": "c-1", "own": "header",
					"trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b7169203331", "trace_flags": "01",
				},
				CorrelationId: "c-1", Qos: loomv1pb.QoSLevel_QOS_BACKGROUND,
			}
			result := w.callAsync(call)
			got := agent.next()
			if got.GetId() == "" || got.GetId() == call.GetId() {
				t.Errorf("the agent saw the id %q", got.GetId())
			}
			tt.answer.Id = got.GetId()
			agent.answer(tt.answer)
			want := call
			if tt.millis > 1<<60 { // more than a duration holds
				want.TimeoutMs = got.GetTimeoutMs()
			}
			if diff := cmp.Diff(want, got, protocmp.Transform(), protocmp.IgnoreFields(want, "id")); diff != "" {
				t.Errorf("the call:\n%s", diff)
			}
			tt.answer.Id = call.GetId()
			if diff := cmp.Diff(tt.answer, await(t, result), protocmp.Transform()); diff != "" {
				t.Errorf("the answer:\n%s", diff)
			}
		})
	}
}

// Ids come from callers and may collide: each caller gets its own answer.
func TestConformance74SameCallID(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{})
	agent := w.agent("worker", "work:do")
	first := w.callAsync(&loomv1pb.ToolCall{Id: "same", Name: "work:do", Arguments: `"first"`})
	one := agent.next()
	second := w.callAsync(&loomv1pb.ToolCall{Id: "same", Name: "work:do", Arguments: `"second"`})
	two := agent.next()
	agent.answer(&loomv1pb.ToolResult{Id: two.GetId(), Output: two.GetArguments()})
	agent.answer(&loomv1pb.ToolResult{Id: one.GetId(), Output: one.GetArguments()})
	if got := await(t, first).GetOutput(); got != `"first"` {
		t.Errorf("first caller got %s", got)
	}
	if got := await(t, second).GetOutput(); got != `"second"` {
		t.Errorf("second caller got %s", got)
	}
}

// A call ends with its timeout though the agent never answers; the answer that
// comes later goes to nobody.
func TestConformance74RelayTimeout(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{})
	agent := w.agent("worker", "work:do")
	began := time.Now()
	got := w.call(&loomv1pb.ToolCall{Id: "t-1", Name: "work:do", TimeoutMs: 200})
	want := &loomv1pb.ToolResult{Id: "t-1", Status: statusTimeout, Error: &loomv1pb.ToolError{Code: "TIMEOUT", Message: "Timeout"}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if took := time.Since(began); took < 200*time.Millisecond || took > waitTime/2 {
		t.Errorf("took %v", took)
	}
	late := agent.next()
	agent.answer(&loomv1pb.ToolResult{Id: late.GetId(), Output: `"late"`})
	result := w.callAsync(&loomv1pb.ToolCall{Id: "t-1", Name: "work:do"})
	agent.answer(&loomv1pb.ToolResult{Id: agent.next().GetId(), Output: `"in time"`})
	if got := await(t, result).GetOutput(); got != `"in time"` {
		t.Errorf("the next call got %s", got)
	}
}

// A caller is not left waiting for an agent that has gone or never came.
func TestConformance74AgentGone(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{})
	want := &loomv1pb.ToolResult{
		Id: "g-1", Status: statusError,
		Error: &loomv1pb.ToolError{Code: "EXECUTION_ERROR", Message: "Execution failed: agent worker is not connected"},
	}
	call := &loomv1pb.ToolCall{Id: "g-1", Name: "work:do"}

	w.register("worker", "work:do")
	if diff := cmp.Diff(want, w.call(call), protocmp.Transform()); diff != "" {
		t.Errorf("no stream yet:\n%s", diff)
	}
	agent := w.agent("worker", "work:do")
	result := w.callAsync(call)
	agent.next()
	agent.leave()
	if diff := cmp.Diff(want, await(t, result), protocmp.Transform()); diff != "" {
		t.Errorf("stream ended during the call:\n%s", diff)
	}
	w.gone(agent)
	if diff := cmp.Diff(want, w.call(call), protocmp.Transform()); diff != "" {
		t.Errorf("after the stream:\n%s", diff)
	}
}

// The first that registered a tool and has an open stream gets the calls; when its
// stream ends, the next one does. The log tells of a registration that is not
// reached.
func TestConformance74FirstRegistrationWins(t *testing.T) {
	log := &logText{}
	w := MustToolWorld(t, loomv1.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	named := func(name string) func(*loomv1pb.ToolCall) *loomv1pb.ToolResult {
		return func(*loomv1pb.ToolCall) *loomv1pb.ToolResult { return &loomv1pb.ToolResult{Output: name} }
	}
	one := w.agent("one", "work:do")
	one.serve(named("1"))
	w.agent("two", "work:do").serve(named("2"))
	w.register("three", "work:do")
	call := &loomv1pb.ToolCall{Name: "work:do"}
	if got := w.call(call).GetOutput(); got != "1" {
		t.Errorf("agent %s answered, want 1", got)
	}
	if text := log.String(); strings.Count(text, "belongs to another agent") != 2 || !strings.Contains(text, "owner=one") {
		t.Errorf("logged %s", text)
	}
	w.gone(one)
	if got := w.call(call).GetOutput(); got != "2" {
		t.Errorf("agent %s answered, want 2", got)
	}
}

// The server's tools win over agents' of the same name. What the server only
// takes for the name of a tool is the agent's.
func TestConformance74CoreToolWins(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{})
	w.write("a.txt", "own")
	call := func(name string) string {
		return w.call(&loomv1pb.ToolCall{Name: name, Arguments: `{"path":"a.txt"}`}).GetOutput()
	}
	if got := call("read_file"); got != `{"content":"own"}` {
		t.Errorf("read_file, no agent: %s", got)
	}
	w.agent("rival", "fs:read_file", "read_file").serve(func(*loomv1pb.ToolCall) *loomv1pb.ToolResult {
		return &loomv1pb.ToolResult{Output: `"rival"`}
	})
	if got := call("fs:read_file"); got != `{"content":"own"}` {
		t.Errorf("fs:read_file: %s", got)
	}
	if got := call("read_file"); got != `"rival"` {
		t.Errorf("read_file: %s", got)
	}
}

// The server's tools honour the limit of the call; a call that says nothing has
// time.
func TestConformance74TimeoutOfCoreTools(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{})
	addDemoTools(t, w)
	began := time.Now()
	if got := w.call(&loomv1pb.ToolCall{Name: "demo:slow", TimeoutMs: 200}); got.GetStatus() != statusTimeout {
		t.Errorf("%v", got)
	}
	if took := time.Since(began); took < 200*time.Millisecond || took > waitTime/2 {
		t.Errorf("took %v", took)
	}
	for _, millis := range []int64{0, -5, 1 << 62} {
		if got := w.call(&loomv1pb.ToolCall{Name: "demo:echo", TimeoutMs: millis}); got.GetStatus() != statusOK {
			t.Errorf("timeout_ms %d: %v", millis, got)
		}
	}
}

// A call is made for the agent that its header names, if a scope can have that
// name.
func TestConformance74Caller(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{})
	addDemoTools(t, w)
	for header, want := range map[string]string{"researcher-1": "researcher-1", "": "loom", "a\x00b": "loom", strings.Repeat("x", 300): "loom"} {
		got := w.call(&loomv1pb.ToolCall{Name: "demo:echo", Headers: map[string]string{"x-agent-id": header}})
		if !strings.Contains(got.GetOutput(), `"agent":"`+want+`"`) {
			t.Errorf("header %q: %v", header, got)
		}
	}
}

func TestConformance74ListTools(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{})
	w.register("absent", "absent:tool")
	w.agent("worker", "work:do", "fs:read_file")
	list, err := w.tools.ListTools(t.Context(), &loomv1pb.ListToolsRequest{})
	w.must(err)
	providers := map[string]loomv1pb.ProviderKind{}
	var last string
	for _, tool := range list.GetTools() {
		if tool.GetName() <= last {
			t.Errorf("%s stands behind %s", tool.GetName(), last)
		}
		last = tool.GetName()
		providers[last] = tool.GetProvider()
		if !json.Valid([]byte(tool.GetParametersSchema())) || tool.GetDescription() == "" {
			t.Errorf("%s: schema %q, description %q", last, tool.GetParametersSchema(), tool.GetDescription())
		}
	}
	native := loomv1pb.ProviderKind_PROVIDER_NATIVE
	want := map[string]loomv1pb.ProviderKind{
		"fs:read_file": native, "fs:write_file": native, "fs:list_dir": native,
		"fs:search": native, "fs:stat": native, "fs:delete": native, "fs:edit_file": native,
		"agent:spawn": native, "agent:result": native, "message:send": native,
		"memory:save": native, "query_l1_memory": native, "query_l2_memory": native,
		"query_l3_memory": native, "query_l4_memory": native, "tools:search": native,
		"work:do": loomv1pb.ProviderKind_PROVIDER_GRPC,
	}
	if diff := cmp.Diff(want, providers); diff != "" {
		t.Error(diff)
	}
}

// Plugin is declared and not served.
func TestConformance74Unserved(t *testing.T) {
	server := grpc.NewServer()
	loomv1.Register(server, loomv1.Deps{})
	names := slices.Sorted(maps.Keys(server.GetServiceInfo()))
	want := []string{"loom.v1.AgentRuntime", "loom.v1.Bridge", "loom.v1.EventBus", "loom.v1.MemoryService", "loom.v1.ToolService"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

func mustJSON(tb testing.TB, value any) string {
	tb.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}
