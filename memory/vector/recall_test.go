package vector_test

import (
	"math/rand/v2"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

// recall searches for held-out vectors and returns the mean share of the exact
// first ten that are found, and how many were compared exactly.
func recall(tb testing.TB, r *rig, vectors, queries [][]float32, allowed vector.Allowed) (share, rescored float64) {
	tb.Helper()
	var has func(uint32) bool
	if allowed != nil {
		has = allowed.Has
	}
	for _, q := range queries {
		result := r.MustSearch(tb, vector.Query{Vector: q, K: 10, Allowed: allowed})
		share += overlap(exactly(vectors, q, 10, has), ordinals(result.Hits))
		rescored += float64(result.Rescored)
	}
	n := float64(len(queries))
	return share / n, rescored / n
}

func TestRecall(t *testing.T) {
	kinds := map[string]struct {
		make func(*rand.Rand, int, int) [][]float32
		want float64
	}{
		"clusters": {clusters, 0.99},
		"leaning":  {leaning, 0.99},
		"random":   {random, 0.99}, // few enough for it to be so here, too
	}
	const n, queries, dimension = 6000, 50, 128
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			all := kind.make(rng, n+queries, dimension)
			vectors := all[:n]
			r := MustRig(t, memkv.New(nil), nil)
			r.MustAddAll(t, 1, vectors)
			r.MustPack(t)
			got, rescored := recall(t, r, vectors, all[n:], nil)
			t.Logf("recall@10 %.4f, %.0f of %d compared exactly", got, rescored, n)
			if got < kind.want {
				t.Errorf("recall@10 is %.4f, want at least %.2f", got, kind.want)
			}
			few := make(set)
			for ordinal := uint32(3); ordinal <= n; ordinal += 7 {
				few[ordinal] = true
			}
			if got, _ = recall(t, r, vectors, all[n:], few); got != 1 {
				t.Errorf("recall@10 where %d are allowed is %.4f, want 1", len(few), got)
			}
		})
	}
}
