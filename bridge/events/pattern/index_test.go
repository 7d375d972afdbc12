package pattern

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
)

// listener is an item with its pattern.
type listener struct {
	pattern Pattern
	at      int
}

func (l *listener) Seat() *int { return &l.at }

// The index finds exactly what Pattern.Match says, whatever was added and
// removed before, and is empty in the end.
func TestIndexAgreesWithMatch(t *testing.T) {
	seed := chance.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	text := func(words ...string) string {
		out := make([]string, 1+r.IntN(4))
		for i := range out {
			out[i] = words[r.IntN(len(words))]
		}
		return strings.Join(out, ".")
	}
	x := NewIndex[*listener]()
	var there []*listener
	for change := range uint64(3000) {
		if len(there) > 0 && r.IntN(2) == 0 {
			i := r.IntN(len(there))
			x.Remove(there[i].pattern, there[i])
			there = slices.Delete(there, i, i+1)
		} else {
			sel := &listener{pattern: Legacy(text("a", "b", "*", "", "**"))}
			if p, err := Parse(text("a", "b", "*", "**")); err == nil && r.IntN(2) == 0 {
				sel.pattern = p
			}
			x.Add(sel.pattern, sel, change+1)
			there = append(there, sel)
		}
		topic := text("a", "b", "c", "", "*")
		want := make(map[*listener]bool)
		for _, sel := range there {
			if sel.pattern.Match(topic) {
				want[sel] = true
			}
		}
		for _, group := range x.Match(nil, topic) {
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
		x.Remove(sel.pattern, sel)
	}
	if !x.root.empty() || len(x.exact) > 0 || len(x.prefixes) > 0 || len(x.texts) > 0 {
		t.Errorf("something is left: %+v", x)
	}
}

// Adding and removing never changes a list that was handed out.
func TestIndexListsAreStable(t *testing.T) {
	x := NewIndex[*listener]()
	sels := make([]*listener, 8)
	for i := range sels {
		sels[i] = &listener{pattern: Legacy("a.*")}
		x.Add(sels[i].pattern, sels[i], 1)
	}
	before := x.Match(nil, "a.b")[0]
	kept := slices.Clone(before)
	x.Remove(sels[3].pattern, sels[3])
	x.Add(Legacy("a.*"), &listener{pattern: Legacy("a.*")}, 2)
	x.Remove(sels[0].pattern, sels[0])
	if !slices.Equal(before, kept) {
		t.Error("a list changed that was handed out")
	}
}
