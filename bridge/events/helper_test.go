package events_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

const tenant = "default"

// MustBus returns a bus on engine that is closed with the test; without an
// engine on an empty one in memory.
func MustBus(tb testing.TB, engine kv.Engine, opts *events.Options) *events.Bus {
	tb.Helper()
	if engine == nil {
		engine = memkv.New(nil)
		tb.Cleanup(func() { _ = engine.Close() })
	}
	writer := kv.NewWriter(engine, nil)
	bus := events.New(engine, writer, opts)
	tb.Cleanup(func() {
		if err := bus.Close(); err != nil {
			tb.Error(err)
		}
		if err := writer.Close(); err != nil {
			tb.Error(err)
		}
		mustBeWhole(tb, engine)
	})
	return bus
}

// mustBeWhole reads back all that a test has stored.
func mustBeWhole(tb testing.TB, engine kv.Engine) {
	tb.Helper()
	for topic, err := range kv.Scopes(context.Background(), engine, kv.Events) {
		if errors.Is(err, kv.ErrClosed) {
			return
		}
		if err == nil {
			err = store.Check(context.Background(), engine, topic, func(err error) { tb.Errorf("%s: %v", topic, err) })
		}
		if err != nil {
			tb.Errorf("read %s back: %v", topic, err)
		}
	}
}

// MustEmit emits a durable event whose payload is a JSON string.
func MustEmit(tb testing.TB, bus *events.Bus, topic, text string) events.Event {
	tb.Helper()
	e, err := bus.Emit(tb.Context(), tenant, newEvent(topic, text), events.EmitOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func newEvent(topic, text string) events.Event {
	return events.Event{Topic: topic, Source: "agent-1", Payload: fmt.Appendf(nil, "%q", text)}
}

// MustSubscribe subscribes to one topic; after < 0 means from now on.
func MustSubscribe(tb testing.TB, bus *events.Bus, topic string, after int) *events.Subscription {
	tb.Helper()
	s, err := bus.Subscribe(tb.Context(), tenant, []events.Subscribed{position(topic, after)}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

// position selects an exact topic; after < 0 means from now on.
func position(topic string, after int) events.Subscribed {
	p := events.Subscribed{Pattern: pattern.Legacy(topic)}
	if after >= 0 {
		p.After = new(uint64(after))
	}
	return p
}

// MustSelect subscribes to selections.
func MustSelect(tb testing.TB, bus *events.Bus, opts *events.SubscribeOptions, selections ...events.Subscribed) *events.Subscription {
	tb.Helper()
	s, err := bus.Subscribe(tb.Context(), tenant, selections, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

// native selects what a native pattern matches, from now on.
func native(tb testing.TB, text string) events.Subscribed {
	tb.Helper()
	p, err := pattern.Parse(text)
	if err != nil {
		tb.Fatal(err)
	}
	return events.Subscribed{Pattern: p}
}

// legacy selects what a pattern of loom.v1 matches, from now on.
func legacy(text string) events.Subscribed {
	return events.Subscribed{Pattern: pattern.Legacy(text)}
}

// perSelection are the options of loom.v1.
var perSelection = &events.SubscribeOptions{PerSelection: true}

// MustNext returns the next delivery and fails the test when none comes.
func MustNext(tb testing.TB, s *events.Subscription) events.Delivery {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	d, err := s.Next(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// nothingWaits fails the test when a delivery is at hand. It needs a synctest
// bubble, where the minute passes at once.
func nothingWaits(tb testing.TB, s *events.Subscription) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	if d, err := s.Next(ctx); err == nil {
		tb.Errorf("got %+v, want nothing", d)
	}
}
