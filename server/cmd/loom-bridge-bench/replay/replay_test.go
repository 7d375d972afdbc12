package replay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/replay"
)

// words counts a word as a token.
func words(text string) int { return len(strings.Fields(text)) }

// MustRead reads runs that are well formed.
func MustRead(tb testing.TB, text string) []replay.Run {
	tb.Helper()
	runs, err := replay.Read(strings.NewReader(text))
	if err != nil {
		tb.Fatal(err)
	}
	return runs
}

// MustRun measures policies.
func MustRun(tb testing.TB, runs []replay.Run, policies ...replay.Policy) []replay.Measured {
	tb.Helper()
	return MustMeasure(tb, words, runs, policies...)
}

// MustMeasure measures policies with a counter.
func MustMeasure(tb testing.TB, count func(string) int, runs []replay.Run, policies ...replay.Policy) []replay.Measured {
	tb.Helper()
	b := replay.Bench{Count: count}
	rows, err := b.Run(tb.Context(), runs, policies)
	if err != nil {
		tb.Fatal(err)
	}
	return rows
}

const openAI = `{"id": "r1", "messages": [
{"role": "system", "content": "be good"},
{"role": "user", "content": [{"type": "text", "text": "fix it"}]},
{"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "bash", "arguments": "{\"command\": \"ls\"}"}}, {"id": "b", "type": "function", "function": {"name": "bash", "arguments": "{}"}}]},
{"role": "tool", "tool_call_id": "b", "content": "second"},
{"role": "tool", "tool_call_id": "a", "content": "cut", "raw_output": "whole", "returncode": 2},
{"role": "assistant", "content": "done"},
{"role": "exit", "content": ""}]}`

const anthropic = `{"system": [{"type": "text", "text": "be good"}], "messages": [
{"role": "user", "content": "fix it"},
{"role": "assistant", "content": [{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "a", "name": "bash", "input": {"command": "ls"}}]},
{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "is_error": true, "content": [{"type": "text", "text": "denied"}]}, {"type": "text", "text": "go on"}]}]}`

const observed = `{"messages": [
{"role": "user", "content": "task"},
{"role": "assistant", "content": "I list.\n` + "```" + `\nls\n` + "```" + `"},
{"role": "user", "content": "a.py"},
{"role": "assistant", "content": "<command>\ncat a.py\n</command>"},
{"role": "user", "content": "pass"},
{"role": "assistant", "content": "Action: look"},
{"role": "user", "content": "nothing"},
{"role": "assistant", "content": "What now?"},
{"role": "user", "content": "stop"}]}`

func oneLine(text string) string { return strings.ReplaceAll(text, "\n", " ") + "\n" }

func TestRead(t *testing.T) {
	// The fence keeps its line feeds, which are escapes in the JSON text.
	runs := MustRead(t, oneLine(openAI)+"\n"+oneLine(anthropic)+oneLine(observed))
	var got []string
	for _, r := range runs {
		for _, e := range r.Entries {
			text := fmt.Sprintf("%s: %d %s %q", r.ID, e.Kind, e.Ref, e.Text)
			for _, c := range e.Calls {
				text += " " + c.ID + "=" + c.Name + c.Args
			}
			if e.Kind == history.Result {
				text += fmt.Sprintf(" %s gave %q shown %q failed %v", e.CallID, e.Output, e.Shown, e.Failed)
			}
			if e.Exit != nil {
				text += fmt.Sprint(" exit ", *e.Exit)
			}
			got = append(got, text)
		}
	}
	want := []string{
		`r1: 0 message 1 "be good"`,
		`r1: 0 message 2 "fix it"`,
		`r1: 1 001 "" a=bash{"command": "ls"} b=bash{}`,
		`r1: 2 002 "" b gave "second" shown "" failed false`,
		`r1: 2 001 "" a gave "whole" shown "<returncode>2</returncode>\n<output>\nwhole</output>" failed false exit 2`,
		`r1: 1 003 "done"`,
		`r1: 0 message 7 ""`,
		`line 3: 0 message 1 "be good"`,
		`line 3: 0 message 2 "fix it"`,
		`line 3: 1 001 "I look." a=bash{"command": "ls"}`,
		`line 3: 2 001 "" a gave "denied" shown "" failed true`,
		`line 3: 0 message 5 "go on"`,
		`line 4: 0 message 1 "task"`,
		"line 4: 1 001 \"I list.\\n```\\nls\\n```\"",
		`line 4: 2 001 ""  gave "a.py" shown "" failed false`,
		"line 4: 1 002 \"<command>\\ncat a.py\\n</command>\"",
		`line 4: 2 002 ""  gave "pass" shown "" failed false`,
		`line 4: 1 003 "Action: look"`,
		`line 4: 2 003 ""  gave "nothing" shown "" failed false`,
		`line 4: 1 004 "What now?"`,
		`line 4: 0 message 9 "stop"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, text := range []string{"{", "[]", `{"id": "x"}`, `{"messages": 3}`, "text"} {
		if _, err := replay.Read(strings.NewReader(text)); !errors.Is(err, replay.ErrFormat) {
			t.Errorf("%s: error %v", text, err)
		}
	}
	if runs := MustRead(t, " \n\n"); len(runs) != 0 {
		t.Errorf("%d runs in an empty file", len(runs))
	}
}

// fixed is a policy with given views, one for each request.
type fixed struct {
	views []replay.Sent
	next  int
}

func (f *fixed) Name() string                                       { return "fixed" }
func (f *fixed) Start(*replay.Run, func(string) int) replay.Session { return f }

func (f *fixed) View(int) (replay.Sent, error) {
	if f.next == len(f.views) {
		return replay.Sent{}, errors.New("no view")
	}
	f.next++
	return f.views[f.next-1], nil
}

// A run of three requests, reckoned by hand: the second keeps the first's
// prompt, the third breaks it.
func TestMeasures(t *testing.T) {
	runs := MustRead(t, oneLine(`{"messages": [
		{"role": "user", "content": "see src/app.go"},
		{"role": "assistant", "content": "", "tool_calls": [{"id": "a", "function": {"name": "cat", "arguments": "src/app.go"}}]},
		{"role": "tool", "tool_call_id": "a", "content": "lib/util.go took 3.5s here parse_date", "returncode": 1},
		{"role": "assistant", "content": "", "tool_calls": [{"id": "b", "function": {"name": "cat", "arguments": "lib/util.go parse_date"}}]},
		{"role": "tool", "tool_call_id": "b", "content": "error: lib/none.go not found", "returncode": 1},
		{"role": "assistant", "content": "", "tool_calls": [{"id": "c", "function": {"name": "cat", "arguments": "lib/none.go src/app.go"}}]}]}`))
	piece := func(text string, n int) replay.PromptPart { return replay.PromptPart{Text: text, Tokens: n} }
	p := &fixed{views: []replay.Sent{
		{Pieces: []replay.PromptPart{piece("see src/app.go", 10)}, Folded: []bool{false}},
		{Pieces: []replay.PromptPart{piece("see src/app.go", 10), piece("lib/util.go", 20)}, Folded: []bool{false, true, true}},
		{Pieces: []replay.PromptPart{piece("see src/app.go", 10), piece("cat src/app.go: lib/util.go", 15)}, Folded: []bool{false, true, true, true, true}},
	}}
	rows := MustRun(t, runs, replay.AppendOnly(), p)

	// Append-only sends 6, 6+6+9 and 21+7+8 tokens: every prompt is a prefix.
	sent, cost := 6.0+21+36, 1.25*36+.1*(6+21)
	base := rows[0]
	if base.TokensRatio != 1 || base.CostRatio != 1 || base.BustsPerStep != 0 || base.PeakMax != 36 || base.IdentifiersVisible != 1 {
		t.Errorf("baseline %+v", base)
	}
	got := rows[1]
	want := replay.Measured{
		Policy: "fixed", Runs: 1, Steps: 3,
		TokensRatio:       (10 + 30 + 25) / sent,
		CostRatio:         (1.25*(10+20+15) + .1*(10+10)) / cost,
		WorstRunCostRatio: (1.25*(10+20+15) + .1*(10+10)) / cost,
		BustsPerStep:      1.0 / 3, StableShare: 20.0 / 65, PeakP50: 30, PeakMax: 30,
		// Needed are src/app.go, then lib/util.go and parse_date, then lib/none.go
		// and src/app.go; parse_date and lib/none.go are not shown.
		IdentifiersVisible: 3.0 / 5, IdentifiersVisibleToolOnly: 1.0 / 3,
		// Two of three calls ask for one that only tools had told.
		Calls: 3, FaultRate: 2.0 / 3,
		// Of the folded calls only the first stands there; of lib/util.go and
		// lib/none.go the first; neither the figure nor the failure.
		Survival: map[string]replay.Share{"commands": .5, "paths": .5, "numbers": 0, "error_lines": 0},
		Sent:     10 + 30 + 25, Cost: 1.25*(10+20+15) + .1*(10+10),
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPolicyErrorIsReported(t *testing.T) {
	b := replay.Bench{Count: words}
	if _, err := b.Run(t.Context(), MustRead(t, oneLine(openAI)), []replay.Policy{&fixed{}}); err == nil || !strings.Contains(err.Error(), "fixed") {
		t.Errorf("error %v", err)
	}
}

// results is a run of n requests with a result of ten words each.
func results(tb testing.TB, n int) []replay.Run {
	tb.Helper()
	var b strings.Builder
	b.WriteString(`{"messages": [{"role": "user", "content": "go"}`)
	for i := range n {
		fmt.Fprintf(&b, `, {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "function": {"name": "get", "arguments": "item_%d"}}]}`, i)
		fmt.Fprintf(&b, `, {"role": "tool", "tool_call_id": "c", "content": "item_%d a b c d e f g h i%d"}`, i, i)
	}
	b.WriteString(`, {"role": "assistant", "content": "done"}]}`)
	return MustRead(tb, b.String())
}

func TestMasks(t *testing.T) {
	runs := results(t, 8)
	rows := MustRun(t, runs, replay.SlidingMask(3), replay.ClearToolUses(60, 2, 10), replay.ClearToolUses(1000, 2, 10), replay.ClearToolUses(60, 2, 1000))
	// Requests four to eight each mask one more result; the last has eight.
	if got, want := rows[0].BustsPerStep, 5.0/9; got != want {
		t.Errorf("sliding mask: %v busts a step, want %v", got, want)
	}
	if got := rows[1].BustsPerStep; got == 0 || got >= rows[0].BustsPerStep {
		t.Errorf("clearing over a trigger: %v busts a step", got)
	}
	for _, r := range rows[2:] {
		if r.BustsPerStep != 0 || r.TokensRatio != 1 {
			t.Errorf("clearing that never fires: %+v", r)
		}
	}
}

// The presets show what they fold as lines, sticky ones seldom anew.
func TestPresets(t *testing.T) {
	runs := results(t, 40)
	for _, p := range []struct {
		name   string
		preset history.Preset
	}{{"design", named("design")}, {"reduction", named("reduction")}} {
		rows := MustRun(t, runs, replay.Preset(p.name, p.preset, false, replay.Settings{}), replay.Preset(p.name, p.preset, true, replay.Settings{}))
		if rows[0].Policy != p.name+"_literal" || rows[1].Policy != p.name+"_sticky" {
			t.Errorf("policies %s and %s", rows[0].Policy, rows[1].Policy)
		}
		if rows[0].BustsPerStep < .8 || rows[1].BustsPerStep > .1 {
			t.Errorf("%s: %.2f busts a step taken literally, %.2f sticky", p.name, rows[0].BustsPerStep, rows[1].BustsPerStep)
		}
	}
}

func TestRowAsJSONAndTable(t *testing.T) {
	rows := MustRun(t, results(t, 3), replay.Policies(replay.Settings{Budget: replay.DefaultBudget})...)
	text, err := json.Marshal(rows[len(rows)-1])
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := json.Unmarshal(text, &keys); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		"policy", "runs", "steps", "tokens_ratio", "cost_ratio", "worst_run_cost_ratio", "busts_per_step", "stable_share",
		"peak_p50", "peak_max", "identifiers_visible", "identifiers_visible_tool_only", "survival",
		"calls", "fault_rate", "rehydrated_tokens", "repeat_rate",
	} {
		if _, ok := keys[key]; !ok {
			t.Errorf("no key %q in %s", key, text)
		}
		delete(keys, key)
	}
	if len(keys) > 0 {
		t.Errorf("more keys: %v", keys)
	}
	var table strings.Builder
	if err := replay.WriteTable(&table, rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if !strings.Contains(table.String(), "\n"+r.Policy+" ") {
			t.Errorf("no line for %s in\n%s", r.Policy, table.String())
		}
	}
}

// named is a preset that there is.
func named(name string) history.Preset {
	p, _ := history.Named(name)
	return p
}
