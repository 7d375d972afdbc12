package rank

import (
	"math/rand/v2"
	"testing"
)

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

// Of few random vectors hardly one stands out so far that it is lifted above what words found; one
// that is near by its meaning does.
func TestFewOutliers(t *testing.T) {
	t.Parallel()
	const rounds, random, usual, spread, near = 200, 0.05, 0.2, 0.08, 0.75 // 0.05: of 384 dimensions
	rng := rand.New(rand.NewPCG(7, 7))                                     //nolint:gosec // repeatable on purpose
	for _, size := range []int{12, 20, 30, 40} {
		byChance, meant := 0, 0
		for range rounds {
			p, q := &rankedPart{}, &rankedPart{Part: Part{Vectors: []VectorHit{{Cosine: near}}}}
			for range size {
				p.Vectors = append(p.Vectors, VectorHit{Cosine: random * rng.NormFloat64()})
				q.Vectors = append(q.Vectors, VectorHit{Cosine: usual + spread*rng.NormFloat64()})
			}
			if n := (&ranking{parts: []*rankedPart{p}}).nearness(); n.outlierScore(n.nearest) >= minOutlier {
				byChance++
			}
			if n := (&ranking{parts: []*rankedPart{q}}).nearness(); n.outlierScore(near) >= minOutlier {
				meant++
			}
		}
		if byChance > rounds/20 || meant < rounds*9/10 {
			t.Errorf("of %d: %d of %d lifted by chance, %d by meaning", size, byChance, rounds, meant)
		}
	}
}
