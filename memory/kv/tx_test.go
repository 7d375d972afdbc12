package kv_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// A transaction must read exactly as the store would after the commit: every
// stage writes at random through the transaction and through an engine of its
// own, and the two are compared, also by later stages of one commit.
func TestTxReadsItsOwnWrites(t *testing.T) {
	seed := chance.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	base, model := memkv.New(nil), memkv.New(nil)
	w := newWriter(t, base, nil)
	for range 200 {
		err := w.Do(t.Context(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: func(_ context.Context, tx *kv.Tx) error {
			for range 30 { // more writes than are searched one by one
				mutate(t, rng, tx, model)
				compareReads(t, rng, tx, model)
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func randomKey(rng *rand.Rand) []byte {
	return counterRef.Scope.Key('k', fmt.Appendf(nil, "%02d", rng.IntN(40)))
}

func mutate(t *testing.T, rng *rand.Rand, tx *kv.Tx, model kv.Engine) {
	t.Helper()
	var b kv.Batch
	key := randomKey(rng)
	if rng.IntN(3) == 0 {
		tx.Delete(kv.Log, key)
		b.Delete(kv.Log, key)
	} else {
		value := fmt.Appendf(nil, "v%d", rng.IntN(1000))
		tx.Put(kv.Log, key, value)
		b.Put(kv.Log, key, value)
	}
	if err := model.Commit(t.Context(), kv.Commit{Guards: []kv.Guard{{Ref: counterRef, Any: true}}, Batch: &b}); err != nil {
		t.Fatal(err)
	}
}

func compareReads(t *testing.T, rng *rand.Rand, tx *kv.Tx, model kv.Reader) {
	t.Helper()
	r := kv.Range{Start: randomKey(rng), End: randomKey(rng), Reverse: rng.IntN(2) == 0, Limit: rng.IntN(6)}
	if rng.IntN(4) == 0 {
		r.Start, r.End = counterRef.Scope.AppendPrefix(nil), nil
	}
	got, want := collect(t, tx.Scan(t.Context(), kv.Log, r)), collect(t, model.Scan(t.Context(), kv.Log, r))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("scan %+v (-want +got):\n%s", r, diff)
	}
	keys := [][]byte{randomKey(rng), randomKey(rng)}
	gotValues, err := tx.Get(t.Context(), kv.Log, keys...)
	if err != nil {
		t.Fatal(err)
	}
	wantValues, err := model.Get(t.Context(), kv.Log, keys...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantValues, gotValues); diff != "" {
		t.Fatalf("get (-want +got):\n%s", diff)
	}
}

func collect(t *testing.T, pairs iter.Seq2[kv.Pair, error]) []string {
	t.Helper()
	var all []string
	for pair, err := range pairs {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%q=%q", pair.Key, pair.Value))
	}
	return all
}
