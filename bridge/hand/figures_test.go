package hand_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// mixedSteps are 100 reports as a day of work gives them: reads, writes,
// listings, searches, pages, commands that do and do not succeed, and tools
// nobody knows. They are the same every time.
func mixedSteps() []hand.Recorded {
	random := rand.New(rand.NewPCG(11, 7))
	var list []hand.Recorded
	for i := range 100 {
		n := 200 + random.IntN(8000)
		body := prose(random, n)
		name, args, output := "", map[string]any{}, map[string]any{}
		switch i % 10 {
		case 0, 5:
			name, args["path"] = "fs:read_file", fmt.Sprintf("src/module_%d/file_%d.py", i%7, i)
			output["content"] = body
		case 1:
			name, args["path"], args["content"] = "fs:write_file", fmt.Sprintf("src/out_%d.py", i), body
			output["success"], output["bytes_written"] = true, len(body)
		case 2:
			name, args["path"] = "fs:list_dir", fmt.Sprintf("src/module_%d", i%7)
			output["entries"] = entries(random)
		case 3:
			name, args["query"], args["count"] = "web:search", "how to "+prose(random, 20), 8
			output["results"] = results(random, 8)
		case 4:
			name, args["url"] = "browser:navigate", fmt.Sprintf("https://docs.example.org/guide/chapter-%d?lang=en", i)
			output["status"], output["text"], output["links"] = 200, body, []any{"https://example.org/next"}
		case 6, 7:
			name, args["command"] = "system:shell", fmt.Sprintf("pytest -q tests/test_module_%d.py", i%7)
			output["stdout"], output["stderr"], output["exit_code"] = body, "", 0
		case 8:
			name, args["command"] = "system:shell", "grep -rn parse_date src"
			output["stdout"], output["stderr"], output["exit_code"] = "", "grep: src: No such file or directory\n", 2
		case 9:
			name, args["table"], args["where"] = "db:query", "orders", "total > "+fmt.Sprint(i)
			output["rows"], output["n"] = body, i
		}
		list = append(list, reported(name, args, jsonText(output)))
	}
	return list
}

// prose is n bytes of text, or a little more, in lines.
func prose(random *rand.Rand, n int) string {
	words := strings.Fields("the parser reads dates from a table of formats and returns what it finds or an error that names the line")
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(words[random.IntN(len(words))])
		if random.IntN(9) == 0 {
			b.WriteByte('\n')
		} else {
			b.WriteByte(' ')
		}
	}
	return strings.TrimSpace(b.String())
}

func entries(random *rand.Rand) []any {
	list := make([]any, 5+random.IntN(60))
	for i := range list {
		list[i] = fmt.Sprintf("file_%d.py", i)
	}
	return list
}

func results(random *rand.Rand, n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = map[string]any{
			"title": prose(random, 40), "url": fmt.Sprintf("https://example.org/articles/%d", random.IntN(10000)), "snippet": prose(random, 160),
		}
	}
	return list
}

// counter counts tokens as prompts are counted.
func counter(tb testing.TB) func(text string) int {
	tb.Helper()
	c, err := tokens.New(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return func(text string) int {
		n, err := c.Count("gpt-4o", text)
		if err != nil {
			tb.Fatal(err)
		}
		return n.Tokens
	}
}

// A reduced record has at most 100 tokens on average.
//
// B17, Q01
func TestTokensPerStep(t *testing.T) {
	w, count := MustWorld(t, nil, nil), counter(t)
	before, after := 0, 0
	steps := mixedSteps()
	for _, r := range steps {
		s := w.mustRecord(r).Step
		before += count(string(r.Args)) + count(string(r.Output.Data))
		after += count(jsonText(map[string]any{
			"tool": s.ToolName, "minimal_args": s.MinimalArgs, "observation": s.Observation, "outcome_ref": s.OutcomeRef,
		}))
	}
	t.Logf("%d tokens a step before, %d after", before/len(steps), after/len(steps))
	if after > 100*len(steps) {
		t.Errorf("%d tokens of %d records, more than 100 each", after, len(steps))
	}
}

// lineTokens records reports and counts the lines "{observation}. Saved to
// {path}" of their steps, and what they stand for.
func lineTokens(t *testing.T, reports []hand.Recorded) (before, after int) {
	t.Helper()
	w, count := MustWorld(t, nil, nil), counter(t)
	for _, r := range reports {
		s := w.mustRecord(r).Step
		if !s.NeedsOffload() {
			t.Fatalf("%s is not offloaded", s.Observation)
		}
		line := s.Observation + ". Saved to " + s.OutcomePath
		if short := s.ToObservation(step.ReferenceShort); s.ToolName != "web:search" && short != line {
			t.Errorf("got %q, want %q", short, line)
		}
		before += count(string(r.Output.Data))
		after += count(line)
	}
	t.Logf("%d tokens before, %d after", before, after)
	return before, after
}

// Five reads of 2 KB are at most 200 tokens, 92 % less.
//
// A20, Q04
func TestTokensOfReads(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var reads []hand.Recorded
	for i := range 5 {
		content := prose(random, 2048)
		reads = append(reads, reported("fs:read_file", map[string]any{"path": fmt.Sprintf("src/config_%d.json", i)}, jsonText(map[string]any{"content": content})))
	}
	before, after := lineTokens(t, reads)
	if after > 200 || float64(after) > 0.08*float64(before) {
		t.Errorf("%d tokens of %d", after, before)
	}
}

// Ten searches are at most 300 tokens, 94 % less.
//
// A20, Q05
func TestTokensOfSearches(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	var searches []hand.Recorded
	for i := range 10 {
		query := []string{"rust async runtime comparison", "postgres partial index", "go generics constraints"}[i%3]
		searches = append(searches, reported("web:search", map[string]any{"query": query}, jsonText(map[string]any{"results": results(random, 8)})))
	}
	before, after := lineTokens(t, searches)
	if after > 300 || float64(after) > 0.06*float64(before) {
		t.Errorf("%d tokens of %d", after, before)
	}
}

// D06: large results are files, and what a prompt keeps of them is a line and a
// path: a hundredth of a long search.
func TestLargeResultsAreFiles(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	w, count := MustWorld(t, nil, nil), counter(t)
	output := jsonText(map[string]any{"results": results(random, 200)})
	a := w.mustRecord(reported("web:search", map[string]any{"query": "date formats"}, output))
	line := a.Step.ToObservation(step.ReferenceHint)
	if ratio := count(output) / count(line); ratio < 100 || !strings.Contains(line, a.Blob.Path) {
		t.Errorf("%d : 1, %q", ratio, line)
	}
	if got := w.content(a.Blob.Path); got != output {
		t.Errorf("%d bytes in the file, want %d", len(got), len(output))
	}
}
