package vector_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

// agent is the scope of most tests, space the space.
var agent = kv.AgentScope("default", "researcher")

const space = "test/model"

// rig is an index with what it stands on.
type rig struct {
	*vector.Index
	engine kv.Engine
	writer *kv.Writer
	known  map[uint32]bool
}

// MustRig returns an index on an engine. At the end of the test it checks the
// scope agent.
func MustRig(tb testing.TB, engine kv.Engine, opts *vector.Options) *rig {
	tb.Helper()
	r := &rig{Index: vector.New(opts), engine: engine, writer: kv.NewWriter(engine, nil), known: make(map[uint32]bool)}
	tb.Cleanup(func() {
		r.MustCheck(tb)
		if err := r.writer.Close(); err != nil {
			tb.Error(err)
		}
	})
	return r
}

func MustMemory(tb testing.TB) *rig { return MustRig(tb, memkv.New(nil), nil) }

func (r *rig) MustCheck(tb testing.TB) {
	tb.Helper()
	for _, difference := range r.differences(tb) {
		tb.Error(difference)
	}
}

func (r *rig) differences(tb testing.TB) (found []string) {
	tb.Helper()
	has := func(ordinal uint32) bool { return r.known[ordinal] }
	report := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if err := r.Check(context.Background(), r.engine, agent, has, report); err != nil {
		tb.Fatalf("check: %v", err)
	}
	return found
}

// do stages and commits.
func (r *rig) do(stage kv.Stage) error {
	return r.writer.Do(context.Background(), kv.Request{Refs: vector.Refs(agent), Stage: stage})
}

func (r *rig) add(in string, ordinal uint32, v []float32) error {
	return r.do(func(ctx context.Context, tx *kv.Tx) error {
		r.known[ordinal] = true
		return r.Add(ctx, tx, agent, in, ordinal, v)
	})
}

func (r *rig) MustAdd(tb testing.TB, ordinal uint32, v []float32) {
	tb.Helper()
	if err := r.add(space, ordinal, v); err != nil {
		tb.Fatalf("add %d: %v", ordinal, err)
	}
}

// MustAddAll adds vectors under the ordinals from first.
func (r *rig) MustAddAll(tb testing.TB, first uint32, vectors [][]float32) {
	tb.Helper()
	for chunk := range slices.Chunk(vectors, 500) {
		err := r.do(func(ctx context.Context, tx *kv.Tx) error {
			for i, v := range chunk {
				r.known[first+uint32(i)] = true
				if err := r.Add(ctx, tx, agent, space, first+uint32(i), v); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
		first += uint32(len(chunk))
	}
}

func (r *rig) MustRemove(tb testing.TB, ordinals ...uint32) {
	tb.Helper()
	err := r.do(func(ctx context.Context, tx *kv.Tx) error {
		for _, ordinal := range ordinals {
			if err := r.Remove(ctx, tx, agent, space, ordinal); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
}

func (r *rig) MustPack(tb testing.TB) {
	tb.Helper()
	if err := r.Pack(tb.Context(), r.engine, r.writer, agent); err != nil {
		tb.Fatalf("pack: %v", err)
	}
}

func (r *rig) MustSearch(tb testing.TB, q vector.Query) vector.Result {
	tb.Helper()
	q.Space = cmp.Or(q.Space, space)
	view, err := r.engine.Snapshot(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	defer view.Close()
	result, err := r.Search(tb.Context(), view, agent, q)
	if err != nil {
		tb.Fatalf("search: %v", err)
	}
	return result
}

func ordinals(hits []vector.Hit) []uint32 {
	found := []uint32{}
	for _, hit := range hits {
		found = append(found, hit.Ordinal)
	}
	return found
}

// set is a set of documents that a search may find.
type set map[uint32]bool

func (s set) Has(ordinal uint32) bool { return s[ordinal] }
func (s set) Count() int              { return len(s) }
func (s set) All() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		all := make([]uint32, 0, len(s))
		for ordinal := range s {
			all = append(all, ordinal)
		}
		slices.Sort(all)
		for _, ordinal := range all {
			if !yield(ordinal) {
				return
			}
		}
	}
}

// cosine is the plain one, to compare with.
func cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i, x := range a {
		dot += float64(x) * float64(b[i])
		aa += float64(x) * float64(x)
		bb += float64(b[i]) * float64(b[i])
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return dot / math.Sqrt(aa*bb)
}

// exactly returns the k nearest of the allowed vectors, whose ordinals count
// from 1.
func exactly(vectors [][]float32, q []float32, k int, allowed func(uint32) bool) []uint32 {
	var hits []vector.Hit
	for i, v := range vectors {
		if ordinal := uint32(i + 1); v != nil && (allowed == nil || allowed(ordinal)) {
			hits = append(hits, vector.Hit{Ordinal: ordinal, Cosine: cosine(v, q)})
		}
	}
	slices.SortFunc(hits, func(a, b vector.Hit) int {
		return cmp.Or(cmp.Compare(b.Cosine, a.Cosine), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	return ordinals(hits[:min(k, len(hits))])
}

// overlap is the share of want that got has.
func overlap(want, got []uint32) float64 {
	if len(want) == 0 {
		return 1
	}
	n := 0
	for _, ordinal := range want {
		if slices.Contains(got, ordinal) {
			n++
		}
	}
	return float64(n) / float64(len(want))
}

// random returns vectors without any order in them.
func random(rng *rand.Rand, n, dimension int) [][]float32 {
	vectors := make([][]float32, n)
	for i := range vectors {
		vectors[i] = make([]float32, dimension)
		for j := range vectors[i] {
			vectors[i][j] = float32(rng.NormFloat64())
		}
	}
	return vectors
}

// clusters returns vectors around n/50 centres, with noise of 0.7 of their
// length.
func clusters(rng *rand.Rand, n, dimension int) [][]float32 {
	centres := random(rng, max(1, n/50), dimension)
	vectors := random(rng, n, dimension)
	for _, v := range vectors {
		centre := centres[rng.IntN(len(centres))]
		for j := range v {
			v[j] = centre[j] + 0.7*v[j]
		}
	}
	return vectors
}

// leaning returns vectors as the models of language make them: a few directions
// hold most of the spread, and all lean to one side.
func leaning(rng *rand.Rand, n, dimension int) [][]float32 {
	lean := random(rng, 1, dimension)[0]
	vectors := clusters(rng, n, dimension)
	for _, v := range vectors {
		for j := range v {
			v[j] = v[j]*float32(3/math.Sqrt(float64(1+j))) + 1.5*lean[j]
		}
	}
	return vectors
}
