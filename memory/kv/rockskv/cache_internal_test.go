//go:build cgo && !norocksdb

package rockskv

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// The index of a large table file stays in memory: that of a full one has more than a
// megabyte, and one that is read anew for each key costs more than all else.
func TestLargeIndexIsCached(t *testing.T) {
	db := mustOpenHere(t)
	scope := kv.AgentScope("t", "many")
	long, value := bytes.Repeat([]byte("k"), 850), make([]byte, 1<<10)
	key := func(i uint32) []byte { return scope.Key('x', binary.BigEndian.AppendUint32(bytes.Clone(long), i)) }
	const keys, batches = 8000, 8
	for n := range uint32(batches) {
		batch := new(kv.Batch)
		for i := range uint32(keys / batches) {
			batch.Put(kv.Records, key(n*keys/batches+i), value)
		}
		guard := kv.Guard{Ref: kv.Ref{Keyspace: kv.Records, Scope: scope}, Any: true}
		if err := db.Commit(t.Context(), kv.Commit{Guards: []kv.Guard{guard}, Batch: batch}); err != nil {
			t.Fatal(err)
		}
	}
	// Files of the first level have a place of their own in the cache.
	if err := db.Reclaim(t.Context(), []kv.KeyRange{{Keyspace: kv.Records, Range: kv.Prefix(scope.AppendPrefix(nil))}}); err != nil {
		t.Fatal(err)
	}
	misses := func() uint64 {
		return ticker(db.tuning.Options.GetStatisticsString(), "rocksdb.block.cache.index.miss")
	}
	before := misses()
	for i := range uint32(100) {
		values, err := db.Get(t.Context(), kv.Records, key(i*keys/100))
		if err != nil || len(values[0]) != len(value) {
			t.Fatalf("key %d: %d bytes, %v", i, len(values[0]), err)
		}
	}
	if n := misses() - before; n > 2 {
		t.Errorf("100 reads read the index %d times", n)
	}
}
