//go:build !norocksdb && cgo

package vector_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/embedtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

// MustRocks opens a fresh RocksDB store for the length of a test.
func MustRocks(tb testing.TB) kv.Engine {
	tb.Helper()
	db, err := rockskv.Open(filepath.Join(tb.TempDir(), "store"), &rockskv.Options{Durability: rockskv.None})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	return db
}

// topics writes short texts, each on two of many things.
func topics(rng *rand.Rand, n int) []string {
	const things, wordsEach, common = 400, 40, 2000
	zipf := rand.NewZipf(rng, 1.2, 4, wordsEach-1)
	usual := rand.NewZipf(rng, 1.1, 10, common-1)
	texts := make([]string, n)
	for i := range texts {
		first, second := rng.IntN(things), rng.IntN(things)
		var b strings.Builder
		for j := range 8 + rng.IntN(30) {
			switch {
			case j%3 == 0:
				fmt.Fprintf(&b, "w%d ", usual.Uint64())
			case j%5 == 0:
				fmt.Fprintf(&b, "t%dx%d ", second, zipf.Uint64())
			default:
				fmt.Fprintf(&b, "t%dx%d ", first, zipf.Uint64())
			}
		}
		texts[i] = b.String()
	}
	return texts
}

// semantic returns vectors of such texts, made by a model of them.
func semantic(rng *rand.Rand, n, dimension int) [][]float32 {
	texts := topics(rng, n)
	model := embedtest.TrainLSA(texts[:min(n, 4000)], &embedtest.LSAOptions{Dimensions: dimension})
	vectors := make([][]float32, n)
	for i, text := range texts {
		vectors[i] = model.Vector(text)
	}
	return vectors
}

// BenchmarkSearch measures the ten nearest of vectors of 384 numbers that were
// held out, and how many of them are found.
func BenchmarkSearch(b *testing.B) {
	kinds := map[string]func(*rand.Rand, int, int) [][]float32{
		"clusters": clusters, "semantic": semantic, "random": random,
	}
	for _, name := range []string{"clusters", "semantic", "random"} {
		for _, n := range []int{5_000, 10_000, 50_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				const queries = 100
				all := kinds[name](rand.New(rand.NewPCG(uint64(n), 3)), n+queries, 384)
				vectors, asked := all[:n], all[n:]
				r := MustRig(b, MustRocks(b), nil)
				r.MustAddAll(b, 1, vectors)
				r.MustPack(b)
				share, rescored := recall(b, r, vectors, asked, nil)
				var times []time.Duration
				for i := 0; b.Loop(); i++ {
					began := time.Now()
					r.MustSearch(b, vector.Query{Vector: asked[i%queries], K: 10})
					times = append(times, time.Since(began))
				}
				slices.Sort(times)
				b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
				b.ReportMetric(float64(times[len(times)*95/100].Microseconds()), "p95-µs")
				b.ReportMetric(share, "recall@10")
				b.ReportMetric(rescored, "rescored")
			})
		}
	}
}
