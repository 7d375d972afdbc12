package replay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/replay"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Each file of testdata is a small log in one format. Beside it lies what was
// read of it, and what it costs under policies that don't change when a byte
// counts as a token.
func TestFormats(t *testing.T) {
	logs, err := filepath.Glob("testdata/*.json*")
	if err != nil || len(logs) == 0 {
		t.Fatalf("no logs: %v", err)
	}
	for _, log := range logs {
		t.Run(filepath.Base(log), func(t *testing.T) {
			text, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			runs := MustRead(t, string(text))
			got := describe(runs) + MustRows(t, runs)
			golden := strings.TrimSuffix(log, filepath.Ext(log)) + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// goldenBudget is in bytes: the larger logs don't fit without folds.
const goldenBudget = 3000

// MustRows is one line of JSON for each of some policies. The ledger, whose
// figures may become better, has to keep to its budget.
func MustRows(tb testing.TB, runs []replay.Run) string {
	tb.Helper()
	s := replay.Settings{Budget: goldenBudget}
	bytes := func(text string) int { return len(text) }
	rows := MustMeasure(tb, bytes, runs, MustNamed(tb, s, "ledger", "append_only", "sliding_mask:3", "clear_tool_uses:2000")...)
	if l := rows[0]; l.PeakMax > goldenBudget || l.Over > 0 || l.TokensRatio > 1 || (l.BustsPerStep > 0) != (rows[1].PeakMax > goldenBudget) {
		tb.Errorf("%+v", l)
	}
	var out strings.Builder
	for _, r := range rows[1:] {
		line, err := json.Marshal(r)
		if err != nil {
			tb.Fatal(err)
		}
		out.Write(append(line, '\n'))
	}
	return out.String()
}

// MustNamed returns policies by their names.
func MustNamed(tb testing.TB, s replay.Settings, names ...string) []replay.Policy {
	tb.Helper()
	var all []replay.Policy
	for _, name := range names {
		p, ok := replay.Named(name, s)
		if !ok || p.Name() != name {
			tb.Fatalf("policy %s: %v", name, p)
		}
		all = append(all, p)
	}
	return all
}

// describe is what was read, one line a message.
func describe(runs []replay.Run) string {
	var b strings.Builder
	kinds := map[history.Kind]string{history.Fixed: "fixed", history.Turn: "turn", history.Result: "result"}
	for _, r := range runs {
		fmt.Fprintf(&b, "run %s: %d messages, %d steps\n", r.ID, len(r.Messages), r.Steps())
		for _, e := range r.Entries {
			fmt.Fprintf(&b, "  %s %s", kinds[e.Kind], e.Ref)
			if e.Text != "" {
				fmt.Fprintf(&b, " %.40q", e.Text)
			}
			for _, c := range e.Calls {
				fmt.Fprintf(&b, " [%s %s %.40s]", c.ID, c.Name, c.Args)
			}
			if e.Kind == history.Result {
				fmt.Fprintf(&b, " of %q gave %.40q", e.CallID, e.Output)
			}
			if e.Exit != nil {
				fmt.Fprintf(&b, ", exit %d", *e.Exit)
			}
			if e.Failed {
				b.WriteString(", failed")
			}
			if e.ExtraTokens > 0 {
				fmt.Fprintf(&b, ", %d tokens of images", e.ExtraTokens)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// What logs of others hold beside, lack, or have of another type.
func TestReadIsTolerant(t *testing.T) {
	for _, test := range []struct{ name, log, want string }{
		{
			"null, numbers, no arguments", `{"id": 7, "messages": [{"role": "user", "content": null}, {"role": "assistant", "content": 3, "tool_calls": [{"id": 5, "function": {"name": "f", "arguments": {"a": 1}}}, {}]}, {"role": "tool", "tool_call_id": 5, "content": {"ok": true}, "returncode": "2"}]}`,
			"run 7: 3 messages, 1 steps\n  fixed message 1\n  turn 001 \"3\" [5 f {\"a\": 1}] [  ]\n  result 001 of \"5\" gave \"{\\\"ok\\\": true}\", exit 2\n",
		},
		{
			"no results, odd roles, odd lists", `{"messages": [{"role": "assistant", "tool_calls": "none", "content": ["a", {"type": "text", "text": "b"}, {"type": "other", "x": 1}]}, {"role": "critic", "content": "c"}, {"role": "assistant", "content": ""}]}`,
			"run line 1: 3 messages, 2 steps\n  turn 001 \"a\\nb\\n{\\\"type\\\": \\\"other\\\", \\\"x\\\": 1}\"\n  fixed message 2 \"c\"\n  turn 002\n",
		},
		{
			"results that nothing waits for", `[{"role": "tool", "content": "x"}, {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}, {"role": "function", "name": "f", "content": "y"}, {"role": "tool", "content": "z"}]`,
			"run line 1: 4 messages, 1 steps\n  result message 1 of \"\" gave \"x\"\n  turn 001 [ f {}]\n  result 001 of \"\" gave \"y\"\n  result message 4 of \"\" gave \"z\"\n",
		},
		{
			"ids that repeat within a turn, and wrong ones", `[{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f"}}, {"id": "a", "function": {"name": "g"}}, {"id": "b", "function": {"name": "h"}}]}, {"role": "tool", "tool_call_id": "a", "content": "1"}, {"role": "tool", "tool_call_id": "a", "content": "2"}, {"role": "tool", "tool_call_id": "x", "content": "3"}]`,
			"run line 1: 4 messages, 1 steps\n  turn 001 [a f ] [a g ] [b h ]\n  result 001 of \"a\" gave \"1\"\n  result 002 of \"a\" gave \"2\"\n  result 003 of \"b\" gave \"3\"\n",
		},
		{
			"calls of one turn in messages of their own", `[{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f"}}]}, {"role": "assistant", "content": "and", "tool_calls": [{"id": "b", "function": {"name": "g"}}]}, {"role": "tool", "tool_call_id": "a", "content": "1"}, {"role": "tool", "tool_call_id": "b", "content": "2"}]`,
			"run line 1: 3 messages, 1 steps\n  turn 001 \"and\" [a f ] [b g ]\n  result 001 of \"a\" gave \"1\"\n  result 002 of \"b\" gave \"2\"\n",
		},
		{
			"a mark and blank lines", "\ufeff\r\n\n{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}\r\n\n",
			"run line 3: 1 messages, 0 steps\n  fixed message 1 \"x\"\n",
		},
		{
			"a list of runs", `[{"messages": [{"role": "user", "content": "x"}]}, {"id": "b", "messages": [{"role": "user", "content": "y"}]}]`,
			"run line 1: 1 messages, 0 steps\n  fixed message 1 \"x\"\nrun b: 1 messages, 0 steps\n  fixed message 1 \"y\"\n",
		},
		{
			"samples of one request stay apart", `{"messages": [{"role": "user", "content": "x"}], "completion": "a"}
			{"messages": [{"role": "user", "content": "x"}], "completion": "b"}
			{"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "y"}], "completion": "c"}`,
			"run line 1: 2 messages, 1 steps\n  fixed message 1 \"x\"\n  turn 001 \"a\"\nrun line 2: 4 messages, 2 steps\n  fixed message 1 \"x\"\n  turn 001 \"b\"\n  fixed message 3 \"y\"\n  turn 002 \"c\"\n",
		},
	} {
		if diff := cmp.Diff(test.want, describe(MustRead(t, test.log))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// What is wrong is told with its line.
func TestReadSaysWhere(t *testing.T) {
	good := `{"messages": [{"role": "user", "content": "x"}]}` + "\n"
	for _, test := range []struct {
		log  string
		line int
		says string
	}{
		{good + good + "{\"messages\": [\n{]}", 4, "not JSON"},
		{good + "\n{\"id\": 3,\n \"foo\": 1}", 3, "it has foo, id"},
		{good + "{\"messages\": [\n\n", 3, "ends within"},
		{good + "nonsense", 2, "not JSON"},
		{good + `{"messages": [{"role": "user"}, 4]}`, 2, "message 2"},
		{good + `{"messages": [{"content": "who?"}]}`, 2, "message 1: it has no role"},
		{good + "[]", 2, "list"},
		{good + "\n\n\n\"text\"", 5, "neither"},
		{"\x1f\x8b\x08", 1, "not JSON"},
	} {
		_, err := replay.Read(strings.NewReader(test.log))
		bad, ok := errors.AsType[*replay.LineError](err)
		if !ok || bad.Line != test.line || !strings.Contains(err.Error(), test.says) || !errors.Is(err, replay.ErrFormat) {
			t.Errorf("%q: %v", test.log, err)
		}
	}
	broken := errors.New("broken")
	if _, err := replay.Read(io.MultiReader(strings.NewReader(good), iotest.ErrReader(broken))); !errors.Is(err, broken) || errors.Is(err, replay.ErrFormat) {
		t.Errorf("a reader's own error comes as %v", err)
	}
}

// A log is data of strangers: nothing in it may make Read panic, and what it
// reads can be replayed.
func FuzzRead(f *testing.F) {
	for _, log := range []string{openAI, anthropic, observed} {
		f.Add([]byte(log))
	}
	f.Add([]byte(`[{"role":"assistant","tool_calls":[{}]},{"role":"tool"},{"message":{"role":"user"}}]`))
	f.Fuzz(func(t *testing.T, log []byte) {
		runs, err := replay.Read(bytes.NewReader(log))
		if err != nil {
			if !errors.Is(err, replay.ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		for _, r := range MustRun(t, runs, MustNamed(t, replay.Settings{Budget: 50}, "ledger", "clear_tool_uses:20", "design_literal")...) {
			if r.Runs != len(runs) || r.IdentifiersVisible > 1 || r.StableShare > 1 {
				t.Errorf("%+v", r)
			}
		}
	})
}

func TestNamed(t *testing.T) {
	for _, name := range []string{"", "ledgers", "ledger:3", "sliding_mask:", "sliding_mask:0", "sliding_mask:x", "clear_tool_uses:-1", "none_sticky"} {
		if p, ok := replay.Named(name, replay.Settings{}); ok {
			t.Errorf("%q is %s", name, p.Name())
		}
	}
	for name, want := range map[string]string{"code": "code_sticky", "design": "design_sticky", "chat_literal": "chat_literal"} {
		if p, ok := replay.Named(name, replay.Settings{}); !ok || p.Name() != want {
			t.Errorf("%s is %v, want %s", name, p, want)
		}
	}
	MustNamed(t, replay.Settings{}, append(replay.Names(), "sliding_mask:7", "clear_tool_uses:100", "research_sticky")...)
}

// Blocks that lie too deep in one another are the text that they are: each level
// is read again with those below, so a small file could take minutes.
func TestNestedBlocks(t *testing.T) {
	nested := func(depth int) string {
		const open, end = `[{"type":"tool_result","content":`, `}]`
		return strings.Repeat(open, depth) + `"inside"` + strings.Repeat(end, depth)
	}
	for depth, want := range map[int]string{1: "inside", 2: "inside", 8: "inside", 9: nested(1), 4900: nested(4892)} {
		runs := MustRead(t, `{"messages":[{"role":"user","content":"go"},{"role":"user","content":`+nested(depth)+`}]}`)
		last := runs[0].Entries[len(runs[0].Entries)-1]
		if got := last.Output; got != want {
			t.Errorf("depth %d: %.100q, want %.100q", depth, got, want)
		}
	}
}
