package vector_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

// keysRead is an engine that counts the keys that are read.
type keysRead struct {
	kv.Engine

	n int
}

func (k *keysRead) Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error) {
	k.n += len(keys)
	return k.Engine.Get(ctx, ks, keys...)
}

// Whole vectors of a small set are read once, also when others come.
func TestExactIsReadOnce(t *testing.T) {
	engine := &keysRead{Engine: memkv.New(nil)}
	r := MustRig(t, engine, nil)
	few := make(set)
	for i := range uint32(100) {
		r.MustAdd(t, i, []float32{1, float32(i), 2})
		few[i] = true
	}
	q := vector.Query{Vector: []float32{1, 0, 0}, K: 5, Allowed: few}
	first := r.MustSearch(t, q)
	r.MustAdd(t, 200, []float32{1, 1, 1})
	before := engine.n
	again := r.MustSearch(t, q)
	if read := engine.n - before; read > 3 {
		t.Errorf("it read %d keys again", read)
	}
	if diff := cmp.Diff(first.Hits, again.Hits); diff != "" {
		t.Errorf("other hits (-first +again):\n%s", diff)
	}
}

// What is found is what an index finds that remembers nothing, at any moment, whatever is
// added, replaced, and removed.
func TestExactAtAnyMoment(t *testing.T) {
	r := MustMemory(t)
	rng := rand.New(rand.NewPCG(7, 8))
	var views []kv.Snapshot
	defer func() {
		for _, view := range views {
			_ = view.Close()
		}
	}()
	for range 600 {
		switch ordinal := rng.Uint32N(40); rng.IntN(4) {
		case 0, 1:
			r.MustAdd(t, ordinal, random(rng, 1, 4)[0])
		case 2:
			r.MustRemove(t, ordinal)
		default:
			view, err := r.engine.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if views = append(views, view); len(views) > 4 {
				_ = views[0].Close()
				views = views[1:]
			}
		}
		for range 2 {
			allowed := make(set)
			for range 1 + rng.IntN(20) {
				allowed[rng.Uint32N(40)] = true
			}
			from := kv.Reader(r.engine)
			if len(views) > 0 && rng.IntN(2) == 0 {
				from = views[rng.IntN(len(views))]
			}
			q := vector.Query{Space: space, Vector: random(rng, 1, 4)[0], K: 5, Allowed: allowed}
			got, err := r.Search(t.Context(), from, agent, q)
			if err != nil {
				t.Fatal(err)
			}
			want, err := vector.New(nil).Search(t.Context(), from, agent, q)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		}
	}
}
