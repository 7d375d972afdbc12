package step_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/step"
)

// A table of one's own changes what it names and leaves the rest.
func TestRulesOfOnesOwn(t *testing.T) {
	opts := withRules(t, `
[tools."fs:read_file"]
observation = "{path}: {human_size}"

[tools.query_db]
args = ["sql"]
observation = "{sql} → {text}"
from_bytes = 30
kind = "rows"
ext = "txt"
category = "tool"

[tools.notes]
shape = "written"
args = ["title"]
observation = "Noted {title}"
offload = "never"
keep = "body"
`)
	read := reduce(opts, readCall("a.txt", strings.Repeat("x", 2048)))
	if read.Observation != "a.txt: 2KB" || !read.Offload || read.OffloadKind != "read" {
		t.Errorf("read: %q, offload %t as %s", read.Observation, read.Offload, read.OffloadKind)
	}
	query := reduce(opts, step.Call{
		Tool: "query_db", Args: map[string]any{"sql": "select 1", "db": "main"},
		Result: textResult("1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11"),
	})
	if query.Observation != "select 1 → 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11" || string(query.MinimalArgs) != `{"sql":"select 1"}` {
		t.Errorf("query: %q, %s", query.Observation, query.MinimalArgs)
	}
	if !query.Offload || query.OffloadKind != "rows" || query.OffloadExt != "txt" || query.OffloadCategory != "tool" {
		t.Errorf("query: %t %s.%s for %s", query.Offload, query.OffloadKind, query.OffloadExt, query.OffloadCategory)
	}
	note := reduce(opts, step.Call{Tool: "notes", Args: map[string]any{"title": "T", "body": "long text", "tag": "x"}})
	if note.Observation != "Noted T" || note.KeepArg != "body" || string(note.Args) != `{"tag":"x","title":"T"}` {
		t.Errorf("note: %q, keeps %q, %s", note.Observation, note.KeepArg, note.Args)
	}
	if builtin := reduce(nil, readCall("a", "x")).Observation; builtin != "Read a (1 bytes, text)" {
		t.Errorf("the built-in rules changed: %q", builtin)
	}
}

// A rule that can't be used says which key is wrong.
func TestBadRules(t *testing.T) {
	for name, tt := range map[string]struct{ table, want string }{
		"no TOML":        {`[tools`, "line 1"},
		"unknown key":    {"[tools.x]\nobservatoin = 'y'", "unknown key tools.x.observatoin"},
		"unknown table":  {"[tool.x]\nkind = 'y'", "unknown key tool"},
		"type":           {"[tools.x]\nkind = 7", "line 2"},
		"shape":          {"tools.x.shape = 'round'", `tools."x": shape "round" is not one of any, command`},
		"placeholder":    {"tools.x.observation = 'Did {that}'", `tools."x": observation: unknown placeholder {that}, there are human_size, size, text, tool`},
		"brace":          {"tools.x.observation = 'Did {tool'", "a brace is not closed"},
		"empty line":     {"tools.x.observation = ''", "observation is empty"},
		"long line":      {"tools.x.observation = '" + strings.Repeat("x", 2000) + "'", "longer than"},
		"offload":        {"tools.x.offload = 'some'", `offload "some" is not never, result or text`},
		"threshold":      {"tools.x.from_lines = 0", "from_lines is 0, not at least 1"},
		"kind":           {"tools.x.kind = '../up'", `kind "../up" is not`},
		"no kind":        {"tools.x.kind = ''", `kind "" is not`},
		"extension":      {"tools.x.ext = 'a/b'", `ext "a/b" is not`},
		"all and others": {"tools.x.args = ['*', 'path']", `args has "*" together with others`},
		"no argument":    {"tools.x.args = ['']", "args has an empty name"},
	} {
		_, err := step.BuiltinRules().With([]byte(tt.table))
		if !errors.Is(err, step.ErrRules) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// D02: 1000 bytes for all tools in the design preset; each preset of offloading
// at its threshold and around it.
func TestPresetsOfOffloading(t *testing.T) {
	read := func(n int) step.Call { return readCall("a", strings.Repeat("a", n)) }
	command := func(n int) step.Call { return shell("cat a", strings.Repeat("a", n), "", 0) }
	unknown := func(n int) step.Call {
		return step.Call{Tool: "x:y", Result: step.Result{Output: map[string]any{"v": strings.Repeat("a", n-8)}}}
	}
	for _, tt := range []struct {
		preset string
		call   func(int) step.Call
		from   int
	}{
		{step.OffloadDesign, read, 1000},
		{step.OffloadDesign, command, 1000},
		{step.OffloadDesign, unknown, 1000},
		{step.OffloadReduction, read, 1025},
		{step.OffloadReduction, command, 501},
		{step.OffloadReduction, unknown, 1000},
		{step.OffloadCompressor, read, 1501},
		{step.OffloadCompressor, command, 1501},
	} {
		rules, err := step.BuiltinRules().WithOffload(tt.preset)
		if err != nil {
			t.Fatal(err)
		}
		opts := &step.Options{Rules: rules}
		for n, want := range map[int]bool{tt.from - 1: false, tt.from: true, tt.from + 1: true} {
			if got := reduce(opts, tt.call(n)); got.Offload != want {
				t.Errorf("%s, %s of %d: offload %t", tt.preset, tt.call(n).Tool, n, got.Offload)
			}
		}
		if got := reduce(opts, step.Call{Tool: "fs:write_file", Result: step.Result{Output: map[string]any{"v": strings.Repeat("a", 5000)}}}); got.Offload {
			t.Errorf("%s: a write is offloaded", tt.preset)
		}
	}
	if _, err := step.BuiltinRules().WithOffload("other"); !errors.Is(err, step.ErrRules) {
		t.Errorf("an unknown preset: %v", err)
	}
}

// Arguments that are too long for a step are kept elsewhere, none is lost.
func TestLongArguments(t *testing.T) {
	long := strings.Repeat("x", step.MaxArgsBytes)
	for name, tt := range map[string]struct {
		tool     string
		args     map[string]any
		keepArgs bool
		keepArg  string
		args2    string
	}{
		"long":                    {"x:y", map[string]any{"text": long}, true, "", ""},
		"just short enough":       {"x:y", map[string]any{"t": long[:step.MaxArgsBytes-8]}, false, "", `{"t":"` + long[:step.MaxArgsBytes-8] + `"}`},
		"content":                 {"fs:write_file", map[string]any{"path": "a", "content": long}, false, "content", ""},
		"content and more":        {"fs:write_file", map[string]any{"path": "a", "content": long, "mode": "append"}, false, "content", `{"mode":"append","path":"a"}`},
		"content and much more":   {"fs:write_file", map[string]any{"path": "a", "content": "c", "note": long}, true, "content", ""},
		"content that is no text": {"fs:write_file", map[string]any{"path": "a", "content": []any{"c"}}, true, "", ""},
	} {
		got := reduce(nil, step.Call{Tool: tt.tool, Args: tt.args})
		if got.KeepArgs != tt.keepArgs || got.KeepArg != tt.keepArg || string(got.Args) != tt.args2 {
			t.Errorf("%s: keep %t and %q, arguments %.60s", name, got.KeepArgs, got.KeepArg, got.Args)
		}
	}
}

func FuzzLoadRules(f *testing.F) {
	f.Add([]byte("[tools.x]\nkind = 'y'\nobservation = '{tool}'"), "x", "text")
	f.Add([]byte("tools.'*'.from_chars = 3"), "y", "é")
	f.Fuzz(func(t *testing.T, table []byte, tool, text string) {
		rules, err := step.BuiltinRules().With(table)
		if err != nil {
			if !errors.Is(err, step.ErrRules) {
				t.Fatal(err)
			}
			return
		}
		call := step.Call{Tool: tool, Args: map[string]any{"path": text}, Result: step.Result{Output: map[string]any{"stdout": text, "exit_code": 1}}}
		got := step.NewReducer(&step.Options{Rules: rules}).Reduce(call)
		if got.Offload && (got.OffloadExt == "" || got.OffloadKind == "") {
			t.Fatalf("offloaded without a name: %+v", got)
		}
	})
}

// What is left out has more tokens than the line that says so.
//
// P02
func TestClippingPays(t *testing.T) {
	// Blanks cost nothing, so that texts with many are the ones to get wrong.
	count := func(text string) int { return len(strings.Join(strings.Fields(text), "")) }
	random := rand.New(rand.NewPCG(2, 5))
	pieces := []string{" ", "\n", "word", "a", "\n\n", "    "}
	whole := 0
	for range 3000 {
		var b strings.Builder
		for range random.IntN(12) {
			b.WriteString(strings.Repeat(pieces[random.IntN(len(pieces))], random.IntN(400)))
		}
		text := b.String()
		opts := &step.Options{Count: count, InlineBytes: 300 + random.IntN(1000)}
		switch got := reduce(opts, readCall("a", text)); {
		case got.Inline == text:
			if len(text) > opts.InlineBytes {
				whole++
			}
		case count(got.Inline) >= count(text):
			t.Fatalf("%d of %d bytes take %d, the whole %d:\n%q", len(got.Inline), len(text), count(got.Inline), count(text), got.Inline)
		case !got.Offload:
			t.Fatalf("%d of %d bytes are shown, and the whole is not kept", len(got.Inline), len(text))
		}
	}
	if whole == 0 {
		t.Error("no text is whole because leaving something out would not pay")
	}
}
