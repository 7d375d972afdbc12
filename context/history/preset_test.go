package history_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

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

// partsOf are steps that no message asked for.
func partsOf(steps []step.Step) []history.Chunk {
	parts := make([]history.Chunk, len(steps))
	for i := range steps {
		parts[i] = history.Chunk{Acts: []history.Act{{Step: steps[i]}}, Text: true, Position: uint64(i + 1), Stays: steps[i].Pinned}
	}
	return parts
}

// literal is the text of steps by a preset taken literally.
func literal(c *history.Compactor, steps []step.Step, budget int) string {
	l := c.Show(history.Conversation{Parts: partsOf(steps), Literal: true, Budget: budget}, nil)
	texts := make([]string, len(l.Shown))
	for i := range l.Shown {
		texts[i] = l.Shown[i].Text
	}
	return strings.Join(texts, "\n\n")
}

// B09, B10
func TestTriggers(t *testing.T) {
	for _, tt := range []struct {
		name              string
		steps, each, want int
	}{
		{"four steps", 4, 20, 0},
		{"five steps", 5, 20, 0},
		{"six steps", 6, 20, 3},
		{"at the tokens", 5, 400, 0},
		{"over the tokens", 5, 401, 2},
		{"over the tokens, but all are recent", 3, 2001, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := history.NewCompactor(func(string) int { return tt.each }, history.Preset{Style: history.StyleDesign})
			if got := strings.Count(literal(c, shellSteps(tt.steps), 0), "  • "); got != tt.want {
				t.Errorf("%d lines, want %d", got, tt.want)
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
		c := history.NewCompactor(func(string) int { return tt.tokens }, named("reduction"))
		got := c.Render(steps, len(steps))
		if counted := got == tt.want; !strings.HasPrefix(got, tt.want) || counted != (tt.tokens == 501) {
			t.Errorf("a section of %d tokens is %.60q, want %q", tt.tokens, got, tt.want)
		}
	}
}

// A20, B18, Q02, Q06, Q11
func TestTargets(t *testing.T) {
	count := MustTokens(t)
	bitcoin := decodeLines[step.Step](t, MustArchive(t, "testdata/preset/bitcoin.txtar").part("steps"))
	for _, tt := range []struct {
		name   string
		preset history.Preset
		steps  []step.Step
		limit  int
	}{
		{"ten steps, design", named("design"), shellSteps(10), 1500},
		{"twenty steps, reduction", named("reduction"), shellSteps(20), 800},
		{"the worked example", named("reduction"), bitcoin, 400},
	} {
		c := history.NewCompactor(count, tt.preset)
		got := count(literal(c, tt.steps, 0))
		t.Logf("%s: %d tokens, limit %d", tt.name, got, tt.limit)
		if got > tt.limit {
			t.Errorf("%s: %d tokens, limit %d", tt.name, got, tt.limit)
		}
	}
}

// Between batches a sticky preset only grows at its end; it never folds more
// than the preset as written would.
//
// X03, X04
func TestSticky(t *testing.T) {
	for _, p := range []history.Preset{named("design"), named("reduction"), {Style: history.StyleGrouped}} {
		c := history.NewCompactor(count, p)
		opts := &history.Options{BatchTokens: 200}
		var mark history.Mark
		var before history.Layout
		moves := 0
		all := shellSteps(200)
		for n := range len(all) {
			conv := history.Conversation{Parts: partsOf(all[:n]), Mark: mark}
			l := c.Show(conv, opts)
			if l.Mark != mark {
				moves++
				if l.Reason != history.ByPrice || len(l.Refs) != l.Mark.Older-mark.Older || l.Before <= l.Tokens || l.BreakEven <= 0 {
					t.Fatalf("style %d, %d steps: moved from %+v: %+v", p.Style, n, mark, l)
				}
			} else if l.Reason != 0 || len(l.Shown) < len(before.Shown) || !slices.Equal(l.Shown[:len(before.Shown)], before.Shown) {
				t.Fatalf("style %d, %d steps: the prefix changed without a batch", p.Style, n)
			}
			if most := max(n-3, 0); l.Mark.Older > most || l.Mark.Older < mark.Older {
				t.Fatalf("style %d, %d steps: boundary %d, was %d, literal %d", p.Style, n, l.Mark.Older, mark.Older, most)
			}
			mark, before = l.Mark, l
		}
		if moves < 2 || moves > len(all)/5 {
			t.Errorf("style %d: the boundary moved %d times in %d steps", p.Style, moves, len(all))
		}
		if got := c.Show(history.Conversation{Parts: partsOf(all), Budget: 100}, nil); got.Mark.Older != len(all)-3 || got.Reason != history.ByBudget {
			t.Errorf("style %d: over its budget the boundary is %+v, by %v", p.Style, got.Mark, got.Reason)
		}
	}
}

// What a batch costs and what it saves are prices: where the cache is cheap, it
// comes late, and not at all where few turns are left.
//
// X03
func TestStickyByPrice(t *testing.T) {
	c := history.NewCompactor(count, named("reduction"))
	first := func(opts *history.Options, turns int) int {
		for n := range 400 {
			conv := history.Conversation{Parts: partsOf(shellSteps(n)), ExpectedTurns: turns}
			if c.Show(conv, opts).Reason == history.ByPrice {
				return n
			}
		}
		return 400
	}
	prices := func(cached, write float64) *history.Options {
		return &history.Options{Prices: history.Prices{Input: 1, CachedInput: cached, CacheWrite: write}}
	}
	dear, usual, cheap := first(prices(0.5, 1), 0), first(nil, 0), first(prices(0.01, 2), 0)
	if !(dear < usual && usual < cheap) {
		t.Errorf("the first batch comes after %d, %d and %d steps", dear, usual, cheap)
	}
	if late := first(nil, 1); late <= usual {
		t.Errorf("with one turn to come the first batch comes after %d steps, else after %d", late, usual)
	}
	undone := c.Show(history.Conversation{Parts: partsOf(shellSteps(usual)), Since: uint64(usual)}, nil)
	if undone.Reason != 0 {
		t.Errorf("a batch that was undone comes again at once: %+v", undone)
	}
}

func TestNamedPresets(t *testing.T) {
	for _, name := range []string{"chat", "research", "code", "debug"} {
		if p, ok := history.Named(name); !ok || p.Style != history.StyleGrouped || p.KeepRecent == 0 {
			t.Errorf("profile %s: %+v, %v", name, p, ok)
		}
	}
	for name, style := range map[string]history.Style{"design": history.StyleDesign, "reduction": history.StyleReduction} {
		if p, ok := history.Named(name); !ok || p.Style != style {
			t.Errorf("preset %s: %+v, %v", name, p, ok)
		}
	}
	if _, ok := history.Named("none"); ok {
		t.Error("a preset of an unknown name")
	}
}

// A pinned step stays in full among the recent ones, whatever the style and
// however little the prompt may take.
//
// P03
func TestPresetsKeepPinned(t *testing.T) {
	steps := shellSteps(12)
	steps[1].Pinned, steps[1].Inline = true, "keep every byte of this"
	for _, p := range []history.Preset{named("design"), named("reduction"), {Style: history.StyleGrouped}} {
		c := history.NewCompactor(count, p)
		for name, text := range map[string]string{
			"literal": literal(c, steps, 0), "fitted": literal(c, steps, 1), "all older": c.Render(steps, len(steps)),
		} {
			if !strings.Contains(text, steps[1].Inline) {
				t.Errorf("style %d, %s: the pinned step is not whole in\n%s", p.Style, name, text)
			}
			if strings.Count(text, "ep 2:")+strings.Count(text, "[step_002]") != 1 {
				t.Errorf("style %d, %s: the pinned step stands elsewhere, too, in\n%s", p.Style, name, text)
			}
		}
	}
}

// Of the last failures none is left out, whatever the section may take.
//
// P03
func TestPresetsKeepFailures(t *testing.T) {
	steps := shellSteps(40)
	for i := range 12 {
		s := &steps[3*i]
		s.ToolName, s.Outcome, s.Error = "db:query", step.Failed, fmt.Sprintf("table %d is locked", i)
	}
	p := named("reduction")
	p.SectionTokens = 1
	older := history.NewCompactor(count, p).Render(steps[:37], 37)
	for i := range 12 {
		line := fmt.Sprintf("\n• ✗ db:query failed: table %d is locked", i)
		if got := strings.Contains(older, line); got != (i >= 2) {
			t.Errorf("failure %d of 12 is shown: %v, in\n%s", i+1, got, older)
		}
	}
	if !strings.HasPrefix(older, "Earlier: 27 steps completed\n") {
		t.Errorf("it begins %.60q", older)
	}
}

// The shares of a window of 8192 tokens add up, and what is over them loses
// results, the oldest first.
//
// B14
func TestBudget(t *testing.T) {
	b := history.React8k()
	if got := []int{b.Fixed, b.FewShot, b.Older, b.Recent, b.Response, b.Goal}; !slices.Equal(got, []int{1500, 500, 500, 2000, 3492, 200}) {
		t.Errorf("shares %v", got)
	}
	if b.Window() != 8192 || b.Prompt() != 4700 || named("design").Budget != b || named("reduction").Budget != b {
		t.Errorf("a window of %d tokens, a prompt of %d", b.Window(), b.Prompt())
	}
	count := MustTokens(t)
	p := named("reduction")
	p.Results = history.ResultsFull
	c := history.NewCompactor(count, p)
	steps := shellSteps(8)
	whole := literal(c, steps, 0)
	last := count(whole) + history.DefaultMessageTokens
	for _, shown := range []int{3, 2, 1, 0} {
		text := literal(c, steps, last)
		if n := count(text) + history.DefaultMessageTokens; n > last {
			t.Errorf("%d tokens, over the %d there may be", n, last)
		}
		for i, s := range steps[5:] {
			full := c.Full(s)
			if got := strings.Contains(text, full); got != (i >= 3-shown) {
				t.Errorf("in %d tokens step %d is whole: %v", last, s.Number, got)
			}
		}
		last = count(text) + history.DefaultMessageTokens - 1
	}
	if literal(c, steps, count(whole)+history.DefaultMessageTokens) != whole {
		t.Error("a text at its budget is changed")
	}
}

// A line of one's own that is no shorter than the step gives way.
//
// P02
func TestOwnLineNeverGrows(t *testing.T) {
	rules, err := step.BuiltinRules().With([]byte("[tools.\"db:query\"]\ncompact = \"" + strings.Repeat("asked the database, ", 20) + "\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := named("design")
	p.Templates = rules.Templates().Over(p.Templates)
	s := step.Step{Number: 1, ToolName: "db:query", MinimalArgs: json.RawMessage(`{"of":"x"}`), Observation: "3 rows"}
	if got, want := history.NewCompactor(count, p).Render([]step.Step{s}, 1), "Previous steps:\n  • db:query({\"of\":\"x\"})"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// randomCall is a call of one of the tools with rules, or of another one.
func randomCall(r *rand.Rand) step.Call {
	text := strings.Repeat([]string{"word ", "x", " ", "a line\n", "é\n"}[r.IntN(5)], r.IntN(30)<<r.IntN(6))
	name := fmt.Sprintf("f%d", r.IntN(10))
	c := []step.Call{
		{Tool: step.ToolReadFile, Args: map[string]any{"path": name}, Result: step.Result{Output: map[string]any{"content": text}}},
		{Tool: step.ToolWriteFile, Args: map[string]any{"path": name, "content": text}},
		{Tool: step.ToolListDir, Args: map[string]any{}, Result: step.Result{Output: map[string]any{"entries": strings.Fields(text)}}},
		{Tool: step.ToolSearchWeb, Args: map[string]any{"query": name}, Result: step.Result{Output: map[string]any{"results": strings.Fields(text)}}},
		{Tool: step.ToolNavigate, Args: map[string]any{"url": "https://a.b/" + name}, Result: step.Result{Output: map[string]any{"text": text}}},
		{Tool: step.ToolShell, Args: map[string]any{"command": "ls " + name}, Result: step.Result{Output: map[string]any{"stdout": text, "exit_code": r.IntN(2)}}},
		{Tool: "db:query", Args: map[string]any{"of": name}, Result: step.Result{Output: map[string]any{"rows": text}}},
		{Tool: "t"},
	}[r.IntN(8)]
	if r.IntN(5) == 0 {
		c.Result.Failed, c.Result.ErrorText = true, text
	}
	return c
}

// A line takes less than its step, and each way to shorten a history less than
// the whole; none is shortened twice, and no step is lost on the way.
//
// P02
func TestPresetsNeverGrow(t *testing.T) {
	count := MustTokens(t)
	r := rand.New(rand.NewPCG(7, 2))
	for _, p := range []history.Preset{named("design"), named("reduction"), {Style: history.StyleGrouped}} {
		for range 25 {
			reducer := step.NewReducer(&step.Options{Style: step.ObservationStyle(r.IntN(2)), Count: count})
			steps := make([]step.Step, 4+r.IntN(20))
			for i := range steps {
				call := randomCall(r)
				got := reducer.Reduce(call)
				steps[i] = step.Step{
					Number: uint64(i + 1), ToolName: call.Tool, MinimalArgs: got.MinimalArgs, Args: got.Args, Observation: got.Observation,
					Metadata: got.Metadata, Outcome: got.Outcome, Error: got.Error, Inline: got.Inline,
				}
			}
			c := history.NewCompactor(count, p)
			for _, s := range steps {
				if line, full := count(step.DesignTemplates().Compact(s).Summary), count(c.Full(s)); line >= full {
					t.Fatalf("step %+v: a line of %d tokens for %d", s, line, full)
				}
			}
			whole := history.NewCompactor(count, named("reduction")).Render(steps, 0)
			text := literal(c, steps, 0)
			if len(steps) > 5 && count(text) >= count(whole) {
				t.Fatalf("style %d: %d tokens for %d:\n%s\n\n%s", p.Style, count(text), count(whole), text, whole)
			}
			budget := count(text) * 2 / 3
			fitted := literal(c, steps, budget)
			if count(fitted) > count(text) || literal(c, steps, budget) != fitted || literal(c, steps, count(fitted)+history.DefaultMessageTokens) != fitted {
				t.Fatalf("style %d: fitted to %d tokens of %d, the budget is %d", p.Style, count(fitted), count(text), budget)
			}
		}
	}
}

// A boundary that a call with other rules has moved stands nowhere past that of these
// rules.
//
// X03
func TestBoundaryOfOtherRules(t *testing.T) {
	all := shellSteps(40)
	keep := func(n int) *history.Compactor {
		p := named("reduction")
		p.KeepRecent = n
		return history.NewCompactor(count, p)
	}
	far := keep(1).Show(history.Conversation{Parts: partsOf(all), Budget: 100}, nil).Mark
	if far.Older != 39 {
		t.Fatalf("the mark is %+v", far)
	}
	far.Bare, far.Omitted = 0, 0
	l := keep(10).Show(history.Conversation{Parts: partsOf(all), Mark: far}, nil)
	if l.Mark.Older != 30 || l.Reason == 0 {
		t.Errorf("the boundary is %+v, by %v", l.Mark, l.Reason)
	}
	same := keep(1).Show(history.Conversation{Parts: partsOf(all), Mark: far}, nil)
	if same.Mark != far || same.Reason != 0 {
		t.Errorf("by the same rules the mark is %+v", same.Mark)
	}
}
