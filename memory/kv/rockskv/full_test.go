//go:build linux && cgo && !norocksdb

package rockskv_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// A disk that the store itself has filled is not quite full: deletes are still made. That the
// store takes more when they have made room is shown through a client, by
// TestFullDiskIsFreedByItsClientSoak.
func TestFullDiskIsFreed(t *testing.T) {
	mount := mustMount(t, 200)
	db := mustOpen(t, filepath.Join(mount, "store"), nil)
	defer db.Close()
	w := kv.NewWriter(db, nil)
	defer w.Close()
	stage := func(ctx context.Context, do func(tx *kv.Tx)) error {
		return w.Do(ctx, kv.Request{Refs: []kv.Ref{refA}, Stage: func(_ context.Context, tx *kv.Tx) error {
			do(tx)
			return nil
		}})
	}
	key := func(i int) []byte { return refA.Scope.Key('x', fmt.Append(nil, i)) }
	put := func(i int) error {
		return stage(kv.Bounded(t.Context(), true), func(tx *kv.Tx) {
			value := make([]byte, 512<<10)
			_, _ = rand.Read(value) // never fails
			tx.Put(kv.Records, key(i), value)
		})
	}
	n, failed := 0, 0
	for ; n < 1000 && failed < 20; n++ {
		if err := put(n); err != nil {
			if !errors.Is(err, kv.ErrFull) {
				t.Fatalf("commit %d: %v", n, err)
			}
			failed++
		}
	}
	if failed < 20 {
		t.Fatal("the disk never became full")
	}
	for i := range n {
		// Work in the background may have all of the room just then, and gives it back.
		eventually(t, fmt.Sprintf("delete %d of %d on a full disk is made", i, n), func() bool {
			err := stage(t.Context(), func(tx *kv.Tx) {
				tx.Put(kv.Records, refA.Scope.Key('t', fmt.Append(nil, i)), []byte("deleted"))
				tx.Delete(kv.Records, key(i))
			})
			if err != nil && !errors.Is(err, kv.ErrFull) {
				t.Fatalf("delete %d of %d: %v", i, n, err)
			}
			return err == nil
		})
	}
}
