package events_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/events"
)

// payload256 is the content of the events that benchmarks emit.
var payload256 = make([]byte, 256)

// BenchmarkDeliver is the way from an emit to all who listen: the emitter waits
// until each has the event. On memkv, so what it measures is the bus.
func BenchmarkDeliver(b *testing.B) {
	for _, durable := range []bool{false, true} {
		for _, readers := range []int{1, 100} {
			b.Run(fmt.Sprintf("durable=%v/readers=%d", durable, readers), func(b *testing.B) {
				bus := MustBus(b, nil, nil)
				var took sync.WaitGroup
				for range readers {
					sub := MustSubscribe(b, bus, "bench.topic", -1)
					go func() {
						for {
							if _, err := sub.Next(b.Context()); err != nil {
								return
							}
							took.Done()
						}
					}()
				}
				e := events.Event{Topic: "bench.topic", Source: "a", PayloadKind: events.Bytes, Payload: payload256}
				b.ReportAllocs()
				for b.Loop() {
					took.Add(readers)
					if _, err := bus.Emit(b.Context(), tenant, e, events.EmitOptions{Volatile: !durable}); err != nil {
						b.Fatal(err)
					}
					took.Wait()
				}
			})
		}
	}
}

// BenchmarkEmitVolatile is a volatile emit alone: to nobody, to one reader that
// takes it on the same goroutine, and to one of a thousand subscriptions that
// all have patterns of their own.
func BenchmarkEmitVolatile(b *testing.B) {
	for name, others := range map[string]int{"nobody": -1, "one": 0, "one of 1000 patterns": 999} {
		b.Run(name, func(b *testing.B) {
			bus := MustBus(b, nil, nil)
			var sub *events.Subscription
			if others >= 0 {
				sub = MustSelect(b, bus, &events.SubscribeOptions{PerSelection: true}, legacy("agent.x.*"))
			}
			for i := range max(others, 0) {
				MustSelect(b, bus, &events.SubscribeOptions{PerSelection: true}, legacy(fmt.Sprintf("agent.%d.*", i)), legacy("task"))
			}
			e := events.Event{Topic: "agent.x.work", Source: "a", PayloadKind: events.Bytes, Payload: payload256}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := bus.Emit(b.Context(), tenant, e, events.EmitOptions{Volatile: true}); err != nil {
					b.Fatal(err)
				}
				if sub != nil {
					if _, ok, err := sub.Take(b.Context()); !ok || err != nil {
						b.Fatal(ok, err)
					}
				}
			}
		})
	}
}

// BenchmarkEmitAll is one batch of durable events, with a reader.
func BenchmarkEmitAll(b *testing.B) {
	for _, n := range []int{1, 16, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			bus := MustBus(b, nil, nil)
			sub := MustSubscribe(b, bus, "t", -1)
			batch := make([]events.Event, n)
			for i := range batch {
				batch[i] = events.Event{Topic: "t", PayloadKind: events.Bytes, Payload: payload256}
			}
			opts := make([]events.EmitOptions, n)
			b.ReportAllocs()
			for b.Loop() {
				bus.EmitAll(b.Context(), tenant, batch, opts)
				for range batch {
					MustNext(b, sub)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/event")
		})
	}
}

// BenchmarkEmitParallel is volatile emits from everywhere, each goroutine on a
// topic of its own that a subscription with a pattern reads, and nobody takes.
func BenchmarkEmitParallel(b *testing.B) {
	bus := MustBus(b, nil, nil)
	var next atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		n := next.Add(1)
		selection := legacy(fmt.Sprintf("agent.%d.*", n))
		selection.QoS = events.Realtime
		MustSelect(b, bus, perSelection, selection)
		e := events.Event{Topic: fmt.Sprintf("agent.%d.work", n), PayloadKind: events.Bytes, Payload: payload256}
		for pb.Next() {
			if _, err := bus.Emit(b.Context(), tenant, e, events.EmitOptions{Volatile: true}); err != nil {
				b.Error(err)
			}
		}
	})
}
