package pgkv_test

import (
	"fmt"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/pgkv"
)

// What a tenant stores is counted while it is little, and estimated when it is much; what
// was deleted counts no more, though the server has not cleaned up behind it.
func TestSize(t *testing.T) {
	db := open(t, pgkv.Options{Unsynced: true})
	defer db.Close()
	const valueBytes = 500
	sizes := make(map[string]int64)
	write := func(tenant string, first, end int, put bool) {
		t.Helper()
		ref := kv.Ref{Keyspace: kv.Records, Scope: kv.AgentScope(tenant, "a")}
		c := kv.Commit{Guards: []kv.Guard{{Ref: ref, Any: true}}, Batch: new(kv.Batch)}
		for i := first; i < end; i++ {
			key := ref.Scope.Key('k', fmt.Appendf(nil, "%08d", i))
			if put {
				c.Batch.Put(kv.Records, key, make([]byte, valueBytes))
				sizes[tenant] += int64(len(key)) + valueBytes
			} else {
				c.Batch.Delete(kv.Records, key)
				sizes[tenant] -= int64(len(key)) + valueBytes
			}
		}
		if err := db.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	want := func(tenant string, within float64) {
		t.Helper()
		got, err := db.Size(t.Context(), kv.Records, kv.TenantRange(tenant))
		if wrong := float64(got - sizes[tenant]); err != nil || wrong > within*float64(sizes[tenant]) || -wrong > within*float64(sizes[tenant]) {
			t.Errorf("%s: %d bytes, %v; want %d", tenant, got, err, sizes[tenant])
		}
	}
	want("none", 0)
	write("small", 0, 100, true)
	want("small", 0)
	write("small", 0, 60, false)
	want("small", 0)
	for i := range 20 {
		write("large", i*2000, (i+1)*2000, true)
		write("beside", i*1000, (i+1)*1000, true)
	}
	// Of 60,000 pairs on some 4,300 pages an eighth is read.
	want("large", 0.25)
	want("beside", 0.25)
	want("small", 0)
	if free, known := db.Free(); known {
		t.Errorf("the server has room for %d bytes", free)
	}
	if _, err := db.Size(t.Context(), kv.Keyspace(77), kv.Range{}); err == nil {
		t.Error("a keyspace that is none has a size")
	}
}

// Large values of the blobs keyspace are counted by whoever wrote them.
func TestSizeOfBlobs(t *testing.T) {
	db := open(t, pgkv.Options{Unsynced: true})
	defer db.Close()
	ref := kv.Ref{Keyspace: kv.Blobs, Scope: kv.AgentScope("acme", "a")}
	c := kv.Commit{Guards: []kv.Guard{{Ref: ref, Any: true}}, Batch: new(kv.Batch)}
	key := ref.Scope.Key('k')
	c.Batch.Put(kv.Blobs, key, make([]byte, 100_000))
	c.Batch.Put(kv.Blobs, append(key, 'b'), make([]byte, 100))
	if err := db.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if got, err := db.Size(t.Context(), kv.Blobs, kv.Range{}); err != nil || got != int64(2*len(key)+1+100) {
		t.Errorf("%d bytes, %v", got, err)
	}
}
