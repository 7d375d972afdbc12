package events_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

// withStore runs work with a bus on the store in dir, and closes both.
func withStore(tb testing.TB, dir string, work func(*events.Bus)) {
	tb.Helper()
	engine, err := rockskv.Open(dir, nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() {
		if err := engine.Close(); err != nil {
			tb.Error(err)
		}
	}()
	writer := kv.NewWriter(engine, nil)
	defer func() { _ = writer.Close() }()
	bus := events.New(engine, writer, nil)
	defer func() { _ = bus.Close() }()
	work(bus)
}

// Sequences go on after a restart, and a position taken before it yields
// exactly what follows.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	var seen uint64
	withStore(t, dir, func(bus *events.Bus) {
		sub := MustSubscribe(t, bus, "t", -1)
		for i := range 10 {
			MustEmit(t, bus, "t", fmt.Sprint(i+1))
		}
		for range 4 {
			seen = MustNext(t, sub).Event.Sequence
		}
		if _, err := bus.Emit(t.Context(), tenant, newEvent("t", "once"), events.EmitOptions{RequestID: "r"}); err != nil {
			t.Fatal(err)
		}
	})
	withStore(t, dir, func(bus *events.Bus) {
		again, err := bus.Emit(t.Context(), tenant, newEvent("t", "once"), events.EmitOptions{RequestID: "r"})
		if err != nil || again.Sequence != 11 {
			t.Errorf("repeated request: %d, %v", again.Sequence, err)
		}
		if e := MustEmit(t, bus, "t", "after"); e.Sequence != 12 {
			t.Errorf("sequence %d after the restart, want 12", e.Sequence)
		}
		sub := MustSubscribe(t, bus, "t", int(seen))
		for want := seen + 1; want <= 12; want++ {
			e := MustNext(t, sub).Event
			if e.Sequence != want || want <= 10 && string(e.Payload) != fmt.Sprintf("%q", fmt.Sprint(want)) {
				t.Errorf("got %d %s, want %d", e.Sequence, e.Payload, want)
			}
		}
	})
}

// BenchmarkEmit is a durable emit on RocksDB, with and without somebody who
// listens; delivered-ns is from the emit's beginning to the delivery.
func BenchmarkEmit(b *testing.B) {
	b.Run("alone", func(b *testing.B) {
		withStore(b, b.TempDir(), func(bus *events.Bus) {
			for b.Loop() {
				MustEmit(b, bus, "t", "x")
			}
		})
	})
	b.Run("delivered", func(b *testing.B) {
		withStore(b, b.TempDir(), func(bus *events.Bus) {
			sub := MustSubscribe(b, bus, "t", -1)
			delivered := make(chan time.Time)
			go func() {
				for {
					if _, err := sub.Next(b.Context()); err != nil {
						return
					}
					delivered <- time.Now()
				}
			}()
			var total time.Duration
			for b.Loop() {
				started := time.Now()
				MustEmit(b, bus, "t", "x")
				total += (<-delivered).Sub(started)
			}
			b.ReportMetric(float64(total.Nanoseconds())/float64(b.N), "delivered-ns/op")
		})
	})
	b.Run("64 at once", func(b *testing.B) {
		withStore(b, b.TempDir(), func(bus *events.Bus) {
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					MustEmit(b, bus, "t", "x")
				}
			})
		})
	})
}
