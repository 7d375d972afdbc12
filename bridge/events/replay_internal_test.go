package events

import (
	"fmt"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// held is what a subscription holds of what it has read.
func (s *Subscription) held() (events, size int) {
	for _, c := range s.cursors {
		events += len(c.page)
		for i := range c.page {
			size += c.page[i].Size()
		}
	}
	return events, size
}

// However many topics come back, and however large their events are, what is held
// of them is bounded.
func TestPastIsBounded(t *testing.T) {
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	bus := New(engine, writer, nil)
	t.Cleanup(func() {
		_ = bus.Close()
		_ = writer.Close()
		_ = engine.Close()
	})
	const topics, each, payload = 100, 3, 400 << 10
	for round := range each {
		var batch []Event
		for i := range topics {
			size := payload
			if i%2 == 0 {
				size = 100
			}
			batch = append(batch, Event{Topic: fmt.Sprint("x.", i), ID: fmt.Sprint(round, " ", i), PayloadKind: Bytes, Payload: make([]byte, size)})
		}
		for _, r := range bus.EmitAll(t.Context(), "t", batch, nil) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
		}
	}
	past := Subscribed{Pattern: pattern.Legacy("x.*"), Since: time.Now().Add(-time.Hour)}
	s, err := bus.Subscribe(t.Context(), "t", []Subscribed{past}, &SubscribeOptions{PerSelection: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	largest := 0
	for i := range topics * each {
		d, ok, err := s.Take(t.Context())
		if want := fmt.Sprint(i/topics, " ", i%topics); !ok || err != nil || d.Event.ID != want {
			t.Fatalf("got %q, %v, %v, want %q", d.Event.ID, ok, err, want)
		}
		n, size := s.held()
		if largest = max(largest, size); n > maxReplayEvents {
			t.Fatalf("%d events are held", n)
		}
	}
	if largest > maxReplayBytes+store.MaxPageBytes {
		t.Errorf("%d bytes are held", largest)
	}
}
