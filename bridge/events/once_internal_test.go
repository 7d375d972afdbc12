package events

import (
	"context"
	"crypto/sha256"
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
	writer := kv.NewWriter(engine, nil)
	bus := New(engine, writer, nil)
	t.Cleanup(func() {
		for _, end := range []func() error{bus.Close, writer.Close, engine.Close} {
			if err := end(); err != nil {
				t.Error(err)
			}
		}
	})
	event := Event{Topic: "t", Source: "one", Payload: []byte(`1`)}
	ref := topicRef("default", "t")
	err := writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{ref}, Stage: func(_ context.Context, tx *kv.Tx) error {
		stored := event
		stored.ID, stored.Sequence, stored.Time = "first", 1, time.Now().UTC().Truncate(time.Microsecond)
		record := topicRecord{first: 1}
		record.add(stored, stageEvent(tx, ref.Scope, stored, "r"))
		tx.Put(kv.Events, topicKey(ref.Scope), encodeTopic(record))
		kv.StageOnce(tx, ref, "r", sha256.Sum256(encodeEvent(event, true)), encodeAnswer(stored), stored.Time)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	emit := func(e Event) (Event, error) {
		return bus.Emit(t.Context(), "default", e, EmitOptions{RequestID: "r"})
	}
	if again, err := emit(event); err != nil || again.ID != "first" || again.Sequence != 1 {
		t.Errorf("repeated: %+v, %v", again, err)
	}
	other := event
	other.Source = "two"
	if e, err := emit(other); err != nil || e.Sequence != 2 {
		t.Errorf("another agent's: %+v, %v", e, err)
	}
	other.Payload = []byte(`2`)
	if _, err := emit(other); !errors.Is(err, kv.ErrRequestReused) {
		t.Errorf("its own with another payload: %v", err)
	}
}
