package vector_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

// MustAge makes the blocks of the first space those of an older version.
func (r *rig) MustAge(tb testing.TB) {
	tb.Helper()
	err := r.do(func(ctx context.Context, tx *kv.Tx) error { return vector.StageOldBlocks(ctx, tx, agent) })
	if err != nil {
		tb.Fatal(err)
	}
}

// warm searches until the fine codes have come in.
func (r *rig) warm(tb testing.TB, queries [][]float32) {
	tb.Helper()
	for range 3 {
		for _, q := range queries[:min(len(queries), 8)] {
			r.MustSearch(tb, vector.Query{Vector: q, K: 10})
		}
	}
}

// With fine codes a search reads few vectors and finds no less; without, as it
// is in stores of older versions until their blocks are packed anew, it finds
// the same.
func TestFineCodes(t *testing.T) {
	kinds := map[string]struct {
		make  func(*rand.Rand, int, int) [][]float32
		reads float64 // at most
	}{
		"clusters": {clusters, 20}, "leaning": {leaning, 35}, "random": {random, 60},
	}
	const n, queries = 4200, 20 // a tail of some hundred is left
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			all := kind.make(rand.New(rand.NewPCG(14, 1)), n+queries, 64)
			r := MustMemory(t)
			r.MustAddAll(t, 1, all[:n])
			r.MustPack(t)
			r.warm(t, all[n:])
			share, reads := recall(t, r, all[:n], all[n:], nil)
			t.Logf("recall@10 %.4f, %.0f compared exactly", share, reads)
			if share != 1 || reads > kind.reads+float64(vector.PackAfter) {
				t.Errorf("recall@10 is %.4f with %.0f compared exactly, want 1 with at most %.0f", share, reads, kind.reads)
			}
			r.MustAge(t)
			r.MustCheck(t)
			old, oldReads := recall(t, r, all[:n], all[n:], nil)
			t.Logf("without fine codes: recall@10 %.4f, %.0f compared exactly", old, oldReads)
			if old != share || oldReads < reads {
				t.Errorf("without fine codes recall@10 is %.4f with %.0f compared exactly", old, oldReads)
			}
			r.MustPack(t)
			r.warm(t, all[n:])
			if share, again := recall(t, r, all[:n], all[n:], nil); share != 1 || again > reads+1 {
				t.Errorf("packed anew, recall@10 is %.4f with %.0f compared exactly, was %.0f", share, again, reads)
			}
		})
	}
}

// The first ten hits are exact, those behind nearly, and all in order.
func TestCosines(t *testing.T) {
	all := clusters(rand.New(rand.NewPCG(15, 1)), 4020, 128)
	vectors, queries := all[:4000], all[4000:]
	r := MustMemory(t)
	r.MustAddAll(t, 1, vectors)
	r.MustPack(t)
	r.warm(t, queries)
	for _, q := range queries {
		hits := r.MustSearch(t, vector.Query{Vector: q, K: 40}).Hits
		if share := overlap(exactly(vectors, q, 40, nil), ordinals(hits)); len(hits) != 40 || share < 0.9 {
			t.Errorf("%d hits have %.2f of the first 40", len(hits), share)
		}
		for i, hit := range hits {
			off := math.Abs(hit.Cosine - cosine(vectors[hit.Ordinal-1], q))
			if i < 10 && off > 1e-6 || off > 0.005 || i > 0 && hit.Cosine > hits[i-1].Cosine {
				t.Fatalf("hit %d has the cosine %f, which is %f away; the one before has %f", i, hit.Cosine, off, hits[max(0, i-1)].Cosine)
			}
		}
	}
}

// A document whose vector was replaced or removed is no hit with what its block
// says, not even far behind.
func TestGarbage(t *testing.T) {
	all := clusters(rand.New(rand.NewPCG(16, 1)), 3020, 64)
	vectors, queries := all[:3000], all[3000:]
	r := MustMemory(t)
	r.MustAddAll(t, 1, vectors)
	r.MustPack(t)
	r.warm(t, queries)
	for i := range vectors {
		switch i % 6 {
		case 0:
			r.MustRemove(t, uint32(i+1))
			delete(r.known, uint32(i+1))
			vectors[i] = nil
		case 1:
			vectors[i] = queries[i%len(queries)]
			r.MustAdd(t, uint32(i+1), vectors[i])
		}
	}
	for _, q := range queries {
		hits := r.MustSearch(t, vector.Query{Vector: q, K: 100}).Hits
		for i, hit := range hits {
			if v := vectors[hit.Ordinal-1]; v == nil || math.Abs(hit.Cosine-cosine(v, q)) > 1e-6 {
				t.Fatalf("hit %d is document %d with the cosine %f, its vector is %v", i, hit.Ordinal, hit.Cosine, v)
			}
		}
		if len(hits) != 100 {
			t.Errorf("%d hits, want 100", len(hits))
		}
	}
}

// Who knows that the allowed documents have their vectors is spared the reading.
func TestSettled(t *testing.T) {
	all := clusters(rand.New(rand.NewPCG(17, 1)), 3010, 64)
	vectors, queries := all[:3000], all[3000:]
	r := MustMemory(t)
	r.MustAddAll(t, 1, vectors)
	r.MustPack(t)
	allowed := make(set)
	for ordinal := uint32(1); ordinal <= 3000; ordinal++ {
		if allowed[ordinal] = ordinal%10 != 0; !allowed[ordinal] {
			r.MustRemove(t, ordinal)
			delete(r.known, ordinal)
			delete(allowed, ordinal)
		}
	}
	r.warm(t, queries)
	for _, q := range queries {
		want := exactly(vectors, q, 10, allowed.Has)
		careful := r.MustSearch(t, vector.Query{Vector: q, K: 50, Allowed: allowed})
		settled := r.MustSearch(t, vector.Query{Vector: q, K: 50, Allowed: allowed, Settled: true})
		if !cmp.Equal(want, ordinals(careful.Hits)[:10]) || !cmp.Equal(want, ordinals(settled.Hits)[:10]) {
			t.Errorf("found %v and %v, want %v", ordinals(careful.Hits)[:10], ordinals(settled.Hits)[:10], want)
		}
		if settled.Rescored > 40 || settled.Rescored >= careful.Rescored {
			t.Errorf("%d compared exactly, otherwise %d", settled.Rescored, careful.Rescored)
		}
	}
}

// Where a cache has no room for the fine codes of a space, searches find the
// same, and the cache keeps to its size.
func TestSmallCache(t *testing.T) {
	const n, queries, dimension = 12_000, 10, 64
	const block = 2048 * (dimension + 4) // bytes of the fine codes of one
	all := clusters(rand.New(rand.NewPCG(18, 1)), n+queries, dimension)
	for name, test := range map[string]struct{ limit, fine, reads int }{
		"for all":    {2 << 20, n * (dimension + 4), 20},
		"for a part": {650 << 10, 2 * block, 1800},
		"for none":   {300 << 10, 0, 2600},
		"at all":     {1, 0, 2600},
	} {
		t.Run(name, func(t *testing.T) {
			r := MustRig(t, memkv.New(nil), &vector.Options{CacheBytes: test.limit})
			r.MustAddAll(t, 1, all[:n])
			r.MustPack(t)
			r.warm(t, all[n:])
			share, reads := recall(t, r, all[:n], all[n:], nil)
			t.Logf("recall@10 %.4f, %.0f compared exactly, %d of %d bytes remembered, %d of fine codes", share, reads, r.CacheBytes(), test.limit, r.FineBytes())
			if share != 1 || int(reads) > test.reads || r.CacheBytes() > test.limit || r.FineBytes() < test.fine {
				t.Errorf("recall@10 is %.4f with %.0f compared exactly, %d of %d bytes remembered, %d of fine codes", share, reads, r.CacheBytes(), test.limit, r.FineBytes())
			}
		})
	}
}

// Fine codes that can't be read are an error, not a crash.
func TestDamagedFineCodes(t *testing.T) {
	all := clusters(rand.New(rand.NewPCG(19, 1)), 1000, 64)
	for name, stored := range map[string][]byte{
		"cut short": {1, 0}, "empty": {}, "newer": {2, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := MustMemory(t)
			r.MustAddAll(t, 1, all)
			r.MustPack(t)
			if err := r.do(func(_ context.Context, tx *kv.Tx) error {
				tx.Put(kv.Index, agent.Key('v', []byte{0, 1, 'f', 0, 0, 0, 1}), stored)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			var err error
			for i := 0; i < 50 && err == nil; i++ {
				_, err = r.Search(t.Context(), r.engine, agent, vector.Query{Space: space, Vector: all[i], K: 100})
			}
			if !errors.Is(err, vector.ErrDamaged) && !errors.Is(err, vector.ErrNewer) {
				t.Errorf("searching gives %v", err)
			}
			// Put right again, for the check at the end.
			if err := r.Drop(t.Context(), r.engine, r.writer, agent, space); err != nil {
				t.Fatal(err)
			}
			r.known = nil
		})
	}
}

// Check sees fine codes that are missing, and those that are left over. A space
// that is dropped, and blocks made anew, leave none.
func TestCheckFineCodes(t *testing.T) {
	r := MustMemory(t)
	r.MustAddAll(t, 1, random(rand.New(rand.NewPCG(20, 1)), 1000, 4))
	r.MustPack(t)
	first := agent.Key('v', []byte{0, 1, 'f', 0, 0, 0, 1})
	for _, test := range []struct {
		name  string
		stage func(tx *kv.Tx)
		want  string
	}{
		{"gone", func(tx *kv.Tx) { tx.Delete(kv.Index, first) }, "block 1 has no fine codes"},
		{"left over", func(tx *kv.Tx) { tx.Put(kv.Index, agent.Key('v', []byte{0, 1, 'f', 0, 0, 0, 9}), []byte{1}) }, "no block that has them"},
	} {
		if err := r.do(func(_ context.Context, tx *kv.Tx) error { test.stage(tx); return nil }); err != nil {
			t.Fatal(err)
		}
		found := strings.Join(r.differences(t), "\n")
		if !strings.Contains(found, test.want) {
			t.Errorf("%s: check finds %q, want %q", test.name, found, test.want)
		}
	}
	if err := r.Drop(t.Context(), r.engine, r.writer, agent, space); err != nil {
		t.Fatal(err)
	}
	r.known = make(map[uint32]bool)
	for pair, err := range r.engine.Scan(t.Context(), kv.Index, kv.Prefix(agent.Key('v'))) {
		t.Errorf("the dropped space left %q, %v", pair.Key, err)
	}
}

// Blocks of long vectors fit into what the engine takes, and so do commits of
// many.
func TestLongVectors(t *testing.T) {
	const n, dimension = 700, 4096
	vectors := random(rand.New(rand.NewPCG(21, 1)), n, dimension)
	r := MustMemory(t)
	r.MustAddAll(t, 1, vectors)
	r.MustPack(t)
	for i := range 5 {
		if got := r.MustSearch(t, vector.Query{Vector: vectors[i], K: 1}); len(got.Hits) != 1 || got.Hits[0].Ordinal != uint32(i+1) || got.Tail >= vector.PackAfter {
			t.Errorf("found %v behind a tail of %d, want document %d", got.Hits, got.Tail, i+1)
		}
	}
}
