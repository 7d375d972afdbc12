//go:build !norocksdb && cgo

package memory_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/memory/packing"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// MustLibrary returns a store with n records of the given size.
func MustLibrary(tb testing.TB, n, size int) *memory.Store {
	tb.Helper()
	engine := MustRocks(tb, rockskv.None)
	writer := kv.NewWriter(engine, nil)
	store := memory.New(engine, writer, nil)
	tb.Cleanup(func() {
		_ = store.Close()
		_ = writer.Close()
	})
	p := newProse(7)
	var wg sync.WaitGroup
	texts := make(chan string)
	for range 16 {
		wg.Go(func() {
			for text := range texts {
				if _, err := store.Save(context.Background(), agent, record.Record{Text: text}, ""); err != nil {
					tb.Error(err)
				}
			}
		})
	}
	for range n {
		texts <- p.text(size)
	}
	close(texts)
	wg.Wait()
	return store
}

// BenchmarkQuery measures queries of three to six words, most of them common,
// on scopes of several sizes.
func BenchmarkQuery(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			store := MustLibrary(b, n, 300)
			p := newProse(8)
			var times []time.Duration
			candidates := 0
			for b.Loop() {
				q := question.Question{Text: p.text(12 + p.rng.IntN(20))}
				began := time.Now()
				result, err := store.Query(b.Context(), agent, q)
				if err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(began))
				candidates += result.Receipt.LexicalCandidates
			}
			slices.Sort(times)
			stats, err := store.Stats(b.Context(), agent)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(times[len(times)/10].Microseconds()), "p10-µs")
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(times[len(times)*95/100].Microseconds()), "p95-µs")
			b.ReportMetric(float64(candidates)/float64(len(times)), "candidates")
			b.ReportMetric(float64(stats.Segments), "segments")
			b.ReportMetric(float64(stats.Tail), "tail")
		})
	}
}

// countingEngine counts the keys that are written.
type countingEngine struct {
	kv.Engine
	keys, commits atomic.Int64
}

func (e *countingEngine) Commit(ctx context.Context, c kv.Commit) error {
	e.keys.Add(int64(c.Batch.Len()))
	e.commits.Add(1)
	return e.Engine.Commit(ctx, c)
}

// BenchmarkSave measures saves of 1 KiB without a sync, so that what is left is
// the work of this process, packing and merging included.
func BenchmarkSave(b *testing.B) {
	for _, scopes := range []int{1, 64} {
		b.Run(fmt.Sprintf("scopes=%d", scopes), func(b *testing.B) {
			engine := &countingEngine{Engine: MustRocks(b, rockskv.None)}
			writer := kv.NewWriter(engine, nil)
			store := memory.New(engine, writer, nil)
			p := newProse(9)
			texts := make([]string, 4096)
			for i := range texts {
				texts[i] = p.text(1024)
			}
			n := 0
			for b.Loop() {
				scope := kv.AgentScope("default", fmt.Sprint(n%scopes))
				if _, err := store.Save(b.Context(), scope, record.Record{Text: texts[n%len(texts)]}, ""); err != nil {
					b.Fatal(err)
				}
				n++
			}
			_ = store.Close()
			_ = writer.Close()
			b.ReportMetric(float64(engine.keys.Load())/float64(n), "keys/save")
		})
	}
}

// turn makes a record of the size of a turn in a conversation: 130 bytes of
// text, two speakers, twenty turns a session.
func (p *prose) turn(n int) record.Record {
	return record.Record{
		Text:      p.text(130),
		SessionID: fmt.Sprintf("session-%d", n/20),
		Author:    []string{"Caroline", "Melanie"}[n%2],
		EventTime: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n/20) * time.Hour),
		Metadata:  []byte(fmt.Sprintf(`{"dia_id": "D%d:%d"}`, n/20, n%20)),
	}
}

// BenchmarkImport measures how fast turns come in by batches of the largest
// size, synced, until the last of them is packed.
func BenchmarkImport(b *testing.B) {
	const batches = 20
	p := newProse(10)
	all := make([][]record.Record, batches)
	for i := range all {
		for n := range memory.MaxBatchRecords {
			all[i] = append(all[i], p.turn(i*memory.MaxBatchRecords+n))
		}
	}
	for b.Loop() {
		b.StopTimer()
		engine := MustRocks(b, rockskv.Sync)
		writer := kv.NewWriter(engine, nil)
		store := memory.New(engine, writer, nil)
		b.StartTimer()
		for _, batch := range all {
			if _, err := store.SaveBatch(b.Context(), agent, batch, ""); err != nil {
				b.Fatal(err)
			}
		}
		for stats := (memory.Stats{Tail: packing.DefaultAfter}); stats.Tail >= packing.DefaultAfter; {
			var err error
			if stats, err = store.Stats(b.Context(), agent); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		_ = store.Close()
		_ = writer.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(b.N)*batches*memory.MaxBatchRecords/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkGrowth measures single synced saves of turns into scopes that hold
// so many already.
func BenchmarkGrowth(b *testing.B) {
	for _, before := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint(before), func(b *testing.B) {
			engine := MustRocks(b, rockskv.Sync)
			writer := kv.NewWriter(engine, nil)
			store := memory.New(engine, writer, nil)
			p := newProse(11)
			for n := 0; n < before; n += memory.MaxBatchRecords {
				batch := make([]record.Record, min(memory.MaxBatchRecords, before-n))
				for i := range batch {
					batch[i] = p.turn(n + i)
				}
				if _, err := store.SaveBatch(b.Context(), agent, batch, ""); err != nil {
					b.Fatal(err)
				}
			}
			var times []time.Duration
			for b.Loop() {
				r := p.turn(before + len(times))
				began := time.Now()
				if _, err := store.Save(b.Context(), agent, r, ""); err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(began))
			}
			_ = store.Close()
			_ = writer.Close()
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(times[len(times)*95/100].Microseconds()), "p95-µs")
		})
	}
}
