package working_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

var at = time.Date(2026, 1, 28, 10, 0, 0, 0, time.UTC)

func TestWith(t *testing.T) {
	goal, none := "win", ""
	plan := working.Plan{{Text: "a"}, {Text: "b", Status: working.Done}}
	first := working.Working{}.With(working.Change{Goal: &goal, Plan: &plan, Activate: []string{"x", "y", "x"}}, at, 0)
	want := working.Working{Goal: "win", Plan: working.Plan{{Text: "a"}, {Text: "b", Status: working.Done}}, Active: []string{"x", "y"}}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Fatal(diff)
	}
	plan[0].Text = "changed by the caller"
	second := first.With(working.Change{Goal: &none, Plan: &working.Plan{}, Deactivate: []string{"x", "z"}, Activate: []string{"z"}}, at, 0)
	if diff := cmp.Diff(working.Working{Plan: working.Plan{}, Active: []string{"y", "z"}, Inactive: []string{"x"}}, second, cmp.Transformer("nil", func(p working.Plan) string { return fmt.Sprint(p) })); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("the change changed what was before: %s", diff)
	}
	if same := first.With(working.Change{}, at, 0); !cmp.Equal(same, first) {
		t.Errorf("an empty change made %+v of %+v", same, first)
	}
	if got := second.Skills([]string{"x", "y", "q"}); !cmp.Equal(got, []string{"y", "q", "z"}) {
		t.Errorf("the active skills are %v", got)
	}
}

// An item knows where in the log its steps stand, as far as the plan said so.
func TestPlacesOfItems(t *testing.T) {
	item := func(text string, status working.Status, begun, ended uint64) working.Item {
		return working.Item{Text: text, Status: status, Begun: begun, Ended: ended}
	}
	w := working.Working{}
	for _, step := range []struct {
		last uint64
		want working.Plan
	}{
		{2, working.Plan{item("a", working.InProgress, 2, 0), item("b", working.Pending, 2, 0), item("c", working.Pending, 2, 0)}},
		{5, working.Plan{item("a", working.InProgress, 2, 0), item("b", working.Pending, 2, 0), item("c", working.Pending, 2, 0)}},
		{7, working.Plan{item("a", working.Done, 2, 7), item("b", working.InProgress, 7, 0), item("c", working.Pending, 2, 0)}},
		{9, working.Plan{item("a", working.Done, 2, 7), item("b", working.Failed, 7, 9), item("c", working.Pending, 2, 0)}},
		// One that was never begun: from where the one before it was over.
		{12, working.Plan{item("c", working.Done, 9, 12), item("a", working.Done, 2, 7), item("a", working.Pending, 12, 0)}},
		// One that is taken up again.
		{14, working.Plan{item("c", working.InProgress, 14, 0), item("a", working.Done, 2, 7)}},
	} {
		plan := make(working.Plan, len(step.want))
		for i, item := range step.want {
			plan[i] = working.Item{Text: item.Text, Status: item.Status, Begun: 99, Ended: 99}
		}
		w = w.With(working.Change{Plan: &plan}, at, step.last)
		if diff := cmp.Diff(step.want, w.Plan); diff != "" {
			t.Errorf("at %d: %s", step.last, diff)
		}
		kept, err := working.Decode(working.Encode(w))
		if diff := cmp.Diff(w, kept); diff != "" || err != nil {
			t.Error(diff, err)
		}
	}
}

func TestNext(t *testing.T) {
	for want, plan := range map[string]working.Plan{
		"none":  {{Text: "a", Status: working.Done}, {Text: "b", Status: working.Failed}},
		"begun": {{Text: "a"}, {Text: "begun", Status: working.InProgress}},
		"first": {{Text: "x", Status: working.Done}, {Text: "first"}, {Text: "b"}},
	} {
		got := "none"
		if item := plan.Next(); item != nil {
			got = item.Text
		}
		if got != want {
			t.Errorf("of %v the next is %q, want %q", plan, got, want)
		}
	}
	if got := (working.Plan{{Status: working.Done}, {}, {Status: working.Done}, {Status: working.Failed}}).Done(); got != 2 {
		t.Errorf("%d are done, want 2", got)
	}
}

func TestCheck(t *testing.T) {
	text := func(n int) *string { s := strings.Repeat("x", n); return &s }
	items := func(n int, item working.Item) *working.Plan {
		p := make(working.Plan, n)
		for i := range p {
			p[i] = item
		}
		return &p
	}
	broken := "\xff"
	names := func(n int) []string { return strings.Split(strings.Repeat("x,", n-1)+"x", ",") }
	for _, test := range []struct {
		field  string // empty: it is well
		change working.Change
	}{
		{"", working.Change{}},
		{"", working.Change{Goal: text(0), Plan: items(0, working.Item{})}},
		{"", working.Change{Goal: text(working.MaxGoalBytes - 1)}},
		{"", working.Change{Goal: text(working.MaxGoalBytes)}},
		{"goal", working.Change{Goal: text(working.MaxGoalBytes + 1)}},
		{"goal", working.Change{Goal: &broken}},
		{"", working.Change{Plan: items(working.MaxItems-1, working.Item{Text: "x"})}},
		{"", working.Change{Plan: items(working.MaxItems, working.Item{Text: "x"})}},
		{"plan.items", working.Change{Plan: items(working.MaxItems+1, working.Item{Text: "x"})}},
		{"", working.Change{Plan: items(1, working.Item{Text: *text(working.MaxItemBytes - 1)})}},
		{"", working.Change{Plan: items(1, working.Item{Text: *text(working.MaxItemBytes)})}},
		{"plan.items[0].text", working.Change{Plan: items(1, working.Item{Text: *text(working.MaxItemBytes + 1)})}},
		{"plan.items[0].text", working.Change{Plan: items(1, working.Item{Text: " "})}},
		{"plan.items[0].text", working.Change{Plan: items(1, working.Item{Text: "a\nb"})}},
		{"plan.items[0].text", working.Change{Plan: items(1, working.Item{Text: "\xff"})}},
		{"plan.items[0].status", working.Change{Plan: items(1, working.Item{Text: "a", Status: working.Failed + 1})}},
		{"", working.Change{Activate: names(working.MaxSkills - 1)}},
		{"", working.Change{Activate: names(working.MaxSkills)}},
		{"activate", working.Change{Activate: names(working.MaxSkills + 1)}},
		{"deactivate", working.Change{Deactivate: names(working.MaxSkills + 1)}},
		{"", working.Change{Activate: []string{*text(working.MaxSkillBytes - 1), *text(working.MaxSkillBytes)}}},
		{"activate[1]", working.Change{Activate: []string{"x", *text(working.MaxSkillBytes + 1)}}},
		{"deactivate[0]", working.Change{Deactivate: []string{""}}},
	} {
		err := test.change.Check()
		bad, ok := errors.AsType[*invalid.Error](err)
		if test.field == "" && err != nil || test.field != "" && (!ok || bad.Field != test.field || !errors.Is(err, working.ErrInvalid)) {
			t.Errorf("got %v, want one of %q", err, test.field)
		}
	}
}

// FuzzDecode: any bytes are an error or a Working that is written and read again as it is.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(working.Encode(working.Working{
		Goal: "win", Plan: working.Plan{{Text: "a", Status: working.Failed}, {Text: "b"}}, Active: []string{"x", ""}, Inactive: []string{"y"},
	}))
	f.Fuzz(func(t *testing.T, value []byte) {
		w, err := working.Decode(value)
		if err != nil {
			return
		}
		again, err := working.Decode(working.Encode(w))
		if err != nil || !cmp.Equal(again, w) {
			t.Fatalf("%+v becomes %+v, %v", w, again, err)
		}
		if w.Empty() != (len(working.Encode(w)) == 0) {
			t.Fatalf("%+v is empty: %t", w, w.Empty())
		}
	})
}
