package server_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// rows is a session whose history is asked for as text.
type rows struct {
	tb     testing.TB
	server *servertest.Server
}

func MustRows(tb testing.TB) rows {
	tb.Helper()
	return rows{tb, servertest.Start(tb, nil)}
}

// record records a call that did its work, or, with a problem, one that failed.
func (r rows) record(tool, args, output, problem string) {
	r.tb.Helper()
	request := &loombridgev1.RecordStepRequest{
		AgentId: agent, SessionId: "s", ToolName: tool, Success: problem == "", ErrorMessage: problem, Thought: "On to " + tool + ".",
		ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: args},
	}
	if problem == "" {
		request.OutputForm = &loombridgev1.RecordStepRequest_OutputJson{OutputJson: output}
	}
	_, err := r.server.Context.RecordStep(r.tb.Context(), request)
	must(r.tb, err)
}

// text is the history in a style, with so many of the newest in full.
func (r rows) text(style loombridgev1.HistoryStyle, keep int32) (text string, tokens int32) {
	r.tb.Helper()
	got, err := r.server.Context.CompactHistory(r.tb.Context(), &loombridgev1.CompactHistoryRequest{
		AgentId: agent, SessionId: "s", Style: style, KeepRecent: keep, Model: "gpt-4o",
	})
	must(r.tb, err)
	return got.GetText(), got.GetTokens().GetTokens()
}

const (
	design    = loombridgev1.HistoryStyle_HISTORY_STYLE_DESIGN
	reduction = loombridgev1.HistoryStyle_HISTORY_STYLE_REDUCTION
	grouped   = loombridgev1.HistoryStyle_HISTORY_STYLE_GROUPED
)

// work records one call of each tool that has a line of its own, and one of a tool
// that has none.
func (r rows) work() {
	r.record("fs:read_file", `{"path":"config.json"}`, fmt.Sprintf(`{"content":%q}`, strings.Repeat("x", 1229)), "")
	r.record("fs:write_file", `{"path":"out.md","content":"12345"}`, `{"bytes_written":5}`, "")
	r.record("fs:list_dir", `{"path":"src"}`, `{"entries":["a","b","c/"]}`, "")
	r.record("web:search", `{"query":"rust traits","count":9}`, `{"results":[1,2,3]}`, "")
	r.record("browser:navigate", `{"url":"https://a.example/x?y=1"}`, `{"status":200,"text":"hello"}`, "")
	r.record("system:shell", `{"command":"git","args":["log","-1"]}`, `{"stdout":"one\ntwo\n","exit_code":0}`, "")
	r.record("system:shell", `{"command":"make test"}`, `{"stdout":"","stderr":"no rule","exit_code":2}`, "")
	r.record("weather:get", `{"location":"Oslo"}`, `{"sky":"clear"}`, "")
	r.record("db:query", `{"sql":"select 1","limit":5,"columns":["a","b"],"more":{"k":1}}`, `{"rows":1}`, "")
	r.record("db:query", `{}`, "", "no such\ncolumn x")
	r.record("agent:think", `{"about":"`+strings.Repeat("long ", 60)+`"}`, `null`, "")
}

// Each tool has its line in both sets; one without a template is its name with its
// arguments, at most 200 characters of them; a failure says why.
//
// B02, B03, B04, B05, B06, B07
func TestLinesOfTools(t *testing.T) {
	r := MustRows(t)
	r.work()
	r.record("agent:think", `{}`, `{}`, "")
	lines := []string{
		"Read config.json (1.2KB)", "Wrote out.md (5 bytes)", "Listed src (3 items)", "Searched 'rust traits' → 3 results", "Visited a.example/x?y=1",
		"Ran `git log -1` → exit 0", "Ran `make test` → exit 2", "Checked weather for Oslo",
		`db:query({"columns":"[2 items]","limit":5,"more":"{1 keys}","sql":"select 1"})`, "✗ db:query failed: no such column x",
		`agent:think({"about":"` + strings.Repeat("long ", 20) + `..."})`,
	}
	got, tokens := r.text(design, 1)
	want := "Previous steps:\n  • " + strings.Join(lines, "\n  • ") + "\n\nRecent steps:\n" +
		"Step 12:\nThought: On to agent:think.\nAction: {\"tool\": \"agent:think\", \"args\": {}}\nObservation: agent:think completed"
	if got != want || tokens != 200 {
		t.Errorf("%d tokens:\n%s\nwant\n%s", tokens, got, want)
	}
	lines[1], lines[5], lines[6] = "Wrote out.md", "Ran `git log -1` (exit 0)", "Ran `make test` (exit 2)"
	got, tokens = r.text(reduction, 1)
	want = "Earlier steps:\n• " + strings.Join(lines, "\n• ") + "\n\nRecent steps:\n\n" +
		"Step 12:\nThought: On to agent:think.\nAction: {\"tool\": \"agent:think\", \"args\": {}}\nObservation: agent:think completed"
	if got != want || tokens != 186 {
		t.Errorf("%d tokens:\n%s\nwant\n%s", tokens, got, want)
	}
}

// A text can be asked of some steps, which are told in the order of the log, and the
// lines of earlier ones may take so many tokens; over that only their number stays.
//
// B06, B07
func TestTextOfSomeSteps(t *testing.T) {
	r := MustRows(t)
	r.work()
	ask := func(q *loombridgev1.CompactHistoryRequest) (*loombridgev1.CompactHistoryResponse, error) {
		q.AgentId, q.SessionId, q.Model = agent, cmp.Or(q.GetSessionId(), "s"), "gpt-4o"
		return r.server.Context.CompactHistory(t.Context(), q)
	}
	full := func(ids ...string) string {
		t.Helper()
		got, err := ask(&loombridgev1.CompactHistoryRequest{Style: design, KeepRecent: 3, StepIds: ids})
		must(t, err)
		return got.GetText()
	}
	two := full("step_005", "step_002")
	if !strings.HasPrefix(two, "Step 2:\n") || !strings.Contains(two, "\n\nStep 5:\n") || strings.Count(two, "Action:") != 2 {
		t.Errorf("two steps:\n%s", two)
	}
	if got, want := full("step_001", "step_002", "step_005", "step_008"), "Previous steps:\n  • Read config.json (1.2KB)\n\nRecent steps:\n"+two; !strings.HasPrefix(got, want) {
		t.Errorf("four steps:\n%s\nwant\n%s", got, want)
	}
	lines := "• Read config.json (1.2KB)\n• Wrote out.md"
	count, err := r.server.Context.CountTokens(t.Context(), &loombridgev1.CountTokensRequest{AgentId: agent, Text: "Earlier steps:\n" + lines})
	must(t, err)
	most := count.GetTokens()
	for budget, want := range map[int32]string{
		most - 1: "Earlier: 2 steps completed\n\n", most: "Earlier steps:\n" + lines + "\n\n", most + 1: "Earlier steps:\n" + lines + "\n\n",
	} {
		got, err := ask(&loombridgev1.CompactHistoryRequest{Style: reduction, KeepRecent: 1, MaxTokens: budget, StepIds: []string{"step_001", "step_002", "step_005"}})
		must(t, err)
		if !strings.HasPrefix(got.GetText(), want) {
			t.Errorf("at %d of %d tokens:\n%s", budget, most, got.GetText())
		}
	}
	_, err = ask(&loombridgev1.CompactHistoryRequest{Style: design, StepIds: []string{"step_001", "step_900"}})
	MustFail(t, err, codes.NotFound, "STEP_NOT_FOUND")
	_, err = ask(&loombridgev1.CompactHistoryRequest{SessionId: "other", Style: design, StepIds: []string{"step_001"}})
	MustFail(t, err, codes.NotFound, "STEP_NOT_FOUND")
	_, err = ask(&loombridgev1.CompactHistoryRequest{StepIds: []string{"step_1"}})
	if MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST"); !slices.Equal(fieldsOf(err), []string{"step_ids[0]", "step_ids"}) {
		t.Errorf("fields = %v", fieldsOf(err))
	}
}

// A step in full has its number, what was thought, the call with its minimal
// arguments and what was observed, with the reference of the style and the result
// where that is shown; a blank line stands between two.
//
// B08, A22
func TestStepsInFull(t *testing.T) {
	r := MustRows(t)
	r.record("fs:read_file", `{"path":"a.txt","offset":1}`, `{"content":"hello"}`, "")
	r.record("web:search", `{"query":"q","count":9}`, fmt.Sprintf(`{"results":[%q]}`, strings.Repeat("x", 2000)), "")
	r.record("system:shell", `{"command":"ls"}`, `{"stdout":"a\nb\n","exit_code":0}`, "")
	first := "Step 1:\nThought: On to fs:read_file.\nAction: {\"tool\": \"fs:read_file\", \"args\": {\"path\": \"a.txt\"}}\nObservation: Read a.txt (5 bytes, text)\nhello\n\n" +
		"Step 2:\nThought: On to web:search.\nAction: {\"tool\": \"web:search\", \"args\": {\"query\": \"q\"}}\nObservation: "
	last := "\n\nStep 3:\nThought: On to system:shell.\nAction: {\"tool\": \"system:shell\", \"args\": {\"command\": \"ls\"}}\nObservation: ls: exit 0, 2 lines output\na\nb\n"
	for style, tt := range map[loombridgev1.HistoryStyle]struct {
		observed string
		tokens   int32
	}{
		design:    {"Search completed. Results saved to workspace/outputs/search_002.json\nUse fs:read_file to retrieve if needed.", 155},
		reduction: {"Found 1 results. Saved to workspace/outputs/search_002.json", 146},
	} {
		got, tokens := r.text(style, 3)
		if want := first + tt.observed + last; got != want || tokens != tt.tokens {
			t.Errorf("%v, %d tokens:\n%s\nwant\n%s", style, tokens, got, want)
		}
	}
}

// Neighbours of one category are one line with their figures, and each failure has
// its own, which is never left out; of the others the newest ten lines stay, and of
// more than a hundred steps 27.
//
// B19, P07, P08, P09
func TestGroupsOfSteps(t *testing.T) {
	r := MustRows(t)
	for i := range 4 {
		r.record("fs:read_file", fmt.Sprintf(`{"path":"f%d"}`, i), fmt.Sprintf(`{"content":%q}`, strings.Repeat("x", 2000)), "")
	}
	r.record("fs:write_file", `{"path":"out"}`, `{"bytes_written":1318}`, "")
	r.record("system:shell", `{"command":"a"}`, `{"stdout":"","exit_code":0}`, "")
	r.record("system:shell", `{"command":"b"}`, `{"stdout":"","exit_code":0}`, "")
	r.record("web:search", `{"query":"q"}`, `{"results":[1,2]}`, "")
	r.record("fs:search", `{"query":"q"}`, `{"matches":[1,2,3],"count":3}`, "")
	r.record("db:query", `{}`, `{}`, "")
	r.record("db:query", `{}`, "", "no such\ntable")
	r.record("db:query", `{}`, `{}`, "")
	r.record("browser:navigate", `{"url":"https://a.example"}`, `{"status":200,"text":"hi"}`, "")
	r.record("system:shell", `{"command":"c"}`, `{"stdout":"","stderr":"","exit_code":1}`, "")
	r.record("agent:think", `{}`, `{}`, "")
	got, tokens := r.text(grouped, 2)
	want := `Previous actions (summarized):
  [step_001..005] 5 file operations (9.1KB total)
  [step_006..007] 2 commands executed
  [step_008..009] 2 searches (5 results)
  [step_010..012] 3x db:query (1 failed)
  [step_011] ✗ db:query failed: no such table
  [step_013] Visited a.example

Recent actions:
  [step_014] ✗ c: exit 1, 0 lines output
  [step_015] ✓ agent:think completed`
	if got != want || tokens != 133 {
		t.Errorf("%d tokens:\n%s\nwant\n%s", tokens, got, want)
	}
	// From here on no two neighbours are of one category.
	others := func(from, to int) {
		for i := from; i < to; i++ {
			r.record([]string{"one:tool", "other:tool"}[i%2], `{}`, `{}`, "")
		}
	}
	for _, tt := range []struct{ from, to, lines, omitted int }{{15, 99, 10, 84}, {99, 101, 27, 69}} {
		others(tt.from, tt.to)
		text, _ := r.text(grouped, 3)
		older, recent, _ := strings.Cut(text, "\n\nRecent actions:\n")
		if got := strings.Count(older, ":tool({})"); got != tt.lines || strings.Count(recent, "[step_") != 3 {
			t.Errorf("%d steps: %d lines, want %d, and %d recent:\n%s", tt.to, got, tt.lines, strings.Count(recent, "[step_"), text)
		}
		for _, line := range []string{"\n  [step_011] ✗ db:query failed: no such table\n", "\n  [step_014] ✗ system:shell failed: exit 1\n"} {
			if !strings.Contains(older, line) {
				t.Errorf("%d steps: no %q in\n%s", tt.to, line, older)
			}
		}
		if !strings.HasSuffix(older, fmt.Sprintf("\n  ... (%d earlier steps omitted)", tt.omitted)) {
			t.Errorf("%d steps: want %d omitted:\n%s", tt.to, tt.omitted, older)
		}
	}
}

// What the profiles keep: so many recent steps, so many lines, in groups or not.
//
// P09
func TestProfiles(t *testing.T) {
	for profile, tt := range map[string]struct {
		recent, lines int
		groups        bool
	}{"chat": {5, 20, true}, "research": {3, 10, true}, "code": {5, 15, true}, "debug": {7, 10, false}} {
		r := MustRows(t)
		for i := range 40 {
			// Neighbours of one category come in pairs.
			r.record([]string{"one:tool", "other:tool"}[i/2%2], `{}`, `{}`, "")
		}
		prompt, err := r.server.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
			AgentId: agent, SessionId: "s", WithoutTools: true, History: &loombridgev1.HistorySettings{Preset: profile, Literal: new(true)},
		})
		must(t, err)
		older, recent, _ := strings.Cut(prompt.GetMessages()[0].GetContent(), "\n\nRecent actions:\n")
		groups, singles := strings.Count(older, "2x "), strings.Count(older, ":tool({})")
		if strings.Count(recent, "[step_") != tt.recent || groups+singles > tt.lines || groups+singles < tt.lines-3 || tt.groups != (groups > 0) {
			t.Errorf("%s: %d recent, %d groups, %d single lines:\n%s", profile, strings.Count(recent, "[step_"), groups, singles, older)
		}
	}
}
