package step_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/step"
)

// sets are the templates that come with the package.
func sets() map[string]step.Templates {
	return map[string]step.Templates{"design": step.DesignTemplates(), "reduction": step.ReductionTemplates()}
}

// The lines of the two sets differ in writes and commands.
//
// B04
func TestTemplateSets(t *testing.T) {
	for _, tt := range []struct {
		step              step.Step
		design, reduction string
	}{
		{
			step.Step{ToolName: "fs:read_file", MinimalArgs: raw(`{"path":"config.json"}`), Metadata: raw(`{"size":1229}`)},
			"Read config.json (1.2KB)", "Read config.json (1.2KB)",
		},
		{
			step.Step{ToolName: "fs:write_file", MinimalArgs: raw(`{"path":"a"}`), Metadata: raw(`{"bytes":5120}`)},
			"Wrote a (5120 bytes)", "Wrote a",
		},
		{
			step.Step{ToolName: "fs:list_dir", MinimalArgs: raw(`{"path":"src"}`), Metadata: raw(`{"count":3}`)},
			"Listed src (3 items)", "Listed src (3 items)",
		},
		{
			step.Step{ToolName: "web:search", MinimalArgs: raw(`{"query":"go"}`), Metadata: raw(`{"count":8}`)},
			"Searched 'go' → 8 results", "Searched 'go' → 8 results",
		},
		{
			step.Step{ToolName: "browser:navigate", MinimalArgs: raw(`{"url":"https://a.b/c"}`)},
			"Visited a.b/c", "Visited a.b/c",
		},
		{
			step.Step{ToolName: "system:shell", MinimalArgs: raw(`{"command":"git x"}`), Metadata: raw(`{"exit_code":1}`), Outcome: step.Failed},
			"Ran `git x` → exit 1", "Ran `git x` (exit 1)",
		},
		{
			step.Step{ToolName: "weather:get", MinimalArgs: raw(`{"location":"Oslo"}`)},
			"Checked weather for Oslo", "Checked weather for Oslo",
		},
	} {
		for name, want := range map[string]string{"design": tt.design, "reduction": tt.reduction} {
			if got := sets()[name].Compact(tt.step).Summary; got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
	}
}

// A line stands under the id of its step, follows from the step alone, and says
// of a failure what went wrong, in at most 100 characters.
//
// B02
func TestCompactIsPure(t *testing.T) {
	for set, templates := range sets() {
		for chars := 70; chars < 110; chars++ {
			s := step.Step{Number: 12, ToolName: "fs:read_file", Outcome: step.Failed, Error: "line one\nline  two " + strings.Repeat("ä", chars)}
			got := templates.Compact(s)
			whole := "✗ fs:read_file failed: line one line two " + strings.Repeat("ä", chars)
			want := step.CompactStep{ID: "step_012", Summary: string([]rune(whole)[:min(len([]rune(whole)), 100)])}
			if got != want || got != templates.Compact(s) {
				t.Errorf("%s: got %+v, want %+v", set, got, want)
			}
		}
	}
}

// Lines of one's own take the place of those of the set, for tools old and new.
//
// B04
func TestOwnTemplates(t *testing.T) {
	rules, err := step.BuiltinRules().With([]byte(`
[tools."fs:read_file"]
compact = "Had a look at {path}, {size}, {lines} lines"
[tools."db:query"]
args = ["table", "limit"]
compact = "Asked {tool} for {limit} of {table}, {count} came"
`))
	if err != nil {
		t.Fatal(err)
	}
	for set, under := range sets() {
		own := rules.Templates().Over(under)
		for want, s := range map[string]step.Step{
			"Had a look at a b, 1.2KB, 40 lines": {
				ToolName: "fs:read_file", MinimalArgs: raw(`{"path":"a\nb"}`), Metadata: raw(`{"size":1229,"lines":40}`),
			},
			"Asked db:query for 5 of users, 3 came": {
				ToolName: "db:query", MinimalArgs: raw(`{"table":"users","limit":5}`), Metadata: raw(`{"count":3}`),
			},
			`db:query({"table":"users"})`: {ToolName: "db:query", MinimalArgs: raw(`{"table":"users"}`)},
			"Visited a.b":                 {ToolName: "browser:navigate", MinimalArgs: raw(`{"url":"http://a.b"}`)},
		} {
			if got := own.Compact(s).Summary; got != want {
				t.Errorf("%s: got %q, want %q", set, got, want)
			}
		}
		if !own.Owns("fs:read_file") || !own.Owns("fs_read_file") || own.Owns("browser:navigate") {
			t.Errorf("%s: whose lines they are is not known", set)
		}
		if back := under.Over(own); back.Owns("fs:read_file") || !back.Owns("db:query") {
			t.Errorf("%s: laid over the own ones, the set is not that of the package", set)
		}
	}
}

// B04
func TestBadTemplates(t *testing.T) {
	for line, want := range map[string]string{
		`{nothing}`:               `tools."fs:read_file": compact: unknown placeholder {nothing}, there are args, bytes, `,
		`{text}`:                  "unknown placeholder {text}",
		`{path`:                   "a brace is not closed",
		`{table}`:                 "unknown placeholder {table}",
		strings.Repeat("x", 1025): "compact is longer than 1024 bytes",
	} {
		_, err := step.BuiltinRules().With(fmt.Appendf(nil, "[tools.\"fs:read_file\"]\ncompact = %q\n", line))
		if !errors.Is(err, step.ErrRules) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q in it", line, err, want)
		}
	}
	_, err := step.BuiltinRules().With([]byte("[tools.\"*\"]\ncompact = \"x\"\n"))
	if !errors.Is(err, step.ErrRules) {
		t.Errorf("a line for all tools: %v", err)
	}
}

// A tool's result can stay out of prompts from the start, and a small search in
// them.
func TestHideAndSmallSearches(t *testing.T) {
	rules, err := step.BuiltinRules().With([]byte(`
[tools."fs:read_file"]
hide = true
[tools."web:search"]
from_items = 6
from_bytes = 1024
`))
	if err != nil {
		t.Fatal(err)
	}
	opts := &step.Options{Rules: rules}
	long := strings.Repeat("line\n", 400)
	if got := reduce(opts, readCall("a", long)); got.Inline != "" || !got.Offload {
		t.Errorf("a read that was offloaded shows %.40q", got.Inline)
	}
	if got := reduce(opts, readCall("a", "short")); got.Inline != "short" {
		t.Errorf("a read that was not offloaded shows %.40q", got.Inline)
	}
	if got := reduce(opts, shell("cat a", long, "", 0)); got.Inline == "" {
		t.Error("another tool's result is hidden")
	}
	for n, want := range map[int]bool{5: false, 6: true} {
		if got := reduce(opts, searched(map[string]any{"results": hits(n)})); got.Offload != want {
			t.Errorf("%d results are offloaded: %v, want %v", n, got.Offload, want)
		}
	}
	if got := reduce(opts, searched(map[string]any{"results": []any{strings.Repeat("x", 1024)}})); !got.Offload {
		t.Error("a kilobyte of one result is not offloaded")
	}
}
