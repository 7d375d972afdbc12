package kv_test

import (
	"context"
	"errors"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

var errNoRoom = errors.New("no room")

// limit is a gate of so many bytes for tenant t.
type limit struct {
	left    int
	deleted bool
}

func (l *limit) Admit(tenant string, n int) error {
	if tenant == "t" && n > l.left {
		return errNoRoom
	}
	return nil
}

func (l *limit) Stored(tenant string, n int, deletes bool) {
	if tenant == "t" {
		l.left -= n
		l.deleted = l.deleted || deletes
	}
}

// What the gate refuses leaves nothing behind. Only what grows the store in a bounded call
// is refused, and not the rest of a call that has written already.
func TestGate(t *testing.T) {
	t.Parallel()
	gate := &limit{left: 1000}
	engine := memkv.New(nil)
	w := newWriter(t, engine, &kv.WriterOptions{Gate: gate})
	put := func(ctx context.Context, tenant, name string, size int) error {
		scope := kv.AgentScope(tenant, "a")
		return w.Do(ctx, kv.Request{Refs: []kv.Ref{{Keyspace: kv.Records, Scope: scope}}, Stage: func(_ context.Context, tx *kv.Tx) error {
			if size < 0 {
				tx.Delete(kv.Records, scope.Key('x', []byte(name)))
				return nil
			}
			tx.Put(kv.Records, scope.Key('x', []byte(name)), make([]byte, size))
			return nil
		}})
	}
	has := func(name string) bool {
		values, err := engine.Get(t.Context(), kv.Records, kv.AgentScope("t", "a").Key('x', []byte(name)))
		if err != nil {
			t.Fatal(err)
		}
		return values[0] != nil
	}
	begun := kv.Bounded(t.Context(), false)
	if err := put(begun, "t", "one", 900); err != nil || !has("one") {
		t.Fatalf("with room: %v", err)
	}
	if left := gate.left; left > 100 || left < 50 {
		t.Errorf("%d bytes are left", left)
	}
	for each, name := range map[bool]string{true: "each", false: "first"} {
		if err := put(kv.Bounded(t.Context(), each), "t", name, 200); !errors.Is(err, errNoRoom) || has(name) {
			t.Errorf("without room, each %v: %v, is there %v", each, err, has(name))
		}
	}
	if err := put(kv.Bounded(t.Context(), true), "other", "one", 2000); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	if err := put(t.Context(), "t", "unbounded", 200); err != nil {
		t.Errorf("what nobody calls: %v", err)
	}
	if err := put(begun, "t", "rest", 200); err != nil {
		t.Errorf("the rest of a call: %v", err)
	}
	if err := put(kv.Bounded(t.Context(), true), "t", "one", -1); err != nil || has("one") || !gate.deleted {
		t.Errorf("a delete: %v, gate was told %v", err, gate.deleted)
	}
}
