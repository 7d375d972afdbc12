package recall_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/recall"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// BenchmarkUserMemory looks for the memories of a prompt among 10,000 records on
// RocksDB, with a snapshot each time; p50-µs and p99-µs are of single prompts.
func BenchmarkUserMemory(b *testing.B) {
	db, err := rockskv.Open(filepath.Join(b.TempDir(), "db"), &rockskv.Options{Durability: rockskv.None})
	if err != nil {
		b.Fatal(err)
	}
	w := &world{tb: b, engine: db, now: noon}
	w.writer = kv.NewWriter(db, nil)
	w.store = memory.New(db, w.writer, &memory.Options{SweepEvery: -1})
	b.Cleanup(func() {
		w.must(w.store.Close())
		w.must(w.writer.Close())
		w.must(db.Close())
	})
	random := rand.New(rand.NewPCG(1, 2))
	word := func() string { return fmt.Sprintf("w%d", int(random.ExpFloat64()*400)) }
	for n := 0; n < 10_000; n += 500 {
		batch := make([]record.Record, 500)
		for i := range batch {
			words := make([]string, 20)
			for k := range words {
				words[k] = word()
			}
			batch[i] = record.Record{Text: strings.Join(words, " "), SessionID: fmt.Sprint("s", (n+i)/20), Author: fmt.Sprint("a", i%2)}
		}
		_, err := w.store.SaveBatchAs(b.Context(), eva, batch, memory.Saving{})
		w.must(err)
	}
	source := &recall.UserMemory{Store: w.store, Terms: terms}
	var took []time.Duration
	for b.Loop() {
		a := w.ask(strings.Join([]string{"what", word(), word(), "of", word(), word(), "?"}, " "))
		start := time.Now()
		view, err := db.Snapshot(b.Context())
		w.must(err)
		a.View = view
		_, err = source.Collect(b.Context(), a)
		w.must(err)
		w.must(view.Close())
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
