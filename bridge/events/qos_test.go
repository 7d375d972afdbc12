package events_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events"
)

// TestConformance73RealtimeDrops: when 1000 or 5000 are published unread; and
// Batched keeps 100 and 500, Background keeps 2000.
func TestConformance73RealtimeDrops(t *testing.T) {
	for _, tt := range []struct {
		name       string
		qos        events.QoS
		sent, kept int
	}{
		{"realtime 512", events.Realtime, 512, 512},
		{"realtime 1000", events.Realtime, 1000, events.MaxRealtimeEvents},
		{"realtime 5000", events.Realtime, 5000, events.MaxRealtimeEvents},
		{"batched 100", events.Batched, 100, 100},
		{"batched 500", events.Batched, 500, 500},
		{"background 2000", events.Background, 2000, 2000},
		{"background 4096", events.Background, 4096, events.MaxBackgroundEvents},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both(t, func(t *testing.T, opts events.EmitOptions) {
				for _, options := range []*events.SubscribeOptions{nil, perSelection} {
					bus := MustBus(t, nil, nil)
					exact, pattern := legacy("t"), native(t, "*")
					if options != nil {
						pattern = legacy("t")
					}
					exact.QoS, pattern.QoS = tt.qos, tt.qos
					one, other := MustSelect(t, bus, options, exact), MustSelect(t, bus, options, pattern)
					for i := range tt.sent {
						mustEmit(t, bus, opts, "t", fmt.Sprint(i))
					}
					for _, sub := range []*events.Subscription{one, other} {
						dropped := int64(0)
						for i := range tt.kept {
							d := MustNext(t, sub)
							dropped += d.Dropped
							if d.Event.ID != fmt.Sprint(i) {
								t.Fatalf("got event %s, want %d", d.Event.ID, i)
							}
						}
						if rest := takeAll(t, sub); rest != nil || dropped != int64(tt.sent-tt.kept) {
							t.Errorf("%d dropped, %d more", dropped, len(rest))
						}
					}
					if st := bus.Stats(tenant, "t"); st.Dropped != int64(2*(tt.sent-tt.kept)) || st.Total != int64(tt.sent) || st.Delivered != int64(2*tt.kept) || st.Backlog != 0 {
						t.Errorf("%+v", st)
					}
				}
			})
		})
	}
}

// Realtime begins with the past it asked for, however long, and then drops.
func TestRealtimeFromAPosition(t *testing.T) {
	bus := MustBus(t, nil, nil)
	for i := range 1000 {
		mustEmit(t, bus, events.EmitOptions{}, "t", fmt.Sprint(i+1))
	}
	fresh := position("t", 10)
	fresh.QoS = events.Realtime
	sub := MustSelect(t, bus, nil, fresh)
	for i := range 1000 {
		mustEmit(t, bus, events.EmitOptions{}, "t", fmt.Sprint(i+1001))
	}
	if n := bus.Stats(tenant, "t").Backlog; n != 990+events.MaxRealtimeEvents {
		t.Errorf("backlog %d", n)
	}
	var dropped int64
	for want := 11; want <= 1000+events.MaxRealtimeEvents; want++ {
		d := MustNext(t, sub)
		if dropped += d.Dropped; d.Event.Sequence != uint64(want) {
			t.Fatalf("got %d, want %d", d.Event.Sequence, want)
		}
	}
	mustEmit(t, bus, events.EmitOptions{}, "t", "fresh")
	if d := MustNext(t, sub); d.Event.ID != "fresh" || dropped != 1000-events.MaxRealtimeEvents {
		t.Errorf("got %s, %d dropped", d.Event.ID, dropped)
	}
}

// An event that a Realtime and another selection want is never dropped, and
// comes once.
func TestRealtimeBesideBatched(t *testing.T) {
	both(t, func(t *testing.T, opts events.EmitOptions) {
		bus := MustBus(t, nil, nil)
		fresh := native(t, "a.*")
		fresh.QoS = events.Realtime
		sub := MustSelect(t, bus, nil, fresh, native(t, "a.b"))
		for i := range 1000 {
			mustEmit(t, bus, opts, "a.b", fmt.Sprint(i))
			mustEmit(t, bus, opts, "a.c", fmt.Sprint(i))
		}
		got := make(map[string]int)
		for {
			d, ok, err := sub.Take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			got[d.Event.Topic]++
		}
		if got["a.b"] != 1000 || got["a.c"] != events.MaxRealtimeEvents {
			t.Errorf("got %v", got)
		}
	})
}

// TestConformance73StatisticsExact: also of a pattern, and of a removed
// subscription.
func TestConformance73StatisticsExact(t *testing.T) {
	both(t, func(t *testing.T, opts events.EmitOptions) {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		bus := MustBus(t, nil, &events.Options{Now: func() time.Time { return now }})
		if st := bus.Stats(tenant, "a.b"); st != (events.TopicStats{}) {
			t.Errorf("before the first: %+v", st)
		}
		exact, pattern := MustSelect(t, bus, perSelection, legacy("a.b")), MustSelect(t, bus, perSelection, legacy("a.*"))
		for i := range 30 {
			mustEmit(t, bus, opts, "a.b", fmt.Sprint(i))
			if i < 10 {
				mustEmit(t, bus, opts, "a.c", fmt.Sprint(i))
			}
			now = now.Add(500 * time.Millisecond)
		}
		for range 12 {
			MustNext(t, exact)
		}
		want := events.TopicStats{Total: 30, Delivered: 12, Subscriptions: 1, Backlog: 48, PerSecond: 1.8}
		if st := bus.Stats(tenant, "a.b"); st != want {
			t.Errorf("got %+v, want %+v", st, want)
		}
		exact.Remove("a.b")
		takeAll(t, pattern)
		now = now.Add(time.Minute)
		want = events.TopicStats{Total: 30, Delivered: 42}
		if st := bus.Stats(tenant, "a.b"); st != want {
			t.Errorf("got %+v, want %+v", st, want)
		}
		if st := bus.Stats(tenant, "a.*"); st != (events.TopicStats{Subscriptions: 1}) {
			t.Errorf("the pattern: %+v", st)
		}
		if st := bus.Stats("other", "a.b"); st != (events.TopicStats{}) {
			t.Errorf("another tenant: %+v", st)
		}
	})
}

// Statistics forget the topics that were used longest ago.
func TestStatsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := MustBus(t, nil, &events.Options{Retention: events.Retention{Every: -1}})
		for i := range 20000 {
			if i%1000 == 0 {
				time.Sleep(time.Second)
			}
			mustEmit(t, bus, events.EmitOptions{Volatile: true}, fmt.Sprint("t", i), "x")
			if i%100 == 0 {
				mustEmit(t, bus, events.EmitOptions{Volatile: true}, "busy", "x")
			}
		}
		known := 0
		for i := range 20000 {
			known += int(bus.Stats(tenant, fmt.Sprint("t", i)).Total)
		}
		if known > 4096 || known < 3500 || bus.Stats(tenant, "busy").Total != 200 {
			t.Errorf("%d topics are known, busy has %d", known, bus.Stats(tenant, "busy").Total)
		}
	})
}
