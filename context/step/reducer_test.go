package step_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
)

func reduce(opts *step.Options, c step.Call) step.Reduced { return step.NewReducer(opts).Reduce(c) }

// withRules are options with a table laid over the built-in rules.
func withRules(tb testing.TB, table string) *step.Options {
	tb.Helper()
	rules, err := step.BuiltinRules().With([]byte(table))
	if err != nil {
		tb.Fatal(err)
	}
	return &step.Options{Rules: rules}
}

// readCall is fs:read_file as the hand reports it: the body apart.
func readCall(path, content string) step.Call {
	return step.Call{
		Tool: "fs:read_file", Args: map[string]any{"path": path},
		Result: step.Result{
			BodyKey: "content", BodySize: int64(len(content)), BodyText: content, BodySHA256: sha(content),
		},
	}
}

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func figure(t *testing.T, metadata json.RawMessage, key string) any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(metadata, &object); err != nil {
		t.Fatalf("metadata %s: %v", metadata, err)
	}
	return object[key]
}

// A01, A02, A03: minimal arguments, one line, and what has to be offloaded.
func TestReduceReadFile(t *testing.T) {
	content := strings.Repeat("line\n", 300)
	got := reduce(nil, readCall("src/a.go", content))
	want := step.Reduced{
		MinimalArgs: raw(`{"path":"src/a.go"}`),
		Args:        raw(`{"path":"src/a.go"}`),
		Metadata: raw(`{"bytes":1500,"lines":300,"sha256":"` + sha(content) +
			`","size":1500,"type":"text"}`),
		Observation: "Read src/a.go (1500 bytes, text)",
		Inline:      content,
		Offload:     true, OffloadKind: "read", OffloadExt: "txt", OffloadCategory: "read",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A09
func TestReadTypes(t *testing.T) {
	tests := []struct{ name, path, content, want, ext string }{
		{"by name", "a.json", "not json", "JSON", "json"},
		{"by name in capitals", "A.JSON", "\x00", "JSON", "json"},
		{"NUL", "a", "a\x00b", "binary", "bin"},
		{"not UTF-8", "a.txt", "a\xff", "binary", "bin"},
		{"text", "json", "{}", "text", "txt"},
		{"empty", "a", "", "text", "txt"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := reduce(withRules(t, `tools."fs:read_file".from_bytes = 1`), readCall(tt.path, tt.content))
			want := fmt.Sprintf("Read %s (%d bytes, %s)", tt.path, len(tt.content), tt.want)
			if got.Observation != want {
				t.Errorf("observation %q, want %q", got.Observation, want)
			}
			if figure(t, got.Metadata, "type") != tt.want || figure(t, got.Metadata, "sha256") != sha(tt.content) {
				t.Errorf("metadata %s", got.Metadata)
			}
			if got.Offload && got.OffloadExt != tt.ext {
				t.Errorf("extension %q, want %q", got.OffloadExt, tt.ext)
			}
		})
	}
}

// A09, A12, A18: each threshold at n-1, n, n+1.
func TestOffloadThresholds(t *testing.T) {
	entries := func(n int) step.Call {
		list := make([]any, n)
		for i := range list {
			list[i] = "f"
		}
		return step.Call{Tool: "fs:list_dir", Result: step.Result{Output: map[string]any{"entries": list}}}
	}
	anyTool := func(n int) step.Call {
		// {"v":"…"} is eight bytes around the text.
		return step.Call{Tool: "x:y", Result: step.Result{Output: map[string]any{"v": strings.Repeat("a", n-8)}}}
	}
	withBody := func(n int) step.Call {
		return step.Call{Tool: "x:y", Result: step.Result{BodyKey: "b", BodySize: int64(n), BodyText: strings.Repeat("a", n)}}
	}
	read := func(n int) step.Call { return readCall("a", strings.Repeat("a", n)) }
	tests := []struct {
		name string
		call func(int) step.Call
		n    int
		want bool
	}{
		{"read", read, 1023, false},
		{"read", read, 1024, false},
		{"read", read, 1025, true},
		{"list", entries, 9, false},
		{"list", entries, 10, false},
		{"list", entries, 11, true},
		{"other", anyTool, 999, false},
		{"other", anyTool, 1000, true},
		{"other", anyTool, 1001, true},
		{"other with a body", withBody, 999, false},
		{"other with a body", withBody, 1000, true},
		{"other with a body", withBody, 1001, true},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s %d", tt.name, tt.n), func(t *testing.T) {
			got := reduce(nil, tt.call(tt.n))
			if got.Offload != tt.want {
				t.Errorf("offload = %t", got.Offload)
			}
			if got.Offload && tt.name == "other" && len(got.OffloadBytes) != tt.n {
				t.Errorf("%d bytes to offload", len(got.OffloadBytes))
			}
		})
	}
}

// A08
func TestDesignStyleOfReads(t *testing.T) {
	got := reduce(&step.Options{Style: step.ObservationDesign}, readCall("a.txt", "hello"))
	if got.Observation != "Read file (5 bytes)" || string(got.MinimalArgs) != `{"path":"a.txt"}` {
		t.Errorf("got %q, %s", got.Observation, got.MinimalArgs)
	}
}

// A10: offloaded content stays usable until its step folds; a preset may
// hide it.
func TestInlineOfAnOffloadedRead(t *testing.T) {
	content := strings.Repeat("a\n", 600)
	shown := reduce(nil, readCall("a", content))
	if !shown.Offload || shown.Inline != content {
		t.Errorf("offload %t, inline of %d bytes", shown.Offload, len(shown.Inline))
	}
	hidden := reduce(&step.Options{HideOffloaded: true}, readCall("a", content))
	if !hidden.Offload || hidden.Inline != "" {
		t.Errorf("hidden: offload %t, inline of %d bytes", hidden.Offload, len(hidden.Inline))
	}
	short := reduce(&step.Options{HideOffloaded: true}, readCall("a", "short"))
	if short.Offload || short.Inline != "short" {
		t.Errorf("short: offload %t, inline %q", short.Offload, short.Inline)
	}
}

func TestReadKnowsThatTheFileChanged(t *testing.T) {
	call := readCall("a", "new")
	for written, want := range map[string]any{"": nil, sha("new"): nil, sha("old"): true} {
		call.WrittenSHA256 = written
		if got := figure(t, reduce(nil, call).Metadata, "changed_since_write"); got != want {
			t.Errorf("written %q: changed_since_write = %v, want %v", written, got, want)
		}
	}
}

// A11: what was written never comes back, and no reference is made; its bytes
// are kept all the same.
func TestReduceWriteFile(t *testing.T) {
	secret := strings.Repeat("secret ", 400)
	tests := []struct {
		name   string
		args   map[string]any
		output map[string]any
		want   string
		keep   string
	}{
		{
			"bytes_written first",
			map[string]any{"path": "a", "content": secret},
			map[string]any{"success": true, "bytes_written": json.Number("7"), "bytes": 8},
			"Wrote a (7 bytes)", "content",
		},
		{"then bytes", map[string]any{"path": "a", "content": secret}, map[string]any{"bytes": 8.0}, "Wrote a (8 bytes)", "content"},
		{"then the content", map[string]any{"path": "a", "content": "äö"}, nil, "Wrote a (4 bytes)", "content"},
		{"nothing known", map[string]any{"path": "a"}, map[string]any{"bytes": "many"}, "Wrote a (0 bytes)", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := reduce(nil, step.Call{Tool: "fs:write_file", Args: tt.args, Result: step.Result{Output: tt.output}})
			if got.Observation != tt.want || got.Offload || got.KeepArg != tt.keep {
				t.Errorf("got %q, offload %t, keep %q", got.Observation, got.Offload, got.KeepArg)
			}
			if string(got.MinimalArgs) != `{"path":"a"}` || got.Args != nil {
				t.Errorf("arguments %s and %s", got.MinimalArgs, got.Args)
			}
			if all := fmt.Sprintf("%+v", got); strings.Contains(all, "secret") {
				t.Errorf("the content is in %s", all)
			}
			if content, ok := tt.args["content"].(string); ok && figure(t, got.Metadata, "sha256") != sha(content) {
				t.Errorf("metadata %s", got.Metadata)
			}
		})
	}
}

// A12
func TestReduceListDir(t *testing.T) {
	entries := []any{
		"a/", "b",
		map[string]any{"name": "c", "is_dir": true, "size": json.Number("4096")},
		map[string]any{"name": "d", "is_dir": false},
		map[string]any{"name": "e"},
		7, nil,
	}
	got := reduce(nil, step.Call{
		Tool: "fs:list_dir", Args: map[string]any{"path": "src"},
		Result: step.Result{Output: map[string]any{"path": "src", "entries": entries}},
	})
	if want := "Listed src: 7 items (5 files, 2 dirs)"; got.Observation != want {
		t.Errorf("got %q, want %q", got.Observation, want)
	}
	if want := `{"count":7,"dirs":2,"files":5}`; string(got.Metadata) != want {
		t.Errorf("metadata %s, want %s", got.Metadata, want)
	}
	if got.Offload || !strings.Contains(got.Inline, `"name": "c"`) {
		t.Errorf("offload %t, inline %q", got.Offload, got.Inline)
	}
	many := make([]any, 11)
	for i := range many {
		many[i] = fmt.Sprint("f", i)
	}
	got = reduce(nil, step.Call{Tool: "fs:list_dir", Result: step.Result{Output: map[string]any{"entries": many}}})
	if want := "Listed .: 11 items (11 files, 0 dirs)"; got.Observation != want || string(got.MinimalArgs) != "{}" {
		t.Errorf("got %q, %s", got.Observation, got.MinimalArgs)
	}
	if !got.Offload || got.OffloadKind != "list" || got.OffloadExt != "json" || !json.Valid(got.OffloadBytes) {
		t.Errorf("offload %t as %s, %s: %s", got.Offload, got.OffloadKind, got.OffloadExt, got.OffloadBytes)
	}
}

// A18
func TestReduceAnyOtherTool(t *testing.T) {
	long := strings.Repeat("é", 300)
	tests := []struct {
		name   string
		result step.Result
		want   string
	}{
		{"a text", textResult("one\n two"), "x:y → one two"},
		{"a text as JSON", mustParse(t, `"one\n two"`), "x:y → one two"},
		{"a text under a plain name", mustParse(t, `{"content":"one\n two"}`), "x:y → one two"},
		{"a text under a name of its own", mustParse(t, `{"error_code":"E42"}`), `x:y → {"error_code": "E42"}`},
		{"null", mustParse(t, `null`), "x:y completed"},
		{"no items", mustParse(t, `[]`), "x:y completed"},
		{"true", mustParse(t, `true`), "x:y → true"},
		{"a number", mustParse(t, `3`), "x:y → 3"},
		{"a list", mustParse(t, ` [1, "a"]`), `x:y → [1, "a"]`},
		{"no text", mustParse(t, `""`), "x:y completed"},
		{"an object", step.Result{Output: map[string]any{"b": 1, "a": "z"}}, `x:y → {"a": "z", "b": 1}`},
		{"200 characters", textResult(long[:400]), "x:y → " + long[:400]},
		{"201 characters", textResult(long[:402]), "x:y → " + long[:400] + "..."},
		{"empty", step.Result{}, "x:y completed"},
		{"empty object", step.Result{Output: map[string]any{}}, "x:y completed"},
		{"a body", step.Result{BodyKey: "b", BodyText: "text", BodySize: 4}, "x:y → text"},
		{"failed", step.Result{Failed: true, ErrorText: "no\nroute"}, "x:y failed: no route"},
		{"failed silently", step.Result{Failed: true}, "x:y failed:"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := reduce(nil, step.Call{Tool: "x:y", Result: tt.result})
			if got.Observation != tt.want {
				t.Errorf("got %q, want %q", got.Observation, tt.want)
			}
			if wantOutcome := got.Outcome == step.Failed; wantOutcome != tt.result.Failed {
				t.Errorf("outcome %s", got.Outcome)
			}
		})
	}
}

// A18, A02: at 99, 100 and 101 characters.
func TestMinimalArgsOfAnyOtherTool(t *testing.T) {
	text := strings.Repeat("ü", 101)
	args := map[string]any{
		"n": json.Number("12345678901234567890"), "t": true, "z": nil, "a99": text[:198], "a100": text[:200], "a101": text,
		"list": []any{1, 2, 3}, "object": map[string]any{"k": 1},
	}
	want := `{"a100":"` + text[:200] + `","a101":"` + text[:200] + `...","a99":"` + text[:198] +
		`","list":"[3 items]","n":12345678901234567890,"object":"{1 keys}","t":true,"z":null}`
	if got := reduce(nil, step.Call{Tool: "x:y", Args: args}); string(got.MinimalArgs) != want {
		t.Errorf("got  %s\nwant %s", got.MinimalArgs, want)
	}
	many := make(map[string]any)
	for i := range 100000 {
		many[fmt.Sprintf("key%06d", i)] = i
	}
	got := reduce(nil, step.Call{Tool: "x:y", Args: many})
	if len(got.MinimalArgs) > 4096 || got.Args != nil {
		t.Errorf("%d bytes of minimal arguments, %d of all", len(got.MinimalArgs), len(got.Args))
	}
	if !strings.Contains(string(got.MinimalArgs), `"...":"[99936 more]"`) {
		t.Errorf("nothing says that arguments are missing: %.80s", got.MinimalArgs)
	}
}

// A06: the rule is found by the name with _ for the colon.
func TestRulesByName(t *testing.T) {
	for _, name := range []string{"fs:read_file", "fs_read_file"} {
		call := readCall("a", "x")
		call.Tool = name
		if got := reduce(nil, call).Observation; got != "Read a (1 bytes, text)" {
			t.Errorf("%s: %q", name, got)
		}
	}
	for tool, want := range map[string]string{"fs:stat": "tool", "fs:delete": "tool", "fs:search": "search", "x": "tool"} {
		args := map[string]any{"path": strings.Repeat("p", 150), "query": "q"}
		got := reduce(nil, step.Call{Tool: tool, Args: args})
		if got.OffloadKind != want {
			t.Errorf("%s: kind %q, want %q", tool, got.OffloadKind, want)
		}
		if keepsQuery := strings.Contains(string(got.MinimalArgs), `"query":"q"`); keepsQuery != (tool == "fs:search" || tool == "x") {
			t.Errorf("%s: arguments %s", tool, got.MinimalArgs)
		}
	}
}

func TestLongErrorsAreKeptWhole(t *testing.T) {
	text := strings.Repeat("trace line\n", 5000) + "the reason"
	got := reduce(nil, step.Call{Tool: "x:y", Result: step.Result{Failed: true, ErrorText: text}})
	if !got.Offload || string(got.OffloadBytes) != text || got.OffloadExt != "txt" {
		t.Errorf("offload %t, %d bytes", got.Offload, len(got.OffloadBytes))
	}
	if len(got.Error) > step.MaxErrorBytes || len(got.Observation) > step.MaxErrorBytes+100 {
		t.Errorf("%d bytes of error, %d of observation", len(got.Error), len(got.Observation))
	}
	head, tail, found := strings.Cut(got.Inline, "bytes left out; full text: see reference]")
	if !found || len(tail) < len(head)*3/2 || !strings.HasSuffix(tail, "the reason") {
		t.Errorf("inline keeps %d bytes of the head and %d of the tail", len(head), len(tail))
	}
}

func TestInlineKeepsHeadAndTailOnLineBorders(t *testing.T) {
	var b strings.Builder
	for i := range 10000 {
		fmt.Fprintf(&b, "line %06d\n", i)
	}
	content := b.String()
	call := readCall("a", content)
	call.Result.BodyText, call.Result.BodyTail = content[:step.HeldBodyBytes], content[len(content)-step.HeldBodyBytes:]
	got := reduce(nil, call).Inline
	head, rest, _ := strings.Cut(got, "\n[… ")
	mark := fmt.Sprintf(" bytes left out; full text: see reference; read on with offset %d]\n", strings.Count(head, "\n")+2)
	_, tail, found := strings.Cut(rest, mark)
	if !found || len(got) > step.DefaultInlineBytes {
		t.Fatalf("inline of %d bytes has no mark", len(got))
	}
	if !strings.HasPrefix(content, head+"\n") || !strings.HasSuffix(content, "\n"+tail) {
		t.Error("head and tail are not whole lines of the content")
	}
	if share := float64(len(head)) / float64(len(head)+len(tail)); share < 0.65 || share > 0.68 {
		t.Errorf("the head is %.2f of what is shown", share)
	}
	var missing int
	if _, err := fmt.Sscanf(rest, "%d", &missing); err != nil || missing+len(head)+len(tail) != len(content) {
		t.Errorf("%d bytes are said to be missing of %d", missing, len(content)-len(head)-len(tail))
	}
}

func TestInlineLimit(t *testing.T) {
	for _, n := range []int{99, 100, 101} {
		content := strings.Repeat("é", n/2) + strings.Repeat("x", n%2)
		got := reduce(&step.Options{InlineBytes: 100}, readCall("a", content)).Inline
		if whole := got == content; whole != (n <= 100) || len(got) > 100 || !utf8.ValidString(got) {
			t.Errorf("%d bytes: inline %q", n, got)
		}
	}
}

// A06: whatever a tool gives, something comes out, and it is a step that can be
// kept.
func TestReduceTakesAnything(t *testing.T) {
	seed := chance.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	tools := []string{
		"fs:read_file", "fs:write_file", "fs:list_dir", "fs:search", "fs:delete", "fs:stat", "x:y", "", "\xff\n",
		"web:search", "browser:navigate", "system:shell", "weather:get",
	}
	styles := []*step.Options{nil, {Style: step.ObservationDesign, HideOffloaded: true, InlineBytes: 1}}
	for range 2000 {
		call := randomCall(random, tools[random.IntN(len(tools))])
		r := step.NewReducer(styles[random.IntN(len(styles))])
		got := r.Reduce(call)
		checkReduced(t, call, got)
		if again := r.Reduce(call); !reflect.DeepEqual(got, again) {
			t.Fatalf("%+v: a second time is different: %s", call, cmp.Diff(got, again))
		}
		if before := r.MinimalArgs(call.Tool, call.Args); string(before) != string(got.MinimalArgs) {
			t.Fatalf("%+v: minimal arguments are %s before and %s after", call, before, got.MinimalArgs)
		}
		canonical(t, got.MinimalArgs)
		canonical(t, got.Metadata)
	}
}

func checkReduced(t *testing.T, call step.Call, got step.Reduced) {
	t.Helper()
	for name, document := range map[string]json.RawMessage{"minimal_args": got.MinimalArgs, "metadata": got.Metadata} {
		if !json.Valid(document) || document[0] != '{' {
			t.Fatalf("%+v: %s is %q", call, name, document)
		}
	}
	oneLine := call.Tool != "system:shell" || got.Outcome == step.Succeeded
	if oneLine && strings.ContainsAny(got.Observation, "\n\r") || got.Observation == "" || len(got.Observation) > 8<<10 {
		t.Fatalf("%+v: observation %.200q", call, got.Observation)
	}
	if got.Offload && (got.OffloadExt == "" || got.OffloadKind == "") {
		t.Fatalf("%+v: offloaded without a name", call)
	}
	if len(got.Inline) > step.DefaultInlineBytes || len(got.Evidence) > step.MaxEvidenceBytes {
		t.Fatalf("%+v: inline of %d bytes, evidence of %d", call, len(got.Inline), len(got.Evidence))
	}
	step.DesignTemplates().Compact(step.Step{Number: 1, ToolName: call.Tool, MinimalArgs: got.MinimalArgs, Metadata: got.Metadata})
}

func canonical(t *testing.T, s json.RawMessage) {
	t.Helper()
	if want := text.CanonicalJSON(s); string(want) != string(s) {
		t.Fatalf("%s is not canonical, that would be %s", s, want)
	}
}

func randomCall(random *rand.Rand, tool string) step.Call {
	args, _ := randomValue(random, 3).(map[string]any)
	output, _ := randomValue(random, 4).(map[string]any)
	if output != nil {
		for _, key := range []string{"entries", "bytes_written", "content", "count", "stdout", "stderr", "output", "exit_code", "results", "text", "status", "links"} {
			if random.IntN(2) == 0 {
				output[key] = randomValue(random, 3)
			}
		}
	}
	if args != nil {
		for _, key := range []string{"path", "content", "command", "args", "url", "query"} {
			args[key] = randomValue(random, 1)
		}
	}
	call := step.Call{Tool: tool, Args: args, Result: step.Result{
		Output: output, Failed: random.IntN(4) == 0, ErrorText: randomText(random), BodyBinary: random.IntN(5) == 0,
	}}
	if random.IntN(2) == 0 {
		key := []string{"content", "output", "stdout", "text"}[random.IntN(4)]
		call.Result.BodyKey, call.Result.BodyText, call.Result.BodyTail = key, randomText(random), randomText(random)
		call.Result.BodySize = int64(len(call.Result.BodyText)) + random.Int64N(3) - 1
	}
	return call
}

func randomValue(random *rand.Rand, depth int) any {
	switch n := random.IntN(8); {
	case n < 4 && depth > 0:
		object := make(map[string]any)
		for range random.IntN(5) {
			object[randomText(random)] = randomValue(random, depth-1)
		}
		return object
	case n == 4 && depth > 0:
		array := make([]any, random.IntN(5))
		for i := range array {
			array[i] = randomValue(random, depth-1)
		}
		return array
	case n == 5:
		return json.Number([]string{"1", "-1", "1e9", "1e99", "0.5", "x", ""}[random.IntN(7)])
	case n == 6:
		return []any{nil, true, 1.5, -3, int64(7)}[random.IntN(5)]
	}
	return randomText(random)
}

func randomText(random *rand.Rand) string {
	alphabet := []string{"a", "b/", ".json", "\n", " ", "é", "😀", "\x00", "\xff", "…", "\"", "\u2028"}
	var b strings.Builder
	for range random.IntN(1 << random.IntN(11)) {
		b.WriteString(alphabet[random.IntN(len(alphabet))])
	}
	return b.String()
}
