//go:build !norocksdb && cgo

package memory_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/memory/packing"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// MustConversation returns a store with a long conversation of two people: n
// turns of some twenty words in sessions of twenty.
func MustConversation(tb testing.TB, n int) *memory.Store {
	tb.Helper()
	const turnsPerSession = 20
	engine := MustRocks(tb, rockskv.None)
	writer := kv.NewWriter(engine, nil)
	store := memory.New(engine, writer, nil)
	tb.Cleanup(func() {
		_ = store.Close()
		_ = writer.Close()
	})
	p := newProse(7)
	var batch []record.Record
	for i := range n {
		session := i / turnsPerSession
		text := p.text(60 + p.rng.IntN(100))
		if i%5 == 0 {
			text += "?"
		}
		batch = append(batch, record.Record{
			Text: text, Author: []string{"Caroline", "Melanie"}[i%2], SessionID: fmt.Sprint("session ", session),
			EventTime: time.Date(2023, 1, 1+session, 12, 0, 0, 0, time.UTC),
		})
		if len(batch) == memory.MaxBatchRecords || i == n-1 {
			if _, err := store.SaveBatch(tb.Context(), agent, batch, ""); err != nil {
				tb.Fatal(err)
			}
			batch = nil
		}
	}
	for { // until all is packed and merged
		stats, err := store.Stats(tb.Context(), agent)
		if err != nil {
			tb.Fatal(err)
		}
		if stats.Tail < packing.DefaultAfter {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return store
}

// ask makes a question of a name and six to ten other words, most of them
// common.
func (p *prose) ask() question.Question {
	return question.Question{Text: "When did Caroline go " + p.text(40+p.rng.IntN(30)), Mode: question.Lexical, Limit: 10}
}

// BenchmarkConversation measures questions about conversations of several
// lengths, asked by one client and by sixteen at once.
func BenchmarkConversation(b *testing.B) {
	for _, n := range []int{5_000, 10_000, 100_000} {
		store := MustConversation(b, n)
		for _, clients := range []int{1, 16} {
			b.Run(fmt.Sprintf("records=%d/clients=%d", n, clients), func(b *testing.B) {
				b.ReportAllocs()
				times := make([][]time.Duration, clients)
				began := time.Now()
				var wg sync.WaitGroup
				for c := range clients {
					wg.Go(func() { times[c] = mustAsk(b, store, uint64(100+c), max(1, b.N/clients)) })
				}
				wg.Wait()
				all := slices.Concat(times...)
				slices.Sort(all)
				b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-µs")
				b.ReportMetric(float64(all[len(all)*95/100].Microseconds()), "p95-µs")
				b.ReportMetric(float64(len(all))/time.Since(began).Seconds(), "queries/s")
			})
		}
	}
}

func mustAsk(b *testing.B, store *memory.Store, seed uint64, n int) (times []time.Duration) {
	p := newProse(seed)
	for range n {
		q := p.ask()
		began := time.Now()
		if _, err := store.Query(context.Background(), agent, q); err != nil {
			b.Error(err)
			return []time.Duration{0}
		}
		times = append(times, time.Since(began))
	}
	return times
}
