//go:build !norocksdb && cgo

package memory_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// BenchmarkSaveVectors measures saves of 300 bytes without a sync, with and
// without a vector of 384 numbers.
func BenchmarkSaveVectors(b *testing.B) {
	for _, name := range []string{"words", "vectors"} {
		b.Run(name, func(b *testing.B) {
			engine := &countingEngine{Engine: MustRocks(b, rockskv.None)}
			writer := kv.NewWriter(engine, nil)
			store := memory.New(engine, writer, nil)
			p, rng := newProse(9), rand.New(rand.NewPCG(9, 9))
			var times []time.Duration
			for b.Loop() {
				record := record.Record{Text: p.text(300)}
				if name == "vectors" {
					record.Embedding, record.EmbeddingSpace = make([]float32, 384), "bench/384"
					for i := range record.Embedding {
						record.Embedding[i] = float32(rng.NormFloat64())
					}
				}
				began := time.Now()
				if _, err := store.Save(b.Context(), agent, record, ""); err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(began))
			}
			_ = store.Close()
			_ = writer.Close()
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(times[len(times)*95/100].Microseconds()), "p95-µs")
			b.ReportMetric(float64(engine.keys.Load())/float64(len(times)), "keys/save")
		})
	}
}
