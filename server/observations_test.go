package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// What a client is told of the calls of every tool: one line, the arguments that
// stay, where the rest lies, and the figures.
//
// A01, A03, A07, A09, A11, A12, A13, A14, A15, A16, A17, A18, A19, A22, D02, D04, D09, N10, P01
func TestObservationsOfEveryTool(t *testing.T) {
	long := strings.Repeat("a line of words\n", 200) // 3,200 bytes
	entries := strings.TrimSuffix(strings.Repeat(`"f",`, 10), ",")
	const hint = "\nUse fs:read_file to retrieve if needed."
	for _, test := range []struct {
		tool, args, output, error string
		// observation is the text for the model, with %s for the step's number.
		observation, minimal, blob string
		figures                    map[string]any
	}{
		{
			tool: "fs:read_file", args: `{"path":"a.txt","x":1}`, output: fmt.Sprintf(`{"content":%q}`, strings.Repeat("x", 1024)),
			observation: "Read a.txt (1024 bytes, text)", minimal: `{"path":"a.txt"}`, figures: map[string]any{"size": 1024.0, "type": "text"},
		},
		{
			tool: "fs:read_file", args: `{"path":"A.JSON"}`, output: fmt.Sprintf(`{"content":%q}`, strings.Repeat("x", 1025)),
			observation: "Read A.JSON (1025 bytes, JSON). Saved to workspace/outputs/read_%s.json" + hint, minimal: `{"path":"A.JSON"}`, blob: "read_%s.json",
		},
		{
			tool: "fs:write_file", args: `{"path":"w.txt","content":"four"}`, output: `{"success":true,"bytes_written":4}`,
			observation: "Wrote w.txt (4 bytes)", minimal: `{"path":"w.txt"}`, figures: map[string]any{"bytes": 4.0},
		},
		{
			tool: "fs:list_dir", args: `{"path":"src"}`, output: `{"entries":["a/","b",{"name":"c","is_dir":true}]}`,
			observation: "Listed src: 3 items (1 files, 2 dirs)", minimal: `{"path":"src"}`, figures: map[string]any{"count": 3.0, "files": 1.0, "dirs": 2.0},
		},
		{
			tool: "fs:list_dir", args: `{"path":"src"}`, output: `{"entries":[` + entries + `,"g/"]}`,
			observation: "Listed src: 11 items (10 files, 1 dirs). Saved to workspace/outputs/list_%s.json" + hint, minimal: `{"path":"src"}`, blob: "list_%s.json",
		},
		{
			tool: "fs:list_dir", args: `{"path":"src"}`, output: `["a/","b"]`,
			observation: "Listed src: 2 items (1 files, 1 dirs)", minimal: `{"path":"src"}`,
		},
		{
			tool: "web:search", args: `{"query":"tides","count":8}`, output: `{"results":[` + strings.TrimSuffix(strings.Repeat(`{"title":"a title that is long enough"},`, 8), ",") + `]}`,
			observation: "Found 8 results for 'tides'. Saved to workspace/outputs/search_%s.json" + hint, minimal: `{"query":"tides"}`, blob: "search_%s.json",
		},
		{
			tool: "browser:navigate", args: `{"url":"https://x.y/z?q=1"}`, output: fmt.Sprintf(`{"status":200,"text":%q,"links":["l"]}`, strings.Repeat("x", 50<<10)),
			observation: "Visited x.y/z?q=1 (status=200, 50KB text). Saved to workspace/outputs/page_%s.json" + hint, minimal: `{"url":"https://x.y/z?q=1"}`, blob: "page_%s.json",
		},
		{
			tool: "system:shell", args: `{"command":"git","args":["log","-3"]}`, output: fmt.Sprintf(`{"stdout":%q,"stderr":"","exit_code":0}`, strings.Repeat("a commit\n", 20)),
			observation: "git log: exit 0, 20 lines output", minimal: `{"command":"git log -3"}`, figures: map[string]any{"exit_code": 0.0, "lines": 20.0, "stdout_bytes": 180.0, "stderr_bytes": 0.0},
		},
		{
			tool: "system:shell", args: `{"command":"make all"}`, output: fmt.Sprintf(`{"stdout":%q,"stderr":"warn","exit_code":0}`, long),
			observation: "make all: exit 0, 201 lines output. Saved to workspace/outputs/shell_%s.log" + hint, minimal: `{"command":"make all"}`, blob: "shell_%s.log",
			figures: map[string]any{"stdout_bytes": 3200.0, "stderr_bytes": 4.0},
		},
		{
			tool: "system:shell", args: `{"command":"cat x"}`, output: `{"stdout":"","stderr":"cat: x: No such file","exit_code":1}`,
			observation: "cat x: exit 1, 1 lines output\ncat: x: No such file", minimal: `{"command":"cat x"}`,
		},
		{
			tool: "weather:get", args: `{"location":"Oslo","unit":"C"}`, output: `{"t":3}`,
			observation: `weather:get → {"t": 3}`, minimal: `{"location":"Oslo"}`,
		},
		{
			tool: "my:tool", args: `{"s":"` + strings.Repeat("é", 101) + `","l":[1,2],"o":{"k":1}}`, output: `{"b":1.0,"a":"z"}`,
			observation: `my:tool → {"a": "z", "b": 1}`, minimal: `{"l":"[2 items]","o":"{1 keys}","s":"` + strings.Repeat("é", 100) + `..."}`,
		},
		{tool: "my:tool", args: `{}`, output: `{}`, observation: "my:tool completed", minimal: `{}`},
		{tool: "my:tool", args: `{}`, error: "no\nroute", observation: "my:tool failed: no route", minimal: `{}`},
		{
			tool: "my:tool", args: `{}`, output: fmt.Sprintf("%q", long),
			observation: "my:tool → " + strings.TrimSpace(strings.Repeat("a line of words ", 13)[:200]) + "... Saved", minimal: `{}`, blob: "tool_%s.json",
		},
	} {
		s := servertest.Start(t, nil)
		r := &loombridgev1.RecordStepRequest{
			AgentId: agent, ToolName: test.tool, Success: test.error == "", ErrorMessage: test.error,
			ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: test.args},
		}
		if test.output != "" {
			r.OutputForm = &loombridgev1.RecordStepRequest_OutputJson{OutputJson: test.output}
		}
		got, err := s.Context.RecordStep(t.Context(), r)
		must(t, err)
		step := got.GetStep()
		want := strings.ReplaceAll(test.observation, "%s", "001")
		if got.GetObservation() != want && !strings.HasPrefix(got.GetObservation(), strings.TrimSuffix(want, " Saved")+". Saved to workspace/outputs/") {
			t.Errorf("%s: %q, want %q", test.tool, got.GetObservation(), want)
		}
		listed, err := s.Context.GetStep(convert.AskText(t.Context()), &loombridgev1.GetStepRequest{AgentId: agent, StepId: step.GetId()})
		must(t, err)
		if listed.GetMinimalArgsJson() != test.minimal {
			t.Errorf("%s: arguments %s, want %s", test.tool, listed.GetMinimalArgsJson(), test.minimal)
		}
		path := ""
		if test.blob != "" {
			path = "workspace/outputs/" + strings.ReplaceAll(test.blob, "%s", "001")
		}
		if step.GetOutcomePath() != path || got.GetOutputBlob().GetPath() != path || got.GetOutputBlob().GetRef() != step.GetOutcomeRef() {
			t.Errorf("%s: blob %v, want %s", test.tool, got.GetOutputBlob(), path)
		}
		figures := step.GetMetadata().AsMap()
		for name, figure := range test.figures {
			if figures[name] != figure {
				t.Errorf("%s: %s is %v, want %v", test.tool, name, figures[name], figure)
			}
		}
	}
}
