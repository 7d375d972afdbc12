package kv_test

import (
	"context"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// What a call reads once stays as it was for that call, and no other.
func TestGetOnce(t *testing.T) {
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	defer writer.Close()
	scope := kv.AgentScope("default", "ana")
	key := scope.Key('o', []byte("one"))
	put := func(value string) {
		t.Helper()
		if err := writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{{Keyspace: kv.Log, Scope: scope}}, Stage: putter(key, value)}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(ctx context.Context, want string) {
		t.Helper()
		if got, err := kv.GetOnce(ctx, engine, kv.Log, key); err != nil || string(got) != want || (got == nil) != (want == "") {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	first := kv.Remembering(t.Context())
	want(first, "")
	put("a")
	want(first, "")
	want(kv.Remembering(first), "")
	want(t.Context(), "a")
	second := kv.Remembering(t.Context())
	want(second, "a")
	put("b")
	want(second, "a")
	want(t.Context(), "b")
}

func putter(key []byte, value string) func(context.Context, *kv.Tx) error {
	return func(_ context.Context, tx *kv.Tx) error {
		tx.Put(kv.Log, key, []byte(value))
		return nil
	}
}
