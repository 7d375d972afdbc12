package main

import (
	"fmt"
	"strings"
	"testing"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// observe records a call that did its work, with its output as JSON.
func (f *promptFigures) observe(tool, args, output string) *loombridgev1.RecordStepResponse {
	f.tb.Helper()
	got, err := f.context.RecordStep(f.tb.Context(), &loombridgev1.RecordStepRequest{
		AgentId: f.agent, SessionId: "s", ToolName: tool, Success: true,
		ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: args},
		OutputForm:    &loombridgev1.RecordStepRequest_OutputJson{OutputJson: output},
	})
	must(f.tb, err)
	return got
}

// In the style `design` a read is a line of nothing but its size; its path is all that
// stays of the arguments.
//
// A08
func TestReadsInDesignStyle(t *testing.T) {
	t.Parallel()
	f := MustFigures(t, "--history-preset=design")
	for size, saved := range map[int]string{0: "", 5: "", 999: "", 1000: "read"} {
		got := f.observe("fs:read_file", `{"path":"a.txt","offset":3,"limit":9}`, fmt.Sprintf(`{"content":%q}`, strings.Repeat("x", size)))
		want := fmt.Sprintf("Read file (%d bytes)", size)
		if saved != "" {
			want = "Read completed. Results saved to " + got.GetOutputBlob().GetPath() + "\nUse fs:read_file to retrieve if needed."
		}
		step := got.GetStep()
		if got.GetObservation() != want || step.GetObservation() != fmt.Sprintf("Read file (%d bytes)", size) || (got.GetOutputBlob() != nil) != (saved != "") {
			t.Errorf("%d bytes: %q, want %q", size, got.GetObservation(), want)
		}
		if args := step.GetMinimalArgs().AsMap(); len(args) != 1 || args["path"] != "a.txt" {
			t.Errorf("arguments %v", args)
		}
	}
}

// Whatever was offloaded, its answer and its step in full say how to read it; lines of
// older steps and the short style leave that out.
//
// D09
func TestHintOfEverythingOffloaded(t *testing.T) {
	t.Parallel()
	const hint = "\nUse fs:read_file to retrieve if needed."
	long := strings.Repeat("a line of a result\n", 200)
	for preset, most := range map[string]int{"design": 6, "reduction": 7} {
		want := preset == "design"
		f := MustFigures(t, "--history-preset="+preset)
		offloaded := 0
		for i, call := range []struct{ tool, output string }{
			{"fs:read_file", fmt.Sprintf(`{"content":%q}`, long)},
			{"fs:read_file", `{"content":"short"}`},
			{"web:search", fmt.Sprintf(`{"results":[%q]}`, long)},
			{"fs:list_dir", `{"entries":["` + strings.Repeat(`a","`, 20) + `b"]}`},
			{"browser:navigate", fmt.Sprintf(`{"status":200,"text":%q}`, long)},
			{"system:shell", fmt.Sprintf(`{"stdout":%q,"exit_code":0}`, long)},
			{"system:shell", `{"stdout":"short","exit_code":0}`},
			{"system:shell", fmt.Sprintf(`{"stderr":%q,"exit_code":1}`, long)},
			{"db:query", fmt.Sprintf("%q", long)},
			{"db:query", `"short"`},
		} {
			got := f.observe(call.tool, fmt.Sprintf(`{"path":"p%d","query":"q","command":"c"}`, i), call.output)
			hinted := want && got.GetOutputBlob() != nil
			if strings.HasSuffix(got.GetObservation(), hint) != hinted {
				t.Errorf("%s, %s: %q", preset, call.tool, got.GetObservation())
			}
			full, _ := f.history(&loombridgev1.HistorySettings{Preset: preset, Literal: new(true)})
			last := full[strings.LastIndex(full, "Action: "):]
			if strings.Contains(last, hint) != hinted {
				t.Errorf("%s, %s: the step in full is %q", preset, call.tool, last)
			}
			older, _, _ := strings.Cut(full, "Recent steps:")
			if i > 5 && strings.Contains(older, strings.TrimSpace(hint)) {
				t.Errorf("%s: the hint stands in lines of older steps:\n%s", preset, older)
			}
			if got.GetOutputBlob() != nil {
				offloaded++
			}
		}
		if offloaded != most {
			t.Errorf("%s: %d results are offloaded, want %d", preset, offloaded, most)
		}
	}
}
