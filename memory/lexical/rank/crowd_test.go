package rank

import "testing"

// Whether the nearest vector is one of a crowd does not depend on a model's scale; without a
// crowd, it is not.
func TestCrowded(t *testing.T) {
	t.Parallel()
	for _, scale := range []float64{0.1, 1} {
		for ahead, want := range map[float64]float64{0: 1, 2.5: 1, 3.25: 0.5, 4: 0, 9: 0} {
			n := nearness{nearest: scale * (0.02 + 0.01*ahead), middle: scale * 0.02, spread: scale * 0.01}
			if got := n.crowded(); got < want-1e-6 || got > want+1e-6 {
				t.Errorf("%v spreads ahead at scale %v: %v, not %v", ahead, scale, got, want)
			}
		}
	}
	if got := (nearness{nearest: 0.5}).crowded(); got != 0 {
		t.Errorf("without a crowd: %v", got)
	}
}
