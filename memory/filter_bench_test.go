package memory_test

import (
	"fmt"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// BenchmarkNumberRange measures a filter on a number that every record has
// another one of.
func BenchmarkNumberRange(b *testing.B) {
	const records = 100_000
	r := MustRig(b, memkv.New(nil))
	r.opts.PackAfter = 0
	r.Reopen()
	for i := 0; i < records; i += memory.MaxBatchRecords {
		batch := make([]record.Record, memory.MaxBatchRecords)
		for n := range batch {
			batch[n] = record.Record{Text: "reading", Metadata: fmt.Appendf(nil, `{"price": %d.%02d}`, (i+n)*7919%records, n%100)}
		}
		if _, err := r.SaveBatch(b.Context(), agent, batch, ""); err != nil {
			b.Fatal(err)
		}
	}
	r.MustPack(b)
	for _, filter := range []string{"metadata.price > 1000", "metadata.price > 99000", "metadata.price <= 0.5 OR metadata.price > 99000"} {
		b.Run(filter, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.MustQuery(b, question.Question{Text: "reading", Filter: filter, Limit: 1})
			}
		})
	}
}
