//go:build !norocksdb && cgo

package lexical_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
)

// builder puts documents into an index on RocksDB, as a bulk import does.
type builder struct {
	index   *lexical.Index
	engine  kv.Engine
	writer  *kv.Writer
	encoded [][]byte
	work    time.Duration // without making the documents
	n       int
}

func mustBuilder(tb testing.TB) *builder {
	tb.Helper()
	engine, err := rockskv.Open(filepath.Join(tb.TempDir(), "store"), &rockskv.Options{Durability: rockskv.None})
	if err != nil {
		tb.Fatal(err)
	}
	b := &builder{index: lexical.New(nil), engine: engine, writer: kv.NewWriter(engine, nil)}
	c := newChatter(2)
	for i := range 5000 {
		b.encoded = append(b.encoded, c.document(i).Encode())
	}
	tb.Cleanup(func() {
		_ = b.writer.Close()
		_ = engine.Close()
	})
	return b
}

// add applies documents in commits of so many, packing and merging as it goes,
// and returns how long each commit took, in order of that.
func (b *builder) add(tb testing.TB, documents, each int) (commits []time.Duration) {
	tb.Helper()
	began := time.Now()
	for range documents / each {
		var c lexical.Change
		for range each {
			c.Add = append(c.Add, lexical.Added{Encoded: b.encoded[b.n%len(b.encoded)]})
			b.n++
		}
		var s segment.Statistics
		at := time.Now()
		err := b.writer.Do(tb.Context(), kv.Request{Refs: []kv.Ref{lexical.Ref(scope)}, Stage: func(ctx context.Context, tx *kv.Tx) (err error) {
			_, s, err = b.index.Apply(ctx, tx, scope, c)
			return err
		}})
		if err != nil {
			tb.Fatal(err)
		}
		commits = append(commits, time.Since(at))
		for s.Tail() >= 256 {
			var more bool
			if s, more, err = b.index.Pack(tb.Context(), b.engine, b.writer, scope); err != nil {
				tb.Fatal(err)
			}
			for more {
				if more, err = b.index.Merge(tb.Context(), b.engine, b.writer, scope); err != nil {
					tb.Fatal(err)
				}
			}
		}
	}
	b.work += time.Since(began)
	slices.Sort(commits)
	return commits
}

func (b *builder) open(tb testing.TB, x *lexical.Index) time.Duration {
	tb.Helper()
	view, err := b.engine.Snapshot(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	defer view.Close()
	began := time.Now()
	if _, err := x.Open(tb.Context(), view, scope); err != nil {
		tb.Fatal(err)
	}
	return time.Since(began)
}

// BenchmarkIndex measures the storage half of the index at several sizes:
// adding in bulk and one by one, and opening a reader cold, warm, after one more
// document, and after one death.
func BenchmarkIndex(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				w := mustBuilder(b)
				w.add(b, n, min(n, 1000))
				b.ReportMetric(float64(n)/w.work.Seconds(), "documents/s")
				saves := w.add(b, 400, 1)
				b.ReportMetric(micros(saves[len(saves)/2]), "µs-save-p50")
				b.ReportMetric(micros(saves[len(saves)*95/100]), "µs-save-p95")
				b.ReportMetric(micros(w.open(b, lexical.New(nil))), "µs-cold")
				w.open(b, w.index)
				b.ReportMetric(micros(median(50, func() time.Duration { return w.open(b, w.index) })), "µs-warm")
				b.ReportMetric(micros(median(50, func() time.Duration {
					w.add(b, 1, 1)
					return w.open(b, w.index)
				})), "µs-after-add")
			}
		})
	}
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

func median(n int, measure func() time.Duration) time.Duration {
	times := make([]time.Duration, n)
	for i := range times {
		times[i] = measure()
	}
	slices.Sort(times)
	return times[n/2]
}
