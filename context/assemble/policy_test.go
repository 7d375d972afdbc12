package assemble_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// Each file of testdata/policy holds a log and settings, and what becomes of
// them.
func TestPolicies(t *testing.T) {
	files, err := filepath.Glob("testdata/policy/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a := MustArchive(t, file)
			got := archive{prose: a.prose, parts: [][2]string{{"request", a.part("request")}, {"log", a.part("log")}}}
			got.parts = append(got.parts, renderPolicy(t, a)...)
			if *update {
				if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(a.String(), got.String()); diff != "" {
				t.Errorf("differs (-want +got); -update rewrites it:\n%s", diff)
			}
		})
	}
}

func renderPolicy(t *testing.T, a archive) [][2]string {
	t.Helper()
	var r struct {
		Goal, Policy, Preset string
		Literal, Compact     bool
		MaxTokens            int
	}
	if err := json.Unmarshal([]byte(a.part("request")), &r); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.record(MustHistory(t, a.part("log")))
	if r.Compact {
		w.compact()
	}
	w.request.Goal = r.Goal
	w.request.History = session.Config{Policy: r.Policy, Preset: r.Preset, MaxTokens: r.MaxTokens}
	if r.Literal {
		w.request.History.Literal = &r.Literal
	}
	if err := checkRules(MustChat(t, w.prompt()).Messages); err != nil {
		t.Error(err)
	}
	w.request.Format = assemble.Neutral
	p := w.prompt()
	receipt := fmt.Sprintf("%s: %d tokens, %d append-only\n", p.Receipt.Policy, p.Tokens.Tokens, p.Receipt.AppendOnlyTokens)
	for _, f := range p.Receipt.Folds {
		receipt += fmt.Sprintf("fold %v of %v: %d tokens for %d, %d turns, %d calls\n", f.Spans, f.Refs, f.Tokens, f.Original, f.Turns, f.Calls)
	}
	return [][2]string{{"neutral", neutralText(p)}, {"receipt", receipt}}
}

// record appends entries to the log.
func (w *world) record(h entries) {
	w.tb.Helper()
	for _, e := range h {
		if e.Message != nil {
			w.say(*e.Message)
		} else {
			w.do(*e.Step)
		}
	}
}

// The policy may change with any call, and nothing is lost by that.
//
// X05: all forms are made of the one log.
func TestPolicyMayChange(t *testing.T) {
	w := newWorld(t)
	w.say(text(session.User, "Find all handlers."))
	want := make(map[string]string)
	presets := []string{"design", "reduction", "chat", "research", "code", "debug"}
	literal := true
	show := func() map[string]string {
		got := make(map[string]string)
		got["ledger"] = string(w.with(func(*assemble.Request) {}).OpenAIChatJSON)
		got["append_only"] = string(w.with(func(r *assemble.Request) { r.History.Policy = session.PolicyAppendOnly }).OpenAIChatJSON)
		for _, name := range presets {
			got[name] = string(w.with(func(r *assemble.Request) { r.History = session.Config{Preset: name, Literal: &literal} }).OpenAIChatJSON)
		}
		return got
	}
	for n := range 12 {
		w.work(n)
	}
	for _, name := range presets {
		want[name] = show()[name]
	}
	want["append_only"] = show()["append_only"]
	w.compact()
	got := show()
	if strings.Contains(got["append_only"], "Earlier steps, folded") || !strings.Contains(got["ledger"], "Earlier steps, folded") {
		t.Error("folds are the ledger's, and only the ledger's")
	}
	want["ledger"] = got["ledger"]
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after a batch (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(want, show()); diff != "" {
		t.Errorf("again (-before +after):\n%s", diff)
	}
}

// A preset that is sticky grows at its end until the receipt reports a batch,
// and what it shows as lines is never more than what the preset as written does.
//
// X03
func TestStickyPresets(t *testing.T) {
	for _, preset := range []string{"design", "reduction", "code"} {
		t.Run(preset, func(t *testing.T) {
			w := newWorld(t)
			w.request.History.Preset = preset
			before, batches := "", 0
			for n := range 40 {
				w.work(n)
				p := w.prompt()
				now := historyBytes(t, p)
				if p.Receipt.Batch != nil {
					batches++
				} else if !strings.HasPrefix(now, before) {
					t.Fatalf("step %d: no batch is reported, but the history begins otherwise", n)
				}
				if p.Receipt.Policy != preset {
					t.Errorf("the policy is %q", p.Receipt.Policy)
				}
				mark := w.mark(preset)
				if most := max(n+1-3, 0); mark > most {
					t.Errorf("%d of %d steps are lines", mark, n+1)
				}
				before = now
			}
			if batches == 0 || batches > 20 {
				t.Errorf("%d batches in 40 steps", batches)
			}
			mark, version := w.mark(preset), w.prompt()
			if w.undo(); w.mark(preset) >= mark {
				t.Errorf("undone, the mark is %d, before %d: %+v", w.mark(preset), mark, version.Receipt)
			}
		})
	}
}

// A preset that is literal goes by its rules with every call: up to five steps
// are in full, from the sixth on all but the last three are lines, each time
// anew; and so with fewer steps when they are over 2,000 tokens in full.
//
// B06, B07, B09, B10, B11, X04
func TestLiteralPresets(t *testing.T) {
	literal := true
	for preset, headings := range map[string][2]string{
		"design":    {"Previous steps:\n", "\n\nRecent steps:\nStep %d:\n"},
		"reduction": {"Earlier steps:\n", "\n\nRecent steps:\n\nStep %d:\n"},
	} {
		w := newWorld(t)
		w.request.Format = assemble.Neutral
		w.request.History = session.Config{Preset: preset, Literal: &literal}
		for n := 1; n <= 9; n++ {
			w.do(step.Step{ToolName: "fs:stat", Inline: "ok"})
			p := w.prompt()
			got := p.Messages[0].Content
			if older := strings.HasPrefix(got, headings[0]); older != (n > 5) {
				t.Fatalf("%s, %d steps: older ones are lines: %v\n%s", preset, n, older, got)
			}
			if n > 5 && !strings.Contains(got, fmt.Sprintf(headings[1], n-2)) {
				t.Errorf("%s, %d steps: the last three are not in full:\n%s", preset, n, got)
			}
			if full := strings.Count(got, "Action: {"); full != n && n <= 5 || full != 3 && n > 5 {
				t.Errorf("%s, %d steps: %d in full", preset, n, full)
			}
			if p.Receipt.Batch != nil || w.mark(preset) != 0 {
				t.Errorf("%s: a literal preset keeps a mark: %+v", preset, p.Receipt)
			}
		}
		big := newWorld(t)
		big.request.Format, big.request.History = w.request.Format, w.request.History
		for range 4 {
			big.do(step.Step{ToolName: "fs:stat", Inline: strings.Repeat("word ", 600)})
		}
		if got := big.prompt().Messages[0].Content; !strings.HasPrefix(got, headings[0]) {
			t.Errorf("%s: 2,400 tokens in four steps stay in full", preset)
		}
	}
}

// Everything that a fold names can be read, and stands in the fold; a line of a
// preset has the id of its step.
//
// B15
func TestFoldsLeadBack(t *testing.T) {
	w := newWorld(t)
	for n := range 30 {
		if n%5 == 0 {
			w.say(text(session.Assistant, "I go on with the next part."))
		}
		w.work(n)
	}
	w.compact()
	refs := 0
	for _, f := range w.prompt().Receipt.Folds {
		for _, ref := range f.Refs {
			refs++
			if err := w.leadsTo(ref, f); err != nil {
				t.Error(err)
			}
			short, _ := strings.CutPrefix(ref, "step_")
			if message, ok := strings.CutPrefix(ref, "message_"); ok {
				short = "m" + strings.TrimLeft(message, "0")
			}
			if !strings.Contains(f.Text, "\n"+short+" ") {
				t.Errorf("no line of the fold begins with %s", short)
			}
		}
	}
	if refs < 25 {
		t.Errorf("%d references for 30 folded entries", refs)
	}
}

// leadsTo returns an error unless a reference is an entry that stands in a fold.
func (w *world) leadsTo(ref string, f history.Fold) error {
	var position uint64
	if number, ok := step.ParseID(ref); ok {
		e, err := w.log.Step(w.tb.Context(), scope, number)
		if err != nil {
			return err
		}
		position = e.Position
	} else if _, err := fmt.Sscanf(ref, "message_%d", &position); err != nil {
		return fmt.Errorf("%s is no reference: %w", ref, err)
	}
	for _, s := range f.Spans {
		if s.First <= position && position <= s.Last {
			return nil
		}
	}
	return fmt.Errorf("%s is entry %d, which is not in %v", ref, position, f.Spans)
}

// mark is how many steps a preset shows as lines.
func (w *world) mark(preset string) int {
	w.tb.Helper()
	folds, err := w.log.Folds(w.tb.Context(), scope, "s")
	if err != nil {
		w.tb.Fatal(err)
	}
	return folds.Marks[preset].Older
}

// Settings of the session hold for calls that give none, and those of a call
// for that call.
func TestSettings(t *testing.T) {
	w := newWorld(t)
	for n := range 8 {
		w.work(n)
	}
	w.request.Model, w.request.MaxTokens = "", 0
	configure := func(c session.Config) {
		t.Helper()
		if _, err := w.log.Configure(t.Context(), scope, "s", func(session.Config) (session.Config, error) { return c, nil }, "", nil); err != nil {
			t.Fatal(err)
		}
	}
	configure(session.Config{Preset: "design", Model: "gpt-4", MaxTokens: 20_000})
	p := w.prompt()
	if p.Receipt.Policy != "design" || p.Tokens.Counter != "cl100k_base" || p.Receipt.Pressure != float64(p.Tokens.Tokens)/20_000 {
		t.Errorf("got %s, %+v, pressure %v", p.Receipt.Policy, p.Tokens, p.Receipt.Pressure)
	}
	w.request.History.Policy = session.PolicyLedger
	if p := w.prompt(); p.Receipt.Policy != session.PolicyLedger {
		t.Errorf("the call asked for the ledger and got %s", p.Receipt.Policy)
	}
	w.request.History = session.Config{ResultTokens: 50, Policy: session.PolicyAppendOnly}
	whole := w.with(func(r *assemble.Request) { r.History.ResultTokens = 0 })
	if p := w.prompt(); p.Tokens.Tokens >= whole.Tokens.Tokens || !strings.Contains(string(p.OpenAIChatJSON), "chars omitted. Full data: step_001") {
		t.Errorf("results of 50 tokens take %d, whole %d", p.Tokens.Tokens, whole.Tokens.Tokens)
	}
	for name, c := range map[string]session.Config{
		"history.policy":            {Policy: "none"},
		"history.preset":            {Preset: "nobody's"},
		"history.max_result_tokens": {ResultTokens: -1},
	} {
		r := w.request
		r.History = c
		_, err := w.assembler.Assemble(t.Context(), r)
		var bad *invalid.Error
		if !errors.As(err, &bad) || bad.Field != name {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Results that the prompt shows already are not shown again, and are when the
// place that shows them is folded.
func TestDedupe(t *testing.T) {
	w := newWorld(t)
	s := workStep(1)
	w.do(s)
	s.Thought = "Once more."
	w.do(s)
	if got := string(w.prompt().OpenAIChatJSON); !strings.Contains(got, "lines unchanged: step_001 line 1-14]") {
		t.Errorf("shown twice: %s", got)
	}
	if got := string(w.with(func(r *assemble.Request) { r.History.Policy = session.PolicyAppendOnly }).OpenAIChatJSON); strings.Contains(got, "unchanged") {
		t.Errorf("append_only refers: %s", got)
	}
	w.do(step.Step{ToolName: "fs:stat", Inline: "ok"})
	w.compact()
	got := string(w.prompt().OpenAIChatJSON)
	if !strings.Contains(got, "Earlier steps, folded") || strings.Contains(got, "lines unchanged") || !strings.Contains(got, "func Handler1_11(request Request)") {
		t.Errorf("the place is folded, but the lines are not shown again: %s", got)
	}
}

// What is pinned is shown as it is, though the prompt shows it already; and what
// it shows is not shown again.
func TestPinnedIsNotDeduplicated(t *testing.T) {
	w := newWorld(t)
	w.request.Format = assemble.Neutral
	s := workStep(1)
	w.do(s)
	s.Pinned = true
	s.Inline = strings.Repeat(s.Inline, 40) // over the limit of a result
	w.do(s)
	for _, policy := range []string{session.PolicyLedger, session.PolicyAppendOnly} {
		w.request.History.Policy = policy
		if got := w.prompt().Messages[3].Content; !strings.HasSuffix(got, s.Inline) {
			t.Errorf("%s: %d bytes of %d", policy, len(got), len(s.Inline))
		}
	}
	s.Pinned = false
	w.do(s)
	w.request.History.Policy = session.PolicyLedger
	if got := w.prompt().Messages[5].Content; len(got) > 100 || !strings.Contains(got, "lines unchanged: step_002") {
		t.Errorf("got %.200q", got)
	}
}

// An observation that is the beginning of the result stands there once, however
// the reducer ends it, and no reference to a result that is all there.
func TestResultsAreShownOnce(t *testing.T) {
	whole := "{\"name\": \"James\", \"cabin\": \"economy\", \"flights\": [\"HAT003\"]}"
	for _, end := range []string{"", "…", "..."} {
		w := newWorld(t)
		w.request.Format = assemble.Neutral
		w.do(step.Step{
			ToolName: "get_user", Observation: "get_user → {\"name\": \"James\", \"ca" + end, Inline: whole,
			OutcomeRef: "aa11", OutcomePath: "workspace/outputs/tool_001.txt",
		})
		if got := w.prompt().Messages[1].Content; got != whole {
			t.Errorf("%q: got %q", end, got)
		}
		w.do(step.Step{
			ToolName: "get_user", Observation: "get_user → {\"name\": \"James\", \"ca" + end, Inline: whole, Evidence: "PHX",
			OutcomeRef: "aa11", OutcomePath: "workspace/outputs/tool_001.txt",
		})
		want := "Saved to workspace/outputs/tool_001.txt\nUse fs:read_file to retrieve if needed.\n" + whole
		if got := w.prompt().Messages[3].Content; got != want {
			t.Errorf("%q, cut: got %q", end, got)
		}
	}
}

// CompactHistory renders the steps as text and folds nothing then.
func TestCompactText(t *testing.T) {
	w := newWorld(t)
	for n := range 6 {
		w.work(n)
	}
	for style, want := range map[string]string{
		"design":    "Previous steps:\n  • Ran `grep -rn handler_0 src/pkg_0` → exit 0\n",
		"reduction": "Earlier steps:\n• Ran `grep -rn handler_0 src/pkg_0` (exit 0)\n",
		"grouped":   "Previous actions (summarized):\n  [step_001..004] 4 commands executed\n\nRecent actions:\n",
	} {
		r := assemble.CompactRequest{Scope: scope, SessionID: "s", Text: true, Style: styles[style], KeepRecent: 2}
		c, err := w.assembler.Compact(t.Context(), r)
		if err != nil || !strings.HasPrefix(c.Text, want) || c.Batch != nil || c.Tokens.Tokens == 0 {
			t.Errorf("%s: %v, %+v, want\n%s", style, err, c, want)
		}
	}
	folds, err := w.log.Folds(t.Context(), scope, "s")
	if err != nil || folds.Version != 0 {
		t.Errorf("text was asked for, but %+v, %v", folds, err)
	}
	for field, r := range map[string]assemble.CompactRequest{
		"max_tokens":  {MaxTokens: -1},
		"keep_recent": {KeepRecent: -1},
		"style":       {Style: 9},
	} {
		_, err := w.assembler.Compact(t.Context(), r)
		var bad *invalid.Error
		if !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%s: got %v", field, err)
		}
	}
}
