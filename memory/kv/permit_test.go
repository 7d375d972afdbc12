package kv_test

import (
	"context"
	"errors"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// A commit of a call that is bound to a permit is refused unless the key has what it must,
// and those that go with it are not.
func TestPermit(t *testing.T) {
	engine := memkv.New(nil)
	defer engine.Close()
	w := kv.NewWriter(engine, nil)
	defer w.Close()
	scope, own := kv.AgentScope("acme", "alpha"), kv.AgentScope("acme", "permits")
	ref, key := kv.Ref{Keyspace: kv.Records, Scope: scope}, own.Key('p')
	errShut := errors.New("shut")
	permit := &kv.Permit{Keyspace: kv.System, Key: key, Check: func(value []byte) error {
		if value != nil {
			return errShut
		}
		return nil
	}}
	put := func(ctx context.Context, name string, refs, blind []kv.Ref) error {
		return w.Do(ctx, kv.Request{Refs: refs, Blind: blind, Stage: func(_ context.Context, tx *kv.Tx) error {
			tx.Put(kv.Records, scope.Key('k', []byte(name)), []byte(name))
			return nil
		}})
	}
	bound := kv.WithPermit(t.Context(), permit)
	if err := errors.Join(put(bound, "open", []kv.Ref{ref}, nil), put(bound, "blind", nil, []kv.Ref{ref}), permit.Meet(t.Context(), engine)); err != nil {
		t.Fatalf("while it is open: %v", err)
	}
	err := w.Do(t.Context(), kv.Request{Refs: []kv.Ref{{Keyspace: kv.System, Scope: own}}, Stage: func(_ context.Context, tx *kv.Tx) error {
		tx.Put(kv.System, key, []byte("shut"))
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"commit":       put(bound, "late", []kv.Ref{ref}, nil),
		"blind commit": put(bound, "late", nil, []kv.Ref{ref}),
		"Meet":         permit.Meet(t.Context(), engine),
	} {
		if !errors.Is(err, errShut) {
			t.Errorf("%s of a call that may not write: %v", name, err)
		}
	}
	if err := put(t.Context(), "other", []kv.Ref{ref}, nil); err != nil {
		t.Errorf("a call without a permit: %v", err)
	}
	values, err := engine.Get(t.Context(), kv.Records, scope.Key('k', []byte("late")), scope.Key('k', []byte("other")))
	if err != nil || values[0] != nil || values[1] == nil {
		t.Errorf("written %q, %v", values, err)
	}
	if (*kv.Permit)(nil).Meet(t.Context(), engine) != nil || kv.PermitOf(t.Context()) != nil || !permit.Of(kv.System, key) || permit.Of(kv.Log, key) {
		t.Error("no permit, or another one")
	}
}
