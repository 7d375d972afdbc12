package kv_test

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

func TestBatch(t *testing.T) {
	var a, b kv.Batch
	a.Put(kv.Records, []byte("key"), []byte("value"))
	a.Delete(kv.Log, []byte("gone"))
	b.Put(kv.Blobs, []byte("k"), nil)
	a.Append(&b)
	if a.Len() != 3 || a.Size() != len("keyvaluegonek") || b.Len() != 1 {
		t.Errorf("batch of %d changes, %d bytes", a.Len(), a.Size())
	}
	ops := a.Ops()
	if ops[0].Delete || !ops[1].Delete || ops[2].Keyspace != kv.Blobs {
		t.Errorf("changes %+v", ops)
	}
	a.Reset()
	if a.Len() != 0 || a.Size() != 0 || len(a.Ops()) != 0 {
		t.Errorf("after reset %d changes, %d bytes", a.Len(), a.Size())
	}
}

func TestErrorTexts(t *testing.T) {
	guard := kv.Guard{Ref: kv.Ref{Keyspace: kv.Log, Scope: kv.AgentScope("acme", "alpha")}, Sequence: 4}
	for want, err := range map[string]error{
		"kv: conflict: log:acme/a/alpha is at sequence 7, expected 4": &kv.ConflictError{Guard: guard, Found: 7},
		"kv: key of 1025 exceeds the limit of 1024":                   &kv.LimitError{What: "key", Size: 1025, Limit: 1024},
	} {
		if err.Error() != want {
			t.Errorf("text %q, want %q", err, want)
		}
	}
}
