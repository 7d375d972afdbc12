package tiers_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/tiers"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// BenchmarkAdd adds tasks to one session on RocksDB without syncs: unimportant ones,
// which stay in L1, and important ones with all their way up, in an empty memory and
// in one of 20,000 other records.
func BenchmarkAdd(b *testing.B) {
	for _, records := range []int{0, 20_000} {
		for name, importance := range map[string]float64{"unimportant": .1, "important": .9} {
			b.Run(fmt.Sprintf("%s/records=%d", name, records), func(b *testing.B) {
				db, err := rockskv.Open(filepath.Join(b.TempDir(), "db"), &rockskv.Options{Durability: rockskv.None})
				if err != nil {
					b.Fatal(err)
				}
				w := MustWorld(b, db, tiers.Options{})
				fillMemory(b, w, records)
				b.ResetTimer()
				for n := range b.N {
					w.add(task("s", n, importance))
				}
				b.StopTimer()
			})
		}
	}
}

func fillMemory(b *testing.B, w *world, records int) {
	for n := 0; n < records; n += 500 {
		batch := make([]record.Record, 500)
		for i := range batch {
			batch[i] = record.Record{Text: fmt.Sprintf("what record %d says of %d things", n+i, i), SessionID: fmt.Sprint("s", i%50)}
		}
		_, err := w.store.SaveBatchAs(b.Context(), alice, batch, memory.Saving{})
		w.must(err)
	}
}
