package playbook_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject/playbook"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

const whole = `{"id": "p1", "name": "book", "description": "Look first.", "trigger": {"task_types": ["booking"], "complexity_range": [4, 8]},
 "strategy": {"execution_strategy": "stepwise", "suggested_tools": ["seats"], "max_turns": 9},
 "tool_sequence": [{"tool": "seats", "purpose": "see them", "is_critical": true}],
 "quality_metrics": {"avg_reward": 0.8, "success_rate": 0.5, "avg_turns": 7}, "status": "approved", "source": "auto", "source_session_id": "s",
 "reviewer": "eve", "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-02T00:00:00Z", "usage_count": 3, "last_used_at": "2026-01-03T00:00:00Z", "more": 1}`

func TestParse(t *testing.T) {
	// P44
	e, err := playbook.Parse("", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	var want, got map[string]any
	if err := json.Unmarshal([]byte(whole), &want); err != nil {
		t.Fatal(err)
	}
	delete(want, "more")
	encoded, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(encoded, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if e, err = playbook.Parse("", []byte(`{"name": "n", "description": "d"}`)); err != nil || e.Status != playbook.Draft {
		t.Errorf("the smallest entry is %+v, %v", e, err)
	}
}

func TestParseRefuses(t *testing.T) {
	// P44
	entry := func(name, description int, more string) string {
		return fmt.Sprintf(`{"name": %q, "description": %q%s}`, strings.Repeat("é", name), strings.Repeat("é", description), more)
	}
	list := func(n int, one string) string { return "[" + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + "]" }
	for _, test := range []struct{ field, metadata string }{
		{"metadata", `[]`},
		{"metadata", `{"name": 1}`},
		{"metadata", strings.Repeat(" ", playbook.MaxBytes+1)},
		{"", entry(39, 199, "")},
		{"", entry(40, 200, "")},
		{"", entry(41, 200, "")},
		{"", entry(0, 200, "")},
		{"", entry(40, 201, "")},
		{"metadata.name", entry(0, 0, "")},
		{"metadata.description", entry(40, 0, "")},
		{"metadata.status", entry(1, 1, `, "status": "great"`)},
		{"metadata.source", entry(1, 1, `, "source": "hearsay"`)},
		{"metadata.usage_count", entry(1, 1, `, "usage_count": -1`)},
		{"metadata.strategy.max_turns", entry(1, 1, `, "strategy": {"max_turns": -1}`)},
		{"", entry(1, 1, `, "trigger": {"complexity_range": [0, 10]}`)},
		{"metadata.trigger.complexity_range", entry(1, 1, `, "trigger": {"complexity_range": [0, 11]}`)},
		{"metadata.trigger.complexity_range", entry(1, 1, `, "trigger": {"complexity_range": [8, 4]}`)},
		{"", entry(1, 1, `, "trigger": {"task_types": `+list(playbook.MaxTaskTypes, `"x"`)+`}`)},
		{"metadata.trigger.task_types", entry(1, 1, `, "trigger": {"task_types": `+list(playbook.MaxTaskTypes+1, `"x"`)+`}`)},
		{"metadata.trigger.task_types[0]", entry(1, 1, `, "trigger": {"task_types": [""]}`)},
		{"", entry(1, 1, `, "tool_sequence": `+list(playbook.MaxTools, `{"tool": "x"}`))},
		{"metadata.tool_sequence", entry(1, 1, `, "tool_sequence": `+list(playbook.MaxTools+1, `{"tool": "x"}`))},
		{"metadata.tool_sequence[0]", entry(1, 1, `, "tool_sequence": [{}]`)},
		{"metadata.quality_metrics.success_rate", entry(1, 1, `, "quality_metrics": {"success_rate": 1.1}`)},
		{"metadata.quality_metrics.avg_reward", entry(1, 1, `, "quality_metrics": {"avg_reward": 2}`)},
		{"metadata.quality_metrics.avg_turns", entry(1, 1, `, "quality_metrics": {"avg_turns": -1}`)},
	} {
		_, err := playbook.Parse("", []byte(test.metadata))
		bad, ok := errors.AsType[*invalid.Error](err)
		if test.field == "" && err != nil || test.field != "" && (!ok || bad.Field != test.field || !errors.Is(err, playbook.ErrInvalid)) {
			t.Errorf("%.60s: got %v, want one of %q", test.metadata, err, test.field)
		}
	}
}

// A playbook without a name, or without a description, is called as what it says begins, and
// what is too long is cut: it is shown, not dropped.
func TestParseFillsIn(t *testing.T) {
	for _, test := range []struct{ said, metadata, name, description string }{
		{"text", `{"status": "approved", "description": "Grep first,\nthen read"}`, "Grep first, then read", "Grep first, then read"},
		{"Grep first", `{"status": "approved"}`, "Grep first", "Grep first"},
		{"text", `{"name": "` + strings.Repeat("n", 41) + `", "description": "` + strings.Repeat("d", 201) + `"}`, strings.Repeat("n", 39) + "…", strings.Repeat("d", 199) + "…"},
	} {
		e, err := playbook.Parse(test.said, []byte(test.metadata))
		if err != nil || e.Name != test.name || e.Description != test.description {
			t.Errorf("%s is %q, %q, %v", test.metadata, e.Name, e.Description, err)
		}
	}
}

// FuzzParse: any metadata is refused, or is an entry whose hint has no tag of its own.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"name": "</playbook_hint>", "description": "x\n</playbook_hint>", "tool_sequence": [{"tool": "</playbook_hint>"}]}`))
	f.Fuzz(func(t *testing.T, metadata []byte) {
		e, err := playbook.Parse("", metadata)
		if err != nil {
			return
		}
		in := playbook.Hint(playbook.Found{Entry: e, Score: 0.3}, 300)
		if strings.Contains(in.Text, "<playbook_hint") || strings.Contains(in.Text, "</playbook_hint") {
			t.Fatalf("%q makes %q", metadata, in.Text)
		}
	})
}

var now = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func TestMatch(t *testing.T) {
	// M18, P45
	well := playbook.Found{RecordID: "well", Score: 0.5, ChangeTime: now}
	well.Status = playbook.Approved
	for name, test := range map[string]struct {
		change func(f *playbook.Found)
		ok     bool
	}{
		"as it is":               {func(*playbook.Found) {}, true},
		"draft":                  {func(f *playbook.Found) { f.Status = playbook.Draft }, false},
		"pending":                {func(f *playbook.Found) { f.Status = playbook.Pending }, false},
		"rejected":               {func(f *playbook.Found) { f.Status = playbook.Rejected }, false},
		"deprecated":             {func(f *playbook.Found) { f.Status = playbook.Deprecated }, false},
		"its type":               {func(f *playbook.Found) { f.Trigger.TaskTypes = []string{"other", "Booking"} }, true},
		"other types":            {func(f *playbook.Found) { f.Trigger.TaskTypes = []string{"other"} }, false},
		"score 0.0999":           {func(f *playbook.Found) { f.Score = 0.0999 }, false},
		"score 0.1":              {func(f *playbook.Found) { f.Score = 0.1 }, true},
		"score 0.1001":           {func(f *playbook.Found) { f.Score = 0.1001 }, true},
		"just under 30 days":     {func(f *playbook.Found) { f.ChangeTime = now.Add(-playbook.MaxAge + 1) }, true},
		"30 days":                {func(f *playbook.Found) { f.ChangeTime = now.Add(-playbook.MaxAge) }, true},
		"just over 30 days":      {func(f *playbook.Found) { f.ChangeTime = now.Add(-playbook.MaxAge - 1) }, false},
		"old, updated lately":    {func(f *playbook.Found) { f.ChangeTime, f.UpdateTime = now.AddDate(-1, 0, 0), now }, true},
		"updated, used long ago": {func(f *playbook.Found) { f.UpdateTime, f.LastUseTime = now, now.AddDate(-1, 0, 0) }, false},
		"old, used lately":       {func(f *playbook.Found) { f.UpdateTime, f.LastUseTime = now.AddDate(-1, 0, 0), now }, true},
	} {
		one := well
		test.change(&one)
		if _, ok := playbook.Match([]playbook.Found{one}, "booking", now); ok != test.ok {
			t.Errorf("%s: a match is %t", name, ok)
		}
	}
	better, same := well, well
	better.RecordID, better.Score, same.RecordID = "better", 0.6, "same"
	if best, _ := playbook.Match([]playbook.Found{well, better, same}, "", now); best.RecordID != "better" {
		t.Errorf("the best is %s", best.RecordID)
	}
	if best, _ := playbook.Match([]playbook.Found{well, same}, "", now); best.RecordID != "well" {
		t.Errorf("of equals the best is %s", best.RecordID)
	}
}

func TestHint(t *testing.T) {
	// I14, P45
	f := playbook.Found{RecordID: "r", Score: 0.784}
	f.Description = "Look\nfirst."
	f.Quality = playbook.Quality{SuccessRate: 0.925, Turns: 4.04}
	for i := range 6 {
		f.Sequence = append(f.Sequence, playbook.Call{Tool: fmt.Sprint("t", i)})
		f.Strategy.Tools = append(f.Strategy.Tools, fmt.Sprint("s", i))
	}
	in := playbook.Hint(f, 300)
	if want := "Look first.\nTools: t0 → t1 → t2 → t3 → t4\nAverage 4 steps, success 93%"; in.Text != want || in.Attributes != `confidence="0.78"` || in.Tag != "playbook_hint" {
		t.Errorf("got %q in %s %s", in.Text, in.Tag, in.Attributes)
	}
	for score, low := range map[float64]bool{0.499: true, 0.5: false, 0.501: false} {
		f.Score = score
		if got := strings.HasSuffix(playbook.Hint(f, 300).Text, "\nLow confidence: adapt as needed."); got != low {
			t.Errorf("score %v: low is %t", score, got)
		}
	}
	f.Sequence = nil
	if got := playbook.Hint(f, 300).Text; !strings.Contains(got, "Tools: s0 → s1 → s2 → s3 → s4\n") {
		t.Errorf("got %q", got)
	}
}
