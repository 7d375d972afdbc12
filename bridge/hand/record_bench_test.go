//go:build cgo && !norocksdb

package hand_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

// buildLog is the output of a build, different at every call.
func buildLog(n, seed int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "[%d/%d] compiling src/package_%d/file_%d.go: %d symbols in %dms\n", i, seed, i%50, i*7+seed, i*31+seed, i%900)
	}
	return b.String()[:n]
}

func mustDurable(b *testing.B) *durable {
	b.Helper()
	d, err := openDurable(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := d.Close(context.Background()); err != nil {
			b.Error(err)
		}
		if err := d.db.Close(); err != nil {
			b.Error(err)
		}
	})
	return d
}

func commandReport(n, seed int) hand.Recorded {
	output, err := json.Marshal(map[string]any{"stdout": buildLog(n, seed), "stderr": "", "exit_code": 0})
	if err != nil {
		panic(err) // it is JSON
	}
	r := reported("system:shell", map[string]any{"command": "make all"}, string(output))
	r.RequestID = fmt.Sprint("request ", seed)
	return r
}

// percentile of what calls took, in microseconds.
func percentile(times []time.Duration, percent int) float64 {
	slices.Sort(times)
	return float64(times[len(times)*percent/100].Microseconds())
}

// BenchmarkRecord is a step recorded and synced, at several lengths of the
// output and of the log before it, and in turn with it nothing but a synced
// batch of the same bytes.
func BenchmarkRecord(b *testing.B) {
	for _, size := range []int{4 << 10, 1<<20 - 64<<10} {
		for _, before := range []int{50, 5000} {
			b.Run(fmt.Sprintf("%dKiB/after%d", size>>10, before), func(b *testing.B) { benchmarkRecord(b, size, before) })
		}
	}
}

func benchmarkRecord(b *testing.B, size, before int) {
	d := mustDurable(b)
	for i := range before {
		if _, err := d.Record(b.Context(), reported("my.tool", map[string]any{"n": i}, `{"done":true}`)); err != nil {
			b.Fatal(err)
		}
	}
	batch := mustBatch(b)
	var recorded, batched []time.Duration
	for b.Loop() {
		r := commandReport(size, len(recorded))
		start := time.Now()
		if _, err := d.Record(b.Context(), r); err != nil {
			b.Fatal(err)
		}
		recorded = append(recorded, time.Since(start))
		start = time.Now()
		batch(r.RequestID, r.Output.Data)
		batched = append(batched, time.Since(start))
	}
	b.ReportMetric(percentile(recorded, 50), "p50-µs")
	b.ReportMetric(percentile(recorded, 99), "p99-µs")
	b.ReportMetric(percentile(recorded, 50)/percentile(batched, 50), "×batch")
	b.ReportMetric(0, "ns/op")
}

// mustBatch returns a function that writes bytes in one synced batch.
func mustBatch(b *testing.B) func(key string, data []byte) {
	b.Helper()
	db, err := rockskv.Open(filepath.Join(b.TempDir(), "store"), nil)
	if err != nil {
		b.Fatal(err)
	}
	writer := kv.NewWriter(db, nil)
	b.Cleanup(func() {
		if err := writer.Close(); err != nil {
			b.Error(err)
		}
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	return func(key string, data []byte) {
		b.Helper()
		err := writer.Do(b.Context(), kv.Request{
			Refs: []kv.Ref{{Keyspace: kv.Log, Scope: agent}},
			Stage: func(_ context.Context, tx *kv.Tx) error {
				tx.Put(kv.Log, agent.Key('z', []byte(key)), data)
				return nil
			},
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
