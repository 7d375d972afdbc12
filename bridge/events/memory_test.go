package events

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
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
		s, err := bus.Subscribe(t.Context(), "default", []Subscribed{{Pattern: pattern.Legacy(name)}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		subs = append(subs, s)
		for n := range uint64(2 * handedEvents) {
			arrive(bus, name, Event{Sequence: n + 1, Payload: large})
		}
		if n := bus.handedBytes.Load(); n > maxHandedBytes {
			t.Fatalf("%d bytes are at hand", n)
		}
	}
	if n := bus.handedBytes.Load(); n < maxHandedBytes/2 {
		t.Errorf("only %d bytes are at hand", n)
	}
	for _, s := range subs {
		s.Close()
	}
	mustBeEmpty(t, bus)
}

// arrive is what becomes of an event that was stored.
func arrive(bus *Bus, name string, e Event) {
	t := bus.hold(store.Ref("default", name).Scope, false)
	defer bus.release(t)
	bus.arrive(t, &e)
}

// mustBeEmpty fails the test if something is left of the subscriptions that
// were closed.
func mustBeEmpty(tb testing.TB, bus *Bus) {
	tb.Helper()
	topics := 0
	for i := range bus.shards {
		topics += len(bus.shards[i].topics)
	}
	if bytes := bus.handedBytes.Load(); bytes != 0 || topics != 0 || len(bus.subscriptions) != 0 || len(bus.tenants) != 0 {
		tb.Errorf("left: %d bytes, %d topics, %d subscriptions, %d tenants", bytes, topics, len(bus.subscriptions), len(bus.tenants))
	}
}

// Commits may be told in any order: an older event never replaces a newer one.
func TestHandOutInAnyOrder(t *testing.T) {
	engine := memkv.New(nil)
	defer func() { _ = engine.Close() }()
	bus := New(engine, kv.NewWriter(engine, nil), nil)
	defer func() { _ = bus.Close() }()
	s, err := bus.Subscribe(t.Context(), "default", []Subscribed{{Pattern: pattern.Legacy("t")}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, sequence := range []uint64{handedEvents + 1, 1, handedEvents} {
		arrive(bus, "t", Event{Sequence: sequence})
	}
	known := bus.hold(store.Ref("default", "t").Scope, false)
	defer bus.release(known)
	if last := known.last.Load(); last != handedEvents+1 {
		t.Errorf("last is %d", last)
	}
	for sequence, want := range map[uint64]bool{1: false, handedEvents: true, handedEvents + 1: true} {
		if ok := known.at(sequence) != nil; ok != want {
			t.Errorf("event %d at hand: %v", sequence, ok)
		}
	}
}

// A pattern costs nothing for topics that were emitted on once, and misses
// nothing when they are again.
func TestIdleTopicsOfAPatternAreForgotten(t *testing.T) {
	engine := memkv.New(nil)
	defer func() { _ = engine.Close() }()
	bus := New(engine, kv.NewWriter(engine, nil), nil)
	defer func() { _ = bus.Close() }()
	fresh := Subscribed{Pattern: pattern.Legacy("thread.1.*"), QoS: Realtime}
	var subs []*Subscription
	for _, given := range [][]Subscribed{{{Pattern: pattern.Legacy("thread.*")}}, {fresh, {Pattern: pattern.Legacy("thread.1.5")}}} {
		s, err := bus.Subscribe(t.Context(), "default", given, &SubscribeOptions{PerSelection: true})
		if err != nil {
			t.Fatal(err)
		}
		subs = append(subs, s)
	}
	for round := range uint64(2) {
		for i := range 500 {
			topic := fmt.Sprintf("thread.1.%d", i)
			if _, err := bus.Emit(t.Context(), "default", Event{Topic: topic}, EmitOptions{}); err != nil {
				t.Fatal(err)
			}
			for _, s := range subs {
				d, ok, err := s.Take(t.Context())
				if !ok || err != nil || d.Event.Topic != topic || d.Event.Sequence != round+1 {
					t.Fatalf("%s: got %+v, %v, %v", topic, d.Event, ok, err)
				}
				if i == 5 && s == subs[1] {
					_, _, _ = s.Take(t.Context()) // to the other selection as well
				}
			}
		}
	}
	for i, s := range subs {
		if n := len(s.cursors); n > maxIdleCursors+2 {
			t.Errorf("subscription %d has %d cursors", i, n)
		}
		if s.idle.Len() > maxIdleCursors+1 {
			t.Errorf("subscription %d has %d idle cursors", i, s.idle.Len())
		}
		s.Close()
	}
	mustBeEmpty(t, bus)
}

// Whoever waits at a barrier is let go when those before have left, whoever
// comes meanwhile, and also after a wait that was given up.
func TestBarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g barrier
		if err := g.wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := g.enter()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.wait(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("somebody is inside: %v", err)
		}
		second := g.enter()
		done := make(chan error)
		go func() { done <- g.wait(t.Context()) }()
		synctest.Wait()
		g.leave(before)
		synctest.Wait()
		third := g.enter()
		select {
		case err := <-done:
			t.Errorf("somebody is still inside: %v", err)
		default:
		}
		g.leave(second)
		if err := <-done; err != nil {
			t.Error(err)
		}
		g.leave(third)
		if err := g.wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
