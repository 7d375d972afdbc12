package blob_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// With NamingRef, steps whose results are the same bytes share a path and its
// numbered forms. There is one for each, in order, and each is found by its step.
func TestNamingRefOfEqualResults(t *testing.T) {
	f := newNamed(t, blob.NamingRef)
	for n := uint64(1); n <= 1100; n++ {
		stored, err := f.Add(t.Context(), alice, []byte("the same large result"))
		if err != nil {
			t.Fatal(err)
		}
		var e blob.Entry
		err = f.writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{f.Ref(alice)}, Stage: func(ctx context.Context, tx *kv.Tx) (err error) {
			e, err = f.StageNamed(ctx, tx, alice, stored, blob.Entry{StepID: step.ID(n), Category: "tool"}, blob.Name{Kind: "tool", Step: n, Ext: "txt"})
			return err
		}})
		if err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
		number := fmt.Sprintf("_%d", n)
		if n == 1 {
			number = ""
		}
		if want := blob.Folder + stored.Ref()[:12] + number + ".txt"; e.Path != want {
			t.Fatalf("step %d has %s, want %s", n, e.Path, want)
		}
		if found, err := f.Lookup(t.Context(), alice, step.ID(n)); err != nil || found.Path != e.Path {
			t.Fatalf("step %d leads to %s, %v", n, found.Path, err)
		}
	}
}
