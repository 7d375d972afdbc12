package vary_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject/vary"
)

func TestProgress(t *testing.T) {
	// M13
	for _, test := range []struct {
		how         vary.Progress
		done, total int
		want        string
	}{
		{vary.Percentage, 3, 5, "60% complete"},
		{vary.Fraction, 3, 5, "3/5 steps completed"},
		{vary.Bar, 3, 5, "[██████░░░░] 60%"},
		{vary.Count, 3, 5, "Step 3 of 5"},
		{vary.Percentage, 0, 3, "0% complete"},
		{vary.Percentage, 2, 3, "66% complete"},
		{vary.Bar, 0, 1, "[░░░░░░░░░░] 0%"},
		{vary.Bar, 1, 1, "[██████████] 100%"},
		{vary.Bar, 9, 5, "[██████████] 100%"},
		{vary.Fraction, 0, 0, ""},
	} {
		if got := test.how.Text(test.done, test.total); got != test.want {
			t.Errorf("%d of %d: got %q, want %q", test.done, test.total, got, test.want)
		}
	}
}

func TestLists(t *testing.T) {
	// M15
	for list, want := range map[vary.List]string{vary.Plain: "", vary.Numbered: "2. ", vary.Bulleted: "- ", vary.Indented: "  "} {
		if got := list.Mark(2); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// At level 0 all forms are the first, at a higher one each variant comes about as often
// as it should, and the same turn has the same ones.
func TestChoose(t *testing.T) {
	// M12, M14, M16, P46, K31
	const turns = 20_000
	for _, level := range []float64{0, vary.DefaultLevel, 0.8} {
		separators, lists, labels, progresses := make(map[string]int), make(map[string]int), make(map[string]int), make(map[string]int)
		for turn := range turns {
			forms := vary.Choose("session", fmt.Sprint(turn), level)
			if again := vary.Choose("session", fmt.Sprint(turn), level); again != forms {
				t.Fatalf("turn %d is %+v and %+v", turn, forms, again)
			}
			separators[forms.Separator]++
			lists[forms.List.Mark(1)]++
			labels[forms.Label]++
			progresses[forms.Progress.Text(1, 2)]++
		}
		share(t, level, separators, "---", "===", "***", "")
		share(t, level, lists, "1. ", "- ", "  ")
		share(t, level, labels, "Status:", "Progress:", "Current state:")
		share(t, level, progresses, "50% complete", "1/2 steps completed", "[█████░░░░░] 50%", "Step 1 of 2")
		for _, counts := range []map[string]int{separators, lists, labels, progresses} {
			total := 0
			for _, n := range counts {
				total += n
			}
			if total != turns {
				t.Errorf("level %v has other variants: %v", level, counts)
			}
		}
	}
}

// share wants each variant as often as the level says, within a hundredth.
func share(t *testing.T, level float64, counts map[string]int, variants ...string) {
	t.Helper()
	total := 0
	for _, variant := range variants {
		total += counts[variant]
	}
	for i, variant := range variants {
		want := level / float64(len(variants))
		if i == 0 {
			want += 1 - level
		}
		if got := float64(counts[variant]) / float64(total); math.Abs(got-want) > 0.01 {
			t.Errorf("level %v: %q has a share of %.3f, want %.3f", level, variant, got, want)
		}
	}
}

// What was drawn from a turn stays so: a prompt rebuilt later has the same bytes.
func TestChooseStays(t *testing.T) {
	// P46
	want := map[string]vary.Forms{
		"0": {Separator: "===", List: vary.Numbered, Label: "Current state:", Progress: vary.Percentage},
		"3": {Separator: "===", List: vary.Indented, Label: "Progress:", Progress: vary.Bar},
		"5": {Separator: "", List: vary.Indented, Label: "Status:", Progress: vary.Fraction},
	}
	for turn, forms := range want {
		if got := vary.Choose("s", turn, 0.8); got != forms {
			t.Errorf("turn %s: %+v, want %+v", turn, got, forms)
		}
	}
}

func TestJoin(t *testing.T) {
	// I08, M14
	usual := vary.Usual()
	for _, test := range []struct{ first, second, separator, want string }{
		{"query", "runtime", usual.Separator, "query\n\n---\n\nruntime"},
		{"query", "", usual.Separator, "query"},
		{"", "runtime", usual.Separator, "runtime"},
		{"", "", usual.Separator, ""},
		{"query", "runtime", "***", "query\n\n***\n\nruntime"},
		{"query", "runtime", "", "query\n\nruntime"},
	} {
		if got := (vary.Forms{Separator: test.separator}).Join(test.first, test.second); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
