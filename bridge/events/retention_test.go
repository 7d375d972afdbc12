package events_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// swept is a bus whose clock stands still and whose sweeps are the test's.
type sweptBus struct {
	*events.Bus
	now time.Time
}

func MustSweptBus(tb testing.TB, engine kv.Engine, keep events.Retention) *sweptBus {
	tb.Helper()
	s := &sweptBus{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	keep.Every = -1
	s.Bus = MustBus(tb, engine, &events.Options{Retention: keep, Now: func() time.Time { return s.now }})
	return s
}

// emit emits n events with payloads of so many bytes, a second each.
func (s *sweptBus) emit(tb testing.TB, topic string, n, size int) {
	tb.Helper()
	for range n {
		e := events.Event{Topic: topic, PayloadKind: events.Bytes, Payload: make([]byte, size)}
		if _, err := s.Emit(tb.Context(), tenant, e, events.EmitOptions{}); err != nil {
			tb.Fatal(err)
		}
		s.now = s.now.Add(time.Second)
	}
}

// sweep returns the first sequence that is kept afterwards; one behind the last
// when none is.
func (s *sweptBus) sweep(tb testing.TB, topic string) uint64 {
	tb.Helper()
	if err := s.Sweep(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return s.first(tb, topic)
}

func (s *sweptBus) first(tb testing.TB, topic string) uint64 {
	tb.Helper()
	sub := MustSubscribe(tb, s.Bus, topic, 0)
	defer sub.Close()
	first := *sub.Positions()[0].After + 1
	if d, ok, err := sub.Take(tb.Context()); err != nil || ok && d.Event.Sequence != first || d.Dropped != 0 {
		tb.Errorf("%s begins with %+v, %v, want %d", topic, d, err, first)
	}
	return first
}

func TestRetentionByAge(t *testing.T) {
	bus := MustSweptBus(t, nil, events.Retention{MaxAge: time.Minute})
	bus.emit(t, "t", 1000, 1)
	if first := bus.sweep(t, "t"); first != 941 {
		t.Errorf("the first that is kept is %d", first)
	}
	resumed := MustSubscribe(t, bus.Bus, "t", 970)
	if at := *resumed.Positions()[0].After; at != 970 || MustNext(t, resumed).Event.Sequence != 971 {
		t.Errorf("a position that is kept begins behind %d", at)
	}
	bus.now = bus.now.Add(time.Hour)
	if first := bus.sweep(t, "t"); first != 1001 {
		t.Errorf("everything is old, but %d is kept", first)
	}
	if _, err := bus.Subscribe(t.Context(), tenant, []events.Subscribed{position("t", 1001)}, nil); !errors.Is(err, events.ErrPositionUnknown) {
		t.Errorf("behind the end: %v", err)
	}
	if e := MustEmit(t, bus.Bus, "t", "next"); e.Sequence != 1001 {
		t.Errorf("the topic goes on with %d", e.Sequence)
	}
}

func TestRetentionBySize(t *testing.T) {
	bus := MustSweptBus(t, nil, events.Retention{MaxTopicBytes: 100 << 10, MaxAge: -1})
	bus.emit(t, "large", 1000, 1000)
	bus.emit(t, "small", 50, 1000)
	if first := bus.sweep(t, "large"); first < 900 || first > 910 {
		t.Errorf("the first that is kept is %d", first)
	}
	if first := bus.first(t, "small"); first != 1 {
		t.Errorf("the small topic begins with %d", first)
	}
	bus.emit(t, "whole", 20, 1<<20) // larger than a value takes with its header
	if first := bus.sweep(t, "whole"); first != 21 {
		t.Errorf("of the huge events %d is kept", first)
	}
}

// When all topics together are too large, the topic with the oldest events
// loses them first.
func TestRetentionOfAllTopics(t *testing.T) {
	bus := MustSweptBus(t, nil, events.Retention{MaxBytes: 100 << 10, MaxAge: -1})
	bus.emit(t, "old", 80, 1000)
	bus.emit(t, "middle", 40, 1000)
	for range 20 {
		bus.emit(t, "a", 1, 1000)
		bus.emit(t, "b", 1, 1000)
	}
	first := bus.sweep(t, "old")
	if first < 60 || first > 70 {
		t.Errorf("the first that is kept is %d", first)
	}
	for _, topic := range []string{"middle", "a", "b"} {
		if first := bus.first(t, topic); first != 1 {
			t.Errorf("%s begins with %d", topic, first)
		}
	}
	if again := bus.sweep(t, "old"); again != first {
		t.Errorf("a second sweep deleted up to %d", again)
	}
	bus.emit(t, "late", 90, 1000)
	if err := bus.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a, b := bus.first(t, "a"), bus.first(t, "b"); bus.first(t, "old") != 81 || bus.first(t, "middle") != 41 || a+b < 30 {
		t.Errorf("old %d, middle %d, a %d, b %d", bus.first(t, "old"), bus.first(t, "middle"), a, b)
	}
}

// A tenant that stores too much loses its own oldest events, and nobody else loses
// any, however old they are. What others leave of their shares it may have.
func TestRetentionOfTenants(t *testing.T) {
	bus := MustSweptBus(t, nil, events.Retention{MaxBytes: 100 << 10, MaxAge: -1})
	emit := func(tenant, topic string, n, size int) {
		for range n {
			e := events.Event{Topic: topic, PayloadKind: events.Bytes, Payload: make([]byte, size)}
			if _, err := bus.Emit(t.Context(), tenant, e, events.EmitOptions{}); err != nil {
				t.Fatal(err)
			}
			bus.now = bus.now.Add(time.Second)
		}
	}
	kept := func(tenant, topic string) int {
		after := uint64(0)
		pattern, err := pattern.Parse(topic)
		if err != nil {
			t.Fatal(err)
		}
		sub, err := bus.Subscribe(t.Context(), tenant, []events.Subscribed{{Pattern: pattern, After: &after}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		n := 0
		for {
			_, ok, err := sub.Take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				return n
			}
			n++
		}
	}
	emit("small", "t", 10, 1000)
	emit("middle", "t", 30, 1000)
	emit("large", "old", 60, 1000)
	emit("large", "new", 60, 1000)
	if err := bus.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if small, middle := kept("small", "t"), kept("middle", "t"); small != 10 || middle != 30 {
		t.Errorf("of the small tenant %d of 10 events are kept, of the middle one %d of 30", small, middle)
	}
	old, recent := kept("large", "old"), kept("large", "new")
	if recent != 60 && old > 0 || old+recent < 45 || old+recent > 65 {
		t.Errorf("of the large tenant %d old and %d new events are kept", old, recent)
	}
	emit("middle", "t", 60, 1000)
	if err := bus.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	large, middle := kept("large", "old")+kept("large", "new"), kept("middle", "t")
	if kept("small", "t") != 10 || large < 40 || middle < 40 || large-middle > 5 || middle-large > 5 {
		t.Errorf("two large tenants keep %d and %d", large, middle)
	}
}

// A sweep that is killed at any commit leaves the topic whole, and the next
// one goes on.
func TestSweepIsResumable(t *testing.T) {
	engine := kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{})
	bus := MustSweptBus(t, engine, events.Retention{MaxAge: time.Minute})
	bus.emit(t, "t", 2000, 10)
	last := uint64(0)
	for {
		engine.Replan(kvtest.FailurePlan{Commit: 2})
		err := bus.Sweep(t.Context())
		engine.Replan(kvtest.FailurePlan{})
		first := bus.first(t, "t")
		sub := MustSubscribe(t, bus.Bus, "t", 0)
		if got := takeAll(t, sub); len(got) != int(2001-first) {
			t.Fatalf("%d events are there, the first is %d", len(got), first)
		}
		if err == nil {
			last = first
			break
		}
		if !errors.Is(err, kvtest.ErrFault) || first <= last {
			t.Fatalf("swept up to %d, then %d: %v", last, first, err)
		}
		last = first
	}
	if last != 1941 {
		t.Errorf("the first that is kept is %d", last)
	}
}

// A reader that is overtaken goes on with what is kept, and is told how much it
// missed.
func TestReaderIsOvertaken(t *testing.T) {
	bus := MustSweptBus(t, nil, events.Retention{MaxAge: time.Minute})
	exact, pattern := MustSubscribe(t, bus.Bus, "a.t", -1), MustSelect(t, bus.Bus, perSelection, legacy("a.*"))
	fresh := legacy("a.t")
	fresh.QoS = events.Realtime
	realtime := MustSelect(t, bus.Bus, perSelection, fresh)
	bus.emit(t, "a.t", 700, 10)
	dropped := int64(0)
	for _, sub := range []*events.Subscription{exact, pattern, realtime} {
		dropped += MustNext(t, sub).Dropped // of Realtime alone; and it has a page of the store
	}
	bus.sweep(t, "a.t")
	for name, sub := range map[string]*events.Subscription{"exact": exact, "pattern": pattern} {
		var dropped int64
		got := 0
		last := uint64(1)
		for {
			d, ok, err := sub.Take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if dropped += d.Dropped; d.Event.Sequence != last+1+uint64(d.Dropped) {
				t.Errorf("%s: %d follows %d, %d dropped", name, d.Event.Sequence, last, d.Dropped)
			}
			last = d.Event.Sequence
			got++
		}
		if last != 700 || int64(got)+dropped != 699 || dropped == 0 {
			t.Errorf("%s: %d came up to %d, %d dropped", name, got, last, dropped)
		}
	}
	got := 0
	take := func() {
		for {
			d, ok, err := realtime.Take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				return
			}
			if dropped += d.Dropped; d.Event.Sequence > 300 && d.Event.Sequence <= 700 {
				t.Errorf("realtime: %d came, which was not let through or is deleted", d.Event.Sequence)
			}
			got++
		}
	}
	take() // what it read before it was deleted
	bus.now = bus.now.Add(time.Hour)
	bus.emit(t, "a.t", 3, 10)
	if take(); int64(got)+dropped != 702 {
		t.Errorf("realtime: %d came, %d dropped", got, dropped)
	}
	bus.emit(t, "a.t", 300, 10)
	bus.now = bus.now.Add(time.Hour)
	bus.sweep(t, "a.t") // everything is gone
	MustEmit(t, bus.Bus, "a.t", "next")
	for name, sub := range map[string]*events.Subscription{"exact": exact, "pattern": pattern, "realtime": realtime} {
		ids := takeAll(t, sub)
		if len(ids) == 0 {
			t.Errorf("%s: nothing came", name)
		}
	}
}

// What is deleted leaves nothing behind but the topic.
func TestSweepLeavesNothing(t *testing.T) {
	engine := memkv.New(nil)
	bus := MustSweptBus(t, engine, events.Retention{MaxAge: time.Minute})
	for i, e := range []events.Event{
		{Topic: "t", PayloadKind: events.Bytes, Payload: make([]byte, 3<<20)},
		{Topic: "t", PayloadKind: events.Bytes, Payload: bytes.Repeat([]byte{1}, 1<<20), Headers: map[string]string{"k": string(make([]byte, 8000))}},
		{Topic: "t", Payload: []byte(`"x"`)},
	} {
		if _, err := bus.Emit(t.Context(), tenant, e, events.EmitOptions{Legacy: true, RequestID: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	bus.now = bus.now.Add(time.Hour)
	if err := bus.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	var keys [][]byte
	for pair, err := range engine.Scan(t.Context(), kv.Events, kv.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, pair.Key)
	}
	topic := kv.Scope{Tenant: tenant, Kind: kv.OwnerTopic, Owner: "t"}.Key('m')
	if len(keys) != 1 || !slices.Equal(keys[0], topic) {
		t.Errorf("left: %q", keys)
	}
	e, err := bus.Emit(t.Context(), tenant, newEvent("t", "other"), events.EmitOptions{RequestID: "0"})
	if err != nil || e.Sequence != 4 {
		t.Errorf("a request id is free again with its event: %+v, %v", e, err)
	}
}

// Sweeping and emitting do not disturb each other, and the bus sweeps by
// itself.
func TestSweepsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := MustBus(t, nil, &events.Options{Retention: events.Retention{MaxAge: 10 * time.Minute}})
		for range 120 {
			for range 5 {
				MustEmit(t, bus, "t", "x")
			}
			time.Sleep(time.Minute)
		}
		synctest.Wait() // the last sweep is through
		sub := MustSubscribe(t, bus, "t", 0)
		first := *sub.Positions()[0].After + 1
		if first < 540 || first > 560 || len(takeAll(t, sub)) != int(601-first) {
			t.Errorf("the first that is kept is %d", first)
		}
	})
}

// scopeLog notes the topics of the commits.
type scopeLog struct {
	kv.Engine
	topics []string
}

func (l *scopeLog) Commit(ctx context.Context, c kv.Commit) error {
	l.topics = append(l.topics, c.Guards[0].Scope.Owner)
	return l.Engine.Commit(ctx, c)
}

// A topic with much to delete gets no more than some commits before the others have
// their turn, and what a sweep leaves of it is for the next.
func TestSweepTakesTurns(t *testing.T) {
	log := &scopeLog{Engine: memkv.New(nil)}
	t.Cleanup(func() { _ = log.Close() })
	bus := MustSweptBus(t, log, events.Retention{MaxAge: time.Hour})
	for range 8 {
		batch := make([]events.Event, 5000)
		for i := range batch {
			batch[i] = events.Event{Topic: "busy"}
		}
		bus.EmitAll(t.Context(), tenant, batch, lazy(len(batch)))
	}
	bus.emit(t, "quiet", 10, 1)
	bus.now = bus.now.Add(2 * time.Hour)
	log.topics = nil
	if first := bus.sweep(t, "quiet"); first != 11 {
		t.Errorf("quiet begins with %d", first)
	}
	if first := bus.first(t, "busy"); first != 40_001 {
		t.Errorf("busy begins with %d", first)
	}
	if at := slices.Index(log.topics, "quiet"); at < 0 || at > 4 {
		t.Errorf("quiet has its turn after %d commits", at)
	}
	if n := len(log.topics); n > 20 {
		t.Errorf("%d commits for 40,010 events", n)
	}
}

// deletions counts the events that a process has deleted.
type deletions struct {
	*kvtest.Peer
	events atomic.Int64
}

func (d *deletions) Commit(ctx context.Context, c kv.Commit) error {
	if err := d.Peer.Commit(ctx, c); err != nil {
		return err
	}
	for _, op := range c.Batch.Ops() {
		if op.Delete && op.Keyspace == kv.Events {
			d.events.Add(1)
		}
	}
	return nil
}

// Of two processes one deletes old events; the other goes on when the first has ended.
func TestOneProcessDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var engines []*deletions
		var buses []*events.Bus
		for _, peer := range kvtest.Peers(2) {
			engine := &deletions{Peer: peer}
			bus := MustBus(t, engine, &events.Options{Retention: events.Retention{MaxAge: time.Minute}})
			engines, buses = append(engines, engine), append(buses, bus)
		}
		for range 60 {
			for i, bus := range buses {
				MustEmit(t, bus, fmt.Sprintf("topic.%d", i), "text")
			}
			time.Sleep(10 * time.Second)
		}
		busy, idle := 0, 1
		if engines[1].events.Load() > 0 {
			busy, idle = 1, 0
		}
		if n, m := engines[busy].events.Load(), engines[idle].events.Load(); n == 0 || m != 0 {
			t.Fatalf("one process deleted %d keys and the other %d, want only one to", n, m)
		}
		if err := buses[busy].Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Minute)
		if engines[idle].events.Load() == 0 {
			t.Error("nobody went on when the first had ended")
		}
	})
}
