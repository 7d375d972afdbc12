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

// A step that a caller ran itself goes by the tool's own name, as one that the
// server ran: its rules, its line, what is kept of it. Messages keep the name that
// the model wrote. A tool that somebody provides under exactly that name is
// another one.
//
// A02
func TestNamesOfRecordedSteps(t *testing.T) {
	s := servertest.Start(t, nil)
	record := func(tool, args, output string) *loombridgev1.RecordStepResponse {
		t.Helper()
		got, err := s.Context.RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
			AgentId: agent, SessionId: "s", ToolName: tool, Success: true,
			ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: args},
			OutputForm:    &loombridgev1.RecordStepRequest_OutputJson{OutputJson: output},
		})
		must(t, err)
		return got
	}
	long := strings.Repeat("line\\n", 300)
	for _, tt := range []struct{ called, tool, args, output, observation string }{
		{"read_file", "fs:read_file", `{"path":"a.txt"}`, `{"content":"` + long + `"}`, "Read a.txt (1500 bytes, text)"},
		{"fs_read_file", "fs:read_file", `{"path":"a.txt"}`, `{"content":"text"}`, "Read a.txt (4 bytes, text)"},
		{"write_file", "fs:write_file", `{"path":"a.txt","content":"text"}`, `{"bytes_written":4}`, "Wrote a.txt (4 bytes)"},
		{"list_dir", "fs:list_dir", `{"path":"src"}`, `{"entries":["a/","b"]}`, "Listed src: 2 items (1 files, 1 dirs)"},
		{"fs_list_dir", "fs:list_dir", `{"path":"src"}`, `{"entries":[]}`, "Listed src: 0 items (0 files, 0 dirs)"},
		{"web_search", "web:search", `{"query":"q"}`, `{"results":[1,2,3]}`, "Found 3 results for 'q'"},
		{"browser_navigate", "browser:navigate", `{"url":"https://a.b/c"}`, `{"status":200,"text":"hi"}`, "Visited a.b/c (status=200, 2 bytes text)"},
		{"system_shell", "system:shell", `{"command":"ls -la"}`, `{"stdout":"a\nb\n","exit_code":0}`, "ls: exit 0, 2 lines output"},
		{"weather_get", "weather:get", `{"location":"Bonn"}`, `"fine"`, "weather:get → fine"},
		{"system:shell", "system:shell", `{"command":"ls"}`, `{"stdout":"","exit_code":0}`, "ls: exit 0, 0 lines output"},
		{"my_tool", "my_tool", `{}`, `"done"`, "my_tool → done"},
	} {
		got := record(tt.called, tt.args, tt.output).GetStep()
		if got.GetToolName() != tt.tool || got.GetObservation() != tt.observation {
			t.Errorf("%s is %s, observed %q, want %s, %q", tt.called, got.GetToolName(), got.GetObservation(), tt.tool, tt.observation)
		}
	}
	prompt, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
		AgentId: agent, SessionId: "s", WithoutTools: true, MaxTokens: 100_000,
		History: &loombridgev1.HistorySettings{Policy: appendOnly},
	})
	must(t, err)
	if got := prompt.GetMessages()[0].GetToolCalls()[0].GetName(); got != "read_file" {
		t.Errorf("the message calls %s, want what the model wrote", got)
	}
	_, whole := MustReadBlob(t, s, &loombridgev1.ReadBlobRequest{AgentId: agent, Name: "step_001.txt"})
	if string(whole) != strings.Repeat("line\n", 300) {
		t.Errorf("step_001.txt is %.60q", whole)
	}

	MustAttach(t, t.Context(), s.Bridge, &loombridgev1.AttachHello{
		AgentId: "provider", Tools: []*loombridgev1.ToolDescriptor{{Name: "web_search", Description: "another search"}},
	})
	if got := record("web_search", `{"query":"q"}`, `{"results":[1,2,3]}`).GetStep(); got.GetToolName() != "web_search" {
		t.Errorf("the tool that is called so exactly is %s", got.GetToolName())
	}
}

// In a session with a preset, what a tool answers says where the result lies as the
// preset does, whether the server ran the tool or the caller; a call that is
// repeated gets the same answer.
//
// K54
func TestReferencesOfSessions(t *testing.T) {
	s := servertest.Start(t, nil)
	long := strings.Repeat("line\\n", 400)
	must(t, os.WriteFile(filepath.Join(s.Workspace, "a.txt"), []byte(strings.Repeat("line\n", 400)), 0o600))
	for preset, forms := range map[string][2]string{
		"":          {"Read a.txt (2000 bytes, text). Saved to %s\nUse fs:read_file to retrieve if needed.", "Found 1 results for 'q'. Saved to %s\nUse fs:read_file to retrieve if needed."},
		"reduction": {"Read a.txt (2000 bytes, text). Saved to %s", "Found 1 results. Saved to %s"},
		"design":    {"Read completed. Results saved to %s\nUse fs:read_file to retrieve if needed.", "Search completed. Results saved to %s\nUse fs:read_file to retrieve if needed."},
		"chat":      {"Read a.txt (2000 bytes, text). Saved to %s\nUse fs:read_file to retrieve if needed.", "Found 1 results for 'q'. Saved to %s\nUse fs:read_file to retrieve if needed."},
	} {
		session := "session " + preset
		if preset != "" {
			MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{SessionId: session, History: &loombridgev1.HistorySettings{Preset: preset}})
		}
		for range 2 {
			read, err := s.Bridge.Tool(t.Context(), &loombridgev1.ToolRequest{
				AgentId: agent, SessionId: session, Name: "fs:read_file", RequestId: "read " + preset,
				ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"path":"a.txt"}`},
			})
			must(t, err)
			if want := fmt.Sprintf(forms[0], read.GetOutputBlob().GetPath()); read.GetObservation() != want {
				t.Errorf("%q: Tool answers %q, want %q", preset, read.GetObservation(), want)
			}
			found, err := s.Context.RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
				AgentId: agent, SessionId: session, ToolName: "web:search", Success: true, RequestId: "found " + preset,
				ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: `{"query":"q"}`},
				OutputForm:    &loombridgev1.RecordStepRequest_OutputJson{OutputJson: `{"results":["` + long + `"]}`},
			})
			must(t, err)
			if want := fmt.Sprintf(forms[1], found.GetOutputBlob().GetPath()); found.GetObservation() != want {
				t.Errorf("%q: RecordStep answers %q, want %q", preset, found.GetObservation(), want)
			}
		}
	}
}
