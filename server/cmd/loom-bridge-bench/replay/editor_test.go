package replay_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/replay"
)

// editing makes runs of an agent with a shell and an editor: it reads whole files,
// searches, runs tests, and long after rewrites some lines of what it read.
type editing struct {
	r     *rand.Rand
	files map[string][]string
	paths []string
	steps []editStep
}

type editStep struct {
	tool   string
	args   map[string]any
	result string
}

// Sizes of these runs.
const (
	editFiles   = 6
	editLines   = 260
	editSteps   = 40
	editedLines = 9
)

var syllables = strings.Fields("ba co du fi gre ho ja kle lo mu nor pi qua ri so tri ul ve wem xi yor zan")

// word is one that nobody has said before, most likely.
func (e *editing) word(parts int) string {
	var b strings.Builder
	for range parts {
		b.WriteString(syllables[e.r.IntN(len(syllables))])
	}
	return b.String()
}

// name is one as code has them: with underscores, dots, capitals, or plain.
func (e *editing) name() string {
	switch e.r.IntN(4) {
	case 0:
		return e.word(2) + "_" + e.word(2)
	case 1:
		return "self." + e.word(2) + "." + e.word(1) + "_" + e.word(1)
	case 2:
		return strings.ToUpper(e.word(1)[:1]) + e.word(2) + strings.ToUpper(e.word(1)[:1]) + e.word(2)
	}
	return e.word(5)
}

// code is a line of a file. Names come again, as in code.
func (e *editing) code(names []string) string {
	one := func() string { return names[e.r.IntN(len(names))] }
	switch e.r.IntN(6) {
	case 0:
		return fmt.Sprintf("    def %s(self, %s, %s=None):", e.word(2)+"_"+e.word(1), e.word(2), e.word(2))
	case 1:
		return fmt.Sprintf("        if %s is not None and %s in %s:", one(), one(), one())
	case 2:
		return fmt.Sprintf("        # The %s of a %s is looked up before it is used.", e.word(5), one())
	case 3:
		return "        return " + one()
	case 4:
		return ""
	}
	return fmt.Sprintf("        %s = %s(%s, %s)", one(), one(), one(), one())
}

func newEditing(seed uint64) *editing {
	e := &editing{r: rand.New(rand.NewPCG(seed, 1)), files: make(map[string][]string)}
	for range editFiles {
		path := "/workspace/" + e.word(2) + "/" + e.word(2) + "_" + e.word(1) + ".py"
		var names []string
		for range editLines / 2 {
			names = append(names, e.name())
		}
		for range editLines {
			e.files[path] = append(e.files[path], e.code(names))
		}
		e.paths = append(e.paths, path)
	}
	return e
}

func (e *editing) path() string { return e.paths[e.r.IntN(len(e.paths))] }

func (e *editing) do(tool string, args map[string]any, result string) {
	e.steps = append(e.steps, editStep{tool, args, result})
}

func (e *editing) bash(command, output string) {
	e.do("execute_bash", map[string]any{"command": command}, output+"\n[The command completed with exit code 0.]\n[Current working directory: /workspace]")
}

func numbered(lines []string, from int) string {
	var b strings.Builder
	for i, line := range lines {
		fmt.Fprintf(&b, "%6d\t%s\n", from+i, line)
	}
	return b.String()
}

func (e *editing) view(path string) {
	e.do("str_replace_editor", map[string]any{"command": "view", "path": path},
		"Here's the result of running `cat -n` on "+path+":\n"+numbered(e.files[path], 1))
}

// edit rewrites lines that were read when the file was.
func (e *editing) edit(path string) {
	lines := e.files[path]
	at := e.r.IntN(len(lines) - editedLines)
	old := strings.Join(lines[at:at+editedLines], "\n")
	changed := append(slices.Clone(lines[at:at+editedLines-1]), "        return None")
	e.files[path] = slices.Concat(lines[:at], changed, lines[at+editedLines:])
	e.do("str_replace_editor", map[string]any{"command": "str_replace", "path": path, "old_str": old, "new_str": strings.Join(changed, "\n")},
		"The file "+path+" has been edited. Here's the result of running `cat -n` on a snippet:\n"+numbered(e.files[path][at:at+editedLines], at+1))
}

func (e *editing) search() {
	var found strings.Builder
	for _, path := range e.paths {
		for i, line := range e.files[path][:12] {
			fmt.Fprintf(&found, "%s:%d:%s\n", path, i+1, line)
		}
	}
	e.bash("grep -rn '"+e.word(1)+"' --include=*.py /workspace", found.String())
}

func (e *editing) test() {
	var out strings.Builder
	for i := range 12 {
		fmt.Fprintf(&out, "tests/test_%s.py::Test%s::test_%d PASSED\n", e.word(1), strings.ToUpper(e.word(1)), i)
	}
	e.bash("cd /workspace && python -m pytest -v", out.String()+"12 passed in 0.31s")
}

func (e *editing) run() []editStep {
	e.bash("find /workspace -name '*.py'", strings.Join(e.paths, "\n"))
	mended := e.paths[:3]
	for _, path := range mended {
		e.view(path)
	}
	for len(e.steps) < editSteps {
		switch e.r.IntN(4) {
		case 0:
			e.search()
		case 1:
			e.test()
		case 2:
			e.bash("python -c 'import "+e.word(2)+"'", "Traceback (most recent call last):\nModuleNotFoundError: No module named '"+e.word(3)+"'")
		default:
			e.edit(mended[e.r.IntN(len(mended))])
		}
	}
	e.view(e.path())
	return e.steps
}

// recorded is the run as a log has it: with calls, or with actions as text, and what
// came of them in messages of the observer's role.
func recorded(tb testing.TB, id string, steps []editStep, asText bool, observer string) string {
	tb.Helper()
	messages := []map[string]any{{"role": "system", "content": "You have a shell and an editor."}, {"role": "user", "content": "Mend what fails."}}
	for i, s := range steps {
		if asText {
			messages = append(messages, map[string]any{"role": "assistant", "content": "I go on.\n\n" + textAction(s)},
				map[string]any{"role": observer, "content": "EXECUTION RESULT of [" + s.tool + "]:\n" + s.result})
			continue
		}
		args := MustJSON(tb, s.args)
		call := fmt.Sprintf("call_%d", i)
		messages = append(messages,
			map[string]any{"role": "assistant", "content": "I go on.", "tool_calls": []any{
				map[string]any{"id": call, "type": "function", "function": map[string]any{"name": s.tool, "arguments": args}},
			}},
			map[string]any{"role": "tool", "tool_call_id": call, "content": s.result})
	}
	return MustJSON(tb, map[string]any{"id": id, "messages": messages}) + "\n"
}

// textAction is a call as a model without tools writes it.
func textAction(s editStep) string {
	var b strings.Builder
	b.WriteString("<function=" + s.tool + ">\n")
	for _, name := range []string{"command", "path", "old_str", "new_str"} {
		if value, ok := s.args[name].(string); ok {
			if strings.Contains(value, "\n") {
				value = "\n" + value + "\n"
			}
			b.WriteString("<parameter=" + name + ">" + value + "</parameter>\n")
		}
	}
	return b.String() + "</function>"
}

// MustJSON is a value as JSON.
func MustJSON(tb testing.TB, value any) string {
	tb.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// Of files that were read long ago the names stand in the prompt when their lines are
// rewritten, whatever the tools are called and however actions and results are written.
func TestRunsWithAnEditor(t *testing.T) {
	counter, err := tokens.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	count := func(text string) int {
		n, err := counter.Count("gpt-4o", text)
		if err != nil {
			t.Fatal(err)
		}
		return n.Tokens
	}
	for name, observer := range map[string]string{"calls": "", "text": "user", "text with results of tools": "tool"} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			for seed := range uint64(4) {
				log.WriteString(recorded(t, fmt.Sprint("editor ", seed), newEditing(seed).run(), observer != "", observer))
			}
			runs := MustRead(t, log.String())
			for i := range runs {
				if runs[i].Acts() != editSteps+1 {
					t.Fatalf("%d actions were found, there are %d", runs[i].Acts(), editSteps+1)
				}
			}
			rows := MustMeasure(t, count, runs, MustNamed(t, replay.Settings{Budget: replay.DefaultBudget}, "ledger", "sliding_mask")...)
			var table strings.Builder
			if err := replay.WriteTable(&table, rows); err != nil {
				t.Fatal(err)
			}
			t.Log(table.String())
			l, others := rows[0], rows[1]
			checkBounds(t, []bound{
				atLeast("identifiers of results only", l.IdentifiersVisibleToolOnly, .99),
				atMost("faults", float64(l.FaultRate), .005),
				atMost("cost", l.CostRatio, .60),
				atLeast("what a call can be read again of", l.Survival["commands"], .70),
				// The runs are hard: who only shows the newest results loses most of it.
				atMost("identifiers that a mask keeps", float64(others.IdentifiersVisibleToolOnly), .60),
			})
		})
	}
}
