//go:build cgo && !norocksdb

package rockskv_test

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

// What was deleted or overwritten is in no file any more when Reclaim returns: in no table
// of any level, no log and no blob file, whoever else has values there, and although a
// snapshot saw it.
func TestReclaim(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	db, err := rockskv.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	goes, stays := kv.AgentScope("t", "goes"), kv.AgentScope("t", "stays")
	commit := func(ks kv.Keyspace, scope kv.Scope, change func(*kv.Batch)) {
		t.Helper()
		batch := new(kv.Batch)
		change(batch)
		guard := kv.Guard{Ref: kv.Ref{Keyspace: ks, Scope: scope}, Any: true}
		if err := db.Commit(t.Context(), kv.Commit{Guards: []kv.Guard{guard}, Batch: batch}); err != nil {
			t.Fatal(err)
		}
	}
	var canaries [][]byte
	random := func(size int) []byte { // what can't be packed stands in files as it is
		value := make([]byte, size)
		_, _ = rand.Read(value) // never fails
		return value
	}
	var ranges []kv.KeyRange
	for _, ks := range kv.Keyspaces() {
		ranges = append(ranges, kv.KeyRange{Keyspace: ks, Range: kv.Prefix(goes.AppendPrefix(nil))})
	}
	const rounds = 4
	for round := range byte(rounds) {
		for _, ks := range kv.Keyspaces() {
			for i, size := range []int{100, 20_000} {
				canary := random(size)
				canaries = append(canaries, canary[:32])
				commit(ks, goes, func(b *kv.Batch) { b.Put(ks, goes.Key('x', []byte{byte(i), round % 2}), canary) })
				commit(ks, stays, func(b *kv.Batch) { b.Put(ks, stays.Key('x', []byte{byte(i), round}), random(size)) })
			}
		}
		if round < rounds-1 { // the last round is in the log
			if err := db.Reclaim(t.Context(), ranges[:1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	found := func() (n int) {
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if content, err := os.ReadFile(filepath.Join(dir, f.Name())); err == nil {
				for _, canary := range canaries {
					if bytes.Contains(content, canary) {
						n++
					}
				}
			}
		}
		return n
	}
	if before := found(); before < len(canaries)/2 {
		t.Fatalf("%d of %d values are in files before", before, len(canaries))
	}
	seen, err := db.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, ks := range kv.Keyspaces() {
		commit(ks, goes, func(b *kv.Batch) {
			for i := range byte(2) {
				b.Delete(ks, goes.Key('x', []byte{i, 0}))
				b.Delete(ks, goes.Key('x', []byte{i, 1}))
			}
		})
	}
	reclaimed := make(chan error, 1)
	go func() { reclaimed <- db.Reclaim(t.Context(), ranges) }()
	select {
	case err := <-reclaimed:
		t.Fatalf("it did not wait for the snapshot: %v", err)
	default:
	}
	if err := seen.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-reclaimed; err != nil {
		t.Fatal(err)
	}
	if after := found(); after != 0 {
		t.Errorf("%d values are in files after", after)
	}
	for _, ks := range kv.Keyspaces() {
		n := 0
		for _, err := range db.Scan(t.Context(), ks, kv.TenantRange("t")) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != 2*rounds {
			t.Errorf("%s has %d values, want the %d that stay", ks, n, 2*rounds)
		}
	}
}
