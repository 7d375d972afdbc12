package kv_test

import (
	"context"
	"errors"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// A request may be larger than a batch if it says so, and is one commit then.
func TestLargeRequest(t *testing.T) {
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	defer func() { _ = writer.Close() }()
	scope := kv.AgentScope("default", "ann")
	ref := kv.Ref{Keyspace: kv.Log, Scope: scope}
	const values = kv.MaxBatchBytes/(1<<20) + 1
	for _, large := range []bool{false, true} {
		err := writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{ref}, Large: large, Stage: func(_ context.Context, tx *kv.Tx) error {
			for i := range values {
				tx.Put(kv.Log, scope.Key('e', []byte{byte(i)}), make([]byte, 1<<20))
			}
			return nil
		}})
		if _, over := errors.AsType[*kv.LimitError](err); over == large || large && err != nil {
			t.Errorf("large %v: %v", large, err)
		}
		sequences, err := engine.Sequence(t.Context(), ref)
		if err != nil || (sequences[0] == 1) != large {
			t.Errorf("large %v: %d commits, %v", large, sequences, err)
		}
	}
}
