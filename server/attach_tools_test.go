package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/auth"
)

// relay is one call of an agent's tool and how it ended.
func relay(ctx context.Context, d *agents.Directory, c agents.ToolCall) <-chan func() (agents.ToolResult, error) {
	out := make(chan func() (agents.ToolResult, error), 1)
	go func() {
		result, err := d.Call(ctx, auth.DefaultTenant, c)
		out <- func() (agents.ToolResult, error) { return result, err }
	}()
	return out
}

func TestAttachRunsTools(t *testing.T) {
	s, directory := MustStartAttached(t, servertest.Options{})
	hello := helloOf("provider")
	hello.Tools = []*loombridgev1.ToolDescriptor{{Name: "echo"}}
	a := MustAttach(t, t.Context(), s.Bridge, hello)
	call := agents.ToolCall{Name: "echo", Arguments: `{"n":9007199254740993}`, CallerID: "caller", Headers: map[string]string{"h": "v"}, Timeout: time.Minute}
	for _, test := range []struct {
		name   string
		answer *loombridgev1.AttachToolResult
		want   agents.ToolResult
	}{
		{"text", &loombridgev1.AttachToolResult{Success: true, OutputForm: &loombridgev1.AttachToolResult_OutputJson{OutputJson: `{"a": 1}`}}, agents.ToolResult{Output: `{"a": 1}`}},
		{"value", &loombridgev1.AttachToolResult{Success: true, OutputForm: &loombridgev1.AttachToolResult_Output{Output: structpb.NewNumberValue(3)}}, agents.ToolResult{Output: `3`}},
		{"nothing", &loombridgev1.AttachToolResult{Success: true}, agents.ToolResult{Output: `null`}},
		{"no JSON", &loombridgev1.AttachToolResult{Success: true, OutputForm: &loombridgev1.AttachToolResult_OutputJson{OutputJson: `{`}}, agents.Failure(tools.Failed, "the agent's answer is not JSON")},
		{"failure", &loombridgev1.AttachToolResult{ErrorMessage: "no"}, agents.Failure(tools.Failed, "no")},
		{"missing", &loombridgev1.AttachToolResult{ErrorMessage: "no", ErrorCode: loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_NOT_FOUND}, agents.Failure(tools.NotFound, "no")},
		{"too late", &loombridgev1.AttachToolResult{ErrorMessage: "no", ErrorCode: loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_TIMEOUT}, agents.Failure(tools.Timeout, "no")},
		{"bad arguments", &loombridgev1.AttachToolResult{ErrorMessage: "no", ErrorCode: loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_INVALID_ARGUMENTS}, agents.Failure(tools.InvalidArguments, "no")},
	} {
		done := relay(t.Context(), directory, call)
		pushed := a.call()
		want := &loombridgev1.AttachToolCall{
			CallId: pushed.GetCallId(), Name: "echo", CallerId: "caller", Headers: call.Headers, Timeout: pushed.GetTimeout(),
			ArgumentsForm: &loombridgev1.AttachToolCall_ArgumentsJson{ArgumentsJson: call.Arguments},
		}
		if diff := cmp.Diff(want, pushed, protocmp.Transform()); diff != "" {
			t.Errorf("%s: call (-want +got):\n%s", test.name, diff)
		}
		if left := pushed.GetTimeout().AsDuration(); left > time.Minute || left < time.Minute-attachPatience {
			t.Errorf("%s: timeout %v", test.name, left)
		}
		// Answers that nobody asked for are dropped.
		a.send(resultMessage(&loombridgev1.AttachToolResult{CallId: "nobody's", Success: true}))
		a.send(resultMessage(&loombridgev1.AttachToolResult{Success: true}))
		test.answer.CallId = pushed.GetCallId()
		a.send(resultMessage(test.answer))
		result, err := (<-done)()
		must(t, err)
		if diff := cmp.Diff(test.want, result); diff != "" {
			t.Errorf("%s: result (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestAttachCallForms(t *testing.T) {
	s, directory := MustStartAttached(t, servertest.Options{Server: server.Options{Limits: server.Limits{MaxSendBytes: 1 << 20}}})
	a := MustAttach(t, asStruct(t.Context()), s.Bridge, &loombridgev1.AttachHello{AgentId: "p", Tools: []*loombridgev1.ToolDescriptor{{Name: "echo"}}})
	relay(t.Context(), directory, agents.ToolCall{Name: "echo", Arguments: `{"a":1}`})
	if got := a.call().GetArguments().GetFields()["a"].GetNumberValue(); got != 1 {
		t.Errorf("a = %v", got)
	}
	result, err := (<-relay(t.Context(), directory, agents.ToolCall{Name: "echo", Arguments: `"` + strings.Repeat("x", 1<<20) + `"`}))()
	if err != nil || result.Status != agents.ResultError || result.ErrorCode != "TOO_LARGE" {
		t.Errorf("a call too large to send: %v, %v", result, err)
	}
	relay(t.Context(), directory, agents.ToolCall{Name: "echo", Arguments: strings.Repeat("[", 200) + strings.Repeat("]", 200)})
	if got := a.call().GetArgumentsJson(); len(got) != 400 {
		t.Errorf("deep arguments: %q", got)
	}
}

// A call to an agent that leaves ends at once, and the next one goes to the
// stream that is still there.
func TestAttachedProviderLeaves(t *testing.T) {
	s, directory := MustStartAttached(t, servertest.Options{})
	hello := helloOf("provider")
	hello.Tools = []*loombridgev1.ToolDescriptor{{Name: "echo"}}
	old := MustAttach(t, t.Context(), s.Bridge, hello)
	ctx, cancel := context.WithCancel(t.Context())
	young := MustAttach(t, ctx, s.Bridge, hello)
	done := relay(t.Context(), directory, agents.ToolCall{Name: "echo", Arguments: "{}"})
	young.call()
	cancel()
	if _, err := (<-done)(); !errors.Is(err, agents.ErrNotConnected) || err.Error() != "agent provider is not connected" {
		t.Errorf("err = %v", err)
	}
	relay(t.Context(), directory, agents.ToolCall{Name: "echo", Arguments: "{}"})
	if got := old.call().GetName(); got != "echo" {
		t.Errorf("call of %q", got)
	}
}

// An agent calls another one's tool as it calls any tool, and the call is a step
// of its own.
func TestToolOfAnAttachedAgent(t *testing.T) {
	s, _ := MustStartAttached(t, servertest.Options{})
	hello := helloOf("provider")
	hello.Tools = []*loombridgev1.ToolDescriptor{{Name: "sum"}}
	a := MustAttach(t, t.Context(), s.Bridge, hello)
	type outcome struct {
		answer *loombridgev1.ToolResponse
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		answer, err := s.Bridge.Tool(t.Context(), &loombridgev1.ToolRequest{
			AgentId: agent, Name: "sum", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"a":1,"b":2}`},
		})
		done <- outcome{answer, err}
	}()
	call := a.call()
	if call.GetCallerId() != agent || call.GetArgumentsJson() != `{"a":1,"b":2}` {
		t.Errorf("call %v", call)
	}
	a.send(resultMessage(&loombridgev1.AttachToolResult{
		CallId: call.GetCallId(), Success: true, OutputForm: &loombridgev1.AttachToolResult_OutputJson{OutputJson: `{"sum":3}`},
	}))
	got := <-done
	must(t, got.err)
	if !got.answer.GetSuccess() || !got.answer.GetRecorded() || got.answer.GetOutput().GetStructValue().GetFields()["sum"].GetNumberValue() != 3 {
		t.Errorf("answer %v", got.answer)
	}
}

// The tools of agents are in a prompt that names them, by a pattern or whole, and in no
// other.
//
// E03
func TestAssembleOffersToolsOfAgents(t *testing.T) {
	s, _ := MustStartAttached(t, servertest.Options{})
	hello := helloOf("desk")
	hello.Tools = []*loombridgev1.ToolDescriptor{{Name: "price", Description: "The price of a symbol."}}
	MustAttach(t, t.Context(), s.Bridge, hello)
	prompt, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "writer", Goal: "write", Settings: &loombridgev1.PromptSettings{Tools: &loombridgev1.ToolSelection{Names: []string{"pri*"}}}})
	must(t, err)
	var offered []struct {
		Name string `json:"name"`
	}
	must(t, json.Unmarshal([]byte(prompt.GetToolsJson()), &offered))
	names := map[string]int{}
	for _, tool := range offered {
		names[tool.Name]++
	}
	if names["price"] != 1 || names["fs:read_file"] != 1 {
		t.Errorf("the prompt offers %v", names)
	}
	plain, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "writer", Goal: "write"})
	must(t, err)
	if strings.Contains(plain.GetToolsJson(), "price") {
		t.Errorf("a prompt that names no tool offers %s", plain.GetToolsJson())
	}
}
