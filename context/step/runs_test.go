package step_test

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// recordedCall is one call of a recorded run, and what came of it.
type recordedCall struct {
	command, output string
	exit            int
}

// recordedCalls reads a file of recorded runs: one run a line, with messages.
func recordedCalls(t *testing.T, name string) []recordedCall {
	t.Helper()
	folder := os.Getenv("LOOM_EVAL_DATA")
	if folder == "" {
		t.Skip("needs recorded runs: set LOOM_EVAL_DATA to their folder")
	}
	file, err := os.Open(filepath.Join(folder, "trajectories", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 64<<20)
	var calls []recordedCall
	for lines.Scan() {
		calls = append(calls, callsOf(t, lines.Bytes())...)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return calls
}

func callsOf(t *testing.T, line []byte) []recordedCall {
	t.Helper()
	var run struct {
		Messages []struct {
			Role, Content string
			RawOutput     *string `json:"raw_output"`
			ReturnCode    int
			ToolCalls     []struct {
				Function struct{ Arguments string }
			} `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal(line, &run); err != nil {
		t.Fatal(err)
	}
	var calls []recordedCall
	var command string
	for _, m := range run.Messages {
		for _, c := range m.ToolCalls {
			var args struct{ Command string }
			if json.Unmarshal([]byte(c.Function.Arguments), &args) == nil {
				command = args.Command
			}
		}
		if m.Role == "tool" && m.RawOutput != nil {
			calls = append(calls, recordedCall{command, *m.RawOutput, m.ReturnCode})
		}
	}
	return calls
}

// On real runs, every line that says what went wrong is shown or in the
// evidence, everything long is offloaded as it came, and outputs of all sorts
// are recognized.
func TestRecordedRuns(t *testing.T) {
	calls := recordedCalls(t, "mini_swe_dev.jsonl")
	r := step.NewReducer(&step.Options{InlineBytes: 4 << 10})
	recognized, lost, wanted := map[string]int{}, 0, 0
	for _, c := range calls {
		output := map[string]any{"output": c.output, "returncode": c.exit}
		got := r.Reduce(step.Call{
			Tool: "bash", Args: map[string]any{"command": c.command}, Result: step.Result{Output: output},
		})
		whole := string(text.CanonicalJSON(output))
		if len(got.Evidence) > step.MaxEvidenceBytes || got.Offload != (len(whole) >= 1000) || got.Offload && string(got.OffloadBytes) != whole {
			t.Fatalf("%s: evidence of %d bytes, offload %t of %d", c.command, len(got.Evidence), got.Offload, len(c.output))
		}
		var figures map[string]any
		if err := json.Unmarshal(got.Metadata, &figures); err != nil {
			t.Fatal(err)
		}
		for name := range figures {
			recognized[name]++
		}
		for _, line := range wantedErrors(c.output) {
			wanted++
			if c.exit != 0 && !strings.Contains(got.Inline+"\n"+got.Evidence, line) {
				lost++
			}
		}
	}
	t.Logf("%d calls, %d lines that say what went wrong, %d lost", len(calls), wanted, lost)
	for _, name := range slices.Sorted(maps.Keys(recognized)) {
		t.Logf("%6d %s", recognized[name], name)
	}
	if float64(lost) > 0.001*float64(wanted) {
		t.Errorf("%d of %d lines are lost", lost, wanted)
	}
}
