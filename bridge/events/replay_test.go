package events_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// emitInTurn emits events of one emitter, numbered, on topics in turn.
func emitInTurn(tb testing.TB, bus *events.Bus, from, to int, topics ...string) {
	tb.Helper()
	for from < to {
		var batch []events.Event
		for ; from < to && len(batch) < 50; from++ {
			e := newEvent(topics[from%len(topics)], "x")
			e.ID = fmt.Sprint(from)
			batch = append(batch, e)
		}
		for _, r := range bus.EmitAll(tb.Context(), tenant, batch, nil) {
			if r.Err != nil {
				tb.Fatal(r.Err)
			}
		}
	}
}

// idsOf returns the ids of the next deliveries.
func idsOf(tb testing.TB, s *events.Subscription, n int) []string {
	tb.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = MustNext(tb, s).Event.ID
	}
	return ids
}

func numbers(from, to int) []string {
	var all []string
	for ; from < to; from++ {
		all = append(all, fmt.Sprint(from))
	}
	return all
}

// The past of several topics comes in the order in which it was emitted, also
// where the clock stands still, and before anything that is new.
func TestPastInOrder(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	topics := []string{"x.c", "x.a", "y", "x.a.b"}
	const past, all = 2000, 2200
	for name, selections := range map[string][]events.Subscribed{
		"a pattern":      {legacy("x.*"), legacy("y")},
		"many topics":    {legacy("y"), legacy("x.a"), legacy("x.a.b"), legacy("x.c")},
		"native pattern": {native(t, "**")},
	} {
		t.Run(name, func(t *testing.T) {
			bus := MustBus(t, nil, &events.Options{Now: func() time.Time { return begin }})
			emitInTurn(t, bus, 0, past, topics...)
			opts := perSelection
			if len(selections) == 1 {
				opts = nil
			}
			for i := range selections {
				selections[i].Since = begin.Add(-time.Second)
			}
			sub := MustSelect(t, bus, opts, selections...)
			emitInTurn(t, bus, past, all, topics...)
			mustEmit(t, bus, events.EmitOptions{Volatile: true}, "y", "volatile")
			want := append(numbers(0, all), "volatile")
			if diff := cmp.Diff(want, idsOf(t, sub, len(want))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// An event that two selections want comes through both before the next one.
func TestPastThroughTwoSelections(t *testing.T) {
	begin := time.Now().Add(-time.Minute)
	bus := MustBus(t, nil, nil)
	emitInTurn(t, bus, 0, 6, "x.a", "x.b")
	both, one := legacy("x.*"), legacy("x.b")
	both.Since, one.Since = begin, begin
	sub := MustSelect(t, bus, perSelection, both, one)
	want := []string{"0", "1", "1", "2", "3", "3", "4", "5", "5"}
	if diff := cmp.Diff(want, idsOf(t, sub, len(want))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Each of several emitters at once has its own events in order, while the past is
// read and behind it.
func TestPastOfSeveralEmitters(t *testing.T) {
	const emitters, perEmitter = 4, 300
	bus := MustBus(t, nil, nil)
	begin := time.Now().Add(-time.Minute)
	var group sync.WaitGroup
	emit := func(from, to int) {
		for n := range emitters {
			group.Go(func() {
				for i := from; i < to; i++ {
					e := newEvent(fmt.Sprint("x.", (i+n)%7), "x")
					e.Source, e.ID = fmt.Sprint(n), fmt.Sprint(i)
					if _, err := bus.Emit(t.Context(), tenant, e, events.EmitOptions{}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	emit(0, perEmitter/2)
	group.Wait()
	selection := legacy("x.*")
	selection.Since = begin
	sub := MustSelect(t, bus, perSelection, selection)
	emit(perEmitter/2, perEmitter)
	got := make(map[string][]string)
	for range emitters * perEmitter {
		e := MustNext(t, sub).Event
		got[e.Source] = append(got[e.Source], e.ID)
	}
	group.Wait()
	for n := range emitters {
		if !slices.Equal(got[fmt.Sprint(n)], numbers(0, perEmitter)) {
			t.Errorf("emitter %d: %v", n, got[fmt.Sprint(n)])
		}
	}
}

// A selection that is taken away in the middle of its past ends, and the others go
// on with theirs.
func TestPastOfRemovedSelection(t *testing.T) {
	begin := time.Now().Add(-time.Minute)
	bus := MustBus(t, nil, nil)
	emitInTurn(t, bus, 0, 600, "x.a", "y.a")
	x, y := legacy("x.*"), legacy("y.*")
	x.Since, y.Since = begin, begin
	sub := MustSelect(t, bus, perSelection, x, y)
	idsOf(t, sub, 100)
	sub.Remove("x.*")
	got := idsOf(t, sub, 250)
	if got[0] != "101" || got[249] != "599" {
		t.Errorf("got %v", got)
	}
	mustEmit(t, bus, events.EmitOptions{}, "x.a", "unwanted")
	mustEmit(t, bus, events.EmitOptions{}, "y.a", "new")
	if got := idsOf(t, sub, 1); got[0] != "new" {
		t.Errorf("got %v", got)
	}
}

// A selection that is added to a subscription that reads on brings its past
// first.
func TestPastAdded(t *testing.T) {
	begin := time.Now().Add(-time.Minute)
	bus := MustBus(t, nil, nil)
	emitInTurn(t, bus, 0, 100, "x.a", "x.b")
	sub := MustSelect(t, bus, perSelection, legacy("y"))
	mustEmit(t, bus, events.EmitOptions{}, "y", "live")
	x := legacy("x.*")
	x.Since = begin
	if _, err := sub.Add(t.Context(), []events.Subscribed{x}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(append(numbers(0, 100), "live"), idsOf(t, sub, 101)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// An event that is too large is told by its size.
func TestTooLargeIsTyped(t *testing.T) {
	bus := MustBus(t, nil, nil)
	e := events.Event{Topic: "t", PayloadKind: events.Bytes, Payload: make([]byte, store.MaxLegacyEventBytes)}
	_, err := bus.Emit(t.Context(), tenant, e, events.EmitOptions{Legacy: true})
	bad, ok := errors.AsType[*store.SizeError](err)
	if !ok || bad.Size != store.MaxLegacyEventBytes+1 || bad.Limit != store.MaxLegacyEventBytes {
		t.Errorf("got %v", err)
	}
}

// Emitters that share topics, and give several events to the bus at once, have each
// its own in order.
func TestPastOfBatches(t *testing.T) {
	const emitters, batches, perBatch = 6, 40, 8
	bus := MustBus(t, nil, nil)
	var group sync.WaitGroup
	for n := range emitters {
		group.Go(func() {
			for i := range batches {
				batch, opts := make([]events.Event, perBatch), make([]events.EmitOptions, perBatch)
				for j := range batch {
					batch[j] = newEvent(fmt.Sprint("x.", (i+j*j+n)%5), "x")
					batch[j].Source, batch[j].ID, opts[j].Lazy = fmt.Sprint(n), fmt.Sprint(i*perBatch+j), true
				}
				for _, r := range bus.EmitAll(t.Context(), tenant, batch, opts) {
					if r.Err != nil {
						t.Error(r.Err)
					}
				}
			}
		})
	}
	group.Wait()
	selection := legacy("x.*")
	selection.Since = time.Now().Add(-time.Minute)
	sub := MustSelect(t, bus, perSelection, selection)
	got := make(map[string][]string)
	for range emitters * batches * perBatch {
		d := MustNext(t, sub)
		if !d.Past {
			t.Fatalf("%+v is said to be new", d)
		}
		got[d.Event.Source] = append(got[d.Event.Source], d.Event.ID)
	}
	for n := range emitters {
		if !slices.Equal(got[fmt.Sprint(n)], numbers(0, batches*perBatch)) {
			t.Errorf("emitter %d: %v", n, got[fmt.Sprint(n)])
		}
	}
}

// lookedThrough calls then once, when topics have been looked through.
type lookedThrough struct {
	kv.Engine
	then func()
}

func (e *lookedThrough) Scan(ctx context.Context, keyspace kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		e.Engine.Scan(ctx, keyspace, r)(yield)
		if then := e.then; then != nil {
			e.then = nil
			then()
		}
	}
}

// What is emitted after the past was looked up and before the subscription goes on
// is not lost, nor what comes next when the emitter was through in between.
func TestSinceWithOneEventInBetween(t *testing.T) {
	for name, opts := range map[string]*events.SubscribeOptions{"native": nil, "per selection": perSelection} {
		for _, past := range []int{0, 2} {
			t.Run(fmt.Sprint(name, " ", past), func(t *testing.T) {
				engine := &lookedThrough{Engine: memkv.New(nil)}
				bus := MustBus(t, engine, nil)
				_, _ = bus.Now(t.Context()) // by then it has looked through the topics for itself
				for range past {
					MustEmit(t, bus, "a.b", "past")
				}
				selection := legacy("a.*")
				if opts == nil {
					selection = native(t, "a.**")
				}
				selection.Since = time.Now().Add(-time.Minute)
				engine.then = func() { MustEmit(t, bus, "a.b", "between") }
				sub := MustSelect(t, bus, opts, selection)
				for i := range past + 1 {
					if got := MustNext(t, sub).Event.Sequence; got != uint64(i+1) {
						t.Fatalf("got event %d, want %d", got, i+1)
					}
				}
				MustEmit(t, bus, "a.b", "new")
				if got := MustNext(t, sub).Event.Sequence; got != uint64(past+2) {
					t.Errorf("got event %d, want %d", got, past+2)
				}
			})
		}
	}
}
