package approval

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// Where a tenant has as many grants as it may, one that is there is renewed, and no other is
// added.
func TestGrantsAtTheirLimit(t *testing.T) {
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	b := New(engine, writer, nil)
	r := Request{Tenant: "t", Agent: "a", Session: "s", Capability: policy.Capability{Kind: policy.KindRead, Name: "/one"}}
	remember := func() error { return b.remember(t.Context(), Decider{Agent: "p"}, r, ForAgent) }
	if err := remember(); err != nil {
		t.Fatal(err)
	}
	ref := kv.Ref{Keyspace: kv.System, Scope: scopeOf("t")}
	err := writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{ref}, Stage: func(_ context.Context, tx *kv.Tx) error {
		for i := range MaxGrants - 1 {
			tx.Put(kv.System, key("t", string(binary.BigEndian.AppendUint32(nil, uint32(i)))), []byte{})
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := remember(); err != nil {
		t.Errorf("a grant that is there: %v", err)
	}
	r.Capability.Name = "/two"
	if err := remember(); !errors.Is(err, kv.ErrLimit) {
		t.Errorf("one more: %v", err)
	}
}
