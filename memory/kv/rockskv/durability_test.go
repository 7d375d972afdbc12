//go:build cgo && !norocksdb

package rockskv_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

// uncovered commits some commits and counts those that were acknowledged
// without a sync of the log between their call and their answer. RocksDB
// itself counts the syncs.
func uncovered(tb testing.TB, db *rockskv.DB, clients, each int) int {
	tb.Helper()
	var missing atomic.Int64
	var users sync.WaitGroup
	for w := range clients {
		users.Go(func() {
			for n := range each {
				before := db.Stats().WALSyncs
				if err := db.Commit(tb.Context(), numbered(w, uint64(n)+1)); err != nil {
					tb.Errorf("commit: %v", err)
				}
				if db.Stats().WALSyncs == before {
					missing.Add(1)
				}
			}
		})
	}
	users.Wait()
	return int(missing.Load())
}

// TestAcknowledgedMeansSynced proves the default durability, and by the other
// settings that the proof would notice its absence.
func TestAcknowledgedMeansSynced(t *testing.T) {
	const clients, each = 8, 20
	tests := []struct {
		durability rockskv.Durability
		want       int
	}{
		{rockskv.Sync, 0},
		{rockskv.WAL, clients * each},
		{rockskv.None, clients * each},
	}
	for _, test := range tests {
		t.Run(test.durability.String(), func(t *testing.T) {
			db := mustOpen(t, t.TempDir(), &rockskv.Options{Durability: test.durability})
			if got := uncovered(t, db, clients, each); got != test.want {
				t.Errorf("%d of %d commits acknowledged without a sync, want %d", got, clients*each, test.want)
			}
			stats := db.Stats()
			if logged := stats.WALBytes > 0; logged != (test.durability != rockskv.None) {
				t.Errorf("%d bytes in the log", stats.WALBytes)
			}
			if stats.Commits != clients*each || stats.KeysWritten < 2*clients*each {
				t.Errorf("stats %+v after %d commits", stats, clients*each)
			}
		})
	}
}

// TestLazyIsNotSynced wants lazy commits to cost no sync, and the next one that
// is not lazy to pay for all.
func TestLazyIsNotSynced(t *testing.T) {
	db := mustOpen(t, t.TempDir(), nil)
	lazy := putA("1")
	lazy.Lazy = true
	before := db.Stats()
	for range 10 {
		mustCommit(t, db, lazy)
	}
	between := db.Stats()
	if between.WALSyncs != before.WALSyncs || between.WALBytes == before.WALBytes {
		t.Errorf("after lazy commits: %+v, before %+v", between, before)
	}
	mustCommit(t, db, putA("2"))
	if after := db.Stats(); after.WALSyncs != between.WALSyncs+1 {
		t.Errorf("after a commit that is not lazy: %+v, before %+v", after, between)
	}
}

// TestCloseWaits closes while a scan is under way.
func TestCloseWaits(t *testing.T) {
	db := mustOpen(t, t.TempDir(), nil)
	mustCommit(t, db, putA("1"))
	closed := make(chan error, 1)
	for _, err := range db.Scan(t.Context(), kv.Records, kv.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		go func() { closed <- db.Close() }()
		// Once the store closes, nobody gets in; the scan is still inside.
		for db.Stats() != (rockskv.Stats{}) {
		}
		select {
		case err := <-closed:
			t.Errorf("close did not wait for the scan: %v", err)
		default:
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
