package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// limitOf returns the rule that refused a call, and when the call may come again; nothing
// for one that was not refused.
func limitOf(tb testing.TB, err error) (rule string, retry time.Duration) {
	tb.Helper()
	if err == nil {
		return "", 0
	}
	reason, details := detailOf(err)
	if status.Code(err) != codes.ResourceExhausted || reason != "TOOL_LIMIT_REACHED" {
		tb.Fatalf("refused by another limit: %v", err)
	}
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			retry = info.GetRetryDelay().AsDuration()
		}
	}
	return details["rule"], retry
}

// MustLimited starts a server with limits of tools, from its settings file.
func MustLimited(tb testing.TB, limits []string, more ...string) (p *process, metrics string) {
	tb.Helper()
	file := MustFile(tb, `tool-limits = ["`+strings.Join(limits, `", "`)+`"]`)
	p = MustRunBeside(tb, append([]string{"--config", file, "--metrics-addr", "127.0.0.1:0"}, more...)...)
	return p, p.metrics(tb)
}

// A call beyond a rate is refused before it runs, with when to come again. It counts for
// nobody else, and is seen in the records, the status and the figures.
//
// E07
func TestToolRate(t *testing.T) {
	t.Parallel()
	p, metrics := MustLimited(t, []string{"shell:* 2/h", "fs:* 1000/s per tenant"})
	call := func(agent, id string) error {
		r := noted("echo out")
		r.AgentId, r.CallId = agent, id
		_, err := p.bridge().Tool(t.Context(), r)
		return err
	}
	for _, id := range []string{"1", "2", "2", "2"} { // the last two run nothing, and do not count
		must(t, call("a", id))
	}
	rule, retry := limitOf(t, call("a", "3"))
	if rule != "shell:* 2/h" || retry < 25*time.Minute || retry > 31*time.Minute || runsIn(p.Workspace) != 2 {
		t.Errorf("refused by %q for %v; %d ran", rule, retry, runsIn(p.Workspace))
	}
	must(t, call("a", "1"))
	must(t, call("b", "1"))
	if _, err := callTool(t, p, "fs:list_dir", `{}`); err != nil {
		t.Errorf("another tool: %v", err)
	}
	loom, err := loomv1pb.NewBridgeClient(p.conn).ForwardToolCall(t.Context(), &loomv1pb.ToolCall{
		Name: "shell:run", Arguments: `{"command":"echo"}`, Headers: map[string]string{"x-agent-id": "a"},
	})
	must(t, err)
	if loom.GetStatus() != loomv1pb.ToolStatus_TOOL_ERROR || !strings.HasPrefix(loom.GetError().GetMessage(), "Execution failed: too many calls of shell:run; try again in ") {
		t.Errorf("loom.v1: %v", loom)
	}
	page, err := loombridgev1.NewToolServiceClient(p.conn).ListAudit(t.Context(), &loombridgev1.ListAuditRequest{AgentId: "a", CallerId: "a", PageSize: 1})
	must(t, err)
	if one := page.GetRecords()[0]; one.GetOutcome() != loombridgev1.AuditOutcome_AUDIT_OUTCOME_REFUSED || one.GetCode() != "TOOL_LIMIT_REACHED" {
		t.Errorf("the record of the refused call is %v", one)
	}
	if got := scrape(t, metrics)[`loom_bridge_tool_limit_refused_total{rule="shell:* 2/h"}`]; got != 2 {
		t.Errorf("the figures tell of %v", got)
	}
}

// Calls that loom.v1 passes on to an agent as they are count, too, and have records.
//
// E07
func TestRelayedToolRate(t *testing.T) {
	t.Parallel()
	p, _ := MustLimited(t, []string{"greeter:* 2/h"})
	loom := loomv1pb.NewBridgeClient(p.conn)
	_, err := loom.RegisterAgent(t.Context(), &loomv1pb.AgentRegisterRequest{
		AgentId: "greeter", Tools: []*loomv1pb.ToolDescriptor{{Name: "greeter:greet", ParametersSchema: "{}"}},
	})
	must(t, err)
	stream, err := loom.EventStream(t.Context())
	must(t, err)
	must(t, stream.Send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Ack{Ack: &loomv1pb.Ack{MessageId: "greeter"}}}))
	_, err = stream.Header()
	must(t, err)
	var ran atomic.Int64
	go func() { // ends with the stream
		for {
			event, err := stream.Recv()
			if err != nil {
				return
			}
			if call := event.GetToolCall(); call != nil {
				ran.Add(1)
				_ = stream.Send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_ToolResult{ToolResult: &loomv1pb.ToolResult{
					Id: call.GetId(), Status: loomv1pb.ToolStatus_TOOL_OK, Output: `"hello"`,
				}}})
			}
		}
	}()
	call := func(agent string) *loomv1pb.ToolResult {
		got, err := loom.ForwardToolCall(t.Context(), &loomv1pb.ToolCall{
			Name: "greeter:greet", Arguments: `{"whom":"you"}`, Headers: map[string]string{"x-agent-id": agent},
		})
		must(t, err)
		return got
	}
	for range 2 {
		if got := call("a"); got.GetStatus() != loomv1pb.ToolStatus_TOOL_OK || got.GetOutput() != `"hello"` {
			t.Fatalf("within the limit: %v", got)
		}
	}
	if got := call("a"); got.GetStatus() != loomv1pb.ToolStatus_TOOL_ERROR || !strings.HasPrefix(got.GetError().GetMessage(), "Execution failed: too many calls of greeter:greet; try again in ") {
		t.Errorf("beyond the limit: %v", got)
	}
	if got := call("b"); got.GetStatus() != loomv1pb.ToolStatus_TOOL_OK {
		t.Errorf("another agent: %v", got)
	}
	if got := ran.Load(); got != 3 {
		t.Errorf("%d ran, want 3", got)
	}
	page, err := loombridgev1.NewToolServiceClient(p.conn).ListAudit(t.Context(), &loombridgev1.ListAuditRequest{AgentId: "a", CallerId: "a"})
	must(t, err)
	var outcomes []loombridgev1.AuditOutcome
	for _, one := range page.GetRecords() {
		if outcomes = append(outcomes, one.GetOutcome()); one.GetTool() != "greeter:greet" {
			t.Errorf("a record of %q", one.GetTool())
		}
	}
	ok := loombridgev1.AuditOutcome_AUDIT_OUTCOME_OK
	if want := []loombridgev1.AuditOutcome{loombridgev1.AuditOutcome_AUDIT_OUTCOME_REFUSED, ok, ok}; !slices.Equal(outcomes, want) {
		t.Errorf("the records tell of %v, want %v", outcomes, want)
	}
}

// Of calls at once one agent gets all but the last, which is kept for another one, and all
// are given back.
func TestToolsAtOnce(t *testing.T) {
	t.Parallel()
	p, metrics := MustLimited(t, []string{"shell:run 4 at once per tenant"})
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	begin := func(agent string, id int) {
		r := noted("sleep 1000")
		r.AgentId, r.CallId = agent, fmt.Sprint(id)
		work.Go(func() { _, _ = p.bridge().Tool(ctx, r) }) // ends with ctx
	}
	running := func(want float64) {
		t.Helper()
		eventually(t, waitTime, func() error {
			if got := scrape(t, metrics)[`loom_bridge_tool_limit_running{rule="shell:run 4 at once per tenant"}`]; got != want {
				return fmt.Errorf("%v run, want %v", got, want)
			}
			return nil
		})
	}
	for i := range 3 {
		begin("greedy", i)
	}
	running(3)
	more := noted("echo")
	more.AgentId, more.CallId = "greedy", "more"
	_, err := p.bridge().Tool(t.Context(), more)
	if rule, retry := limitOf(t, err); rule == "" || retry <= 0 {
		t.Errorf("a fourth call of one agent: %v", err)
	}
	begin("modest", 0)
	running(4)
	cancel()
	work.Wait()
	running(0)
	_, err = p.bridge().Tool(t.Context(), more)
	must(t, err)
}

// Beside an agent that calls without end, one that stays within its part is never refused.
func TestToolRateIsFair(t *testing.T) {
	t.Parallel()
	p, _ := MustLimited(t, []string{"* 12/s per tenant"}, "--durability", "none") // a busy machine makes more calls than that
	ctx, cancel := context.WithCancel(t.Context())
	list := func(agent string) error {
		_, err := p.bridge().Tool(ctx, &loombridgev1.ToolRequest{AgentId: agent, Name: "fs:list_dir"})
		return err
	}
	var work sync.WaitGroup
	var refused atomic.Int64
	for range 4 {
		work.Go(func() {
			for ctx.Err() == nil {
				if list("greedy") != nil {
					refused.Add(1)
				}
			}
		})
	}
	eventually(t, waitTime, func() error {
		if refused.Load() == 0 {
			return fmt.Errorf("the greedy agent is not refused")
		}
		return nil
	})
	eventually(t, waitTime, func() error { return list("modest") }) // what was left over is used up
	for i := range 12 {
		time.Sleep(250 * time.Millisecond) // 4 a second of its 6
		if rule, _ := limitOf(t, list("modest")); rule != "" {
			t.Errorf("call %d of the modest agent was refused", i)
		}
	}
	cancel()
	work.Wait()
}

// Limits that can't be read are refused at the start, and say what is wrong.
func TestToolLimitsThatAreWrong(t *testing.T) {
	t.Parallel()
	for _, limits := range []string{"web:*", "web:* 30", "web:* 30/x", "web:* 0/s", "a*b 1/s", "x 1/s per house", "x 1/s,x 1/s", strings.Join(slices.Repeat([]string{"x 1/s"}, 65), ",")} {
		_, err := load(t, nil, "--tool-limits", limits)
		if err == nil || !strings.Contains(err.Error(), "--tool-limits") {
			t.Errorf("%.60q: %v", limits, err)
		}
	}
}
