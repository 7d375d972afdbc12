package memory

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// What is kept of many is just what sorting all of them puts first.
func TestLightest(t *testing.T) {
	for range 2000 {
		n, most := rand.IntN(200), 1+rand.IntN(20)
		l := lightest{most: most}
		var all []weighed
		for i := range n {
			w := weighed{place: uint32(i), worth: float64(rand.IntN(30))}
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
