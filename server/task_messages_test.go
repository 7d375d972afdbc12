package server_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// The tasks of a session stand in its prompts, each as one message or none, by their
// actions and in their order.
//
// G04, G07, G08, G09, G10, G12, G22, P30
func TestTasksAsMessages(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, preset := range []string{"task_context", "three_phase"} {
		MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{SessionId: preset, History: &loombridgev1.HistorySettings{Preset: preset}})
		for _, e := range []struct{ action, payload string }{
			{"node.planning", `{"goal":"Ship it","reasoning":"It is late","steps":["test","tag"]}`},
			{"execute", `{"content":"Read the file"}`},
			{"node.thinking", `{"content":"I look first"}`},
			{"node.thinking", `{"content":" "}`},
			{"node.tool_call", `{"tool_name":"read_file","args":{"path":"` + strings.Repeat("p", 300) + `"}}`},
			{"node.tool_call", `{"tool_name":"read_file"}`},
			{"node.tool_result", `{"content":"GONE"}`},
			{"node.delegation_request", `{"subtask":"count"}`},
			{"node.delegation_response", `{"result":"42"}`},
			{"node.complete", `{"content":"GONE, too"}`},
		} {
			_, err := s.Bridge.Emit(t.Context(), taskEvent(preset, e.action, `{"source_agent":"boss","parameters":`+e.payload+`}`))
			must(t, err)
		}
		prompt, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: preset, WithoutTools: true, MaxTokens: 100_000})
		must(t, err)
		var got []string
		for _, m := range prompt.GetMessages() {
			got = append(got, strings.TrimPrefix(m.GetRole().String(), "ROLE_")+" "+m.GetContent())
		}
		want := []string{
			"SYSTEM [Parent Plan] Goal: Ship it\nReasoning: It is late\nSteps (2):\n1. test\n2. tag",
			"USER Read the file", "ASSISTANT I look first",
			`ASSISTANT [Calling read_file({"path": "` + strings.Repeat("p", 190) + "...)]", "ASSISTANT [Calling read_file(...)]",
			"ASSISTANT [Delegation request from boss] count", "ASSISTANT [Delegation response from boss] 42",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", preset, diff)
		}
	}
}
