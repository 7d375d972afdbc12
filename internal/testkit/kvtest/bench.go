package kvtest

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// The load of the benchmarks: about what saving one memory writes.
const (
	benchKeys  = 20
	benchValue = 100
)

// Benchmark measures commits, alone and many at once, and reads.
func Benchmark(b *testing.B, factory Factory) {
	b.Helper()
	b.Run("Commit", func(b *testing.B) { benchCommit(b, open(b, factory)) })
	b.Run("Commit64", func(b *testing.B) { benchCommit64(b, open(b, factory)) })
	b.Run("Get1", func(b *testing.B) { benchGet(b, open(b, factory), 1) })
	b.Run("Get20", func(b *testing.B) { benchGet(b, open(b, factory), benchKeys) })
	b.Run("Scan20", func(b *testing.B) { benchScan(b, open(b, factory)) })
}

// BenchCommit returns the commit the benchmarks write: 20 keys of about 100
// bytes in the records of agent client, different for each n.
func BenchCommit(client, n int) kv.Commit {
	g := anyOf(kv.Records, kv.AgentScope("bench", fmt.Sprint("agent-", client)))
	batch := new(kv.Batch)
	for i := range benchKeys {
		batch.Put(kv.Records, key(g.Scope, fmt.Sprintf("%08d.%02d", n, i)), sized(benchValue))
	}
	return kv.Commit{Guards: []kv.Guard{g}, Batch: batch}
}

func benchCommit(b *testing.B, e kv.Engine) {
	n := 0
	for b.Loop() {
		mustCommit(b, e, BenchCommit(0, n))
		n++
	}
}

func benchCommit64(b *testing.B, e kv.Engine) {
	var clients atomic.Int64
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		client := int(clients.Add(1))
		for n := 0; pb.Next(); n++ {
			if err := e.Commit(b.Context(), BenchCommit(client, n)); err != nil {
				b.Errorf("commit: %v", err)
			}
		}
	})
}

// benchRows is how many commits the reading benchmarks find.
const benchRows = 500

// benchFill commits the rows and returns the keys of each.
func benchFill(b *testing.B, e kv.Engine) (rows [][][]byte) {
	b.Helper()
	for n := range benchRows {
		c := BenchCommit(0, n)
		mustCommit(b, e, c)
		var keys [][]byte
		for _, op := range c.Batch.Ops() {
			keys = append(keys, op.Key)
		}
		rows = append(rows, keys)
	}
	return rows
}

func benchGet(b *testing.B, e kv.Engine, keys int) {
	rows := benchFill(b, e)
	n := 0
	for b.Loop() {
		if _, err := e.Get(b.Context(), kv.Records, rows[n%benchRows][:keys]...); err != nil {
			b.Fatal(err)
		}
		n++
	}
}

func benchScan(b *testing.B, e kv.Engine) {
	rows := benchFill(b, e)
	n := 0
	for b.Loop() {
		r := kv.Range{Start: rows[n%benchRows][0], Limit: benchKeys}
		if err := scanError(e.Scan(b.Context(), kv.Records, r)); err != nil {
			b.Fatal(err)
		}
		n++
	}
}
