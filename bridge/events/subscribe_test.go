package events_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

func TestSubscribeFromAPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := MustBus(t, nil, nil)
		for i := range 5 {
			MustEmit(t, bus, "t", fmt.Sprint(i+1))
		}
		for _, tt := range []struct{ after, first int }{{0, 1}, {3, 4}, {5, 6}, {-1, 6}} {
			sub := MustSubscribe(t, bus, "t", tt.after)
			begin := sub.Positions()
			if len(begin) != 1 || begin[0].Topic != "t" || int(*begin[0].After) != tt.first-1 {
				t.Errorf("after %d: begins at %v", tt.after, begin)
			}
			for want := tt.first; want <= 5; want++ {
				if got := MustNext(t, sub).Event.Sequence; got != uint64(want) {
					t.Errorf("after %d: got %d, want %d", tt.after, got, want)
				}
			}
			nothingWaits(t, sub)
		}
	})
}

func TestPositionUnknown(t *testing.T) {
	bus := MustBus(t, nil, nil)
	MustEmit(t, bus, "t", "x")
	_, err := bus.Subscribe(t.Context(), tenant, []events.Subscribed{position("t", 2)}, nil)
	var detail *events.PositionError
	if !errors.Is(err, events.ErrPositionUnknown) || !errors.As(err, &detail) {
		t.Fatalf("got %v, want a *PositionError", err)
	}
	if *detail != (events.PositionError{Topic: "t", After: 2, Last: 1}) {
		t.Errorf("got %+v", detail)
	}
	if _, err := bus.Subscribe(t.Context(), tenant, []events.Subscribed{position("new", 1)}, nil); !errors.Is(err, events.ErrPositionUnknown) {
		t.Errorf("a topic without events: got %v", err)
	}
}

func TestSubscribeRefusesBadInput(t *testing.T) {
	bus := MustBus(t, nil, nil)
	many := make([]events.Subscribed, events.MaxTopics+1)
	for i := range many {
		many[i] = position(fmt.Sprint("t", i), -1)
	}
	for name, tt := range map[string]struct {
		tenant string
		topics []events.Subscribed
	}{
		"too many":  {tenant, many},
		"twice":     {tenant, []events.Subscribed{position("a", -1), position("a", -1)}},
		"bad topic": {tenant, []events.Subscribed{position("a.*", -1)}},
		"no tenant": {"", []events.Subscribed{position("a", -1)}},
	} {
		if _, err := bus.Subscribe(t.Context(), tt.tenant, tt.topics, nil); !errors.Is(err, events.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
	s, err := bus.Subscribe(t.Context(), tenant, many[:events.MaxTopics], nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

// A waiting subscriber gets what is emitted, of its own tenant and topics only.
func TestLiveTail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := MustBus(t, nil, nil)
		sub, err := bus.Subscribe(t.Context(), tenant, []events.Subscribed{position("a", -1), position("b", -1)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		var got []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 3 {
				d := MustNext(t, sub)
				got = append(got, fmt.Sprint(d.Event.Topic, d.Event.Sequence))
			}
		}()
		for _, topic := range []string{"a", "c", "b", "a"} {
			synctest.Wait() // the subscriber waits for the next one
			if _, err := bus.Emit(t.Context(), "elsewhere", newEvent(topic, "x"), events.EmitOptions{}); err != nil {
				t.Fatal(err)
			}
			MustEmit(t, bus, topic, "x")
		}
		<-done
		if want := "[a1 b1 a2]"; fmt.Sprint(got) != want {
			t.Errorf("got %v, want %v", got, want)
		}
		nothingWaits(t, sub)
	})
}

// Whatever the pace of emitters and subscribers, each subscriber gets every
// event of its topics behind its position, once and in order.
func TestEverySubscriberGetsEverythingInOrder(t *testing.T) {
	const topics, emitters, perEmitter, subscribers = 3, 6, 200, 8
	seed := chance.Seed(t)
	bus := MustBus(t, nil, nil)
	name := func(i int) string { return fmt.Sprint("topic", i) }
	for i := range topics {
		MustEmit(t, bus, name(i), "first")
	}
	var subscribed, group sync.WaitGroup
	for n := range subscribers {
		subscribed.Add(1)
		group.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(n)))
			var at []events.Subscribed
			for i := range topics {
				at = append(at, position(name(i), r.IntN(2)))
			}
			sub, err := bus.Subscribe(t.Context(), tenant, at, nil)
			subscribed.Done()
			if err != nil {
				t.Error(err)
				return
			}
			defer sub.Close()
			last := make(map[string]uint64)
			left := topics + emitters*perEmitter
			for _, p := range sub.Positions() {
				last[p.Topic] = *p.After
				left -= int(*p.After)
			}
			for range left {
				e := MustNext(t, sub).Event
				if last[e.Topic]++; e.Sequence != last[e.Topic] {
					t.Errorf("%s: got %d, want %d", e.Topic, e.Sequence, last[e.Topic])
					return
				}
				if r.IntN(50) == 0 {
					time.Sleep(time.Duration(r.IntN(1000)) * time.Microsecond) // falls behind
				}
			}
		})
	}
	subscribed.Wait()
	for n := range emitters {
		group.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(1000+n)))
			for range perEmitter {
				size := 1
				if r.IntN(20) == 0 {
					size = 20 << 10 // too large to be handed over in memory
				}
				MustEmit(t, bus, name(r.IntN(topics)), strings.Repeat("x", size))
			}
		})
	}
	group.Wait()
}

func TestVolatile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := MustBus(t, nil, nil)
		sub := MustSubscribe(t, bus, "t", -1)
		e, err := bus.Emit(t.Context(), tenant, newEvent("t", "quick"), events.EmitOptions{Volatile: true})
		if err != nil || e.Sequence != 0 || e.ID == "" || e.Time.IsZero() {
			t.Fatalf("got %+v, %v", e, err)
		}
		if d := MustNext(t, sub); d.Event.ID != e.ID || string(d.Event.Payload) != `"quick"` || d.Dropped != 0 {
			t.Errorf("got %+v", d)
		}
		nothingWaits(t, MustSubscribe(t, bus, "t", 0))
		if e := MustEmit(t, bus, "t", "stored"); e.Sequence != 1 {
			t.Errorf("a volatile event took a sequence: next is %d", e.Sequence)
		}
	})
}

// A full queue drops the newest and says how many; durable events are not
// touched.
func TestVolatileOverflow(t *testing.T) {
	for _, tt := range []struct {
		name       string
		size       int
		sent, kept int
	}{
		{"one less", 1, events.MaxVolatileEvents - 1, events.MaxVolatileEvents - 1},
		{"full", 1, events.MaxVolatileEvents, events.MaxVolatileEvents},
		{"one more", 1, events.MaxVolatileEvents + 1, events.MaxVolatileEvents},
		{"many more", 1, events.MaxVolatileEvents + 500, events.MaxVolatileEvents},
		{"too many bytes", store.MaxPayloadBytes - 64, 20, 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bus := MustBus(t, nil, nil)
			sub := MustSubscribe(t, bus, "t", -1)
			MustEmit(t, bus, "t", "durable")
			for i := range tt.sent {
				e := events.Event{Topic: "t", ID: fmt.Sprint(i), PayloadKind: events.Bytes, Payload: make([]byte, tt.size)}
				if _, err := bus.Emit(t.Context(), tenant, e, events.EmitOptions{Volatile: true}); err != nil {
					t.Fatal(err)
				}
			}
			var dropped int64
			next, durable := 0, 0
			for range tt.kept + 1 {
				d := MustNext(t, sub)
				dropped += d.Dropped
				if d.Event.Sequence > 0 {
					durable++
					continue
				}
				if d.Event.ID != fmt.Sprint(next) {
					t.Fatalf("got volatile event %s, want %d", d.Event.ID, next)
				}
				next++
			}
			if next != tt.kept || durable != 1 || dropped != int64(tt.sent-tt.kept) {
				t.Errorf("got %d volatile and %d durable, %d dropped", next, durable, dropped)
			}
		})
	}
}

// Neither sort of event starves the other.
func TestDurableAndVolatileAlternate(t *testing.T) {
	bus := MustBus(t, nil, nil)
	sub := MustSubscribe(t, bus, "t", -1)
	for range 10 {
		MustEmit(t, bus, "t", "durable")
		if _, err := bus.Emit(t.Context(), tenant, newEvent("t", "volatile"), events.EmitOptions{Volatile: true}); err != nil {
			t.Fatal(err)
		}
	}
	durable := 0
	for range 10 {
		if MustNext(t, sub).Event.Sequence > 0 {
			durable++
		}
	}
	if durable != 5 {
		t.Errorf("%d of 10 are durable, want 5", durable)
	}
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := MustBus(t, nil, nil)
		sub := MustSubscribe(t, bus, "t", -1)
		closed := MustSubscribe(t, bus, "t", -1)
		ended := make(chan error, 2)
		for _, s := range []*events.Subscription{sub, closed} {
			go func() {
				_, err := s.Next(t.Context())
				ended <- err
			}()
		}
		synctest.Wait()
		closed.Close()
		closed.Close()
		if err := <-ended; !errors.Is(err, events.ErrSubscriptionClosed) {
			t.Errorf("closed subscription: got %v", err)
		}
		for range 2 {
			if err := bus.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := <-ended; !errors.Is(err, events.ErrClosed) {
			t.Errorf("subscription of a closed bus: got %v", err)
		}
		if _, err := bus.Emit(t.Context(), tenant, newEvent("t", "x"), events.EmitOptions{}); !errors.Is(err, events.ErrClosed) {
			t.Errorf("emit: got %v", err)
		}
		if _, err := bus.Subscribe(t.Context(), tenant, []events.Subscribed{position("t", -1)}, nil); !errors.Is(err, events.ErrClosed) {
			t.Errorf("subscribe: got %v", err)
		}
		sub.Close()
	})
}

func TestNextEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := MustBus(t, nil, nil)
		sub := MustSubscribe(t, bus, "t", -1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := sub.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		MustEmit(t, bus, "t", "x")
		if got := MustNext(t, sub).Event.Sequence; got != 1 {
			t.Errorf("afterwards: got %d", got)
		}
	})
}

func TestMaxSubscriptions(t *testing.T) {
	bus := MustBus(t, nil, &events.Options{MaxSubscriptions: 2})
	MustSubscribe(t, bus, "t", -1)
	second := MustSubscribe(t, bus, "t", -1)
	_, err := bus.Subscribe(t.Context(), tenant, []events.Subscribed{position("t", -1)}, nil)
	var detail *share.LimitError
	if !errors.Is(err, share.ErrLimit) || !errors.As(err, &detail) || detail.Limit != 2 {
		t.Errorf("got %v, want a *LimitError", err)
	}
	second.Close()
	if _, err := bus.Subscribe(t.Context(), tenant, []events.Subscribed{position("t", 9)}, nil); !errors.Is(err, events.ErrPositionUnknown) {
		t.Errorf("got %v", err)
	}
	MustSubscribe(t, bus, "t", -1) // the refused one took no place
}

// Another process on the same store wakes those who listen here, also when all that
// is known is that anything may have moved.
func TestEventsOfAnotherProcess(t *testing.T) {
	topic := kv.Scope{Tenant: tenant, Kind: kv.OwnerTopic, Owner: "t"}
	for name, move := range map[string]kv.Move{
		"the ref":  {Ref: kv.Ref{Keyspace: kv.Events, Scope: topic}},
		"anything": {Any: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memkv.New(nil)
				defer func() { _ = store.Close() }()
				shared := &sharedEngine{Engine: store, moves: make(chan kv.Move)}
				here, there := MustBus(t, shared, nil), MustBus(t, store, nil)
				sub, pattern := MustSubscribe(t, here, "t", -1), MustSelect(t, here, nil, native(t, "**"))
				for want := uint64(1); want <= 2; want++ {
					MustEmit(t, there, "t", "x")
					shared.moves <- kv.Move{Ref: kv.Ref{Keyspace: kv.Log, Scope: kv.AgentScope(tenant, "t")}}
					shared.moves <- move
					for _, s := range []*events.Subscription{sub, pattern} {
						if got := MustNext(t, s).Event.Sequence; got != want {
							t.Errorf("got %d, want %d", got, want)
						}
					}
				}
				if e := MustEmit(t, here, "t", "x"); e.Sequence != 3 {
					t.Errorf("own event got %d, want 3", e.Sequence)
				}
			})
		})
	}
}

// A stored topic with a hole ends the subscription with an error.
func TestDamagedTopic(t *testing.T) {
	store := memkv.New(nil)
	defer func() { _ = store.Close() }()
	bus := MustBus(t, store, nil)
	for range 3 {
		MustEmit(t, bus, "t", "x")
	}
	ref := kv.Ref{Keyspace: kv.Events, Scope: kv.Scope{Tenant: tenant, Kind: kv.OwnerTopic, Owner: "t"}}
	drop := func(sequence byte) {
		var b kv.Batch
		b.Delete(kv.Events, ref.Scope.Key('e', []byte{0, 0, 0, 0, 0, 0, 0, sequence}))
		if err := store.Commit(t.Context(), kv.Commit{Guards: []kv.Guard{{Ref: ref, Any: true}}, Batch: &b}); err != nil {
			t.Fatal(err)
		}
	}
	for _, sequence := range []byte{2, 3} {
		drop(sequence)
		sub := MustSubscribe(t, bus, "t", 1)
		if _, err := sub.Next(t.Context()); !errors.Is(err, events.ErrDamaged) {
			t.Errorf("without event %d: got %v, want ErrDamaged", sequence, err)
		}
	}
}

// sharedEngine tells of refs that another process moved.
type sharedEngine struct {
	kv.Engine
	moves chan kv.Move
}

func (e *sharedEngine) Moved(ctx context.Context) iter.Seq[kv.Move] {
	return func(yield func(kv.Move) bool) {
		for {
			select {
			case move := <-e.moves:
				if !yield(move) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}
