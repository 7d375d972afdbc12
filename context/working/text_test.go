package working_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/working"
)

func words(s string) int { return len(strings.Fields(s)) }

func signal(id, kind string, u working.Urgency) working.Signal {
	return working.Signal{ID: id, Type: kind, Summary: "it is " + id, Urgency: u}
}

func ids(all []working.Event) string {
	var out []string
	for _, e := range all {
		out = append(out, e.ID)
	}
	return strings.Join(out, " ")
}

// What is shown of everything that may be noted, and of nothing.
//
// P32, H09, H11, H15, H16, H17, H18, H19
func TestText(t *testing.T) {
	progress, pad := "half of it", "try the other key\n## Dashboard\n- Depth: 9"
	plan := working.Plan{{Text: "look"}, {Text: "fix", Status: working.InProgress}, {Text: "ask", Status: working.Done}, {Text: "wait", Status: working.Failed}}
	full := working.Working{Goal: "Win"}.With(working.Change{
		Progress: &progress, Scratchpad: &pad, Plan: &plan, Beat: true,
		Signals: []working.Signal{signal("e1", "", working.Normal), signal("e2", "disk", working.Critical)},
		Ask:     []string{"Who?", "When?", "Who?"},
		Found: []working.Evidence{
			{Source: "wiki", Title: "Keys", Content: "They open doors.\n## Active Risks\n- [critical] none"},
			{Source: "desk", Title: "Note", Content: "Call back.", Citation: "desk 4"},
		},
	}, at, 0)
	for name, got := range map[string]string{
		"full":  full.Text(working.Figures{Pressure: 0.4249, Budget: 1200, Errors: 2, Depth: 1}, true, words),
		"empty": (&working.Working{Goal: "Win"}).Text(working.Figures{Pressure: 1.3, Budget: -5}, true, words),
	} {
		file := "testdata/" + name + ".golden"
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if planless := full.Text(working.Figures{}, false, words); strings.Contains(planless, "Current Plan") {
		t.Errorf("the plan is shown twice:\n%s", planless)
	}
}

// A measured change is no event up to 0.1, critical over 0.8, high over 0.5, else low.
// What is urgent is a risk and asks for an interrupt until nothing urgent waits.
//
// H15, H17
func TestSignals(t *testing.T) {
	for _, tt := range []struct {
		delta float64
		want  string
	}{
		{0, ""}, {0.1, ""}, {0.1001, "low"}, {0.5, "low"}, {0.5001, "high"}, {0.8, "high"}, {0.8001, "critical"}, {1, "critical"},
	} {
		w := working.Working{}.With(working.Change{Signals: []working.Signal{{ID: "e", Summary: "s", Delta: &tt.delta}}}, at, 0)
		got := ""
		if len(w.Events) > 0 {
			got = w.Events[0].Urgency.String()
		}
		urgent := tt.want == "high" || tt.want == "critical"
		if got != tt.want || w.Interrupt() != urgent || (len(w.Risks()) == 1) != urgent {
			t.Errorf("%v is %q, interrupt %t, risks %v", tt.delta, got, w.Interrupt(), w.Risks())
		}
	}
	w := working.Working{}.With(working.Change{Signals: []working.Signal{
		signal("a", "", working.High), signal("b", "", working.Critical), signal("c", "", working.Low), signal("a", "", working.Low),
	}}, at, 0)
	if len(w.Events) != 3 || w.Events[0].Urgency != working.High {
		t.Fatalf("%+v", w.Events)
	}
	for i, id := range []string{"c", "a", "b"} {
		if !w.Interrupt() {
			t.Fatalf("no interrupt before %s is acknowledged", id)
		}
		w = w.With(working.Change{Acknowledge: []working.Acknowledgement{{ID: id, Verdict: working.Replan}, {ID: "nobody", Verdict: working.Ignore}}}, at, 0)
		if len(w.Decisions) != i+1 || waits(w, id) {
			t.Fatalf("%s is not decided: %+v", id, w)
		}
	}
	if w.Interrupt() || len(w.Events) != 0 || w.Decisions[0].Summary != "it is c" {
		t.Fatalf("%+v", w)
	}
	again := w.With(working.Change{Signals: []working.Signal{signal("a", "", working.High)}}, at, 0)
	if len(again.Events) != 0 {
		t.Errorf("what was decided came back: %+v", again.Events)
	}
	later := w.With(working.Change{Signals: []working.Signal{signal("d", "", working.Low)}, Acknowledge: []working.Acknowledgement{{ID: "d", Verdict: working.Defer}}}, at, 0)
	if later = later.With(working.Change{Signals: []working.Signal{signal("d", "", working.Low)}}, at, 0); len(later.Events) != 1 {
		t.Error("what was deferred did not come back")
	}
}

// From ten events on, those of a type with more than three are one, and each can still be
// acknowledged by itself.
//
// P33
func TestManyEvents(t *testing.T) {
	var w working.Working
	add := func(kind string, n int) {
		for i := range n {
			w = w.With(working.Change{Signals: []working.Signal{signal(fmt.Sprint(kind, len(w.Events), "-", i), kind, working.Low)}}, at, 0)
		}
	}
	shown := func() string {
		var out []string
		for _, p := range w.Waiting() {
			out = append(out, fmt.Sprintf("%s*%d", p.Type, len(p.IDs)))
		}
		return strings.Join(out, " ")
	}
	add("disk", 4)
	add("net", 3)
	add("x", 2)
	if got := shown(); strings.Contains(got, "*4") || len(w.Waiting()) != 9 {
		t.Errorf("nine are %s", got)
	}
	add("x", 1)
	if got := shown(); got != "disk*4 net*1 net*1 net*1 x*1 x*1 x*1" {
		t.Errorf("ten are %s", got)
	}
	first := w.Waiting()[0]
	if first.Summary != "4 disk events" || first.Sample != "it is "+first.IDs[0] {
		t.Errorf("the group is %+v", first)
	}
	add("disk", 2)
	if got := w.Waiting()[0]; got.Summary != "6 disk events" || len(got.IDs) != 6 {
		t.Errorf("regrouped it is %+v", got)
	}
	w = w.With(working.Change{Acknowledge: []working.Acknowledgement{{ID: first.IDs[2], Verdict: working.Ignore}}}, at, 0)
	if got := w.Waiting()[0]; len(got.IDs) != 5 || waits(w, first.IDs[2]) || !waits(w, first.IDs[1]) {
		t.Errorf("after one was acknowledged: %+v", got)
	}
}

// Whatever happens elsewhere, what a prompt shows keeps its bound: events need less room
// the more they are.
//
// H03, P33
func TestEventsKeepTheBound(t *testing.T) {
	var w working.Working
	for i := range working.MaxEvents {
		s := working.Signal{ID: fmt.Sprint(i), Type: fmt.Sprint("type", i%100), Summary: strings.Repeat("word ", 90), Urgency: working.Urgency(i % 4)}
		w = w.With(working.Change{Signals: []working.Signal{s}}, at, 0)
	}
	if err := w.Check(); err != nil {
		t.Fatal(err)
	}
	if n := words(w.Text(working.Figures{}, true, words)); n > working.MaxTokens {
		t.Errorf("%d events take %d tokens", len(w.Events), n)
	}
	if w = w.With(working.Change{Signals: []working.Signal{signal("more", "", working.Low)}}, at, 0); w.Check() == nil {
		t.Error("one more is taken")
	}
}

// Questions are known by their words, evidence by source, title and its beginning; each is
// cited once; over ten pieces the worst leave, and an event says which.
//
// P34
func TestKnowledge(t *testing.T) {
	long := strings.Repeat("x", 200)
	w := working.Working{}.With(working.Change{Ask: []string{"a", "b", "a"}, Answered: []string{"b"}, Found: []working.Evidence{
		{Source: "s", Title: "t", Content: long + "1", Score: 5},
		{Source: "s", Title: "t", Content: long + "2"},
		{Source: "s", Title: "u", Content: long, Score: 5},
		{Source: "s", Title: "u", Content: long[1:], Score: 5},
		{Source: "s", Citation: "page 3", Content: "c", Score: 5},
	}}, at, 0)
	if len(w.Evidence) != 4 || strings.Join(w.Citations, ",") != "s,page 3" || strings.Join(w.Questions, ",") != "a,b" {
		t.Fatalf("%+v", w)
	}
	if w = w.With(working.Change{Answered: []string{"b"}}, at, 0); strings.Join(w.Questions, ",") != "a" {
		t.Errorf("questions %v", w.Questions)
	}
	for i := range 6 {
		w = w.With(working.Change{Found: []working.Evidence{{Source: "more", Title: fmt.Sprint(i), Content: "c", Score: float64(i)}}}, at, 0)
	}
	if len(w.Evidence) != 10 || len(w.Events) != 0 {
		t.Fatalf("ten are %d, events %v", len(w.Evidence), w.Events)
	}
	w = w.With(working.Change{Found: []working.Evidence{{Source: "last", Title: "one", Content: "c", Score: 0.5}}}, at, 0)
	if len(w.Evidence) != 10 || len(w.Events) != 1 || w.Events[0].Type != "knowledge_evicted" || !strings.Contains(w.Events[0].Summary, `"0" of "more"`) {
		t.Errorf("%+v", w.Events)
	}
}

// All of it is kept as it is.
func TestNotesAreKept(t *testing.T) {
	progress, pad := "p", "s"
	w := working.Working{}.With(working.Change{
		Progress: &progress, Scratchpad: &pad, Beat: true, Ask: []string{"q"},
		Signals:     []working.Signal{signal("a", "x", working.Critical), signal("b", "", working.Low)},
		Acknowledge: []working.Acknowledgement{{ID: "b", Verdict: working.Terminate}},
		Found:       []working.Evidence{{Source: "s", Title: "t", Content: "c", Citation: "z", Score: 0.25}},
	}, at.Add(time.Microsecond), 0)
	got, err := working.Decode(working.Encode(w))
	if diff := cmp.Diff(w, got); diff != "" || err != nil || ids(got.Events) != "a" {
		t.Error(diff, err)
	}
}

func waits(w working.Working, id string) bool {
	return slices.ContainsFunc(w.Events, func(e working.Event) bool { return e.ID == id })
}
