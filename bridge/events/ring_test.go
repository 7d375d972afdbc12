package events

import (
	"fmt"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// A ring grows with what would be pushed out, keeps the last events, and knows what
// it takes.
func TestRing(t *testing.T) {
	engine := memkv.New(nil)
	defer func() { _ = engine.Close() }()
	bus := New(engine, nil, &Options{Retention: Retention{Every: -1}})
	defer func() { _ = bus.Close() }()
	name := store.Ref("t", "x")
	top := bus.hold(name.Scope, true)
	slots := map[uint64]int{1: 2, 2: 2, 3: 8, 8: 8, 9: 32, 33: 128, 129: 256, 1000: 256}
	for sequence := range uint64(1000) {
		sequence++
		bus.keep(top, &Event{Sequence: sequence})
		handed := top.handed.Load()
		if want := slots[sequence]; want > 0 && len(handed.slots) != want {
			t.Errorf("at %d there are %d slots", sequence, len(handed.slots))
		}
		for back := range min(sequence, handedEvents) {
			if e := top.at(sequence - back); e == nil || e.Sequence != sequence-back {
				t.Fatalf("at %d: %d is %+v", sequence, sequence-back, e)
			}
		}
		if bus.handedBytes.Load() != handed.bytes() {
			t.Fatalf("%d bytes are counted, %d taken", bus.handedBytes.Load(), handed.bytes())
		}
	}
	// A reader that comes late to an old topic makes no large ring.
	bus.release(top)
	top = bus.hold(name.Scope, true)
	bus.keep(top, &Event{Sequence: 1 << 40})
	bus.keep(top, &Event{Sequence: 1<<40 + 2*handedEvents})
	if n := len(top.handed.Load().slots); n != firstSlots {
		t.Errorf("%d slots for two events", n)
	}
	bus.release(top)
	mustBeEmpty(t, bus)
}

// Topics in which nothing passes a filter cost a pattern nothing, and what waits is
// counted no longer than it does.
func TestNothingIsCountedInTheEnd(t *testing.T) {
	engine := memkv.New(nil)
	defer func() { _ = engine.Close() }()
	bus := New(engine, kv.NewWriter(engine, nil), nil)
	defer func() { _ = bus.Close() }()
	given := []Subscribed{{Pattern: pattern.Legacy("t.*")}, {Pattern: pattern.Legacy("t.1.*")}, {Pattern: pattern.Legacy("t.2.*"), QoS: Realtime}}
	open := func(given []Subscribed) *Subscription {
		s, err := bus.Subscribe(t.Context(), "default", given, &SubscribeOptions{PerSelection: true})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	takes := open(given)
	given[0].EventTypes = []string{"other"}
	filtered := open(given[:1])
	for i := range 3000 {
		if _, err := bus.Emit(t.Context(), "default", Event{Topic: fmt.Sprintf("t.%d.%d", i%3, i%700)}, EmitOptions{}); err != nil {
			t.Fatal(err)
		}
		if i%900 != 899 {
			continue
		}
		for {
			if _, ok, err := takes.Take(t.Context()); err != nil {
				t.Fatal(err)
			} else if !ok {
				break
			}
		}
		if takes.behind != 0 || takes.weight != 0 {
			t.Errorf("%d cursors with %d claims are counted", takes.behind, takes.weight)
		}
	}
	if n := len(filtered.cursors); n > maxIdleCursors+2 {
		t.Errorf("%d cursors for what does not pass", n)
	}
	takes.Close()
	filtered.Close()
	if takes.behind != 0 || takes.weight != 0 {
		t.Errorf("after the end %d cursors with %d claims are counted", takes.behind, takes.weight)
	}
	mustBeEmpty(t, bus)
}
