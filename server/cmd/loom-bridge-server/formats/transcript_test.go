package formats

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// transcriptOf writes lines of Claude Code, each "id after: rest", where rest is a text that a person
// or (in front of >) a model says, a result (<) or a call ($), or a line as it is ({).
func transcriptOf(t *testing.T, lines ...string) string {
	t.Helper()
	var all strings.Builder
	for _, l := range lines {
		ids, said, _ := strings.Cut(l, ": ")
		id, after, _ := strings.Cut(ids, " ")
		role, content := "user", fmt.Sprintf("%q", said)
		switch rest := said[1:]; said[0] {
		case '>':
			role, content = "assistant", fmt.Sprintf("%q", rest)
		case '$':
			role, content = "assistant", fmt.Sprintf(`[{"type":"tool_use","id":%q,"name":"Bash","input":{}}]`, rest)
		case '<':
			content = fmt.Sprintf(`[{"type":"tool_result","tool_use_id":%q,"content":"done"}]`, rest)
		case '{':
			fmt.Fprintf(&all, `{"sessionId":"s","uuid":%q,"parentUuid":%q,%s`+"\n", id, after, rest)
			continue
		}
		fmt.Fprintf(&all, `{"type":%q,"sessionId":"s","uuid":%q,"parentUuid":%q,"message":{"role":%q,"content":%s}}`+"\n", role, id, after, role, content)
	}
	path := filepath.Join(t.TempDir(), "s.jsonl")
	if err := os.WriteFile(path, []byte(all.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBranchesOfClaudeCode: what a person took back is left out with all that came from it, and
// nothing else; what she said while the model worked is there once.
func TestBranchesOfClaudeCode(t *testing.T) {
	t.Parallel()
	queued := func(text, mode string) string {
		return fmt.Sprintf(`{"type":"attachment","attachment":{"type":"queued_command","prompt":%q,"commandMode":%q}}`, text, mode)
	}
	remove := func(text string) string {
		return fmt.Sprintf(`{"type":"queue-operation","operation":"remove","content":%q}`, text)
	}
	for name, each := range map[string]struct {
		lines, want []string
		leftOut     int
	}{
		"asked anew": {
			[]string{"a : one", "b a: >first", "c b: two", "d c: >second", "e b: three", "f e: >third"},
			[]string{"one", "first", "three", "third"},
			2,
		},
		"asked anew after a mark": {
			[]string{"a : one", "b a: >first", `m b: {"type":"system"}`, "c m: two", "d c: >second", "e m: three"},
			[]string{"one", "first", "three"},
			2,
		},
		"back to the first branch": {
			[]string{"a : one", "b a: >first", "c b: two", "d c: >second", "e b: three", "f e: >third", "g d: four"},
			[]string{"one", "first", "two", "second", "four"},
			2,
		},
		"two calls at once": {
			[]string{"a : one", "b a: $1", "c b: $2", "d b: <1", "e c: <2", "f e: >first"},
			[]string{"one", "", "", "done", "done", "first"},
			0,
		},
		"a call of what was taken back": {
			[]string{"a : one", "b a: >first", "c b: two", "d c: $1", "e d: <1", "f b: three"},
			[]string{"one", "first", "three"},
			3,
		},
		"compacted": {
			[]string{"a : one", "b a: two", "c a: three", `m : {"type":"system","logicalParentUuid":"c"}`, "d m: >third"},
			[]string{"one", "three", "third"},
			1,
		},
		"parts that nothing joins": {
			[]string{"a : one", "b x: two", "c y: three"}, []string{"one", "two", "three"}, 0,
		},
		"a line twice": {
			[]string{"a : one", "b a: >first", "b a: >first", "c b: two"}, []string{"one", "first", "two"}, 0,
		},
		"said meanwhile": {
			[]string{"a : one", "b a: $1", "c b: <1", "d c: " + queued("and two", "prompt"), "e d: >first"},
			[]string{"one", "", "done", "and two", "first"},
			0,
		},
		"said meanwhile, by earlier versions": {
			[]string{"a : one", "b a: $1", "c b: <1", " : " + remove("and two"), "e c: >first"},
			[]string{"one", "", "done", "and two", "first"},
			0,
		},
		"said meanwhile, twice in the file": {
			[]string{"a : one", " : " + remove("and two"), "b a: " + queued("and two", "prompt"), " : " + remove("never mind"), "c b: >first"},
			[]string{"one", "and two", "first"},
			2,
		},
		"said meanwhile by the program": {
			[]string{"a : one", "b a: " + queued("<task-notification>done", "task-notification"), "c b: >first"}, []string{"one", "first"}, 0,
		},
		"said meanwhile in what was taken back": {
			[]string{"a : one", "b a: >first", "c b: two", "d c: $1", "e d: <1", " : " + remove("and more"), "f b: three"},
			[]string{"one", "first", "three"},
			4,
		},
		"waits or was taken out": {
			[]string{"a : one", ` : {"type":"queue-operation","operation":"enqueue","content":"two"}`, ` : {"type":"queue-operation","operation":"popAll","content":"two"}`, "b a: >first"},
			[]string{"one", "first"},
			0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said, counts, err := read(t, "claude-code", Sessions, transcriptOf(t, each.lines...))
			for i, line := range said {
				_, line, _ = strings.Cut(line, ": ")
				line, _, _ = strings.Cut(line, "→")
				said[i], _, _ = strings.Cut(line, "←")
			}
			if err != nil || !slices.Equal(said, each.want) || counts.LeftOut != each.leftOut {
				t.Errorf("%q, %d left out, %v; want %q, %d", said, counts.LeftOut, err, each.want, each.leftOut)
			}
		})
	}
}

// TestTurnsOfCodex: what a person took back is left out.
func TestTurnsOfCodex(t *testing.T) {
	t.Parallel()
	const back = `{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":%s}}` + "\n"
	message := func(role, text string) string {
		return fmt.Sprintf(`{"type":"response_item","payload":{"type":"message","role":%q,"content":[{"type":"output_text","text":%q}]}}`+"\n", role, text)
	}
	told := message("user", "one") + message("assistant", "first") + message("user", "two") + message("assistant", "second")
	for turns, want := range map[string][]string{
		"1": {"one", "first", "three"}, "2": {"three"}, "9": {"three"}, "0": {"one", "first", "two", "second", "three"},
		"-1": {"one", "first", "two", "second", "three"}, `"1"`: {"one", "first", "two", "second", "three"},
	} {
		path := filepath.Join(t.TempDir(), "rollout.jsonl")
		if err := os.WriteFile(path, []byte(told+fmt.Sprintf(back, turns)+message("user", "three")), 0o600); err != nil {
			t.Fatal(err)
		}
		said, counts, err := read(t, "codex", Sessions, path)
		for i, line := range said {
			_, said[i], _ = strings.Cut(line, ": ")
		}
		if err != nil || !slices.Equal(said, want) || counts.LeftOut != 5-len(want) {
			t.Errorf("%s turns back: %q, %d left out, %v; want %q", turns, said, counts.LeftOut, err, want)
		}
	}
}
