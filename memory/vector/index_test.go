package vector_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

var near = cmpopts.EquateApprox(0, 1e-6)

func TestSearch(t *testing.T) {
	r := MustMemory(t)
	r.MustAdd(t, 1, []float32{1, 0, 0})
	r.MustAdd(t, 2, []float32{10, 10, 0})
	r.MustAdd(t, 3, []float32{0, 0, -1})
	r.MustAdd(t, 4, []float32{0, 0, 0})
	want := []vector.Hit{{Ordinal: 1, Cosine: 1}, {Ordinal: 2, Cosine: math.Sqrt(0.5)}, {Ordinal: 3, Cosine: 0}, {Ordinal: 4, Cosine: 0}}
	got := r.MustSearch(t, vector.Query{Vector: []float32{2, 0, 0}, K: 10})
	if diff := cmp.Diff(want, got.Hits, near); diff != "" {
		t.Errorf("hits (-want +got):\n%s", diff)
	}
	got = r.MustSearch(t, vector.Query{Vector: []float32{2, 0, 0}, K: 10, Allowed: set{2: true, 3: true, 99: true}})
	if diff := cmp.Diff(want[1:3], got.Hits, near); diff != "" {
		t.Errorf("hits among those allowed (-want +got):\n%s", diff)
	}
	if got := r.MustSearch(t, vector.Query{Vector: []float32{1}, K: 10, Space: "another"}); len(got.Hits) != 0 {
		t.Errorf("space that is not there has hits %v", got.Hits)
	}
}

// Vectors of two models are never mixed, and nothing is made to fit.
func TestDimensions(t *testing.T) {
	r := MustMemory(t)
	r.MustAdd(t, 1, []float32{1, 0, 0})
	err := r.add(space, 2, []float32{1, 0})
	var mismatch *vector.DimensionError
	if !errors.As(err, &mismatch) || *mismatch != (vector.DimensionError{Space: space, Want: 3, Got: 2}) {
		t.Errorf("adding gives %v, want a DimensionError", err)
	}
	if _, err = r.Search(t.Context(), r.engine, agent, vector.Query{Space: space, Vector: []float32{1}, K: 1}); !errors.Is(err, vector.ErrDimension) {
		t.Errorf("searching gives %v, want ErrDimension", err)
	}
	if err := r.add("other", 2, []float32{1, 0}); err != nil {
		t.Errorf("another space: %v", err)
	}
	r.known[2] = true
	spaces, err := r.Spaces(t.Context(), r.engine, agent)
	want := []vector.Space{{Name: space, Dimension: 3, Count: 1}, {Name: "other", Dimension: 2, Count: 1}}
	if err != nil || !cmp.Equal(want, spaces) {
		t.Errorf("spaces are %v, %v, want %v", spaces, err, want)
	}
	if got := r.MustSearch(t, vector.Query{Space: "other", Vector: []float32{1, 0}, K: 5}); !cmp.Equal(ordinals(got.Hits), []uint32{2}) {
		t.Errorf("the other space finds %v", got.Hits)
	}
}

func TestInvalid(t *testing.T) {
	r := MustMemory(t)
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, v := range [][]float32{nil, {nan}, {1, inf}, make([]float32, 4097)} {
		if err := r.add(space, 1, v); !errors.Is(err, vector.ErrInvalid) {
			t.Errorf("adding a vector of %d numbers gives %v, want ErrInvalid", len(v), err)
		}
	}
	for _, name := range []string{"", strings.Repeat("s", 129)} {
		if err := r.add(name, 1, []float32{1}); !errors.Is(err, vector.ErrInvalid) {
			t.Errorf("a space with a name of %d bytes gives %v, want ErrInvalid", len(name), err)
		}
	}
	for i := range vector.MaxSpaces {
		if err := r.add(fmt.Sprint(i), 1, []float32{1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.add("one more", 1, []float32{1}); !errors.Is(err, vector.ErrTooManySpaces) {
		t.Errorf("one more space gives %v, want ErrTooManySpaces", err)
	}
}

// What packing does is never seen: the same hits before, after, and with half
// of it done.
func TestPacking(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	all := clusters(rng, 5020, 48)
	vectors, queries := all[:5000], all[5000:]
	r := MustMemory(t)
	check := func(when string) {
		t.Helper()
		r.MustCheck(t)
		for _, q := range queries {
			want := exactly(vectors[:len(r.known)], q, 10, nil)
			if got := r.MustSearch(t, vector.Query{Vector: q, K: 10}); !cmp.Equal(want, ordinals(got.Hits)) {
				t.Fatalf("%s: found %v, want %v", when, ordinals(got.Hits), want)
			}
		}
	}
	for _, n := range []int{100, 200, 300, 3000, 3700, 4100, 5000} {
		from := len(r.known)
		r.MustAddAll(t, uint32(from+1), vectors[from:n])
		check(fmt.Sprintf("before packing %d", n))
		r.MustPack(t)
		check(fmt.Sprintf("after packing %d", n))
	}
	if got := r.MustSearch(t, vector.Query{Vector: queries[0], K: 10}); got.Tail > vector.PackAfter || got.Rescored > 1500 {
		t.Errorf("after packing %d are in the tail, and %d of 5000 compared exactly", got.Tail, got.Rescored)
	}
}

func TestRemove(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 1))
	vectors := clusters(rng, 3000, 32)
	r := MustMemory(t)
	r.MustAddAll(t, 1, vectors[:2800])
	r.MustPack(t)
	r.MustAddAll(t, 2801, vectors[2800:])
	q := vectors[10]
	r.MustSearch(t, vector.Query{Vector: q, K: 10}) // so that the tail is remembered
	left := slices.Clone(vectors)
	for ordinal := uint32(1); ordinal <= 3000; ordinal++ {
		if ordinal%3 != 0 {
			r.MustRemove(t, ordinal)
			delete(r.known, ordinal)
			left[ordinal-1] = nil
		}
	}
	check := func() {
		t.Helper()
		got := r.MustSearch(t, vector.Query{Vector: q, K: 10})
		if want := exactly(left, q, 10, nil); !cmp.Equal(want, ordinals(got.Hits)) {
			t.Errorf("found %v, want %v", ordinals(got.Hits), want)
		}
	}
	check()
	before := r.MustSearch(t, vector.Query{Vector: q, K: 10}).Scanned
	r.MustPack(t)
	check()
	if after := r.MustSearch(t, vector.Query{Vector: q, K: 10}).Scanned; after >= before || after > 1400 {
		t.Errorf("%d scanned after the garbage was packed, %d before", after, before)
	}
	r.MustRemove(t, 1, 77_777) // what is not there
}

// The same vector again changes nothing; another one takes the place of the
// first, wherever that stands.
func TestReplace(t *testing.T) {
	r := MustMemory(t)
	vectors := random(rand.New(rand.NewPCG(7, 1)), 600, 16)
	r.MustAddAll(t, 1, vectors)
	sequence, _ := r.engine.Sequence(t.Context(), vector.Refs(agent)...)
	r.MustAdd(t, 5, vectors[4])
	if after, _ := r.engine.Sequence(t.Context(), vector.Refs(agent)...); !cmp.Equal(sequence, after) {
		t.Errorf("the same vector again was a commit")
	}
	replace := func(ordinal int, v []float32) {
		t.Helper()
		r.MustSearch(t, vector.Query{Vector: v, K: 1})
		r.MustAdd(t, uint32(ordinal), v)
		vectors[ordinal-1] = v
		got := r.MustSearch(t, vector.Query{Vector: v, K: 600})
		if want := exactly(vectors, v, 600, nil); !cmp.Equal(want, ordinals(got.Hits)) {
			t.Errorf("after another vector of %d: the best are %v of %d, want %v", ordinal, ordinals(got.Hits)[:3], len(got.Hits), want[:3])
		}
	}
	spare := random(rand.New(rand.NewPCG(8, 1)), 3, 16)
	replace(5, spare[0])
	r.MustPack(t)
	replace(5, spare[1])
	replace(5, spare[2])
	r.MustPack(t)
}

func TestVectorsAndMove(t *testing.T) {
	r := MustMemory(t)
	r.MustAdd(t, 1, []float32{1, 2})
	r.MustAdd(t, 2, []float32{3, 4})
	err := r.do(func(ctx context.Context, tx *kv.Tx) error {
		r.known[7] = true
		return r.Move(ctx, tx, agent, 2, 7)
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Vectors(t.Context(), r.engine, agent, space, []uint32{7, 2, 1})
	if diff := cmp.Diff([][]float32{{3, 4}, nil, {1, 2}}, got); err != nil || diff != "" {
		t.Errorf("%v, vectors (-want +got):\n%s", err, diff)
	}
	err = r.do(func(ctx context.Context, tx *kv.Tx) error { return r.RemoveAll(ctx, tx, agent, 7) })
	if err != nil {
		t.Fatal(err)
	}
	if got := r.MustSearch(t, vector.Query{Vector: []float32{3, 4}, K: 5}); !cmp.Equal(ordinals(got.Hits), []uint32{1}) {
		t.Errorf("found %v, want the first alone", got.Hits)
	}
}

func TestDrop(t *testing.T) {
	r := MustMemory(t)
	vectors := random(rand.New(rand.NewPCG(9, 1)), 5000, 8)
	r.MustAddAll(t, 1, vectors)
	r.MustPack(t)
	if err := r.add("other", 1, []float32{1}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Drop(t.Context(), r.engine, r.writer, agent, space); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.MustSearch(t, vector.Query{Vector: vectors[0], K: 5}); len(got.Hits) != 0 {
		t.Errorf("dropped space has hits %v", got.Hits)
	}
	r.MustCheck(t)
	// The name may be used again, for another dimension.
	r.MustAdd(t, 2, []float32{1, 2})
	if got := r.MustSearch(t, vector.Query{Vector: []float32{1, 2}, K: 5}); !cmp.Equal(ordinals(got.Hits), []uint32{2}) {
		t.Errorf("found %v, want the new vector alone", got.Hits)
	}
}

func TestRemoveReplaced(t *testing.T) {
	r := MustMemory(t)
	vectors := random(rand.New(rand.NewPCG(10, 1)), 1200, 4)
	r.MustAddAll(t, 1, vectors)
	for ordinal := range uint32(1199) {
		if err := r.add("new", ordinal+1, []float32{1, float32(ordinal)}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want []vector.Space) {
		t.Helper()
		if err := r.RemoveReplaced(t.Context(), r.engine, r.writer, agent, space, "new"); err != nil {
			t.Fatal(err)
		}
		got, err := r.Spaces(t.Context(), r.engine, agent)
		if err != nil || !cmp.Equal(want, got) {
			t.Errorf("spaces are %v, %v, want %v", got, err, want)
		}
	}
	check([]vector.Space{{Name: space, Dimension: 4, Count: 1}, {Name: "new", Dimension: 2, Count: 1199}})
	if err := r.add("new", 1200, []float32{1, 2}); err != nil {
		t.Fatal(err)
	}
	check([]vector.Space{{Name: "new", Dimension: 2, Count: 1200}})
}

// A space that is larger than a scan may be is sorted into blocks of neighbours,
// and a search that scans a part of them still finds nearly everything.
func TestNeighbours(t *testing.T) {
	const n, queries = 36_000, 40
	all := clusters(rand.New(rand.NewPCG(11, 1)), n+queries, 32)
	r := MustRig(t, memkv.New(nil), &vector.Options{ScanLimit: 12000})
	r.MustAddAll(t, 1, all[:n])
	r.MustPack(t)
	result := r.MustSearch(t, vector.Query{Vector: all[n], K: 10})
	if result.Scanned > 14_000 {
		t.Errorf("%d of %d scanned", result.Scanned, n)
	}
	share, rescored := recall(t, r, all[:n], all[n:], nil)
	t.Logf("recall@10 %.4f, %d scanned, %.0f compared exactly", share, result.Scanned, rescored)
	if share < 0.98 {
		t.Errorf("recall@10 is %.4f", share)
	}
	few := make(set)
	for ordinal := uint32(1); ordinal <= n; ordinal += 5 {
		few[ordinal] = true
	}
	if share, _ = recall(t, r, all[:n], all[n:n+10], few); share != 1 {
		t.Errorf("recall@10 where %d are allowed is %.4f, want 1", len(few), share)
	}
}

// Searches, saves and packing at the same time: every view is whole.
func TestConcurrency(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 1))
	vectors := clusters(rng, 3000, 16)
	r := MustMemory(t)
	r.MustAddAll(t, 1, vectors[:500])
	var group sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := r.Pack(t.Context(), r.engine, r.writer, agent); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			got := r.MustSearch(t, vector.Query{Vector: vectors[7], K: 1})
			if len(got.Hits) != 1 || got.Hits[0].Ordinal != 8 {
				t.Errorf("found %v, want document 8", got.Hits)
				return
			}
		}
	})
	r.MustAddAll(t, 501, vectors[500:])
	close(stop)
	group.Wait()
}

// Check sees what is wrong.
func TestCheck(t *testing.T) {
	r := MustMemory(t)
	r.MustAddAll(t, 1, random(rand.New(rand.NewPCG(13, 1)), 300, 4))
	delete(r.known, 17)
	if found := r.differences(t); len(found) != 1 || !strings.Contains(found[0], "document 17") {
		t.Errorf("found %q, want the vector of a document that is not there", found)
	}
	r.known[17] = true
	if err := r.do(func(_ context.Context, tx *kv.Tx) error {
		tx.Delete(kv.Records, agent.Key('v', []byte{0, 1, 0, 0, 0, 9}))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if found := r.differences(t); len(found) == 0 {
		t.Error("a lost vector was not seen")
	}
	// Put right again, for the check at the end.
	if err := r.Drop(t.Context(), r.engine, r.writer, agent, space); err != nil {
		t.Fatal(err)
	}
}
