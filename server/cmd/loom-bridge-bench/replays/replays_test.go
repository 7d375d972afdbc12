package replays

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// MustLog writes a log of recorded runs and returns its name. Each run has so
// many steps, whose results are text enough to fold.
func MustLog(tb testing.TB, runs, steps int) string {
	tb.Helper()
	var b strings.Builder
	for r := range runs {
		var messages []map[string]any
		add := func(m map[string]any) { messages = append(messages, m) }
		add(map[string]any{"role": "user", "content": "Look at every module."})
		for i := range steps {
			call := map[string]any{"id": "c", "type": "function", "function": map[string]any{"name": "bash", "arguments": fmt.Sprintf(`{"command": "cat mod_%d.py"}`, i)}}
			add(map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{call}})
			add(map[string]any{"role": "tool", "tool_call_id": "c", "content": module(r, i)})
		}
		add(map[string]any{"role": "exit", "content": ""})
		line, err := json.Marshal(map[string]any{"id": fmt.Sprint("run-", r), "messages": messages})
		must(tb, err)
		b.Write(append(line, '\n'))
	}
	name := filepath.Join(tb.TempDir(), "runs.jsonl")
	must(tb, os.WriteFile(name, []byte(b.String()), 0o600))
	return name
}

func module(run, i int) string {
	var b strings.Builder
	for line := range 40 {
		fmt.Fprintf(&b, "def function_%d_%d_%d(value): return value + %d\n", run, i, line, line*i)
	}
	return b.String()
}

// replayed runs the sub-command and returns what it printed.
func replayed(tb testing.TB, args ...string) (stdout, stderr string, err error) {
	tb.Helper()
	var out, log bytes.Buffer
	command := Command(&out, &log)
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetOut(&out)
	command.SetErr(&log)
	command.SetArgs(args)
	err = command.ExecuteContext(tb.Context())
	return out.String(), log.String(), err
}

// The keys that others read, and no more.
var benchKeys = []string{
	"busts_per_step", "calls", "cost_ratio", "fault_rate", "identifiers_visible", "identifiers_visible_tool_only", "peak_max", "peak_p50",
	"policy", "rehydrated_tokens", "repeat_rate", "runs", "stable_share", "steps", "survival", "tokens_ratio", "worst_run_cost_ratio",
}

func TestReplayJSON(t *testing.T) {
	log := MustLog(t, 1, 60)
	out, _, err := replayed(t, "--json", log, log)
	must(t, err)
	rows := make(map[string]map[string]any)
	var names []string
	for line := range strings.Lines(out) {
		var row map[string]any
		must(t, json.Unmarshal([]byte(line), &row))
		if diff := cmp.Diff(benchKeys, slices.Sorted(maps.Keys(row))); diff != "" {
			t.Error(diff)
		}
		names = append(names, row["policy"].(string))
		rows[names[len(names)-1]] = row
	}
	want := []string{
		"append_only", "dedupe", "sliding_mask", "clear_tool_uses",
		"design_literal", "design_sticky", "reduction_literal", "reduction_sticky", "ledger", "ledger_rehydrated",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	base, ledger := rows["append_only"], rows["ledger"]
	if base["calls"] != 120.0 || base["fault_rate"] != 0.0 || base["rehydrated_tokens"] != 0.0 || ledger["rehydrated_tokens"] != 0.0 {
		t.Errorf("faults %v and %v", base, ledger)
	}
	if base["runs"] != 2.0 || base["steps"] != 120.0 || base["cost_ratio"] != 1.0 || base["busts_per_step"] != 0.0 {
		t.Errorf("baseline %v", base)
	}
	if ledger["cost_ratio"].(float64) >= .9 || ledger["tokens_ratio"].(float64) >= .8 || ledger["busts_per_step"] == 0.0 {
		t.Errorf("the ledger gains little: %v", ledger)
	}
	if _, ok := ledger["survival"].(map[string]any)["commands"].(float64); !ok {
		t.Errorf("survival %v", ledger["survival"])
	}
}

func TestReplaySettings(t *testing.T) {
	log := MustLog(t, 1, 20)
	figure := func(args ...string) float64 {
		out, _, err := replayed(t, append(args, "--json", "--policy", "sliding_mask:3", log)...)
		must(t, err)
		var row struct {
			Cost float64 `json:"cost_ratio"`
		}
		must(t, json.Unmarshal([]byte(out), &row))
		return row.Cost
	}
	usual, named := figure(), figure("--prices", "0.1,1.25,1")
	if math.Abs(usual-named) > 1e-9 {
		t.Errorf("default prices are others than documented: %v, %v", usual, named)
	}
	if same := figure("--prices", "1,1,1"); same >= 1 {
		t.Errorf("without a cache, less text costs less: %v", same)
	}
	if of := figure("--model", "gpt-4.1"); math.Abs(of-figure("--prices", "0.25,1,1")) > 1e-9 {
		t.Errorf("prices of the model are not those of the table: %v", of)
	}
	out, _, err := replayed(t, "--policy", "ledger, append_only", "--policy", "code", log)
	must(t, err)
	for _, want := range []string{"1 runs, 20 steps", "o200k_base", "cached 0.1, written 1.25, sent 1", "budget of the ledger 32000", "\nledger ", "\nappend_only ", "\ncode_sticky "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestReplaySaysWhatDoesNotFit(t *testing.T) {
	out, log, err := replayed(t, "--policy", "ledger", "--budget", "10", "--json", MustLog(t, 1, 3))
	must(t, err)
	if !strings.Contains(log, "do not fit into 10 tokens") || strings.Count(out, "\n") != 1 {
		t.Errorf("stderr %q, stdout %q", log, out)
	}
}

func TestReplayErrors(t *testing.T) {
	good, dir := MustLog(t, 1, 1), t.TempDir()
	bad, empty := filepath.Join(dir, "bad.jsonl"), filepath.Join(dir, "empty")
	must(t, os.WriteFile(bad, []byte("{\"messages\": [{\"role\": \"user\"}]}\n{\"text\": 1}\n"), 0o600))
	must(t, os.WriteFile(empty, nil, 0o600))
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "at least one file"},
		{[]string{good, bad}, bad + ":2: an object without messages"},
		{[]string{empty}, empty + ": no recorded run"},
		{[]string{filepath.Join(dir, "none")}, "no such file"},
		{[]string{dir}, "is a directory"},
		{[]string{"--policy", "legder", good}, `nearest is "ledger"`},
		{[]string{"--budget", "-1", good}, "must not be negative"},
		{[]string{"--prices", "1,2", good}, "must be three"},
		{[]string{"--prices", "0.1,1,0", good}, "above 0"},
		{[]string{"--prices", "0.1,-1,1", good}, `"-1" is no price`},
		{[]string{"--prices", "0.1,NaN,1", good}, "no price"},
		{[]string{"--model", "nobody-knows", good}, "prices are not known"},
		{[]string{"--models", filepath.Join(dir, "none"), good}, "no such file"},
	} {
		if out, _, err := replayed(t, test.args...); err == nil || !strings.Contains(err.Error(), test.want) || out != "" {
			t.Errorf("%v: error %v, printed %q", test.args, err, out)
		}
	}
}

func TestReplayReadsStandardInput(t *testing.T) {
	text, err := os.ReadFile(MustLog(t, 1, 2))
	must(t, err)
	runs, err := readRuns([]string{"-"}, bytes.NewReader(text))
	must(t, err)
	if len(runs) != 1 || runs[0].Steps() != 2 {
		t.Errorf("%d runs", len(runs))
	}
}

func TestReplayHelp(t *testing.T) {
	out, _, err := replayed(t, "--help")
	must(t, err)
	for _, want := range append(slices.Clone(benchKeys[:1]), "raw_output", "--policy", "--budget", "--prices", "--model", "--json", "append_only", "ledger", "bench context runs.jsonl") {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in the help", want)
		}
	}
}

// A text too long for the counter is counted in parts.
func TestCountLong(t *testing.T) {
	m, err := replaySettings{}.meter()
	must(t, err)
	line := strings.Repeat("word ", 1000) + "\n"
	part := strings.Repeat(line, 10)
	if got, want := m.count(strings.Repeat(part, 100)), 100*m.count(part); math.Abs(float64(got-want)) > 5 {
		t.Errorf("%d tokens, in parts %d", got, want)
	}
}

// MustTextLog writes a log of a run without tool calls, whose assistant says what
// said makes of each step.
func MustTextLog(tb testing.TB, steps int, said func(i int) string) string {
	tb.Helper()
	messages := []map[string]any{{"role": "user", "content": "Look at every module."}}
	for i := range steps {
		messages = append(messages,
			map[string]any{"role": "assistant", "content": said(i)},
			map[string]any{"role": "user", "content": module(0, i)},
		)
	}
	messages = append(messages, map[string]any{"role": "assistant", "content": said(0)})
	line, err := json.Marshal(map[string]any{"id": "text", "messages": messages})
	must(tb, err)
	name := filepath.Join(tb.TempDir(), "text.jsonl")
	must(tb, os.WriteFile(name, line, 0o600))
	return name
}

// A run whose actions are text is measured like one with calls: what its actions
// name was shown or not, and presets fold its steps.
func TestReplayOfTextActions(t *testing.T) {
	for name, said := range map[string]func(i int) string{
		"fence": func(i int) string { return fmt.Sprintf("I look.\n\n```bash\ngrep function_0_%d_7 mod.py\n```", i-1) },
		"action": func(i int) string {
			return fmt.Sprintf("Thought: I look.\nAction: {\"tool\": \"grep\", \"args\": {\"for\": \"function_0_%d_7\"}}", i-1)
		},
		"input": func(i int) string {
			return fmt.Sprintf("Thought: I look.\nAction: grep\nAction Input: function_0_%d_7", i-1)
		},
		"tag": func(i int) string {
			return fmt.Sprintf("I look.\n<command>\ngrep function_0_%d_7 mod.py\n</command>", i-1)
		},
	} {
		out, log, err := replayed(t, "--json", "--policy", "append_only,design_literal", MustTextLog(t, 30, said))
		must(t, err)
		if log != "" {
			t.Errorf("%s: %s", name, log)
		}
		var rows []map[string]any
		for line := range strings.Lines(out) {
			var row map[string]any
			must(t, json.Unmarshal([]byte(line), &row))
			rows = append(rows, row)
		}
		base, preset := rows[0], rows[1]
		if base["identifiers_visible"] != 1.0 || base["survival"].(map[string]any)["commands"] != nil {
			t.Errorf("%s: baseline %v", name, base)
		}
		// The last three results stand in the prompt of a preset that hides nothing short.
		if preset["tokens_ratio"].(float64) > .6 || preset["identifiers_visible"].(float64) > 1 || preset["survival"].(map[string]any)["commands"] == nil {
			t.Errorf("%s: the preset folds nothing: %v", name, preset)
		}
	}
}

// Where nothing can be measured, nothing is claimed: neither a share of 1 nor that
// a preset folds.
func TestReplayOfNothing(t *testing.T) {
	log := MustTextLog(t, 20, func(i int) string { return fmt.Sprint("I think about part ", i) })
	out, told, err := replayed(t, "--policy", "append_only,reduction_literal", log)
	must(t, err)
	if strings.Contains(out, "1.0000         paths") || !strings.Contains(out, "nothing to measure") {
		t.Errorf("the table claims figures:\n%s", out)
	}
	if want := "1 of 1 runs have no tool calls, and in under three quarters of their answers an action that is known: presets fold nothing there, and no identifiers are measured"; !strings.Contains(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	out, _, err = replayed(t, "--json", "--policy", "ledger", log)
	must(t, err)
	var row map[string]any
	must(t, json.Unmarshal([]byte(out), &row))
	if diff := cmp.Diff(benchKeys, slices.Sorted(maps.Keys(row))); diff != "" || row["identifiers_visible"] != nil || row["identifiers_visible_tool_only"] != nil {
		t.Errorf("%v\n%s", row, diff)
	}
}
