package events_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
)

// An event that several patterns match waits once, and comes to each of them in the
// order in which they were given, also when one of them was removed meanwhile.
func TestNestedPatterns(t *testing.T) {
	bus := MustBus(t, nil, nil)
	var given []events.Subscribed
	for i := range 5 {
		given = append(given, legacy(strings.Repeat("a.", i+1)+"*"))
	}
	sub := MustSelect(t, bus, perSelection, given...)
	for i := range 3 {
		MustEmit(t, bus, strings.Repeat("a.", 5)+fmt.Sprint(i), "x")
	}
	if n := bus.Stats(tenant, "a.a.a.a.a.0").Backlog; n != 5 {
		t.Errorf("backlog %d before the first", n)
	}
	for i := range 15 {
		if i == 7 {
			sub.Remove("a.a.a.*")
			if n := bus.Stats(tenant, "a.a.a.a.a.1").Backlog; n != 3 {
				t.Errorf("backlog %d after two", n)
			}
		}
		if i%5 == 2 && i >= 7 {
			continue // it was removed
		}
		d := MustNext(t, sub)
		if want := fmt.Sprint("a.a.a.a.a.", i/5); d.Selection != i%5 || d.Event.Topic != want || d.Pattern != given[i%5].Pattern {
			t.Errorf("%d: %s came through %d", i, d.Event.Topic, d.Selection)
		}
	}
	if got := takeAll(t, sub); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
	if n := bus.Stats(tenant, "a.a.a.a.a.2").Backlog; n != 0 {
		t.Errorf("backlog %d in the end", n)
	}
}

// A reader of a pattern that takes nothing while more and more topics have events
// ends; one that takes them goes on.
func TestTooManyTopicsWait(t *testing.T) {
	for name, opts := range map[string]*events.SubscribeOptions{"native": nil, "per selection": perSelection} {
		t.Run(name, func(t *testing.T) {
			bus := MustBus(t, nil, nil)
			given := native(t, "t.*")
			if opts != nil {
				given = legacy("t.*")
			}
			slow, quick := MustSelect(t, bus, opts, given), MustSelect(t, bus, opts, given)
			for i := range 10_000 {
				mustEmit(t, bus, events.EmitOptions{Lazy: true}, fmt.Sprint("t.", i), "x")
				MustNext(t, quick)
			}
			if _, ok, err := slow.Take(t.Context()); ok || !errors.Is(err, events.ErrSlowSubscriber) {
				t.Errorf("the slow one got %v, %v", ok, err)
			}
		})
	}
}

// Patterns of loom.v1 are bounded in words and bytes.
func TestCheckLegacy(t *testing.T) {
	for text, want := range map[string]bool{
		strings.Repeat("a.", 128) + "*":    true,
		strings.Repeat("a.", 129) + "*":    false,
		strings.Repeat("a", 4094) + ".*":   true,
		strings.Repeat("a", 4095) + ".*":   false,
		strings.Repeat("a.", 4000) + "*.b": true, // an exact topic
		".*":                               true,
		"\xff":                             false,
	} {
		if err := pattern.Legacy(text).CheckLegacy(); (err == nil) != want || err != nil && !errors.Is(err, events.ErrInvalid) {
			t.Errorf("%.20q of %d bytes: %v", text, len(text), err)
		}
	}
}

// The longest patterns find the topics they are for.
func TestLongPatterns(t *testing.T) {
	bus := MustBus(t, nil, nil)
	words, long := strings.Repeat("a.", 128), strings.Repeat("b", 4094)+"."
	sub := MustSelect(t, bus, perSelection, legacy(words+"*"), legacy(long+"*"))
	for _, topic := range []string{words + "x", words + "x.y.z", long + "x"} {
		mustEmit(t, bus, events.EmitOptions{Legacy: true}, topic, "x")
		if d := MustNext(t, sub); d.Event.Topic != topic {
			t.Errorf("got %.20q", d.Event.Topic)
		}
	}
}

// Emitters of the native API never wait for a full subscriber of the other.
func TestNativeEmittersDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := MustBus(t, nil, nil)
		sub := MustSelect(t, bus, waiting, legacy("t"))
		fill(t, bus, "t")
		began := time.Now()
		for range 10 {
			mustEmit(t, bus, events.EmitOptions{Volatile: true}, "t", "more")
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v", took)
		}
		if d := MustNext(t, sub); d.Dropped != 10 {
			t.Errorf("%d dropped", d.Dropped)
		}
	})
}

// Emitters wait for a subscription for a bounded time in all, however it trickles,
// until it has taken everything that was queued.
func TestWaitingHasABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := MustBus(t, nil, nil)
		trickle, burst := MustSelect(t, bus, waiting, legacy("t")), MustSelect(t, bus, waiting, legacy("u"))
		for _, sub := range []*events.Subscription{burst, trickle} {
			topic := map[bool]string{true: "t", false: "u"}[sub == trickle]
			fill(t, bus, topic)
			began := time.Now()
			ended := 0
			for i := range 20 {
				if sub == burst {
					takeAll(t, sub)
					fill(t, bus, topic)
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					mustEmit(t, bus, volatile, topic, "more")
				}()
				time.Sleep(time.Second)
				if _, _, err := sub.Take(t.Context()); errors.Is(err, events.ErrSlowSubscriber) {
					ended = max(ended, i)
				}
				<-done
			}
			switch took := time.Since(began); {
			case sub == burst && (ended != 0 || took != 20*time.Second):
				t.Errorf("one that takes everything in between ended after %d, %v", ended, took)
			case sub == trickle && ended == 0:
				t.Error("one that trickles never ended")
			}
		}
		began := time.Now()
		mustEmit(t, bus, volatile, "t", "later")
		if took := time.Since(began); took != 0 {
			t.Errorf("the ended one still delays: %v", took)
		}
	})
}

// Where very many topics have a past, one of loom.v1 gets that of the newest, and
// the native one gets all of it.
func TestPastOfTooManyTopics(t *testing.T) {
	const most, more = 4096, 100
	bus := MustBus(t, nil, nil)
	since := time.Now().Add(-time.Hour)
	var batch []events.Event
	for i := range most + more {
		batch = append(batch, newEvent(fmt.Sprint("t.", i), fmt.Sprint(i)))
	}
	for _, r := range bus.EmitAll(t.Context(), tenant, batch, lazy(len(batch))) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	pattern := native(t, "t.*")
	pattern.Since = since
	all := MustSelect(t, bus, nil, pattern)
	for i := range batch {
		if d := MustNext(t, all); d.Event.Topic != batch[i].Topic || !d.Past {
			t.Fatalf("native: event %d is of %q", i, d.Event.Topic)
		}
	}
	outer, inner := legacy("t.*"), legacy("t.5.*")
	outer.Since, inner.Since = since, since
	sub := MustSelect(t, bus, perSelection, outer, inner)
	if n := sub.PastLeftOut(); n != more {
		t.Errorf("%d are left out", n)
	}
	for i := range most {
		if d := MustNext(t, sub); d.Event.Topic != batch[more+i].Topic || !d.Past {
			t.Fatalf("%d: got %q", i, d.Event.Topic)
		}
	}
	mustEmit(t, bus, events.EmitOptions{}, "t.0", "new") // it was left out
	if d := MustNext(t, sub); d.Event.Topic != "t.0" || d.Event.Sequence != 2 || d.Past {
		t.Errorf("got %+v", d)
	}
}

// lazy are options of n events, which are stored in their order.
func lazy(n int) []events.EmitOptions {
	opts := make([]events.EmitOptions, n)
	for i := range opts {
		opts[i].Lazy = true
	}
	return opts
}
