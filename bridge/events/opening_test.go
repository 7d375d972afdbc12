package events_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events"
)

// The past of more topics than have cursors at once comes in order and each event
// once, whatever happens meanwhile: emitting on some of the topics, subscribing to
// some by name, and leaving others.
func TestPastOfManyTopicsUndisturbed(t *testing.T) {
	const topics = 4096 + 1500
	random := rand.New(rand.NewPCG(7, 8))
	bus := MustBus(t, nil, nil)
	since := time.Now().Add(-time.Hour)
	name := func(i int) string { return fmt.Sprintf("t.%d", i) }
	last := map[string]uint64{}
	emit := func(n int, pick func() string) {
		t.Helper()
		var batch []events.Event
		for range n {
			batch = append(batch, newEvent(pick(), "x"))
		}
		for _, r := range bus.EmitAll(t.Context(), tenant, batch, lazy(len(batch))) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			last[r.Event.Topic] = r.Event.Sequence
		}
	}
	next := 0
	emit(topics, func() string { next++; return name(next - 1) })
	emit(2000, func() string { return name(random.IntN(topics)) })
	pattern := native(t, "t.*")
	pattern.Since = since
	sub := MustSelect(t, bus, nil, pattern)
	seen := map[string]uint64{}
	var before time.Time
	past := 0
	take := func(n int) {
		t.Helper()
		for range n {
			d, ok, err := sub.Take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				return
			}
			if d.Event.Sequence != seen[d.Event.Topic]+1 {
				t.Fatalf("%s: got %d after %d", d.Event.Topic, d.Event.Sequence, seen[d.Event.Topic])
			}
			seen[d.Event.Topic] = d.Event.Sequence
			if d.Past {
				past++
				if d.Event.Time.Before(before) {
					t.Fatalf("%s: out of order", d.Event.Topic)
				}
				before = d.Event.Time
			}
		}
	}
	named := 0
	for range 100 {
		take(40)
		emit(5, func() string { return name(random.IntN(topics)) })
		if topic := name(random.IntN(topics)); named < 20 {
			named++
			exact := native(t, topic)
			if random.IntN(2) == 0 {
				exact.After = new(uint64) // all that was delivered before is not delivered again
				*exact.After = seen[topic]
			}
			if _, err := sub.Add(t.Context(), []events.Subscribed{exact}); err != nil {
				named-- // it is there already
			}
			if random.IntN(2) == 0 {
				sub.Remove(topic)
			}
		}
	}
	take(1 << 20)
	for topic, sequence := range last {
		if seen[topic] != sequence {
			t.Errorf("%s: %d of %d events came", topic, seen[topic], sequence)
		}
	}
	if past != topics+2000 {
		t.Errorf("%d events were marked as past, want %d", past, topics+2000)
	}
}

// A replay of very many topics counts against the share of its tenant: beyond it the
// subscription is refused, and nothing of it is left behind.
func TestPastOfTooManyTopicsForTheShare(t *testing.T) {
	const topics = 4096 + 300
	bus := MustBus(t, nil, &events.Options{MaxQueuedBytes: 200 << 10, OneTenant: true})
	var batch []events.Event
	for i := range topics {
		batch = append(batch, newEvent(fmt.Sprintf("t.%d", i), "x"))
	}
	bus.EmitAll(t.Context(), tenant, batch, lazy(topics))
	pattern := native(t, "t.*")
	pattern.Since = time.Now().Add(-time.Hour)
	if _, err := bus.Subscribe(t.Context(), tenant, []events.Subscribed{pattern}, nil); err == nil {
		t.Error("the subscription was not refused")
	}
	few := native(t, "t.1.*")
	few.Since = pattern.Since
	MustSelect(t, bus, nil, few)
	if held := bus.Queued(); held != 0 {
		t.Errorf("%d bytes are still counted", held)
	}
}
