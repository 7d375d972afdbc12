package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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

// TestHooksHandBackWhatCounts: after a compaction the model is told what the tests said, of a
// command that failed and of one that did not, what it read, and which tasks are open.
func TestHooksHandBackWhatCounts(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir())
	n := 0
	event := func(name string, input map[string]any) string {
		n++
		input["session_id"], input["cwd"], input["hook_event_name"] = "s", p.Workspace, name
		input["tool_use_id"], input["prompt_id"] = fmt.Sprint("t", n), "p"
		told, err := json.Marshal(input)
		must(t, err)
		for {
			answer, err := hooked(t, string(told), "claude-code", name, "--addr", p.Address, "--agent", "counts")
			if !errors.Is(err, context.DeadlineExceeded) && status.Code(err) != codes.DeadlineExceeded { // the machine is busy
				must(t, err)
				return contextOf(t, answer)
			}
		}
	}
	log := func(test string) string {
		passed := strings.Repeat("ok  \tpkg/t\t0.1s\n", 300)
		return passed + "--- FAIL: " + test + "\n    " + test + "_test.go:42: want 3 got 4\n" + passed
	}
	event("UserPromptSubmit", map[string]any{"prompt": "Fix the tests"})
	event("PostToolUse", map[string]any{"tool_name": "Bash", "tool_input": map[string]any{"command": "go test ./... | cat"}, "tool_response": map[string]any{"stdout": log("TestLock"), "stderr": ""}})
	event("PostToolUseFailure", map[string]any{"tool_name": "Bash", "tool_input": map[string]any{"command": "go test ./..."}, "error": "Exit code 1\n" + log("TestHarbour")})
	event("PostToolUse", map[string]any{"tool_name": "Read", "tool_input": map[string]any{"file_path": "/a/lock.go"}, "tool_response": map[string]any{
		"type": "text", "file": map[string]any{"filePath": "/a/lock.go", "content": "func holdTheLock() {}\n", "numLines": 1, "startLine": 1, "totalLines": 1},
	}})
	todos := func(first, second string) {
		event("PostToolUse", map[string]any{"tool_name": "TodoWrite", "tool_input": map[string]any{"todos": []any{
			map[string]any{"content": "Fix the lock", "status": first}, map[string]any{"content": "Write\nthe changelog", "status": second},
		}}, "tool_response": map[string]any{"oldTodos": []any{}, "newTodos": []any{}}})
	}
	todos("completed", "pending")
	event("PreCompact", map[string]any{"trigger": "auto"})
	given := event("SessionStart", map[string]any{"source": "compact"})
	for _, want := range []string{
		"--- FAIL: TestLock", "TestLock_test.go:42: want 3 got 4", "--- FAIL: TestHarbour", "TestHarbour_test.go:42: want 3 got 4",
		"holdTheLock", "Plan (1/2)", "Write the changelog",
	} {
		if !strings.Contains(given, want) {
			t.Errorf("without %q: %s", want, given)
		}
	}
	if strings.Contains(given, "numLines") {
		t.Errorf("with the words of the host's JSON: %s", given)
	}
	todos("completed", "completed")
	event("PreCompact", map[string]any{"trigger": "auto"})
	if given := event("SessionStart", map[string]any{"source": "compact"}); strings.Contains(given, "Plan (") {
		t.Errorf("a plan of which all is done: %s", given)
	}
}
