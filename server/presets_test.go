package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/compose"
)

// MustRecord records a call and returns where its result lies.
func MustRecord(tb testing.TB, s *servertest.Server, session, tool, args string, output any) string {
	tb.Helper()
	r := &loombridgev1.RecordStepRequest{
		AgentId: agent, SessionId: session, ToolName: tool, Success: true,
		ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: args},
	}
	if text, isText := output.(string); isText {
		r.OutputForm = &loombridgev1.RecordStepRequest_OutputText{OutputText: text}
	} else {
		r.OutputForm = &loombridgev1.RecordStepRequest_OutputJson{OutputJson: string(mustJSON(tb, output))}
	}
	got, err := s.Context.RecordStep(tb.Context(), r)
	must(tb, err)
	return strings.TrimPrefix(got.GetOutputBlob().GetPath(), blob.Folder)
}

// shownIn is the text of a prompt.
func shownIn(prompt *loombridgev1.AssembleResponse) string {
	var b strings.Builder
	for _, m := range prompt.GetMessages() {
		b.WriteString(m.GetContent())
	}
	return b.String()
}

// Results are called by kind and step, or, in a session whose preset says so, by
// kind and how many of it there were; all by whatever the server's setting says.
//
// B13, K08
func TestNamesOfResults(t *testing.T) {
	long := strings.Repeat("line\n", 400)
	record := func(s *servertest.Server, session string) (paths []string) {
		return []string{
			MustRecord(t, s, session, "web:search", `{"query":"go"}`, map[string]any{"results": []string{long}}),
			MustRecord(t, s, session, "fs:read_file", `{"path":"a.txt"}`, map[string]any{"path": "a.txt", "content": long + session}),
			MustRecord(t, s, session, "system:shell", `{"command":"ls"}`, map[string]any{"stdout": long, "exit_code": 0}),
		}
	}
	s := servertest.Start(t, nil)
	MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{SessionId: "counted", History: &loombridgev1.HistorySettings{Preset: "reduction"}})
	if diff := cmp.Diff([]string{"search_001.json", "read_002.txt", "shell_003.log"}, record(s, "plain")); diff != "" {
		t.Errorf("by default (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"search_001_2.json", "read_001.txt", "shell_001.log"}, record(s, "counted")); diff != "" {
		t.Errorf("with a preset (-want +got):\n%s", diff)
	}
	for path, want := range map[string]string{"file_002.txt": long + "plain", "file_001.txt": long + "counted"} {
		if _, got := MustReadBlob(t, s, &loombridgev1.ReadBlobRequest{AgentId: agent, Name: blob.Folder + path}); string(got) != want {
			t.Errorf("%s is %d bytes, want those of %.20q", path, len(got), want)
		}
	}
}

// Nobody says how long the prompt of a preset may be: it leaves the response its
// share of the window, and the oldest results go first.
//
// B14
func TestBudgetOfPresets(t *testing.T) {
	s := servertest.Start(t, nil)
	MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{SessionId: "s", History: &loombridgev1.HistorySettings{Preset: "reduction"}})
	for i := range 8 {
		long := strings.Repeat(fmt.Sprintf("a line of step %d that says little\n", i+1), 150)
		MustRecord(t, s, "s", "fs:read_file", `{"path":"a.txt"}`, map[string]any{"path": "a.txt", "content": long})
	}
	prompt, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s", Goal: "the goal"})
	must(t, err)
	if got := prompt.GetTokens().GetTokens(); got > 4700 || got < 2000 {
		t.Errorf("the prompt has %d tokens, want at most 4700", got)
	}
	text := shownIn(prompt)
	for n, want := range map[int]bool{6: false, 7: true, 8: true} {
		if got := strings.Contains(text, fmt.Sprintf("a line of step %d that", n)); got != want {
			t.Errorf("the result of step %d is shown: %v", n, got)
		}
	}
	for n := range 8 {
		if !strings.Contains(text, fmt.Sprintf("read_%03d.txt", n+1)) && n >= 5 {
			t.Errorf("nothing says where the result of step %d is", n+1)
		}
	}
}

// A line of one's own stands in prompts and in the files of the history.
//
// B04
func TestOwnLinesInPrompts(t *testing.T) {
	rules, err := step.BuiltinRules().With([]byte("[tools.\"fs:read_file\"]\ncompact = \"Had a look at {path}\"\n"))
	must(t, err)
	s := servertest.Start(t, &servertest.Options{Domain: compose.Options{Reduction: step.Options{Rules: rules}}})
	MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{SessionId: "s", History: &loombridgev1.HistorySettings{Preset: "reduction", Literal: new(true)}})
	for range 6 {
		MustRecord(t, s, "s", "fs:read_file", `{"path":"a.txt"}`, map[string]any{"path": "a.txt", "content": "short"})
	}
	prompt, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s"})
	must(t, err)
	text := shownIn(prompt)
	if strings.Count(text, "• Had a look at a.txt") != 3 {
		t.Errorf("the prompt is\n%s", text)
	}
	if _, got := MustReadBlob(t, s, &loombridgev1.ReadBlobRequest{AgentId: agent, Name: "workspace/history/step_001.compact"}); string(got) != "Had a look at a.txt" {
		t.Errorf("the file is %q", got)
	}
}

// How a result says where it lies, and whether what was written is kept, are
// settings.
//
// K51, K54
func TestSettingsOfResults(t *testing.T) {
	long := strings.Repeat("line\n", 400)
	for style, want := range map[step.ReferenceStyle]string{
		step.ReferenceHint:  "Read a.txt (2000 bytes, text). Saved to workspace/outputs/read_001.txt\nUse fs:read_file to retrieve if needed.",
		step.ReferenceShort: "Read a.txt (2000 bytes, text). Saved to workspace/outputs/read_001.txt",
		step.ReferenceLong:  "Read completed. Results saved to workspace/outputs/read_001.txt\nUse fs:read_file to retrieve if needed.",
	} {
		s := servertest.Start(t, &servertest.Options{Domain: compose.Options{Assemble: assemble.Options{Reference: style}}})
		got, err := s.Context.RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
			AgentId: agent, ToolName: "fs:read_file", Success: true,
			ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: `{"path":"a.txt"}`},
			OutputForm:    &loombridgev1.RecordStepRequest_OutputJson{OutputJson: fmt.Sprintf(`{"path":"a.txt","content":%q}`, long)},
		})
		must(t, err)
		if got.GetObservation() != want {
			t.Errorf("style %d: %q, want %q", style, got.GetObservation(), want)
		}
	}
	s := servertest.Start(t, nil)
	MustRecord(t, s, "", "fs:write_file", fmt.Sprintf(`{"path":"a.txt","content":%q}`, long), map[string]any{"bytes_written": len(long)})
	if got := len(MustList(t, s, &loombridgev1.ListBlobsRequest{AgentId: agent})); got != 1 {
		t.Errorf("%d blobs", got)
	}
}
