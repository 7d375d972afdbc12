package kvtest

import (
	"bytes"
	"errors"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

func limitCases() []testCase {
	return []testCase{
		{name: "key", run: testKeyLimit},
		{name: "value", run: testValueLimit},
		{name: "batch", run: testBatchLimit},
	}
}

// tryLimit commits at one below a limit and at it, which must pass, and then
// one above, which must be refused with nothing written. The three use separate scopes.
func tryLimit(t *testing.T, e kv.Engine, what string, limit int, batch func(s kv.Scope, size int) *kv.Batch) {
	t.Helper()
	for i, size := range []int{limit - 1, limit, limit + 1} {
		s := kv.AgentScope("acme", []string{"below", "at", "above"}[i])
		ops := batch(s, size)
		err := e.Commit(t.Context(), kv.Commit{Guards: []kv.Guard{at(kv.Blobs, s, 0)}, Batch: ops})
		if size <= limit {
			wantStored(t, e, err, ops)
			continue
		}
		var over *kv.LimitError
		if !errors.As(err, &over) || over.What != what || over.Size != size || over.Limit != limit {
			t.Errorf("%s of %d: error %v, want a limit error", what, size, err)
		}
		wantError(t, what, err, kv.ErrLimit)
		wantEmpty(t, e, s)
	}
}

func wantStored(t *testing.T, e kv.Engine, err error, batch *kv.Batch) {
	t.Helper()
	if err != nil {
		t.Fatalf("commit within the limits: %v", err)
	}
	for _, op := range batch.Ops() {
		values, err := e.Get(t.Context(), op.Keyspace, op.Key)
		if err != nil || !bytes.Equal(values[0], op.Value) {
			t.Fatalf("get of %d bytes = %d bytes, %v", len(op.Value), len(values[0]), err)
		}
	}
}

// sized returns bytes that differ along their length.
func sized(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i % 251)
	}
	return b
}

func testKeyLimit(t *testing.T, e kv.Engine) {
	tryLimit(t, e, "key", kv.MaxKeyBytes, func(s kv.Scope, size int) *kv.Batch {
		rest := size - len(s.Key('k'))
		return batchOf(kv.Op{Keyspace: kv.Blobs, Key: s.Key('k', sized(rest)), Value: []byte("v")})
	})
}

func testValueLimit(t *testing.T, e kv.Engine) {
	tryLimit(t, e, "value", kv.MaxValueBytes, func(s kv.Scope, size int) *kv.Batch {
		return batchOf(kv.Op{Keyspace: kv.Blobs, Key: s.Key('k'), Value: sized(size)})
	})
}

func testBatchLimit(t *testing.T, e kv.Engine) {
	tryLimit(t, e, "batch", kv.MaxBatchBytes, func(s kv.Scope, size int) *kv.Batch {
		batch := new(kv.Batch)
		for i := 0; batch.Size() < size; i++ {
			k := s.Key('k', []byte{byte(i)})
			batch.Put(kv.Blobs, k, sized(min(kv.MaxValueBytes/2, size-batch.Size()-len(k))))
		}
		return batch
	})
}
