package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// A request that a store of an older version answered gets that answer again, and
// does not stand in the way of another agent's.
func TestRequestOfAnOlderStore(t *testing.T) {
	engine := memkv.New(nil)
	defer func() { _ = engine.Close() }()
	writer := kv.NewWriter(engine, nil)
	defer func() { _ = writer.Close() }()
	event := Event{Topic: "t", Source: "one", Payload: []byte(`1`)}
	ref := Ref("default", "t")
	stage := func(stage func(ctx context.Context, tx *kv.Tx) error) {
		t.Helper()
		if err := writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{ref}, Stage: stage}); err != nil {
			t.Fatal(err)
		}
	}
	stage(func(_ context.Context, tx *kv.Tx) error {
		stored := event
		stored.ID, stored.Sequence, stored.Time = "first", 1, time.Now().UTC().Truncate(time.Microsecond)
		record := Record{First: 1}
		record.add(stored, stageEvent(tx, ref.Scope, stored, "r"))
		tx.Put(kv.Events, topicKey(ref.Scope), encodeTopic(record))
		kv.StageOnce(tx, ref, "r", event.Digest(), encodeAnswer(stored), stored.Time)
		return nil
	})
	emit := func(e Event) Emission {
		all := make([]Emission, 1)
		stage(func(ctx context.Context, tx *kv.Tx) error {
			all[0] = Emission{Event: e, RequestID: "r", Digest: e.Digest()}
			return Stage(ctx, tx, ref, all)
		})
		return all[0]
	}
	if again := emit(event); again.Err != nil || again.Fresh || again.Event.ID != "first" || again.Event.Sequence != 1 {
		t.Errorf("repeated: %+v", again)
	}
	other := event
	other.Source = "two"
	if e := emit(other); e.Err != nil || !e.Fresh || e.Event.Sequence != 2 {
		t.Errorf("another agent's: %+v", e)
	}
	other.Payload = []byte(`2`)
	if e := emit(other); !errors.Is(e.Err, kv.ErrRequestReused) {
		t.Errorf("its own with another payload: %v", e.Err)
	}
}
