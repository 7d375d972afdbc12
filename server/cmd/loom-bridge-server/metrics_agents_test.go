package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// The figures of windows and of agents among each other: pressure, levels, renewals,
// interrupts, children by outcome, messages that wait.
//
// H09, H20, H28, P18, P35
func TestMetricsTellOfAgents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := MustRun(t, dir)
	for _, text := range []string{"one", "two"} {
		_, err := loombridgev1.NewEventServiceClient(first.conn).SendMessage(t.Context(), &loombridgev1.SendMessageRequest{AgentId: "a", Message: &loombridgev1.DirectMessage{TargetAgentId: "b", Content: text}})
		must(t, err)
	}
	must(t, first.Stop())

	p, address := MustMeasure(t, dir)
	eventually(t, waitTime, func() error {
		if got := scrape(t, address)["loom_bridge_direct_messages"]; got != 2 {
			return fmt.Errorf("%v messages wait", got)
		}
		return nil
	})
	c := contexts.New(p.conn)
	_, err := c.ConfigureSession(t.Context(), &loombridgev1.ConfigureSessionRequest{AgentId: "a", SessionId: "s", History: &loombridgev1.HistorySettings{
		Policy: loombridgev1.HistoryPolicy_HISTORY_POLICY_PRESET, Preset: "partitioned", Literal: new(true),
	}})
	must(t, err)
	_, err = c.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: "a", SessionId: "s", Messages: []*loombridgev1.Message{
		{Role: loombridgev1.Role_ROLE_USER, Content: "Begin."}, {Role: loombridgev1.Role_ROLE_ASSISTANT, Content: strings.Repeat("word ", 3000)},
	}})
	must(t, err)
	ask := func(tokens int32) float64 {
		got, err := c.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "a", SessionId: "s", MaxTokens: tokens, WithoutTools: true})
		must(t, err)
		return got.GetReceipt().GetPressure()
	}
	sum := ask(100_000) + ask(4000)
	_, err = c.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: "a", SessionId: "s", Messages: []*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_USER, Content: "Go on."}}})
	must(t, err)
	_, err = c.Renew(t.Context(), &loombridgev1.RenewRequest{AgentId: "a", SessionId: "s"})
	must(t, err)
	_, err = c.UpdateWorking(t.Context(), &loombridgev1.UpdateWorkingRequest{AgentId: "a", SessionId: "s", Signals: []*loombridgev1.Signal{
		{EventId: "fire", Summary: "it burns", Urgency: loombridgev1.Urgency_URGENCY_CRITICAL}, {EventId: "rain", Summary: "it rains"},
	}})
	must(t, err)
	for _, child := range []string{"good", "bad", "left"} {
		_, err := c.SpawnAgent(t.Context(), &loombridgev1.SpawnAgentRequest{AgentId: "a", ChildId: child, Goal: "find it", Limits: unhurried})
		must(t, err)
	}
	_, err = c.CompleteTask(t.Context(), &loombridgev1.CompleteTaskRequest{AgentId: "good", TaskId: "good", Conclusion: "found"})
	must(t, err)
	_, err = c.CompleteTask(t.Context(), &loombridgev1.CompleteTaskRequest{AgentId: "a", TaskId: "bad", Failed: true, Error: "stopped"})
	must(t, err)
	got := scrape(t, address)
	for name, want := range map[string]float64{
		"prompt_pressure_count": 2, "prompt_pressure_sum": sum,
		`pressure_levels_total{level="snip"}`: 1, `pressure_levels_total{level="renewal"}`: 1,
		"interrupts_total": 1, "children": 1,
		`children_ended_total{outcome="returned"}`: 1, `children_ended_total{outcome="failed"}`: 1,
		`children_ended_total{outcome="timeout"}`: 0, `children_ended_total{outcome="disconnected"}`: 0,
		"direct_messages": 2,
	} {
		if value := got["loom_bridge_"+name]; value < want-1e-9 || value > want+1e-9 {
			t.Errorf("%s = %v, want %v", name, value, want)
		}
	}
}
