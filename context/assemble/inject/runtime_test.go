package inject_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject/vary"
	"github.com/loom-bridge/loom-bridge/context/working"
)

func text(n int) string { return strings.TrimSpace(strings.Repeat("w ", n)) }

// A plan over its cap first loses the end of its goal, then its done items become one
// line.
func TestPlanCap(t *testing.T) {
	// I15
	plan := working.Plan{{Text: "a", Status: working.Done}, {Text: "b", Status: working.Done}, {Text: "c", Status: working.InProgress}, {Text: "d"}}
	const items, folded = 14, 13 // tokens, the line feed before them included
	render := func(goal, limit int) string {
		return inject.Plan(text(goal), plan, vary.Usual(), limit, words).Text
	}
	for _, goal := range []int{98, 99, 100, 150} {
		whole := "Goal: " + text(goal) + "\nPlan (2/4):\n✓ a\n✓ b\n→ c\n○ d"
		size := goal + 1 + items + 1
		if words(whole) != size {
			t.Fatalf("the plan has %d tokens, not %d", words(whole), size)
		}
		for limit, want := range map[int]string{size + 1: whole, size: whole} {
			if got := render(goal, limit); got != want {
				t.Errorf("goal of %d, cap %d: got %q", goal, limit, got)
			}
		}
		got := render(goal, size-1)
		line, rest, _ := strings.Cut(got, "\n")
		switch {
		case goal <= 99 && (line != "Goal: "+text(goal) || rest != "Plan (2/4):\n✓ 2 done\n→ c\n○ d"):
			t.Errorf("goal of %d: got %q", goal, got)
		case goal > 99 && (line != "Goal: "+text(98)+" w…" && line != "Goal: "+text(99)+"…"):
			t.Errorf("goal of %d: the line is %q", goal, line)
		}
	}
	if got := render(150, 100+items-1); !strings.HasSuffix(got, "\n✓ 2 done\n→ c\n○ d") || words(got) != 100+folded {
		t.Errorf("got %q of %d tokens", got, words(got))
	}
	if got := inject.Plan("goal", nil, vary.Usual(), 300, words).Text; got != "" {
		t.Errorf("without a plan it says %q", got)
	}
	if got := inject.Plan("", plan, vary.Usual(), 300, words).Text; !strings.HasPrefix(got, "Plan (2/4):\n") {
		t.Errorf("without a goal it says %q", got)
	}
}

// The block ends in an ellipsis at n-1 tokens, and not at n and n+1; whatever is in it, it
// keeps its cap.
func TestTodoCap(t *testing.T) {
	// I17, M10
	plan := working.Plan{{Text: "go", Status: working.Pending}}
	block := "Current Goal: " + text(20) + "\nProgress: 0/1 steps completed\nNext: go"
	n := words(block)
	for limit, cut := range map[int]bool{n - 1: true, n: false, n + 1: false} {
		got := inject.Todo(text(20), plan, limit, words).Text
		if words(got) > limit || (got != block) != cut || strings.Contains(got, "…\nProgress: 0/1 steps completed\nNext: go") != cut {
			t.Errorf("cap %d: %q of %d tokens", limit, got, words(got))
		}
	}
	if got := inject.Todo("a\n b", nil, 200, words).Text; got != "Current Goal: a b" {
		t.Errorf("without a plan it is %q", got)
	}
	if got := inject.Todo(" ", plan, 200, words).Text; got != "" {
		t.Errorf("without a goal it is %q", got)
	}
	plan = working.Plan{{Text: "a", Status: working.Done}, {Text: "b", Status: working.Failed}}
	if got := inject.Todo("g", plan, 200, words).Text; got != "Current Goal: g\nProgress: 1/2 steps completed\nNext: none" {
		t.Errorf("got %q", got)
	}
	for limit := 15; limit < 60; limit++ {
		got := inject.Todo(text(100), working.Plan{{Text: text(100)}}, limit, words).Text
		if words(got) > limit || !strings.HasPrefix(got, "Current Goal: ") || strings.Count(got, "\n") != 2 {
			t.Errorf("cap %d: %q of %d tokens", limit, got, words(got))
		}
	}
}

// Of the last ten failures the newest five are shown, the newest last.
func TestErrors(t *testing.T) {
	// I16, P47, K36
	failures := make([]inject.Failure, 12)
	for i := range failures {
		failures[i] = inject.Failure{Tool: "t", Message: fmt.Sprint(i)}
	}
	lines := func(most, limit, n int) string {
		return inject.Errors(failures[:n], most, limit, words).Text
	}
	for _, test := range []struct {
		most, limit, n int
		want           string
	}{
		{5, 300, 0, ""},
		{5, 300, 1, "0"},
		{5, 300, 4, "0 1 2 3"},
		{5, 300, 5, "0 1 2 3 4"},
		{5, 300, 6, "1 2 3 4 5"},
		{0, 300, 6, ""},
		{9, 300, 12, "3 4 5 6 7 8 9 10 11"},
		{10, 300, 12, "2 3 4 5 6 7 8 9 10 11"},
		{11, 300, 12, "2 3 4 5 6 7 8 9 10 11"},
		// Two and four for each line.
		{5, 23, 12, "7 8 9 10 11"},
		{5, 22, 12, "7 8 9 10 11"},
		{5, 21, 12, "8 9 10 11"},
		{5, 18, 12, "8 9 10 11"},
		{5, 17, 12, "9 10 11"},
		{5, 1, 12, "11"}, // what is left of it is cut by lines
	} {
		want := ""
		for _, message := range strings.Fields(test.want) {
			want += "\n- t: " + message
		}
		if want != "" {
			want = "Past errors:" + want
		}
		if got := lines(test.most, test.limit, test.n); got != want {
			t.Errorf("%+v: got %q", test, got)
		}
	}
	for n, cut := range map[int]bool{99: false, 100: false, 101: true} {
		failure := inject.Failure{Tool: "t", Message: strings.Repeat("é", n), Recovery: strings.Repeat("ü", n)}
		want := strings.Repeat("é", n) + " → " + strings.Repeat("ü", n)
		if cut {
			want = strings.Repeat("é", 99) + "… → " + strings.Repeat("ü", 99) + "…"
		}
		if got := inject.Errors([]inject.Failure{failure}, 5, 0, words).Text; got != "Past errors:\n- t: "+want {
			t.Errorf("%d characters: got %q", n, got)
		}
	}
}

func TestScores(t *testing.T) {
	// I13, G23, K32, K33
	for _, test := range []struct {
		score     float64
		knowledge bool
	}{{0.0999, false}, {0.1, true}, {0.1001, true}} {
		snippet := []inject.Snippet{{Content: "x", Score: test.score}}
		if got := inject.Knowledge(snippet, 3, 800).Text != ""; got != test.knowledge {
			t.Errorf("knowledge of score %v is shown: %t", test.score, got)
		}
		if got := len(inject.KnowledgeMessages(snippet, 3, 800).Messages) > 0; got != test.knowledge {
			t.Errorf("knowledge of score %v is a message: %t", test.score, got)
		}
	}
	for n := 2; n <= 4; n++ {
		snippets := make([]inject.Snippet, n)
		for i := range n {
			snippets[i] = inject.Snippet{Content: "x", Score: 1}
		}
		want := min(n, inject.DefaultKnowledge)
		if got := len(inject.KnowledgeMessages(snippets, inject.DefaultKnowledge, 800).Messages); got != want {
			t.Errorf("of %d snippets %d are messages", n, got)
		}
		if got := strings.Count(inject.Knowledge(snippets, inject.DefaultKnowledge, 800).Text, "score 1.00"); got != want {
			t.Errorf("of %d snippets %d are shown", n, got)
		}
	}
}
