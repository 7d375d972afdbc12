//go:build cgo && !norocksdb

package rockskv_test

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

// The size of a tenant is about what it has stored, and nothing of what others have.
func TestSize(t *testing.T) {
	dir := t.TempDir()
	db, err := rockskv.Open(filepath.Join(dir, "store"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	const values, size = 64, 64 << 10
	for _, tenant := range []string{"a", "ab"} {
		scope := kv.AgentScope(tenant, "x")
		for i := range values {
			value := make([]byte, size)
			_, _ = rand.Read(value) // never fails
			batch := new(kv.Batch)
			batch.Put(kv.Records, scope.Key('x', fmt.Append(nil, i)), value)
			guard := kv.Guard{Ref: kv.Ref{Keyspace: kv.Records, Scope: scope}, Any: true}
			if err := db.Commit(t.Context(), kv.Commit{Guards: []kv.Guard{guard}, Batch: batch}); err != nil {
				t.Fatal(err)
			}
			if tenant == "ab" {
				break
			}
		}
	}
	if err := db.Checkpoint(t.Context(), filepath.Join(dir, "copy")); err != nil { // which flushes so much
		t.Fatal(err)
	}
	for tenant, want := range map[string]int64{"a": values * size, "ab": size, "b": 0} {
		got, err := db.Size(t.Context(), kv.Records, kv.TenantRange(tenant))
		if err != nil || got < want*8/10-size || got > want*12/10+2*size {
			t.Errorf("%s: %d bytes, %v, want about %d", tenant, got, err, want)
		}
	}
	if free, known := db.Free(); !known || free <= 0 {
		t.Errorf("%d bytes are free, known %v", free, known)
	}
}
