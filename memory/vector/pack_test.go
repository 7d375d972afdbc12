package vector_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

var errCrash = errors.New("crash")

// fragile is an engine that dies after a number of commits.
type fragile struct {
	kv.Engine
	left int // less than zero: it lives on
}

func (f *fragile) Commit(ctx context.Context, c kv.Commit) error {
	if f.left == 0 {
		return errCrash
	}
	f.left--
	return f.Engine.Commit(ctx, c)
}

// Packing may die between any two commits: each of them leaves blocks with all
// their parts, and the next packing goes on.
func TestPackingDies(t *testing.T) {
	const n = 9000
	all := clusters(rand.New(rand.NewPCG(22, 1)), n+1, 16)
	vectors, q := all[:n], all[n]
	engine := &fragile{Engine: memkv.New(nil), left: -1}
	r := MustRig(t, engine, &vector.Options{ScanLimit: 1000})
	want := exactly(vectors, q, 10, nil)
	check := func(when string) {
		t.Helper()
		r.MustCheck(t)
		if got := r.MustSearch(t, vector.Query{Vector: q, K: 10}); !cmp.Equal(want, ordinals(got.Hits)) {
			t.Fatalf("%s: found %v, want %v", when, ordinals(got.Hits), want)
		}
	}
	r.MustAddAll(t, 1, vectors)
	check("before packing")
	for commits := range 20 {
		if commits == 3 {
			engine.left = -1
			r.MustAge(t) // so that there is more to do
		}
		engine.left = 1
		err := r.Pack(t.Context(), engine, r.writer, agent)
		engine.left = -1
		check("with packing dead")
		if err == nil {
			return
		}
		if !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
	}
	t.Error("packing comes to no end")
}
