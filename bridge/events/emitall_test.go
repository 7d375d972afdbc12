package events_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// One call keeps the order, gives each event its result, and does not stop at
// what is refused.
func TestEmitAll(t *testing.T) {
	bus := MustBus(t, nil, &events.Options{Admit: topics.NewRules(nil, nil, nil, nil).Admit})
	sub := MustSelect(t, bus, nil, native(t, "a.*"))
	batch := []events.Event{
		{Topic: "a.x", ID: "0"},
		{Topic: "a.y", ID: "1"},
		{Topic: "a.x", ID: "2"},
		{Topic: "", ID: "3"},
		{Topic: "a.x", ID: "4"},
		{Topic: "agent.status", ID: "5"},
		{Topic: "a.x", ID: "6"},
		{Topic: "a.x", ID: "other"},
		{Topic: "a.y"},
	}
	opts := []events.EmitOptions{{}, {}, {Volatile: true}, {}, {RequestID: "r"}, {}, {}, {RequestID: "r"}}
	results := bus.EmitAll(t.Context(), tenant, batch, opts)
	var got []string
	for _, r := range results {
		got = append(got, fmt.Sprintf("%d %v", r.Event.Sequence, r.Err != nil))
	}
	want := []string{"1 false", "1 false", "0 false", "0 true", "2 false", "0 true", "3 false", "0 true", "2 false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for i, want := range map[int]error{3: events.ErrInvalid, 5: topics.ErrReserved, 7: kv.ErrRequestReused} {
		if !errors.Is(results[i].Err, want) {
			t.Errorf("event %d: %v, want %v", i, results[i].Err, want)
		}
	}
	if ids := takeAll(t, sub); fmt.Sprint(ids) != fmt.Sprintf("[a.*:0 a.*:1 a.*:2 a.*:4 a.*:6 a.*:%s]", results[8].Event.ID) {
		t.Errorf("delivered %v", ids)
	}
	again := bus.EmitAll(t.Context(), tenant, batch[4:5], opts[4:5])
	if diff := cmp.Diff(results[4].Event, again[0].Event); again[0].Err != nil || diff != "" {
		t.Errorf("repeated: %v, differs:\n%s", again[0].Err, diff)
	}
	if ids := takeAll(t, sub); ids != nil {
		t.Errorf("a repeated event was delivered: %v", ids)
	}
	if none := bus.EmitAll(t.Context(), tenant, nil, nil); len(none) != 0 {
		t.Errorf("got %v", none)
	}
	_ = bus.Close()
	if r := bus.EmitAll(t.Context(), tenant, batch[:1], nil); !errors.Is(r[0].Err, events.ErrClosed) {
		t.Errorf("after Close: %v", r[0].Err)
	}
}

// commitCounter counts commits, and those that ask for no sync.
type commitCounter struct {
	kv.Engine
	mu          sync.Mutex // guards the fields below
	total, lazy int
}

func (c *commitCounter) Commit(ctx context.Context, commit kv.Commit) error {
	c.mu.Lock()
	c.total++
	if commit.Lazy {
		c.lazy++
	}
	c.mu.Unlock()
	return c.Engine.Commit(ctx, commit)
}

// The durable events of a call share the commits of their topics; only if all
// of them are lazy is a commit not synced, and those of several topics come one
// after another.
func TestEmitAllSharesCommits(t *testing.T) {
	for _, tt := range []struct {
		lazy             []bool
		topics, sum, off int
	}{
		{[]bool{false, false}, 1, 1, 0},
		{[]bool{true, false}, 1, 1, 0},
		{[]bool{true, true}, 1, 1, 1},
		{[]bool{true, false}, 3, 3, 0},
		{[]bool{true, true}, 3, 300, 300},
	} {
		engine := &commitCounter{Engine: memkv.New(nil)}
		bus := MustBus(t, engine, nil)
		batch, opts := make([]events.Event, 300), make([]events.EmitOptions, 300)
		for i := range batch {
			batch[i] = newEvent(fmt.Sprint("t", i%tt.topics), "x")
			opts[i].Lazy = tt.lazy[i%len(tt.lazy)]
		}
		for i, r := range bus.EmitAll(t.Context(), tenant, batch, opts) {
			if want := uint64(i/tt.topics + 1); r.Err != nil || r.Event.Sequence != want {
				t.Fatalf("event %d: %d, %v", i, r.Event.Sequence, r.Err)
			}
		}
		if engine.total != tt.sum || engine.lazy != tt.off {
			t.Errorf("%+v: %d commits, %d not synced", tt, engine.total, engine.lazy)
		}
	}
}

// Large events do not make a commit too large.
func TestEmitAllOfLargeEvents(t *testing.T) {
	bus := MustBus(t, nil, nil)
	batch, opts := make([]events.Event, 12), make([]events.EmitOptions, 12)
	for i := range batch {
		batch[i] = events.Event{Topic: "t", PayloadKind: events.Bytes, Payload: make([]byte, 3<<20)}
		opts[i] = throughLegacy
	}
	for i, r := range bus.EmitAll(t.Context(), tenant, batch, opts) {
		if r.Err != nil || r.Event.Sequence != uint64(i+1) {
			t.Errorf("event %d: %d, %v", i, r.Event.Sequence, r.Err)
		}
	}
}

// A batch whose commit fails fails as a whole, per topic, and hands nothing out.
func TestEmitAllFails(t *testing.T) {
	engine := &failingTopic{Engine: memkv.New(nil)}
	bus := MustBus(t, engine, nil)
	sub := MustSelect(t, bus, nil, native(t, "*"))
	batch := []events.Event{newEvent("good", "x"), newEvent("bad", "x"), newEvent("good", "x"), newEvent("bad", "x")}
	for i, r := range bus.EmitAll(t.Context(), tenant, batch, nil) {
		if (r.Err != nil) != (i%2 == 1) || r.Err != nil && !errors.Is(r.Err, kv.ErrFull) {
			t.Errorf("event %d: %v", i, r.Err)
		}
	}
	if got := takeAll(t, sub); len(got) != 2 {
		t.Errorf("delivered %v", got)
	}
}

// failingTopic takes no commits on the topic "bad".
type failingTopic struct{ kv.Engine }

func (f *failingTopic) Commit(ctx context.Context, c kv.Commit) error {
	if c.Guards[0].Scope.Owner == "bad" {
		return kv.ErrFull
	}
	return f.Engine.Commit(ctx, c)
}
