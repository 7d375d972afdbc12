package events

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// The index finds exactly what Pattern.Match says, whatever was added and
// removed before, and is empty in the end.
func TestIndexAgreesWithMatch(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	text := func(words ...string) string {
		out := make([]string, 1+r.IntN(4))
		for i := range out {
			out[i] = words[r.IntN(len(words))]
		}
		return strings.Join(out, ".")
	}
	x := newIndex()
	var there []*selection
	for change := range uint64(3000) {
		if len(there) > 0 && r.IntN(2) == 0 {
			i := r.IntN(len(there))
			x.remove(there[i])
			there = slices.Delete(there, i, i+1)
		} else {
			sel := &selection{pattern: LegacyPattern(text("a", "b", "*", "", "**"))}
			if p, err := ParsePattern(text("a", "b", "*", "**")); err == nil && r.IntN(2) == 0 {
				sel.pattern = p
			}
			x.add(sel, change+1)
			there = append(there, sel)
		}
		topic := text("a", "b", "c", "", "*")
		want := make(map[*selection]bool)
		for _, sel := range there {
			if sel.pattern.Match(topic) {
				want[sel] = true
			}
		}
		for _, group := range x.match(nil, topic) {
			for _, sel := range group {
				if !want[sel] {
					t.Fatalf("%q: found %q, which does not match or was found already", topic, sel.pattern)
				}
				delete(want, sel)
			}
		}
		if len(want) > 0 {
			t.Fatalf("%q: missed %d selections", topic, len(want))
		}
	}
	for _, sel := range there {
		x.remove(sel)
	}
	if !x.root.empty() || len(x.exact) > 0 || len(x.prefixes) > 0 || len(x.texts) > 0 {
		t.Errorf("something is left: %+v", x)
	}
}

// Adding and removing never changes a list that was handed out.
func TestIndexListsAreStable(t *testing.T) {
	x := newIndex()
	sels := make([]*selection, 8)
	for i := range sels {
		sels[i] = &selection{pattern: LegacyPattern("a.*")}
		x.add(sels[i], 1)
	}
	before := x.match(nil, "a.b")[0]
	kept := slices.Clone(before)
	x.remove(sels[3])
	x.add(&selection{pattern: LegacyPattern("a.*")}, 2)
	x.remove(sels[0])
	if !slices.Equal(before, kept) {
		t.Error("a list changed that was handed out")
	}
}

// A cursor that keeps only fresh events gives back all the room it took.
func TestFreshEventsKeepTheirLane(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		room := lane{limit: 20}
		f := freshEvents{lane: &room}
		begun := uint64(r.IntN(10))
		f.begin(1, begun)
		want := int(begun)
		for _, n := range r.Perm(40) {
			sequence := begun + 1 + uint64(n)
			switch {
			case r.IntN(3) == 0 && f.any():
				first := f.first()
				before := f.count()
				f.passed(first)
				if want--; f.count() != before-1 || f.any() && f.first() <= first {
					t.Fatalf("passed %d: %+v", first, f)
				}
			case f.admit(sequence):
				want++
			}
			if f.count() != want {
				t.Fatalf("holds %d, want %d: %+v", f.count(), want, f)
			}
		}
		f.clear()
		if room.waiting != 0 || f.any() {
			t.Fatalf("left: %d, %+v", room.waiting, f)
		}
	}
}
