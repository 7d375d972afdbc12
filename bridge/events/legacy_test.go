package events_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

var throughLegacy = events.EmitOptions{Legacy: true}

// Whatever loom.v1 lets through reaches those who listen, and is stored if the
// store can name the topic.
func TestLegacyTopics(t *testing.T) {
	bus := MustBus(t, nil, &events.Options{Admit: topics.NewRules(nil, nil, nil, nil).Admit})
	for topic, stored := range map[string]bool{
		"":                       false,
		"a\x00b":                 false,
		strings.Repeat("x", 257): false,
		strings.Repeat("x", 256): true,
		"agent.1.replies":        false,
		".replies":               false,
		"replies":                true,
		"a..b":                   true,
		"*":                      true,
		"a\nb":                   true,
		"execute":                true,
		"node.x":                 true,
		"agent.spawn":            true,
	} {
		sub := MustSelect(t, bus, perSelection, legacy(topic))
		e, err := bus.Emit(t.Context(), tenant, events.Event{Topic: topic, ID: "x"}, throughLegacy)
		if err != nil || (e.Sequence > 0) != stored {
			t.Errorf("%.20q: got %d, %v", topic, e.Sequence, err)
		}
		if d := MustNext(t, sub); d.Event.ID != "x" || d.Event.Topic != topic {
			t.Errorf("%.20q: got %+v", topic, d.Event)
		}
	}
	if _, err := bus.Emit(t.Context(), tenant, events.Event{Topic: "\xff"}, throughLegacy); !errors.Is(err, events.ErrInvalid) {
		t.Errorf("no UTF-8: %v", err)
	}
}

// Events up to the limit come back whole, live and from the store.
func TestLegacyEventsComeBackWhole(t *testing.T) {
	bus := MustBus(t, nil, nil)
	many := make(map[string]string)
	for i := range 20000 {
		many[fmt.Sprint("key ", i)] = strings.Repeat("v", i%200)
	}
	tags := make([]string, 1000)
	for i := range tags {
		tags[i] = fmt.Sprint("tag ", i)
	}
	all := []events.Event{
		{Type: "collab.request", Tags: []string{"a", "", "b"}, Priority: -7, Confidence: 0.85, SentMillis: 1234567},
		{PayloadKind: events.Bytes, Payload: bytes.Repeat([]byte{7}, store.MaxLegacyEventBytes-1000)},
		{PayloadKind: events.Bytes, Payload: bytes.Repeat([]byte{7}, 1<<20+1), Headers: map[string]string{"": "empty key"}},
		{PayloadKind: events.Bytes, Payload: bytes.Repeat([]byte{7}, 1<<20), Headers: map[string]string{"k": strings.Repeat("x", 9000)}},
		{PayloadKind: events.Bytes, Payload: bytes.Repeat([]byte{7}, 100), Headers: many, Tags: tags},
		{ID: strings.Repeat("i", 2<<20), Source: strings.Repeat("s", 1000), Type: strings.Repeat("t", 1<<20)},
	}
	live := MustSelect(t, bus, perSelection, legacy("t"))
	for i, e := range all {
		e.Topic = "t"
		stored, err := bus.Emit(t.Context(), tenant, e, throughLegacy)
		if err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
		all[i] = stored
		if diff := cmp.Diff(stored, MustNext(t, live).Event, bytesAtOnce); diff != "" {
			t.Errorf("live event %d differs:\n%.500s", i, diff)
		}
	}
	replay := MustSubscribe(t, bus, "t", 0)
	for i, e := range all {
		if diff := cmp.Diff(e, MustNext(t, replay).Event, bytesAtOnce); diff != "" {
			t.Errorf("replayed event %d differs:\n%.500s", i, diff)
		}
	}
}

func TestLegacyRefusesBadInput(t *testing.T) {
	bus := MustBus(t, nil, nil)
	for name, e := range map[string]events.Event{
		"too large":       {Topic: "t", PayloadKind: events.Bytes, Payload: make([]byte, store.MaxLegacyEventBytes)},
		"too many keys":   {Topic: "t", Headers: manyHeaders(store.MaxLegacyEventBytes / 10)},
		"bad id":          {Topic: "t", ID: "\xff"},
		"bad type":        {Topic: "t", Type: "\xff"},
		"bad tag":         {Topic: "t", Tags: []string{"\xff"}},
		"bad header":      {Topic: "t", Headers: map[string]string{"k": "\xff"}},
		"bad JSON":        {Topic: "t", Payload: []byte("{")},
		"large and empty": {Topic: strings.Repeat("x", store.MaxLegacyEventBytes+1)},
	} {
		for _, volatile := range []bool{true, false} {
			_, err := bus.Emit(t.Context(), tenant, e, events.EmitOptions{Legacy: true, Volatile: volatile})
			if !errors.Is(err, events.ErrInvalid) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	}
}

func manyHeaders(n int) map[string]string {
	headers := make(map[string]string, n)
	for i := range n {
		headers[fmt.Sprint(i)] = ""
	}
	return headers
}

// A native reader gets what came through loom.v1, and the other way round.
func TestOneBusForBoth(t *testing.T) {
	both(t, func(t *testing.T, opts events.EmitOptions) {
		bus := MustBus(t, nil, nil)
		theirs, ours := MustSelect(t, bus, perSelection, legacy("a.*")), MustSelect(t, bus, nil, native(t, "a.**"))
		mustEmit(t, bus, opts, "a.b", "native")
		opts.Legacy = true
		mustEmit(t, bus, opts, "a.c", "legacy")
		for _, sub := range []*events.Subscription{theirs, ours} {
			if got := takeAll(t, sub); len(got) != 2 {
				t.Errorf("got %v", got)
			}
		}
	})
}

// A part that is missing is damage, not a short event.
func TestMissingPart(t *testing.T) {
	store := memkv.New(nil)
	defer func() { _ = store.Close() }()
	bus := MustBus(t, store, nil)
	e := events.Event{Topic: "t", PayloadKind: events.Bytes, Payload: make([]byte, 3<<20)}
	if _, err := bus.Emit(t.Context(), tenant, e, throughLegacy); err != nil {
		t.Fatal(err)
	}
	ref := kv.Ref{Keyspace: kv.Events, Scope: kv.Scope{Tenant: tenant, Kind: kv.OwnerTopic, Owner: "t"}}
	var b kv.Batch
	b.Delete(kv.Events, ref.Scope.Key('p', []byte{0, 0, 0, 0, 0, 0, 0, 1, 0, 2}))
	if err := store.Commit(t.Context(), kv.Commit{Guards: []kv.Guard{{Ref: ref, Any: true}}, Batch: &b}); err != nil {
		t.Fatal(err)
	}
	sub := MustSubscribe(t, bus, "t", 0)
	if _, err := sub.Next(t.Context()); !errors.Is(err, events.ErrDamaged) {
		t.Errorf("got %v, want ErrDamaged", err)
	}
}
