package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// tellHook runs the hook of Claude Code for an event, and returns the text for the model.
func tellHook(t *testing.T, p *process, agent, event string, input map[string]any) string {
	t.Helper()
	text, err := json.Marshal(input)
	must(t, err)
	answer, err := hooked(t, string(text), "claude-code", event, "--addr", p.Address, "--agent", agent)
	must(t, err)
	return contextOf(t, answer)
}

// TestHooksAlwaysHandBackWhatFits has sessions of every length: after a compaction, and in the
// session that comes next, the model is given what fits, the request that began it and the
// newest first.
func TestHooksAlwaysHandBackWhatFits(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir())
	words := func(n, of int) string {
		var b strings.Builder
		for k := range of {
			fmt.Fprintf(&b, "item%dx%d the ", n, k)
		}
		return b.String()
	}
	for name, prompts := range map[string][]string{
		"a short one":            {"first of all", "newest of all"},
		"ten long ones":          {"first of all " + words(0, 200), words(1, 200), words(2, 200), words(3, 200), words(4, 200), words(5, 200), "newest of all " + words(6, 200)},
		"one pasted":             {"first of all " + words(0, 8_000)},
		"pasted last":            {"first of all", "newest of all " + words(0, 8_000)},
		"pasted in the middle":   {"first of all", words(0, 8_000), "newest of all"},
		"pasted in other script": {"first of all", strings.Repeat("港は閉まっている。", 5_000), "newest of all"},
	} {
		t.Run(name, func(t *testing.T) {
			agent := strings.ReplaceAll(name, " ", "-")
			event := func(name string, more map[string]any) string {
				input := map[string]any{"session_id": "s", "cwd": p.Workspace, "hook_event_name": name}
				for key, value := range more {
					input[key] = value
				}
				return tellHook(t, p, agent, name, input)
			}
			for i, prompt := range prompts {
				event("UserPromptSubmit", map[string]any{"prompt": prompt, "prompt_id": fmt.Sprint(i)})
				event("PostToolUse", map[string]any{"tool_name": "Bash", "tool_use_id": fmt.Sprint("t", i), "tool_input": map[string]any{"command": "make"}, "tool_response": map[string]any{"stdout": "ok\n"}})
			}
			event("PreCompact", map[string]any{"trigger": "auto"})
			for _, given := range []string{
				event("SessionStart", map[string]any{"source": "compact"}),
				event("SessionStart", map[string]any{"source": "compact"}), // nothing was saved
				event("SessionStart", map[string]any{"source": "startup", "session_id": "next"}),
			} {
				if len(given) == 0 || len([]rune(given)) > 10_000 || !strings.Contains(given, "first of all") || len(prompts) > 1 && !strings.Contains(given, "newest of all") {
					t.Errorf("given %d letters: %.300s", len(given), given)
				}
				if len(strings.Join(prompts, "")) > 20_000 && !strings.Contains(given, "left out here") && !strings.Contains(given, "chars omitted; full text: message_") {
					t.Errorf("cut without a word: %.300s", given)
				}
			}
		})
	}
}

// TestHookTwiceRecordsOnce runs each hook twice, one after the other and at once.
func TestHookTwiceRecordsOnce(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir())
	for _, atOnce := range []bool{false, true} {
		agent := fmt.Sprint("twice-", atOnce)
		event := func(name string, input map[string]any) {
			input["session_id"], input["cwd"] = "s", p.Workspace
			var both sync.WaitGroup
			for range 2 {
				if atOnce {
					both.Go(func() { tellHook(t, p, agent, name, input) })
				} else {
					tellHook(t, p, agent, name, input)
				}
			}
			both.Wait()
		}
		event("UserPromptSubmit", map[string]any{"prompt": "fix the harbour test"})
		event("PostToolUse", map[string]any{"tool_name": "Bash", "tool_use_id": "t", "tool_input": map[string]any{"command": "make"}, "tool_response": map[string]any{"stdout": "ok\n"}})
		event("Stop", map[string]any{"last_assistant_message": "It is fixed."})
		event("UserPromptSubmit", map[string]any{"prompt": "fix the harbour test"})
		got, err := contexts.New(p.conn).ListConversation(t.Context(), &loombridgev1.ListConversationRequest{AgentId: agent, SessionId: "s"})
		must(t, err)
		if len(got.GetEntries()) != 4 {
			t.Errorf("at once %v: %d entries, want 4: %v", atOnce, len(got.GetEntries()), got)
		}
	}
}

func TestHookTakesByteOrderMarks(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir())
	for n := range 4 {
		input := strings.Repeat("\uFEFF", n) + fmt.Sprintf(`{"conversation_id":"c","generation_id":"g%d","prompt":"hello %d","workspace_roots":["/w"]}`, n, n)
		if _, err := hooked(t, input, "cursor", "beforeSubmitPrompt", "--addr", p.Address, "--agent", "bom"); err != nil {
			t.Errorf("%d marks: %v", n, err)
		}
	}
	got, err := contexts.New(p.conn).ListConversation(t.Context(), &loombridgev1.ListConversationRequest{AgentId: "bom", SessionId: "c"})
	must(t, err)
	if len(got.GetEntries()) != 4 {
		t.Errorf("%d entries, want 4", len(got.GetEntries()))
	}
}
