package main

import (
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// promptFigures is a session of a server that was started with some flags.
type promptFigures struct {
	tb      testing.TB
	context contexts.Client
	agent   string
	tokens  func(text string) int
}

func MustFigures(tb testing.TB, args ...string) *promptFigures {
	tb.Helper()
	p := MustRun(tb, tb.TempDir(), args...)
	f := &promptFigures{tb: tb, context: contexts.New(p.conn), agent: "a"}
	f.tokens = func(text string) int {
		got, err := f.context.CountTokens(tb.Context(), &loombridgev1.CountTokensRequest{AgentId: "a", Text: text, Model: "gpt-4o"})
		must(tb, err)
		return int(got.GetTokens())
	}
	return f
}

// record records a call with its result, and returns what was observed.
func (f *promptFigures) record(tool, thought string, args, output map[string]any) string {
	f.tb.Helper()
	argsJSON, _ := json.Marshal(args)
	outputJSON, _ := json.Marshal(output)
	got, err := f.context.RecordStep(f.tb.Context(), &loombridgev1.RecordStepRequest{
		AgentId: f.agent, SessionId: "s", ToolName: tool, Thought: thought, Success: true,
		ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: string(argsJSON)},
		OutputForm:    &loombridgev1.RecordStepRequest_OutputJson{OutputJson: string(outputJSON)},
	})
	must(f.tb, err)
	return got.GetObservation()
}

// history is the history of the session's prompt, and its size. Settings lift the
// budget.
func (f *promptFigures) history(settings *loombridgev1.HistorySettings) (text string, tokens int) {
	f.tb.Helper()
	request := &loombridgev1.AssembleRequest{AgentId: f.agent, SessionId: "s", WithoutTools: true, History: settings}
	if settings != nil {
		request.MaxTokens = 100_000
	}
	prompt, err := f.context.Assemble(f.tb.Context(), request)
	must(f.tb, err)
	var b strings.Builder
	for _, m := range prompt.GetMessages() {
		b.WriteString(m.GetContent() + "\n")
	}
	return b.String(), int(prompt.GetParts()["history"])
}

func appendOnly() *loombridgev1.HistorySettings {
	return &loombridgev1.HistorySettings{Policy: loombridgev1.HistoryPolicy_HISTORY_POLICY_APPEND_ONLY}
}

// prose is about n bytes of text in lines, which names what it is of.
func prose(name string, n int) string {
	line := "the parser of " + name + " reads dates from a table of formats and returns what it finds\n"
	return strings.Repeat(line, n/len(line)+1)
}

// found are n hits of a search.
func found(name string, n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = map[string]any{
			"title": fmt.Sprintf("%s, part %d", name, i), "url": fmt.Sprintf("https://example.org/%s/%d", name, i), "snippet": prose(name, 160),
		}
	}
	return list
}

// work records n steps of a day's work with their results: files that are read and
// written, searches, pages, listings, commands, and a tool that nobody knows.
func (f *promptFigures) work(n int) {
	f.tb.Helper()
	entries := make([]any, 40)
	for i := range entries {
		entries[i] = fmt.Sprintf("file_%d.py", i)
	}
	for i := range n {
		name := fmt.Sprintf("module_%d", i)
		switch thought := fmt.Sprintf("I go on with %s.", name); i % 8 {
		case 0, 4:
			f.record("fs:read_file", thought, map[string]any{"path": "src/" + name + ".py"}, map[string]any{"content": prose(name, 2048)})
		case 1:
			f.record("web:search", thought, map[string]any{"query": "dates in " + name, "count": 8}, map[string]any{"results": found(name, 8)})
		case 2:
			f.record("browser:navigate", thought, map[string]any{"url": "https://example.org/" + name}, map[string]any{"status": 200, "text": prose(name, 6000), "links": []any{"https://example.org"}})
		case 3:
			f.record("fs:list_dir", thought, map[string]any{"path": "src/" + name}, map[string]any{"entries": entries})
		case 5:
			f.record("system:shell", thought, map[string]any{"command": "pytest -q tests/test_" + name + ".py"}, map[string]any{"stdout": prose(name, 3000), "stderr": "", "exit_code": 0})
		case 6:
			f.record("fs:write_file", thought, map[string]any{"path": "src/" + name + ".py", "content": prose(name, 4000)}, map[string]any{"bytes_written": 4000})
		case 7:
			f.record("db:query", thought, map[string]any{"table": name}, map[string]any{"rows": prose(name, 2000) + "END-OF-ROWS"})
		}
	}
}

// What histories take under the presets, on a server that was started with their
// flags, of steps with results. The results themselves stand nowhere.
//
// A20, B17, B18, Q02, Q06
func TestTokensOfPresets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		args         []string
		steps, limit int
		literal      bool
	}{
		{"ten steps, design", []string{"--history-preset=design"}, 10, 1500, true},
		{"ten steps, design, in batches", []string{"--history-preset=design"}, 10, 1500, false},
		{"twenty steps, reduction", []string{"--history-preset=reduction"}, 20, 800, true},
	} {
		f := MustFigures(t, tt.args...)
		f.work(tt.steps)
		text, got := f.history(&loombridgev1.HistorySettings{Literal: &tt.literal})
		whole, before := f.history(appendOnly())
		t.Logf("%s: %d tokens of %d, limit %d", tt.name, got, before, tt.limit)
		if got > tt.limit || got == 0 {
			t.Errorf("%s: %d tokens, limit %d:\n%s", tt.name, got, tt.limit, text)
		}
		if n := strings.Count(text, "reads dates from a table"); n > 6 || strings.Count(whole, "reads dates from a table") < 100 {
			t.Errorf("%s: results are hidden where they should not, or not where they should:\n%s", tt.name, text)
		}
		if 10*got > 3*before {
			t.Errorf("%s: %d tokens of %d", tt.name, got, before)
		}
	}
}

// A preset of the session hides what that of a server hides, though the ledger
// showed it before, and shows files that were read as long as they are recent.
//
// A10, A12, A13, A14, A15, A18, K11, X05
func TestPresetsHideResults(t *testing.T) {
	t.Parallel()
	f := MustFigures(t)
	f.record("fs:list_dir", "", map[string]any{"path": "few"}, map[string]any{"entries": []any{"a.py", "b.py"}})
	f.record("system:shell", "", map[string]any{"command": "ls few"}, map[string]any{"stdout": "SHORT-OUTPUT\n", "stderr": "", "exit_code": 0})
	f.work(8)
	shown := map[string]string{
		"fs:read_file": "the parser of module_4 reads", "web:search": `"title": "module_1, part 0"`, "browser:navigate": "the parser of module_2 reads",
		"fs:list_dir": "file_39.py", "system:shell": "the parser of module_5 reads", "db:query": "END-OF-ROWS",
		"a short list": "b.py", "a short output": "SHORT-OUTPUT",
	}
	keep := map[string]map[string]bool{
		"":          {"fs:read_file": true, "web:search": true, "browser:navigate": true, "fs:list_dir": true, "system:shell": true, "db:query": true, "a short list": true, "a short output": true},
		"reduction": {"fs:read_file": true, "a short list": true, "a short output": true},
		"design":    {"a short list": true, "a short output": true},
		"chat":      {}, // observations alone
	}
	for _, preset := range []string{"", "reduction", "design", "chat", ""} {
		// What is cached costs nothing, so that all steps stay in full.
		settings := &loombridgev1.HistorySettings{Preset: preset, Prices: &loombridgev1.TokenPrices{Input: 1}}
		if preset == "" {
			settings = appendOnly()
		}
		text, _ := f.history(settings)
		for what, result := range shown {
			if got := strings.Contains(text, result); got != keep[preset][what] {
				t.Errorf("%q: the result of %s is shown: %v", preset, what, got)
			}
		}
	}
}

// Five reads of 2 KB are at most 200 tokens as they are observed, ten searches at
// most 300.
//
// A20, Q04, Q05
func TestTokensOfObservations(t *testing.T) {
	t.Parallel()
	f := MustFigures(t, "--history-preset=reduction")
	reads, searches := 0, 0
	for i := range 5 {
		reads += f.tokens(f.record("fs:read_file", "", map[string]any{"path": fmt.Sprintf("src/config_%d.json", i)}, map[string]any{"content": prose(fmt.Sprint(i), 2048)}))
	}
	for i := range 10 {
		query := []string{"rust async runtime comparison", "postgres partial index", "go generics constraints"}[i%3]
		f.record("web:search", "", map[string]any{"query": query}, map[string]any{"results": found(fmt.Sprint(i), 8)})
	}
	steps, err := f.context.ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: "a", SessionId: "s", PageSize: 50})
	must(t, err)
	for _, s := range steps.GetSteps()[5:] {
		searches += f.tokens(s.GetObservation() + ". Saved to " + s.GetOutcomePath())
	}
	t.Logf("%d tokens of reads, %d of searches", reads, searches)
	if reads > 200 || searches > 300 || searches == 0 {
		t.Errorf("%d tokens of five reads, %d of ten searches", reads, searches)
	}
}

// The worked example: two searches, a page, a file that was written, and a thought.
// Its results take some 1,500 tokens, its history 400.
//
// B16, Q11
func TestTokensOfTheWorkedExample(t *testing.T) {
	t.Parallel()
	for keep, lines := range map[string][]string{
		"3": {"• Searched 'Bitcoin price' → 10 results", "• Visited coindesk.com/btc", "Step 3:\n"},
		"2": {"• Searched 'Bitcoin price' → 10 results", "• Visited coindesk.com/btc", "• Wrote analysis.md"},
	} {
		f := MustFigures(t, "--history-preset=reduction")
		f.record("web:search", "I need the price.", map[string]any{"query": "Bitcoin price"}, map[string]any{"results": found("bitcoin", 10)})
		f.record("browser:navigate", "I look at the source.", map[string]any{"url": "https://coindesk.com/btc"}, map[string]any{"status": 200, "text": prose("bitcoin", 5000)})
		f.record("fs:write_file", "I write it down.", map[string]any{"path": "analysis.md", "content": prose("bitcoin", 512)}, map[string]any{"bytes_written": 512})
		observed := f.record("web:search", "What do others say?", map[string]any{"query": "BTC prediction"}, map[string]any{"results": found("prediction", 8)})
		f.record("agent:think", "Prices will vary.", map[string]any{}, nil)
		if want := "Found 8 results. Saved to workspace/outputs/search_002.json"; observed != want {
			t.Errorf("observed %q, want %q", observed, want)
		}
		n, err := strconv.Atoi(keep)
		must(t, err)
		compacted, err := f.context.CompactHistory(t.Context(), &loombridgev1.CompactHistoryRequest{
			AgentId: f.agent, SessionId: "s", Style: loombridgev1.HistoryStyle_HISTORY_STYLE_REDUCTION, KeepRecent: int32(n), Model: "gpt-4o",
		})
		must(t, err)
		text, got := compacted.GetText(), compacted.GetTokens().GetTokens()
		for _, line := range lines {
			if !strings.Contains(text, line) {
				t.Errorf("keep %s: no %q in\n%s", keep, line, text)
			}
		}
		_, before := f.history(appendOnly())
		t.Logf("keep %s: %d tokens of %d", keep, got, before)
		if got > 400 {
			t.Errorf("keep %s: %d tokens:\n%s", keep, got, text)
		}
	}
	// As it is, five steps are not too many, and all of them stand there in full.
	f := MustFigures(t, "--history-preset=reduction")
	f.record("web:search", "I need the price.", map[string]any{"query": "Bitcoin price"}, map[string]any{"results": found("bitcoin", 10)})
	f.record("browser:navigate", "I look at the source.", map[string]any{"url": "https://coindesk.com/btc"}, map[string]any{"status": 200, "text": prose("bitcoin", 5000)})
	f.record("fs:write_file", "I write it down.", map[string]any{"path": "analysis.md", "content": prose("bitcoin", 512)}, map[string]any{"bytes_written": 512})
	f.record("web:search", "What do others say?", map[string]any{"query": "BTC prediction"}, map[string]any{"results": found("prediction", 8)})
	f.record("agent:think", "Prices will vary.", map[string]any{}, nil)
	if text, got := f.history(nil); got > 400 || strings.Count(text, "Step ") != 5 {
		t.Errorf("%d tokens:\n%s", got, text)
	} else {
		t.Logf("all in full: %d tokens", got)
	}
}

// With the flag the longest result that CompressResult leaves as it is follows how
// full the window was at the session's last prompt; without it, it does not.
//
// J08, K49
func TestAdaptiveThreshold(t *testing.T) {
	t.Parallel()
	adaptive, fixed := MustFigures(t, "--compress-adaptive"), MustFigures(t)
	stays := func(f *promptFigures, session string, chars int) bool {
		content := fmt.Sprintf("%-*s", chars, `{"list":[`+strings.Repeat("1,", chars/2-6)+"1]}")
		got, err := f.context.CompressResult(t.Context(), &loombridgev1.CompressResultRequest{
			AgentId: "a", SessionId: session, ToolName: "my.tool", Content: content,
		})
		must(t, err)
		return !got.GetCompressed()
	}
	// longest is the longest that stays.
	longest := func(f *promptFigures, session string) int {
		const least = 100
		return least - 1 + sort.Search(4000, func(more int) bool { return !stays(f, session, least+more) })
	}
	fill := func(f *promptFigures, budget int32, dry bool) float64 {
		prompt, err := f.context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
			AgentId: "a", SessionId: "s", WithoutTools: true, System: strings.Repeat("word ", 1000), MaxTokens: budget, DryRun: dry,
		})
		must(t, err)
		return prompt.GetReceipt().GetPressure()
	}
	if got := longest(adaptive, "s"); got != 3000 {
		t.Errorf("before any prompt %d characters stay, want 3000", got)
	}
	for _, budget := range []int32{1010, 1100, 2000, 10_000, 100_000} {
		pressure := fill(adaptive, budget, false)
		fill(adaptive, 1<<20, true) // asks what would be, and says nothing of what is
		want := min(max(int(math.Round(3000*(1-pressure))), 500), 3000)
		if got := longest(adaptive, "s"); got != want {
			t.Errorf("at a pressure of %.2f %d characters stay, want %d", pressure, got, want)
		}
		if got := longest(adaptive, "another"); got != 3000 {
			t.Errorf("in a session without prompts %d characters stay", got)
		}
		if fill(fixed, budget, false); longest(fixed, "s") != 1500 {
			t.Errorf("without the flag %d characters stay", longest(fixed, "s"))
		}
	}
}
