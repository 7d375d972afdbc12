package events_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// jumpy is a clock that is set back and forth.
type jumpy struct {
	mu     sync.Mutex
	random *rand.Rand
	now    time.Time
}

func (j *jumpy) Now() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	step := time.Duration(j.random.IntN(2000)) * time.Microsecond
	if j.random.IntN(10) == 0 {
		step = time.Duration(j.random.IntN(7200)-3600) * time.Second
	}
	j.now = j.now.Add(step)
	return j.now
}

// TestTimesRise emits on several topics at once under a clock that jumps, over
// several lives of the bus. Times rise with the sequence in each topic, what is
// emitted after another event was taken has a later time, and everything emitted
// after Now is later than that.
func TestTimesRise(t *testing.T) {
	seed := chance.Seed(t)
	clock := &jumpy{random: rand.New(rand.NewPCG(seed, 0)), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	engine := memkv.New(nil)
	defer engine.Close()
	writer := kv.NewWriter(engine, nil)
	defer writer.Close()
	last := make(map[string]time.Time)
	var newest time.Time
	for range 5 {
		bus := events.New(engine, writer, &events.Options{Now: clock.Now})
		var mu sync.Mutex
		var users sync.WaitGroup
		byTopic := make(map[string]map[int64]time.Time)
		for user := range 4 {
			users.Go(func() {
				before, told := newest, time.Time{}
				for n := range 50 {
					at, err := bus.Now(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					if at.Before(told) {
						t.Errorf("the bus's time went from %v back to %v", told, at)
					}
					told = at
					topic := fmt.Sprint("t", (user+n)%3)
					e, err := bus.Emit(t.Context(), "acme", events.Event{Topic: topic, Source: "a"}, events.EmitOptions{Lazy: true})
					if err != nil {
						t.Error(err)
						return
					}
					if !e.Time.After(before) || !e.Time.After(told) {
						t.Errorf("an event has the time %v, and %v and %v were before", e.Time, before, told)
					}
					before = e.Time
					mu.Lock()
					if byTopic[topic] == nil {
						byTopic[topic] = make(map[int64]time.Time)
					}
					byTopic[topic][int64(e.Sequence)] = e.Time
					mu.Unlock()
				}
			})
		}
		users.Wait()
		for topic, times := range byTopic {
			first := int64(1<<62 - 1)
			for sequence := range times {
				first = min(first, sequence)
			}
			for n := range int64(len(times)) {
				at := times[first+n]
				if !at.After(last[topic]) {
					t.Errorf("%s: event %d has the time %v, the one before it %v", topic, first+n, at, last[topic])
				}
				last[topic] = at
				if at.After(newest) {
					newest = at
				}
			}
		}
		if err := bus.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What is emitted while the bus still reads the times of stored events waits no longer than
// its caller does.
func TestFirstEventWaitsNoLongerThanItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{})
		defer engine.Close()
		writer := kv.NewWriter(engine, nil)
		defer writer.Close()
		scanned := make(chan struct{})
		engine.Replan(kvtest.FailurePlan{Choose: func(bool) (bool, error) {
			<-scanned
			return false, nil
		}})
		bus := events.New(engine, writer, &events.Options{Retention: events.Retention{Every: -1}})
		defer bus.Close()
		for name, emit := range map[string]func(ctx context.Context) error{
			"durable": func(ctx context.Context) error {
				_, err := bus.Emit(ctx, tenant, newEvent("a", "x"), events.EmitOptions{})
				return err
			},
			"volatile": func(ctx context.Context) error {
				_, err := bus.Emit(ctx, tenant, newEvent("a", "x"), events.EmitOptions{Volatile: true})
				return err
			},
			"several": func(ctx context.Context) error {
				return bus.EmitAll(ctx, tenant, []events.Event{newEvent("a", "x")}, nil)[0].Err
			},
			"now": func(ctx context.Context) error {
				_, err := bus.Now(ctx)
				return err
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			began := time.Now()
			if err := emit(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
				t.Errorf("%s: %v after %v, want the deadline after a second", name, err, time.Since(began))
			}
			cancel()
		}
		engine.Replan(kvtest.FailurePlan{})
		close(scanned)
		if e, err := bus.Emit(t.Context(), tenant, newEvent("a", "x"), events.EmitOptions{}); err != nil || e.Sequence != 1 {
			t.Errorf("afterwards %+v, %v", e, err)
		}
	})
}
