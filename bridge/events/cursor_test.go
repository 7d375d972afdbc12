package events

import (
	"math/rand/v2"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
)

// A cursor that keeps only fresh events gives back all the room it took.
func TestFreshEventsKeepTheirLane(t *testing.T) {
	seed := chance.Seed(t)
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
