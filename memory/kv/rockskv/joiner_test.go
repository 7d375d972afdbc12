//go:build cgo && !norocksdb

package rockskv

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// TestJoining wants commits that wait at the same time to share one batch and
// one sync. The test itself leads first, so that all of them do wait.
func TestJoining(t *testing.T) {
	const clients = 32
	db, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	before := db.Stats()
	db.joiner.mu.Lock()
	db.joiner.leading = true
	db.joiner.mu.Unlock()
	var wg sync.WaitGroup
	for i := range clients {
		ref := kv.Ref{Keyspace: kv.Log, Scope: kv.AgentScope("t", fmt.Sprint(i))}
		batch := &kv.Batch{}
		batch.Put(kv.Log, ref.Scope.Key('n'), []byte("1"))
		wg.Go(func() {
			if err := db.Commit(t.Context(), kv.Commit{Guards: []kv.Guard{{Ref: ref}}, Batch: batch}); err != nil {
				t.Error(err)
			}
		})
	}
	for waiting := 0; waiting < clients; runtime.Gosched() {
		db.joiner.mu.Lock()
		waiting = len(db.joiner.waiting)
		db.joiner.mu.Unlock()
	}
	db.joiner.handOver()
	wg.Wait()
	after := db.Stats()
	if joins, syncs := after.Joins-before.Joins, after.WALSyncs-before.WALSyncs; joins != 1 || syncs != 1 {
		t.Errorf("%d commits took %d joins and %d syncs, want one of each", clients, joins, syncs)
	}
}
