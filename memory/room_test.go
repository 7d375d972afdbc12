package memory

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
)

// What is kept of many is just what sorting all of them puts first.
func TestLightest(t *testing.T) {
	dice := rand.New(rand.NewPCG(chance.Seed(t), 0))
	for range 2000 {
		n, most := dice.IntN(200), 1+dice.IntN(20)
		l := lightest{most: most}
		var all []weighed
		for i := range n {
			w := weighed{place: uint32(i), worth: float64(dice.IntN(30))}
			all = append(all, w)
			l.add(w)
		}
		l.sort()
		slices.SortFunc(all, lighter)
		if !slices.Equal(l.all, all[:min(most, n)]) {
			t.Fatalf("of %d: %v, not %v", n, l.all, all[:min(most, n)])
		}
	}
}
