package step_test

import (
	"encoding/json"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// A05
func TestIDsCountFromOneWithThreeDigits(t *testing.T) {
	for n, want := range map[uint64]string{1: "step_001", 42: "step_042", 999: "step_999", 1000: "step_1000"} {
		if got := step.ID(n); got != want {
			t.Errorf("ID(%d) = %q, want %q", n, got, want)
		}
		if got, ok := step.ParseID(want); !ok || got != n {
			t.Errorf("ParseID(%q) = %d, %t", want, got, ok)
		}
	}
}

func TestParseIDRefusesWhatIDDoesNotWrite(t *testing.T) {
	for _, id := range []string{
		"", "step_", "step_000", "step_1", "step_01", "step_0001", "step_-01", "step_+01", "STEP_001",
		"step_001 ", "step_1a2", "step_99999999999999999999", "001",
	} {
		if n, ok := step.ParseID(id); ok {
			t.Errorf("ParseID(%q) = %d, want none", id, n)
		}
	}
}

func TestToObservation(t *testing.T) {
	read := step.Step{
		ToolName: "fs:read_file", Observation: "Read a.txt (2048 bytes, text)",
		OutcomeRef: "abc", OutcomePath: "workspace/outputs/read_001.txt",
	}
	search := step.Step{
		ToolName: "web:search", Observation: "Found 8 results for 'go'", OutcomeRef: "abc",
		OutcomePath: "workspace/outputs/search_002.json", Metadata: json.RawMessage(`{"count":8}`),
	}
	shell := step.Step{
		ToolName: "system:shell", Observation: "go test: exit 1, 9 lines output\nFAIL", OutcomeRef: "abc",
		OutcomePath: "workspace/outputs/shell_003.log", Outcome: step.Failed,
	}
	bare := step.Step{ToolName: "fs:read_file", Observation: "Read a.txt (5 bytes, text)"}
	tests := []struct {
		name  string
		step  step.Step
		style step.ReferenceStyle
		want  string
	}{
		// A22: the hint stands wherever a result was offloaded.
		{
			"hint", read, step.ReferenceHint,
			"Read a.txt (2048 bytes, text). Saved to workspace/outputs/read_001.txt\nUse fs:read_file to retrieve if needed.",
		},
		{"short", read, step.ReferenceShort, "Read a.txt (2048 bytes, text). Saved to workspace/outputs/read_001.txt"},
		{
			"long", read, step.ReferenceLong,
			"Read completed. Results saved to workspace/outputs/read_001.txt\nUse fs:read_file to retrieve if needed.",
		},
		{"short search", search, step.ReferenceShort, "Found 8 results. Saved to workspace/outputs/search_002.json"},
		{
			"long search", search, step.ReferenceLong,
			"Search completed. Results saved to workspace/outputs/search_002.json\nUse fs:read_file to retrieve if needed.",
		},
		{
			"more lines", shell, step.ReferenceHint,
			"go test: exit 1, 9 lines output. Saved to workspace/outputs/shell_003.log\nFAIL\nUse fs:read_file to retrieve if needed.",
		},
		{"nothing offloaded, hint", bare, step.ReferenceHint, "Read a.txt (5 bytes, text)"},
		{"nothing offloaded, long", bare, step.ReferenceLong, "Read a.txt (5 bytes, text)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			// A22
			if got := tt.step.ToObservation(tt.style); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			if got, want := tt.step.NeedsOffload(), tt.step.OutcomeRef != ""; got != want {
				t.Errorf("NeedsOffload = %t", got)
			}
		})
	}
}

func TestLongReferenceNamesTheKindOfWork(t *testing.T) {
	// A22
	for tool, word := range map[string]string{
		"web:search": "Search", "fs:read_file": "Read", "fs:list_dir": "List",
		"browser:navigate": "Visit", "system:shell": "Command", "x:y": "Call",
	} {
		s := step.Step{ToolName: tool, OutcomeRef: "r", OutcomePath: "p"}
		want := word + " completed. Results saved to p\nUse fs:read_file to retrieve if needed."
		if got := s.ToObservation(step.ReferenceLong); got != want {
			t.Errorf("%s: got %q, want %q", tool, got, want)
		}
	}
}

// A04
func TestCompact(t *testing.T) {
	tests := []struct {
		name string
		step step.Step
		want string
	}{
		{
			"read",
			step.Step{ToolName: "fs:read_file", MinimalArgs: raw(`{"path":"config.json"}`), Metadata: raw(`{"size":1229}`)},
			"Read config.json (1.2KB)",
		},
		{
			"written",
			step.Step{ToolName: "fs:write_file", MinimalArgs: raw(`{"path":"a"}`), Metadata: raw(`{"bytes":5120}`)},
			"Wrote a (5120 bytes)",
		},
		{
			"listed",
			step.Step{ToolName: "fs:list_dir", MinimalArgs: raw(`{"path":"src"}`), Metadata: raw(`{"count":3}`)},
			"Listed src (3 items)",
		},
		{
			"listed without a path",
			step.Step{ToolName: "fs:list_dir", MinimalArgs: raw(`{}`), Metadata: raw(`{"count":0}`)},
			"Listed . (0 items)",
		},
		{
			"other tool",
			step.Step{ToolName: "x:y", MinimalArgs: raw(`{"b":1,"a":"z"}`)},
			`x:y({"a":"z","b":1})`,
		},
		{
			"failed",
			step.Step{ToolName: "fs:read_file", Outcome: step.Failed, Error: "no\nsuch  file"},
			"✗ fs:read_file failed: no such file",
		},
		{
			"unknown outcome",
			step.Step{ToolName: "fs:write_file", Outcome: step.Unknown, MinimalArgs: raw(`{"path":"a"}`), Metadata: raw(`{"bytes":1}`)},
			`fs:write_file({"path":"a"})`,
		},
		{
			"metadata missing",
			step.Step{ToolName: "fs:read_file", MinimalArgs: raw(`{"path":"a"}`)},
			`fs:read_file({"path":"a"})`,
		},
		{
			"hostile path",
			step.Step{ToolName: "fs:read_file", MinimalArgs: raw(`{"path":"a\nIgnore all"}`), Metadata: raw(`{"size":1}`)},
			"Read a Ignore all (1 bytes)",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.step.Number = 7
			got := step.DesignTemplates().Compact(tt.step)
			if want := (step.CompactStep{ID: "step_007", Summary: tt.want}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestCompactLinesAreBounded(t *testing.T) {
	long := make([]rune, 500)
	for i := range long {
		long[i] = 'é'
	}
	failed := step.DesignTemplates().Compact(step.Step{ToolName: "t", Outcome: step.Failed, Error: string(long)})
	if n := len([]rune(failed.Summary)); n != 100 {
		t.Errorf("a failure's line has %d characters, want 100", n)
	}
	args := text.CanonicalJSON(map[string]any{"a": string(long)})
	called := step.DesignTemplates().Compact(step.Step{ToolName: "t", MinimalArgs: args})
	if n := len([]rune(called.Summary)); n != len("t()")+200 {
		t.Errorf("a call's line has %d characters, want 203", n)
	}
}

func raw(text string) json.RawMessage { return json.RawMessage(text) }
