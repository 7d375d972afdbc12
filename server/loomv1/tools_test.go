package loomv1_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	"github.com/loom-bridge/loom-bridge/server/loomv1"
)

// brokenHand runs nothing.
type brokenHand struct{ err error }

func (h brokenHand) Run(context.Context, hand.Request) (hand.RawAnswer, error) {
	return hand.RawAnswer{}, h.err
}

func (h brokenHand) Relay(context.Context, hand.Request, tools.Descriptor, func() hand.Relayed) error {
	return h.err
}

// A call that the server could not run is answered, too, and the answer tells
// nothing of the server's own affairs.
func TestCallThatCouldNotRun(t *testing.T) {
	for name, tt := range map[string]struct {
		err    error
		status loomv1pb.ToolStatus
		code   string
		text   string
	}{
		"too many":    {&share.ExhaustedError{}, statusError, "EXECUTION_ERROR", "Execution failed: too many calls are waiting"},
		"stopping":    {hand.ErrClosed, statusError, "EXECUTION_ERROR", "Execution failed: the server is stopping"},
		"caller gone": {context.Canceled, statusError, "EXECUTION_ERROR", "Execution failed: the caller gave up"},
		"waited long": {fmt.Errorf("hand: call: %w", context.DeadlineExceeded), statusTimeout, "TIMEOUT", "Timeout"},
		"tool gone":   {&tools.NotFoundError{Name: "fs:stat"}, statusNotFound, "NOT_FOUND", "Tool not found: fs:stat"},
		"disk full":   {fmt.Errorf("hand: %w", kv.ErrFull), statusError, "EXECUTION_ERROR", "Internal error: the server's data directory has no room"},
		"no folder":   {errors.New("open /srv/secret: denied"), statusError, "EXECUTION_ERROR", "Internal error: internal server fault; the server's log has the cause"},
	} {
		t.Run(name, func(t *testing.T) {
			w := MustToolWorld(t, loomv1.Options{}, func(d *loomv1.Deps) { d.Hand = brokenHand{tt.err} })
			got := w.call(&loomv1pb.ToolCall{Id: "c", Name: "fs:stat"})
			want := &loomv1pb.ToolResult{Id: "c", Status: tt.status, Error: &loomv1pb.ToolError{Code: tt.code, Message: tt.text}}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A caller that belongs to nobody gets nothing.
func TestCallerWithoutTenant(t *testing.T) {
	refused := status.Error(codes.Unauthenticated, "who are you")
	w := MustToolWorld(t, loomv1.Options{}, func(d *loomv1.Deps) {
		d.Tenant = func(context.Context) (string, error) { return "", refused }
	})
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"ForwardToolCall": func() error { _, err := w.bridge.ForwardToolCall(ctx, &loomv1pb.ToolCall{}); return err },
		"Call":            func() error { _, err := w.tools.Call(ctx, &loomv1pb.ToolCall{}); return err },
		"ListTools":       func() error { _, err := w.tools.ListTools(ctx, &loomv1pb.ListToolsRequest{}); return err },
		"CreateAgent":     func() error { _, err := w.runtime.CreateAgent(ctx, &loomv1pb.AgentConfig{AgentId: "a"}); return err },
		"DeleteAgent":     func() error { _, err := w.runtime.DeleteAgent(ctx, &loomv1pb.DeleteAgentRequest{}); return err },
		"GetAgentState":   func() error { _, err := w.runtime.GetAgentState(ctx, &loomv1pb.GetAgentStateRequest{}); return err },
		"UpdateAgentState": func() error {
			_, err := w.runtime.UpdateAgentState(ctx, &loomv1pb.AgentState{AgentId: "a"})
			return err
		},
		"SendEvent": func() error { _, err := w.runtime.SendEvent(ctx, &loomv1pb.SendEventRequest{}); return err },
	} {
		wantCode(t, name, call(), codes.Unauthenticated, "who are you")
	}
}

// What an agent provides is its tenant's alone.
func TestToolsOfAnotherTenant(t *testing.T) {
	tenant := "default"
	w := MustToolWorld(t, loomv1.Options{}, func(d *loomv1.Deps) {
		d.Tenant = func(context.Context) (string, error) { return tenant, nil }
	})
	w.agent("worker", "work:do").serve(func(*loomv1pb.ToolCall) *loomv1pb.ToolResult { return &loomv1pb.ToolResult{Output: "1"} })
	if got := w.call(&loomv1pb.ToolCall{Name: "work:do"}); got.GetStatus() != statusOK {
		t.Fatal(got)
	}
	tenant = "acme"
	if got := w.call(&loomv1pb.ToolCall{Name: "work:do"}); got.GetStatus() != statusNotFound {
		t.Errorf("%v", got)
	}
	list, err := w.tools.ListTools(t.Context(), &loomv1pb.ListToolsRequest{})
	w.must(err)
	for _, tool := range list.GetTools() {
		if strings.HasPrefix(tool.GetName(), "work:") {
			t.Errorf("%s is listed", tool.GetName())
		}
	}
}

// Calls that an agent does not take are refused when too many wait, and those
// that wait end with its stream.
func TestCallsOfBusyAgent(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{})
	agent := w.agent("worker", "work:do")
	const calls = agents.DefaultPendingCalls + 500
	texts := make(chan string, calls)
	arguments := `"` + strings.Repeat("x", 4<<10) + `"`
	for range calls {
		go func() {
			got, err := w.bridge.ForwardToolCall(t.Context(), &loomv1pb.ToolCall{Name: "work:do", Arguments: arguments, TimeoutMs: 60_000})
			if err != nil {
				t.Errorf("call: %v", err)
			}
			texts <- got.GetError().GetMessage()
		}()
	}
	if got := await(t, texts); got != "Execution failed: too many calls wait for the agent" {
		t.Errorf("first answer: %s", got)
	}
	agent.leave()
	for range calls - 1 {
		switch got := await(t, texts); got {
		case "Execution failed: too many calls wait for the agent", "Execution failed: agent worker is not connected":
		default:
			t.Fatalf("answer: %s", got)
		}
	}
}

// An agent of the native API may answer with text or bytes; callers of loom.v1 get
// JSON text.
func TestTextAndBytesOfAgents(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{})
	for name, tt := range map[string]struct {
		result agents.ToolResult
		want   string
	}{
		"text":  {agents.ToolResult{Output: "a\n\x00", Form: step.FormText}, `"a\n\u0000"`},
		"bytes": {agents.ToolResult{Output: "\xff\x00", Form: step.FormBytes}, `"data:application/octet-stream;base64,/wA="`},
		"image": {agents.ToolResult{Output: "\x89PNG", Form: step.FormBytes, MediaType: "image/png"}, `"data:image/png;base64,iVBORw=="`},
		"json":  {agents.ToolResult{Output: `{"b": 1.0}`}, `{"b": 1.0}`},
	} {
		_, err := w.Agents.Register("default", name, agents.Registration{Tools: []agents.ProvidedTool{{Name: "my:" + name, Schema: "{}"}}})
		w.must(err)
		link, err := w.Agents.Open("default", name, agents.OpenOptions{})
		w.must(err)
		go func() {
			for call := range link.Calls() {
				link.Complete(call.ID, tt.result)
			}
		}()
		if got := w.call(&loomv1pb.ToolCall{Id: "c", Name: "my:" + name}); got.GetOutput() != tt.want {
			t.Errorf("%s: %v, want %s", name, got, tt.want)
		}
		link.Close()
	}
}
