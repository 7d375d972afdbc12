package events_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// C07: agents talk by emitting events with a payload on a topic.
func TestEmitGivesSequences(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6789, time.FixedZone("x", 3600))
	bus := MustBus(t, nil, &events.Options{Now: func() time.Time { return now }})
	sub := MustSubscribe(t, bus, "research.done", 0)
	for want := uint64(1); want <= 3; want++ {
		e := MustEmit(t, bus, "research.done", "x")
		if e.Sequence != want {
			t.Errorf("sequence %d, want %d", e.Sequence, want)
		}
		if _, err := ulid.ParseStrict(e.ID); err != nil {
			t.Errorf("id %q: %v", e.ID, err)
		}
		// No two events are taken at the same time.
		want := now.UTC().Truncate(time.Microsecond).Add(time.Duration(want-1) * time.Microsecond)
		if !e.Time.Equal(want) || e.Time.Location() != time.UTC {
			t.Errorf("time %v, want %v", e.Time, want)
		}
		if diff := cmp.Diff(e, MustNext(t, sub).Event); diff != "" {
			t.Errorf("delivered event differs (-emitted +delivered):\n%s", diff)
		}
	}
	if e := MustEmit(t, bus, "other", "x"); e.Sequence != 1 {
		t.Errorf("another topic begins at %d", e.Sequence)
	}
	e, err := bus.Emit(t.Context(), "tenant-2", newEvent("research.done", "x"), events.EmitOptions{})
	if err != nil || e.Sequence != 1 {
		t.Errorf("another tenant begins at %d, %v", e.Sequence, err)
	}
}

// bytesAtOnce compares payloads much faster than byte by byte.
var bytesAtOnce = cmp.Comparer(bytes.Equal)

// What an event holds comes back from memory and from the store alike.
func TestEventsComeBackWhole(t *testing.T) {
	bus := MustBus(t, nil, nil)
	headers := map[string]string{"a": "1", "ü": strings.Repeat("x", store.MaxHeadersBytes-4)}
	all := []events.Event{
		{Topic: "t", Payload: []byte(` {"n": 9007199254740993} `), ID: "mine", Source: "s", SessionID: "session"},
		{Topic: "t"},
		{Topic: "t", PayloadKind: events.Bytes, Payload: []byte{0, 255, 10}},
		{Topic: "t", PayloadKind: events.Bytes},
		{Topic: "t", PayloadKind: events.Bytes, Payload: bytes.Repeat([]byte{7}, store.MaxPayloadBytes), Headers: headers},
		{Topic: "t", ID: "mine"}, // the same id again is another event
		{Topic: "t", PayloadKind: events.Bytes, Payload: bytes.Repeat([]byte{7}, store.MaxPayloadBytes)},
	}
	live := MustSubscribe(t, bus, "t", -1)
	for i, e := range all {
		stored, err := bus.Emit(t.Context(), tenant, e, events.EmitOptions{})
		if err != nil {
			t.Fatal(err)
		}
		e.ID, e.Sequence, e.Time = stored.ID, uint64(i+1), stored.Time
		if len(e.Payload) == 0 && e.PayloadKind == events.JSON {
			e.Payload = []byte("null")
		}
		all[i] = e
		if diff := cmp.Diff(e, MustNext(t, live).Event, bytesAtOnce); diff != "" {
			t.Errorf("live event %d differs:\n%.500s", i+1, diff)
		}
	}
	replay := MustSubscribe(t, bus, "t", 0)
	for i, e := range all {
		if diff := cmp.Diff(e, MustNext(t, replay).Event, bytesAtOnce); diff != "" {
			t.Errorf("replayed event %d differs:\n%.500s", i+1, diff)
		}
	}
}

func TestEmitRefusesBadInput(t *testing.T) {
	bus := MustBus(t, nil, nil)
	tooMany := make(map[string]string)
	for i := range store.MaxHeaders + 1 {
		tooMany[fmt.Sprint(i)] = ""
	}
	for _, tt := range []struct {
		name, tenant string
		event        events.Event
	}{
		{"no tenant", "", events.Event{Topic: "t"}},
		{"tenant with NUL", "a\x00b", events.Event{Topic: "t"}},
		{"no topic", tenant, events.Event{}},
		{"bad JSON", tenant, events.Event{Topic: "t", Payload: []byte("{")}},
		{"JSON that is no UTF-8", tenant, events.Event{Topic: "t", Payload: []byte("\"\xff\"")}},
		{"large payload", tenant, events.Event{Topic: "t", PayloadKind: events.Bytes, Payload: make([]byte, store.MaxPayloadBytes+1)}},
		{"unknown kind", tenant, events.Event{Topic: "t", PayloadKind: 7}},
		{"many headers", tenant, events.Event{Topic: "t", Headers: tooMany}},
		{"large headers", tenant, events.Event{Topic: "t", Headers: map[string]string{"k": strings.Repeat("x", store.MaxHeadersBytes)}}},
		{"empty header key", tenant, events.Event{Topic: "t", Headers: map[string]string{"": "x"}}},
		{"header that is no UTF-8", tenant, events.Event{Topic: "t", Headers: map[string]string{"k": "\xff"}}},
		{"long id", tenant, events.Event{Topic: "t", ID: strings.Repeat("x", store.MaxIDBytes+1)}},
		{"long source", tenant, events.Event{Topic: "t", Source: strings.Repeat("x", store.MaxSourceBytes+1)}},
		{"long session", tenant, events.Event{Topic: "t", SessionID: strings.Repeat("x", store.MaxSessionBytes+1)}},
		{"source that is no UTF-8", tenant, events.Event{Topic: "t", Source: "\xff"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, volatile := range []bool{false, true} {
				_, err := bus.Emit(t.Context(), tt.tenant, tt.event, events.EmitOptions{Volatile: volatile})
				var detail *invalid.Error
				if !errors.Is(err, events.ErrInvalid) || !errors.As(err, &detail) {
					t.Errorf("got %v, want an *invalid.Error", err)
				}
			}
		})
	}
	if e := MustEmit(t, bus, "t", "first"); e.Sequence != 1 {
		t.Errorf("a refused event took a sequence: next is %d", e.Sequence)
	}
}

func TestRequestID(t *testing.T) {
	bus := MustBus(t, nil, nil)
	opts := events.EmitOptions{RequestID: "r-1"}
	first, err := bus.Emit(t.Context(), tenant, newEvent("t", "x"), opts)
	if err != nil {
		t.Fatal(err)
	}
	MustEmit(t, bus, "t", "between")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			again, err := bus.Emit(t.Context(), tenant, newEvent("t", "x"), opts)
			if diff := cmp.Diff(first, again); err != nil || diff != "" {
				t.Errorf("repeated: %v, differs:\n%s", err, diff)
			}
		})
	}
	group.Wait()
	for name, change := range map[string]func(*events.Event){
		"payload": func(e *events.Event) { e.Payload = []byte(`"y"`) },
		"kind":    func(e *events.Event) { e.PayloadKind = events.Bytes },
		"id":      func(e *events.Event) { e.ID = "own" },
		"header":  func(e *events.Event) { e.Headers = map[string]string{"a": "b"} },
	} {
		other := newEvent("t", "x")
		change(&other)
		if _, err := bus.Emit(t.Context(), tenant, other, opts); !errors.Is(err, kv.ErrRequestReused) {
			t.Errorf("another %s: got %v, want ErrRequestReused", name, err)
		}
	}
	if e := MustEmit(t, bus, "t", "last"); e.Sequence != 3 {
		t.Errorf("the topic goes on at %d, want 3", e.Sequence)
	}
	another := newEvent("t", "x")
	another.Source = "agent-2"
	if e, err := bus.Emit(t.Context(), tenant, another, opts); err != nil || e.Sequence != 4 {
		t.Errorf("the same id of another agent: sequence %d, %v", e.Sequence, err)
	}
	long := events.EmitOptions{RequestID: strings.Repeat("x", kv.MaxRequestIDBytes+1)}
	if _, err := bus.Emit(t.Context(), tenant, newEvent("t", "x"), long); !errors.Is(err, kv.ErrLimit) {
		t.Errorf("a long request id: got %v, want ErrLimit", err)
	}
}

// Two emits with one request id that wait together store one event.
func TestConcurrentRequestsStoreOneEvent(t *testing.T) {
	bus := MustBus(t, nil, nil)
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			e, err := bus.Emit(t.Context(), tenant, newEvent("t", "x"), events.EmitOptions{RequestID: "same"})
			if err != nil || e.Sequence != 1 {
				t.Errorf("got sequence %d, %v", e.Sequence, err)
			}
		})
	}
	group.Wait()
	if e := MustEmit(t, bus, "t", "next"); e.Sequence != 2 {
		t.Errorf("next is %d, want 2", e.Sequence)
	}
}

// Events that are emitted at the same time share commits.
func TestConcurrentEmitsShareCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &slowEngine{Engine: memkv.New(nil)}
		bus := MustBus(t, engine, nil)
		const emitters = 64
		var group sync.WaitGroup
		for range emitters {
			group.Go(func() { MustEmit(t, bus, "t", "x") })
		}
		group.Wait()
		// The first may go alone, and one more may be staged while it syncs; all
		// others wait for those together.
		if n := engine.commits.Load(); n > 3 {
			t.Errorf("%d emits took %d commits", emitters, n)
		}
	})
}

// slowEngine takes a second for a commit.
type slowEngine struct {
	kv.Engine
	commits atomic.Int64
}

func (e *slowEngine) Commit(ctx context.Context, c kv.Commit) error {
	e.commits.Add(1)
	time.Sleep(time.Second)
	return e.Engine.Commit(ctx, c)
}

// unsettled is an engine that can't tell which commit was the last.
type unsettled struct{ *kvtest.FaultyEngine }

func (unsettled) LastCommits(context.Context, ...kv.Ref) ([]kv.LastCommit, error) {
	return nil, kvtest.ErrFault
}

// A commit that failed left nothing; one of unknown outcome is found by those
// who listen if it was written.
func TestFailedCommits(t *testing.T) {
	engine := unsettled{kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{})}
	bus := MustBus(t, engine, nil)
	sub := MustSubscribe(t, bus, "t", -1)
	engine.Replan(kvtest.FailurePlan{Commit: 1})
	if _, err := bus.Emit(t.Context(), tenant, newEvent("t", "lost"), events.EmitOptions{}); !errors.Is(err, kvtest.ErrFault) {
		t.Errorf("got %v, want the planned failure", err)
	}
	engine.Replan(kvtest.FailurePlan{Commit: 1, Err: kv.ErrUnknownOutcome, Written: true})
	if _, err := bus.Emit(t.Context(), tenant, newEvent("t", "kept"), events.EmitOptions{}); !errors.Is(err, kv.ErrUnknownOutcome) {
		t.Errorf("got %v, want ErrUnknownOutcome", err)
	}
	if d := MustNext(t, sub); string(d.Event.Payload) != `"kept"` || d.Event.Sequence != 1 {
		t.Errorf("got %+v, want the event that was written", d)
	}
	engine.Replan(kvtest.FailurePlan{})
	if e := MustEmit(t, bus, "t", "next"); e.Sequence != 2 {
		t.Errorf("next is %d, want 2", e.Sequence)
	}
}
