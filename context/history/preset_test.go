package history_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// shellSteps are n steps of a shell, with outputs that were offloaded.
func shellSteps(n int) []step.Step {
	steps := make([]step.Step, n)
	for i := range steps {
		steps[i] = step.Step{
			Number: uint64(i + 1), ToolName: "system:shell", MinimalArgs: json.RawMessage(`{"command":"go test ./..."}`),
			Observation: "go test: exit 0, 20 lines output", Metadata: json.RawMessage(`{"exit_code":0,"lines":20}`),
			Thought: "I run the tests again.", OutcomeRef: "ref", OutcomePath: fmt.Sprintf("workspace/outputs/shell_%03d.log", i+1),
			Inline: strings.Repeat("ok  \tgithub.com/example/project/package\t0.41s\n", 20),
		}
	}
	return steps
}

// MustTokens returns an exact counter.
func MustTokens(tb testing.TB) func(string) int {
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

// B09, B10
func TestTriggers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		steps  int
		tokens int
		want   int
	}{
		{"four steps", 4, 1 << 20, 0},
		{"five steps", 5, 1 << 20, 0},
		{"six steps", 6, 1 << 20, 3},
		{"below the tokens", 5, 101, 0},
		{"at the tokens", 5, 100, 0},
		{"over the tokens", 5, 99, 2},
		{"over the tokens, but all are recent", 3, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := history.NewCompactor(func(string) int { return 20 }, history.Preset{TriggerTokens: tt.tokens})
			if got := c.Boundary(shellSteps(tt.steps)); got != tt.want {
				t.Errorf("boundary %d, want %d", got, tt.want)
			}
		})
	}
}

// At the bound the lines stay, over it they become a count.
//
// B07
func TestSectionBound(t *testing.T) {
	steps := shellSteps(9)
	for _, tt := range []struct {
		tokens int
		want   string
	}{{499, "Earlier steps:\n"}, {500, "Earlier steps:\n"}, {501, "Earlier: 9 steps completed"}} {
		c := history.NewCompactor(func(string) int { return tt.tokens }, history.Reduction())
		if got := c.Older(steps); !strings.HasPrefix(got, tt.want) {
			t.Errorf("a section of %d tokens begins %q, want %q", tt.tokens, got[:min(len(got), 30)], tt.want)
		}
	}
}

// A line keeps the id of its step.
func TestCompactKeepsIDAndOneLine(t *testing.T) {
	s := step.Step{Number: 12, ToolName: "db:query", Outcome: step.Failed, Error: "line one\nline two " + strings.Repeat("ä", 200)}
	got := history.DesignTemplates().Compact(s)
	if got.ID != "step_012" {
		t.Errorf("id %q", got.ID)
	}
	if !strings.HasPrefix(got.Summary, "✗ db:query failed: line one line two ä") || len([]rune(got.Summary)) != 100 {
		t.Errorf("summary of %d characters: %q", len([]rune(got.Summary)), got.Summary)
	}
	again := history.DesignTemplates().Compact(s)
	if got != again {
		t.Error("the same step gives another line")
	}
}

// B05
func TestOwnTemplates(t *testing.T) {
	own, err := history.DesignTemplates().With(map[string]string{"db:query": "Asked {tool_name} for {count} rows"})
	if err != nil {
		t.Fatal(err)
	}
	s := step.Step{Number: 1, ToolName: "db:query", MinimalArgs: json.RawMessage(`{"b":1,"a":"x"}`), Metadata: json.RawMessage(`{"count":3}`)}
	if got, want := own.Compact(s).Summary, "Asked db:query for 3 rows"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s.Metadata = nil
	if got, want := own.Compact(s).Summary, `db:query({"a":"x","b":1})`; got != want {
		t.Errorf("without the figure: got %q, want %q", got, want)
	}
	s.MinimalArgs = json.RawMessage(`{"a":"` + strings.Repeat("x", 300) + `"}`)
	if got := own.Compact(s).Summary; len(got) != len("db:query()")+200 {
		t.Errorf("long arguments give %d characters", len(got))
	}
	if _, err := own.With(map[string]string{"x": "{nothing}"}); !errors.Is(err, history.ErrTemplate) {
		t.Errorf("unknown placeholder: %v", err)
	}
}

// A20, B18, Q02, Q06, Q11
func TestTargets(t *testing.T) {
	count := MustTokens(t)
	hidden := history.Reduction()
	hidden.HideOffloaded = true
	bitcoin := decodeLines[step.Step](t, MustArchive(t, "testdata/preset/bitcoin.txtar").part("steps"))
	for _, tt := range []struct {
		name   string
		preset history.Preset
		steps  []step.Step
		limit  int
	}{
		{"ten steps, design", history.Design(), shellSteps(10), 1500},
		{"twenty steps, reduction", hidden, shellSteps(20), 800},
		{"the worked example", history.Reduction(), bitcoin, 400},
	} {
		c := history.NewCompactor(count, tt.preset)
		got := count(c.Literal(tt.steps))
		t.Logf("%s: %d tokens, limit %d", tt.name, got, tt.limit)
		if got > tt.limit {
			t.Errorf("%s: %d tokens, limit %d", tt.name, got, tt.limit)
		}
	}
}

// A summary takes the place of lines only when it is a good one.
func TestSummarized(t *testing.T) {
	steps := shellSteps(9)
	c := history.NewCompactor(count, history.Reduction())
	for _, tt := range []struct {
		name      string
		summarize history.Summarizer
		taken     bool
	}{
		{"good", func(context.Context, []step.Step) (string, error) { return "The tests pass.\n", nil }, true},
		{"empty", func(context.Context, []step.Step) (string, error) { return " \n", nil }, false},
		{"failed", func(context.Context, []step.Step) (string, error) { return "rate limit", errors.New("429") }, false},
		{"too long", func(context.Context, []step.Step) (string, error) { return strings.Repeat("long ", 600), nil }, false},
		{"late", func(context.Context, []step.Step) (string, error) {
			time.Sleep(history.DefaultSummaryTimeout + time.Second)
			return "too late", nil
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, ok := c.Summarized(t.Context(), steps, tt.summarize)
				want := c.Older(steps)
				if tt.taken {
					want = "Earlier steps:\nThe tests pass."
				}
				if ok != tt.taken || got != want {
					t.Errorf("taken %v, want %v:\n%s", ok, tt.taken, cmp.Diff(want, got))
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// Between batches a sticky preset only grows at its end; it never folds more
// than the preset as written would.
//
// X03, X04
func TestSticky(t *testing.T) {
	for _, p := range []history.Preset{history.Design(), history.Reduction(), {Style: history.StyleGrouped}} {
		c := history.NewCompactor(count, p)
		var mark history.Mark
		before, moves := "", 0
		all := shellSteps(200)
		for n := range len(all) {
			steps := all[:n]
			next := c.Sticky(steps, mark, 0, &history.Options{BatchTokens: 200})
			text := c.Render(steps, next.Older)
			if next != mark {
				moves++
			} else if !strings.HasPrefix(text, before) {
				t.Fatalf("style %d, %d steps: the prefix changed without a batch", p.Style, n)
			}
			if next.Older > c.Boundary(steps) || next.Older < mark.Older {
				t.Fatalf("style %d, %d steps: boundary %d, was %d, literal %d", p.Style, n, next.Older, mark.Older, c.Boundary(steps))
			}
			mark, before = next, text
		}
		if moves < 2 || moves > len(all)/5 {
			t.Errorf("style %d: the boundary moved %d times in %d steps", p.Style, moves, len(all))
		}
		if got := c.Sticky(all, history.Mark{}, 100, nil); got.Older != c.Boundary(all) {
			t.Errorf("style %d: over its budget the boundary is %d, want %d", p.Style, got.Older, c.Boundary(all))
		}
	}
}

func TestProfiles(t *testing.T) {
	for _, name := range []string{"chat", "research", "code", "debug"} {
		if p, ok := history.Profile(name); !ok || p.Style != history.StyleGrouped || p.KeepRecent == 0 {
			t.Errorf("profile %s: %+v, %v", name, p, ok)
		}
	}
	if _, ok := history.Profile("none"); ok {
		t.Error("a profile of an unknown name")
	}
}
