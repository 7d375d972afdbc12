package events

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// What is handed over in memory is bounded, and gone with its readers.
func TestHandedBytesAreBounded(t *testing.T) {
	engine := memkv.New(nil)
	defer func() { _ = engine.Close() }()
	bus := New(engine, kv.NewWriter(engine, nil), nil)
	defer func() { _ = bus.Close() }()
	var subs []*Subscription
	large := bytes.Repeat([]byte{1}, maxHandedEventBytes-100)
	topics := maxHandedBytes/(handedEvents*len(large)) + 2
	for i := range topics {
		name := fmt.Sprint("t", i)
		s, err := bus.Subscribe(t.Context(), "default", []Position{{Topic: name}})
		if err != nil {
			t.Fatal(err)
		}
		subs = append(subs, s)
		for n := range uint64(2 * handedEvents) {
			bus.handOut(topicRef("default", name).Scope, Event{Sequence: n + 1, Payload: large})
		}
		if bus.handedBytes > maxHandedBytes {
			t.Fatalf("%d bytes are at hand", bus.handedBytes)
		}
	}
	if bus.handedBytes < maxHandedBytes/2 {
		t.Errorf("only %d bytes are at hand", bus.handedBytes)
	}
	for _, s := range subs {
		s.Close()
	}
	if bus.handedBytes != 0 || len(bus.topics) != 0 || bus.subscriptions != 0 {
		t.Errorf("left: %d bytes, %d topics, %d subscriptions", bus.handedBytes, len(bus.topics), bus.subscriptions)
	}
}

// Commits may be told in any order: an older event never replaces a newer one.
func TestHandOutInAnyOrder(t *testing.T) {
	engine := memkv.New(nil)
	defer func() { _ = engine.Close() }()
	bus := New(engine, kv.NewWriter(engine, nil), nil)
	defer func() { _ = bus.Close() }()
	s, err := bus.Subscribe(t.Context(), "default", []Position{{Topic: "t"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	scope := topicRef("default", "t").Scope
	for _, sequence := range []uint64{handedEvents + 1, 1, handedEvents} {
		bus.handOut(scope, Event{Sequence: sequence})
	}
	known := bus.topics[scope]
	if known.last != handedEvents+1 {
		t.Errorf("last is %d", known.last)
	}
	for sequence, want := range map[uint64]bool{1: false, handedEvents: true, handedEvents + 1: true} {
		if _, ok := known.at(sequence); ok != want {
			t.Errorf("event %d at hand: %v", sequence, ok)
		}
	}
}
