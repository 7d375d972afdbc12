package lists

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
)

type item struct{ at int }

func (i *item) Seat() *int { return &i.at }

// A Shared lists what was added and not removed, and never changes what it handed
// out.
func TestShared(t *testing.T) {
	seed := chance.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	var list Shared[*item]
	var there []*item
	type handed struct{ lent, want []*item }
	var out []handed
	for range 5000 {
		switch n := len(there); {
		case r.IntN(3) == 0:
			lent := list.Lend()
			out = append(out, handed{lent, slices.Clone(lent)})
		case n > 0 && r.IntN(2) == 0:
			i := r.IntN(n)
			list.Remove(there[i])
			there = slices.Delete(there, i, i+1)
		default:
			c := &item{}
			list.Add(c)
			there = append(there, c)
		}
		if list.Len() != len(there) {
			t.Fatalf("%d are listed, want %d", list.Len(), len(there))
		}
	}
	for _, c := range list.Lend() {
		if !slices.Contains(there, c) {
			t.Error("one is listed that was removed")
		}
	}
	for _, h := range out {
		if !slices.Equal(h.lent, h.want) {
			t.Fatal("a list changed that was handed out")
		}
	}
}

// Removing does not copy the list each time.
func TestSharedRemovesCheaply(t *testing.T) {
	var list Shared[*item]
	all := make([]item, 1000)
	for i := range all {
		list.Add(&all[i])
	}
	list.Lend()
	if n := testing.AllocsPerRun(1, func() {
		for i := range all[:400] {
			list.Remove(&all[i])
		}
		all = all[400:]
	}); n > 1 {
		t.Errorf("%v allocations", n)
	}
}
