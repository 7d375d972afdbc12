package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// What a command printed is a log, whatever it looks like, unless it is no text. The
// result of another tool is kept as it was given.
//
// P11
func TestKindsOfResults(t *testing.T) {
	s := servertest.Start(t, nil)
	long := strings.Repeat("line\n", 400)
	MustRecord(t, s, "s", "system:shell", `{"command":"make"}`, map[string]any{"stdout": long, "exit_code": 0})
	MustRecord(t, s, "s", "system_shell", `{"command":"cat a.json"}`, map[string]any{"stdout": `{"a":"` + strings.Repeat("x", 600) + `"}`, "exit_code": 0})
	MustRecord(t, s, "s", "my:tool", `{}`, map[string]any{"stdout": long, "stderr": "", "exit_code": 0})
	MustRecord(t, s, "s", "fs:read_file", `{"path":"a.txt"}`, map[string]any{"content": long})
	MustRecord(t, s, "s", "web:search", `{"query":"q"}`, map[string]any{"results": []string{long}})
	got := map[string]string{}
	for _, b := range MustList(t, s, &loombridgev1.ListBlobsRequest{AgentId: agent}) {
		got[filepath.Base(b.GetPath())] = b.GetKind()
	}
	want := map[string]string{
		"shell_001.log": "log", "shell_002.log": "log", "tool_003.json": "json", "read_004.txt": "text", "search_005.json": "json",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("kinds %v, want %v", got, want)
	}
}

// Searches that stand together are one line with all that they found, whatever a
// search calls its list; a search that is nothing but a list counts it, too.
//
// A13, P07
func TestSearchesAreCounted(t *testing.T) {
	s := servertest.Start(t, nil)
	must(t, os.WriteFile(filepath.Join(s.Workspace, "a.txt"), []byte("needle\nhay\nneedle\n"), 0o600))
	for range 3 {
		_, err := s.Bridge.Tool(t.Context(), &loombridgev1.ToolRequest{
			AgentId: agent, SessionId: "s", Name: "fs:search",
			ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"query":"needle"}`},
		})
		must(t, err)
	}
	hits := []any{"one", "two"}
	for i, output := range []any{hits, map[string]any{"items": hits}, map[string]any{"hits": hits}, map[string]any{"matches": hits}, map[string]any{"results": hits}, map[string]any{"count": 2}} {
		MustRecord(t, s, "s", "web:search", `{"query":"q"}`, output)
		step, err := s.Context.GetStep(t.Context(), &loombridgev1.GetStepRequest{AgentId: agent, StepId: fmt.Sprintf("step_%03d", 4+i)})
		must(t, err)
		if got := step.GetObservation(); got != "Found 2 results for 'q'" {
			t.Errorf("%v: %q", output, got)
		}
	}
	text, err := s.Context.CompactHistory(t.Context(), &loombridgev1.CompactHistoryRequest{
		AgentId: agent, SessionId: "s", Style: loombridgev1.HistoryStyle_HISTORY_STYLE_GROUPED, KeepRecent: 6,
	})
	must(t, err)
	if want := "[step_001..003] 3 searches (6 results)\n"; !strings.Contains(text.GetText(), want) {
		t.Errorf("no %q in\n%s", want, text.GetText())
	}
	text, err = s.Context.CompactHistory(t.Context(), &loombridgev1.CompactHistoryRequest{
		AgentId: agent, SessionId: "s", Style: loombridgev1.HistoryStyle_HISTORY_STYLE_GROUPED, KeepRecent: 1,
	})
	must(t, err)
	if want := "[step_001..008] 8 searches (16 results)\n"; !strings.Contains(text.GetText(), want) {
		t.Errorf("no %q in\n%s", want, text.GetText())
	}
}
