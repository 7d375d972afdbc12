package kv_test

import (
	"context"
	"errors"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// A bar refuses whoever writes to its scope, those that wait for their turn among them, and
// nobody else; Drain waits for who was let through before.
func TestBar(t *testing.T) {
	engine := memkv.New(nil)
	defer func() { _ = engine.Close() }()
	w := kv.NewWriter(engine, nil)
	defer func() { _ = w.Close() }()
	barred, other := kv.AgentScope("t", "barred"), kv.AgentScope("t", "other")
	errBarred := errors.New("barred")
	put := func(ctx context.Context, scope kv.Scope, blind bool, during func()) error {
		ref := kv.Ref{Keyspace: kv.Log, Scope: scope}
		request := kv.Request{Refs: []kv.Ref{ref}, Stage: func(_ context.Context, tx *kv.Tx) error {
			during()
			tx.Put(kv.Log, scope.Key('x'), []byte("x"))
			return nil
		}}
		if blind {
			request.Refs, request.Blind = nil, request.Refs
		}
		return w.Do(ctx, request)
	}
	nothing := func() {}

	staged, goOn, first, waits := make(chan struct{}), make(chan struct{}), make(chan error, 1), make(chan error, 1)
	go func() { first <- put(t.Context(), barred, false, func() { close(staged); <-goOn }) }()
	<-staged
	go func() { waits <- put(t.Context(), barred, false, nothing) }()
	w.Bar(barred, errBarred)
	drained := make(chan error, 1)
	go func() { drained <- w.Drain(t.Context()) }()
	select {
	case err := <-drained:
		t.Fatalf("drained while a call runs: %v", err)
	default:
	}
	close(goOn)
	if err := <-first; err != nil {
		t.Errorf("what was staged before: %v", err)
	}
	if err := <-waits; !errors.Is(err, errBarred) {
		t.Errorf("what waited: %v", err)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
	for _, blind := range []bool{false, true} {
		if err := put(t.Context(), barred, blind, nothing); !errors.Is(err, errBarred) {
			t.Errorf("blind %v: %v", blind, err)
		}
		for name, err := range map[string]error{
			"another scope": put(t.Context(), other, blind, nothing),
			"past the bar":  put(kv.PastBars(t.Context()), barred, blind, nothing),
		} {
			if err != nil {
				t.Errorf("%s, blind %v: %v", name, blind, err)
			}
		}
	}
	w.LiftBar(barred)
	if err := put(t.Context(), barred, false, nothing); err != nil {
		t.Errorf("lifted: %v", err)
	}
}
