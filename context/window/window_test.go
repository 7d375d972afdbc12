package window_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/history/decay"
	"github.com/loom-bridge/loom-bridge/context/window"
)

// messages are n messages, each a unit of its own.
func messages(n int) []window.Unit {
	units := make([]window.Unit, n)
	for i := range units {
		units[i] = window.Unit{Position: uint64(i + 1), Messages: 1, Said: []decay.Said{{Role: "user", Sentence: fmt.Sprintf("Sentence %d.", i+1), Words: "words"}}}
	}
	return units
}

// shape is a letter for each unit: c collapsed, - gone, s cut, . in full.
func shape(s window.State, units []window.Unit) string {
	var b strings.Builder
	for i := range units {
		switch at := units[i].Position; {
		case s.Collapsed.Has(at):
			b.WriteByte('c')
		case s.Gone.Has(at):
			b.WriteByte('-')
		case s.Limit(at) > 0:
			b.WriteByte('s')
		default:
			b.WriteByte('.')
		}
	}
	return b.String()
}

// The table of the documents.
//
// H27
func TestAt(t *testing.T) {
	for pressure, want := range map[float64]window.Level{
		0.69: window.None, 0.70: window.None, 0.71: window.Snip, 0.80: window.Snip, 0.81: window.Micro, 0.90: window.Micro,
		0.91: window.Collapse, 0.95: window.Collapse, 0.951: window.Auto, 3: window.Auto,
	} {
		if got := window.At(pressure); got != want {
			t.Errorf("%v is %v, want %v", pressure, got, want)
		}
	}
}

// A text is cut behind its limit, in characters; the mark does not count.
//
// H22
func TestCut(t *testing.T) {
	for n, want := range map[int]string{9: "", 10: "", 11: "\n[...snipped 1 chars; full text: message_001]", 30: "\n[...snipped 20 chars; full text: message_001]"} {
		whole := strings.Repeat("é", n)
		got := window.Cut(whole, 10, "message_001")
		if want == "" && got != whole || want != "" && got != strings.Repeat("é", 10)+want {
			t.Errorf("%d characters: %s", n, got)
		}
	}
}

// The first three and the last five messages stay; fewer than nine are left; cuts move
// outward around calls; what is kept stays; a later collapse joins the earlier one.
//
// H24
func TestCollapse(t *testing.T) {
	press := func(s window.State, units []window.Unit) window.State {
		return s.Press(window.Collapse, units, "the goal")
	}
	for n, want := range map[int]string{8: "........", 9: "...c.....", 12: "...cccc....."} {
		if got := shape(press(window.State{}, messages(n)), messages(n)); got != want {
			t.Errorf("%d messages: %s, want %s", n, got, want)
		}
	}
	units := messages(12)
	units[2].Messages, units[7].Messages = 2, 3 // at the borders
	units[4].Kept, units[5].System = true, true
	s := press(window.State{}, units)
	if got := shape(s, units); got != "...c..c....." || s.Count != 2 {
		t.Errorf("%s, %d messages", got, s.Count)
	}
	if want := "[collapsed 2 messages (goal: the goal): [user] Sentence 4. | [user] Sentence 7.]"; s.CollapsedText(units) != want {
		t.Errorf("%s", s.CollapsedText(units))
	}
	units = messages(12)
	s = press(window.State{}, units)
	units = messages(18)
	s = press(s, units)
	if got := shape(s, units); got != "...cccccccccc....." || s.Count != 10 {
		t.Errorf("again: %s, %d messages", got, s.Count)
	}
	for i := range units {
		units[i].Said[0].Sentence = ""
	}
	if got := s.CollapsedText(units); got != "[10 messages]" {
		t.Errorf("of messages that say nothing: %s", got)
	}
}

// Half of the messages stay, and at least five: what is kept, then what fits the goal, then
// the newest.
//
// H25, P05
func TestAuto(t *testing.T) {
	press := func(units []window.Unit, goal string) string {
		return shape(window.State{}.Press(window.Auto, units, goal), units)
	}
	for n, want := range map[int]string{5: ".....", 6: "-.....", 10: "-----.....", 12: "------......"} {
		if got := press(messages(n), "none of it"); got != want {
			t.Errorf("%d messages: %s, want %s", n, got, want)
		}
	}
	units := messages(12)
	units[0].Kept, units[1].System = true, true
	units[3].Said[0].Words = "mend the gate"
	units[4].Said[0].Failed = true
	if got := press(units, "the gate"); got != "..-..-----.." && got != "..-..----..." {
		t.Errorf("%s", got)
	}
}

// Equal results of a call stand there once, of other results the newest; what is marked
// stays so; equal results of other calls stand there once, too.
//
// H23
func TestMicro(t *testing.T) {
	units := messages(6)
	for i, r := range []string{"c1 A", "c1 A", "c1 B", "c2 B", "c1 C", "c3 A"} {
		id, gave, _ := strings.Cut(r, " ")
		units[i].Results = []window.Result{{ID: id, Name: "look", Content: gave, Position: units[i].Position}}
	}
	lines := func(s window.State) string {
		var out []string
		for i := range units {
			if m, ok := s.Marks(units[i].Position, units[i].Results[0].ID); ok {
				out = append(out, fmt.Sprint(i+1, m.Line("look", "ref")))
			}
		}
		return strings.Join(out, " ")
	}
	s := window.State{}.Press(window.Micro, units[:3], "")
	const first = "1[superseded look result; full text: ref] 2[cached look result from c1]"
	if got := lines(s); got != first {
		t.Errorf("three: %s", got)
	}
	s = s.Press(window.Micro, units, "")
	const all = first + " 3[superseded look result; full text: ref] 4[cached look result from c1]"
	if got := lines(s); got != all {
		t.Errorf("six: %s", got)
	}
	if diff := cmp.Diff(s, s.Press(window.Micro, units, "")); diff != "" {
		t.Errorf("again: %s", diff)
	}
}

// A state is kept as it is, and what no version wrote is an error.
func TestStateIsKept(t *testing.T) {
	units := messages(20)
	s := window.State{Turn: "t"}.Press(window.Snip, units, "")
	s = s.Press(window.Collapse, units, "g").Press(window.Reactive, units, "g")
	got, err := window.Decode(s.Encode())
	if diff := cmp.Diff(s, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := window.Decode("{"); err == nil {
		t.Error("damage is read")
	}
	if empty, err := window.Decode(""); err != nil || !empty.Empty() || empty.Encode() != "" {
		t.Errorf("nothing is %+v, %v", empty, err)
	}
}
