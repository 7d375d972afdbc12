package events_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events"
)

var (
	waiting  = &events.SubscribeOptions{PerSelection: true, Wait: true}
	volatile = events.EmitOptions{Volatile: true, Legacy: true}
)

// fill emits as many volatile events as a Batched selection holds.
func fill(tb testing.TB, bus *events.Bus, topic string) {
	tb.Helper()
	for i := range events.MaxVolatileEvents {
		mustEmit(tb, bus, volatile, topic, fmt.Sprint(i))
	}
}

// An emitter waits for room, everybody else has the event meanwhile, and a
// subscription that stays full ends.
func TestSlowSubscriberEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := MustBus(t, nil, nil)
		slow, slower := MustSelect(t, bus, waiting, legacy("t")), MustSelect(t, bus, waiting, legacy("t"))
		fill(t, bus, "t")
		late := MustSelect(t, bus, waiting, legacy("t"))
		began := time.Now()
		returned := make(chan time.Duration)
		go func() {
			mustEmit(t, bus, volatile, "t", "one more")
			returned <- time.Since(began)
		}()
		synctest.Wait()
		if d, ok, err := late.Take(t.Context()); !ok || err != nil || d.Event.ID != "one more" {
			t.Errorf("the others wait: %v, %v", d, err)
		}
		time.Sleep(time.Second)
		MustNext(t, slow) // makes room
		if took := <-returned; took != events.DefaultMaxEmitWait {
			t.Errorf("the emitter waited %v", took)
		}
		if _, err := slower.Next(t.Context()); !errors.Is(err, events.ErrSlowSubscriber) {
			t.Errorf("the slow subscriber: %v", err)
		}
		got := takeAll(t, slow)
		if n := len(got); n != events.MaxVolatileEvents || got[n-1] != "t:one more" {
			t.Errorf("%d events came to the one that made room", n)
		}
		mustEmit(t, bus, volatile, "t", "later")
		if time.Since(began) != events.DefaultMaxEmitWait {
			t.Error("the ended one still delays")
		}
	})
}

// Room ends the wait at once.
func TestEmitterGoesOnWithRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := MustBus(t, nil, nil)
		sub := MustSelect(t, bus, waiting, legacy("t"))
		fill(t, bus, "t")
		began := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			batch := make([]events.Event, 10)
			for i := range batch {
				batch[i] = events.Event{Topic: "t", ID: fmt.Sprint("more", i)}
			}
			opts := make([]events.EmitOptions, len(batch))
			for i := range opts {
				opts[i] = volatile
			}
			for _, r := range bus.EmitAll(t.Context(), tenant, batch, opts) {
				if r.Err != nil {
					t.Error(r.Err)
				}
			}
		}()
		synctest.Wait()
		if n := bus.Stats(tenant, "t").Backlog; n != events.MaxVolatileEvents+10 {
			t.Errorf("backlog %d", n)
		}
		got := takeAll(t, sub)
		<-done
		if n := len(got); n != events.MaxVolatileEvents+10 || got[n-1] != "t:more9" || got[n-10] != "t:more0" {
			t.Errorf("got %d events, the last %v", n, got[max(0, n-10):])
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v", took)
		}
		if st := bus.Stats(tenant, "t"); st.Backlog != 0 || st.Dropped != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// When the emitter gives up, the full subscription misses the event and goes
// on.
func TestEmitterGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := MustBus(t, nil, nil)
		sub := MustSelect(t, bus, waiting, legacy("t"))
		fill(t, bus, "t")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := bus.Emit(ctx, tenant, newEvent("t", "x"), volatile); err != nil {
			t.Error(err)
		}
		if d := MustNext(t, sub); d.Dropped != 1 {
			t.Errorf("%d dropped", d.Dropped)
		}
		if got := takeAll(t, sub); len(got) != events.MaxVolatileEvents-1 {
			t.Errorf("%d came", len(got))
		}
		if st := bus.Stats(tenant, "t"); st.Backlog != 0 || st.Dropped != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// A subscription or bus that is closed, or a selection that is removed, lets
// emitters go on.
func TestEndsLetEmittersGo(t *testing.T) {
	for name, end := range map[string]func(*events.Bus, *events.Subscription){
		"close":     func(_ *events.Bus, s *events.Subscription) { s.Close() },
		"remove":    func(_ *events.Bus, s *events.Subscription) { s.Remove("t") },
		"bus close": func(b *events.Bus, _ *events.Subscription) { _ = b.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bus := MustBus(t, nil, nil)
				sub := MustSelect(t, bus, waiting, legacy("t"))
				fill(t, bus, "t")
				began := time.Now()
				done := make(chan struct{})
				go func() {
					defer close(done)
					if _, err := bus.Emit(t.Context(), tenant, newEvent("t", "x"), volatile); err != nil {
						t.Error(err)
					}
				}()
				synctest.Wait()
				end(bus, sub)
				<-done
				if time.Since(began) != 0 {
					t.Error("it waited on")
				}
			})
		})
	}
}

// Realtime never makes an emitter wait, nor do durable events.
func TestNobodyWaitsForRealtime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := MustBus(t, nil, nil)
		fresh := legacy("t")
		fresh.QoS = events.Realtime
		MustSelect(t, bus, waiting, fresh)
		batched := MustSelect(t, bus, waiting, legacy("d"))
		began := time.Now()
		fill(t, bus, "t")
		for i := range 3 * events.MaxVolatileEvents {
			mustEmit(t, bus, events.EmitOptions{}, "d", fmt.Sprint(i))
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v", took)
		}
		if got := takeAll(t, batched); len(got) != 3*events.MaxVolatileEvents {
			t.Errorf("%d came", len(got))
		}
	})
}

// No subscription costs a goroutine.
func TestSubscriptionsNeedNoGoroutines(t *testing.T) {
	bus := MustBus(t, nil, nil)
	before := runtime.NumGoroutine()
	for i := range 100 {
		MustSelect(t, bus, waiting, legacy("t"), legacy(fmt.Sprintf("t.%d.*", i)))
	}
	mustEmit(t, bus, events.EmitOptions{}, "t", "x")
	mustEmit(t, bus, volatile, "t.1.x", "x")
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) { // what a commit started ends
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}
