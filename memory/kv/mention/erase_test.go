package mention_test

import (
	"context"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
	"github.com/loom-bridge/loom-bridge/memory/kv/mention"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// What an earlier version noted of a back-fill that was stopped halfway has a record's id: it goes
// with what is erased, the back-fill ends, and that it has ended stays.
func TestEraseOfAStoppedBackfill(t *testing.T) {
	engine, scopes, values := store(t)
	const tagBackfill = 'm'
	stopped := scopes[0]
	entry := func() erase.Entry {
		key := mention.ListRef(stopped.Tenant).Scope.Key(tagBackfill)
		got, err := engine.Get(t.Context(), kv.System, key)
		if err != nil || got[0] == nil {
			t.Fatal(got, err)
		}
		return erase.Entry{Keyspace: kv.System, Scope: mention.ListRef(stopped.Tenant).Scope, Tag: tagBackfill, Pair: kv.Pair{Key: key, Value: got[0]}}
	}
	stays := func(r *erase.Run) bool {
		change, err := mention.Erasure().Begin(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		_, keep, err := change(t.Context(), entry())
		if err != nil {
			t.Fatal(err)
		}
		return keep
	}
	writer := kv.NewWriter(engine, nil)
	defer writer.Close()
	err := writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{mention.ListRef(stopped.Tenant)}, Stage: func(_ context.Context, tx *kv.Tx) error {
		tx.Put(kv.System, mention.ListRef(stopped.Tenant).Scope.Key(tagBackfill), wire.Marshal(&storev1.Backfill{Rules: 1, Place: []byte{1, 'r'}, After: scopes[0].Key('r', []byte("007"))}))
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	run := &erase.Run{Subject: erase.Subject{Tenant: stopped.Tenant, Kind: erase.Agent, ID: stopped.Owner}, Scope: stopped}
	if stays(run) {
		t.Error("the key of a record stays")
	}
	b, end := open(t, engine)
	defer end()
	if err := b.Run(t.Context()); err != nil || missing(t, engine, scopes, values, stopped.Tenant) > 0 {
		t.Errorf("%v, %d mentions are missing", err, missing(t, engine, scopes, values, stopped.Tenant))
	}
	if !stays(run) {
		t.Error("a back-fill that has ended begins anew")
	}
}
