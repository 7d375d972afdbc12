//go:build cgo && !norocksdb

package rockskv_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/barerocks"
)

func BenchmarkEngine(b *testing.B) { kvtest.Benchmark(b, factory(nil)) }

// clients is how many commit at once, each to a scope of its own.
const clients = 64

// sliceCommits is how many commits each contestant does before the next has
// its turn: short against the moods of a shared machine.
const sliceCommits = 64 * 20

// BenchmarkFloor compares, in one run, what clients get from the engine with
// what they get from RocksDB with nothing around it. A commit is 20 keys of
// about 100 bytes, on disk when it returns. The contestants take turns, so that
// their ratios hold on a machine that is not quiet:
//
//   - engine: 64 clients, commits joined.
//   - each: 64 clients of bare RocksDB, a synced batch for every commit.
//   - joined: one client of bare RocksDB that writes 64 commits as one batch.
//   - engine1, bare1: one client of each.
//
// One iteration is one slice of each.
func BenchmarkFloor(b *testing.B) {
	engine := mustOpen(b, b.TempDir(), nil)
	bare := mustBare(b)
	commit := func(client, n int) error { return engine.Commit(b.Context(), kvtest.BenchCommit(client, n)) }
	write := func(commits int) func(client, n int) error {
		return func(client, n int) error { return bare.Write(benchOps(client, n, commits), true) }
	}
	var e, each, joined, e1, bare1 time.Duration
	slice := 0
	for b.Loop() {
		e += contest(b, clients, sliceCommits, slice, commit)
		each += contest(b, clients, sliceCommits, slice, write(1))
		joined += contest(b, 1, sliceCommits/clients, slice, write(clients))
		e1 += contest(b, 1, sliceCommits/clients, slice+1<<20, commit)
		bare1 += contest(b, 1, sliceCommits/clients, slice+1<<20, write(1))
		slice++
	}
	total := float64(slice * sliceCommits)
	b.ReportMetric(total/e.Seconds(), "engine-commits/s")
	b.ReportMetric(total/each.Seconds(), "each-commits/s")
	b.ReportMetric(total/joined.Seconds(), "joined-commits/s")
	b.ReportMetric(each.Seconds()/e.Seconds(), "engine/each")
	b.ReportMetric(joined.Seconds()/e.Seconds(), "engine/joined")
	b.ReportMetric(bare1.Seconds()/e1.Seconds(), "engine1/bare1")
	b.ReportMetric(e1.Seconds()/total*clients*1e6, "engine1-us")
}

func mustBare(b *testing.B) *barerocks.DB {
	b.Helper()
	db, err := barerocks.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(db.Close)
	return db
}

// benchOps returns the changes of several clients' commits.
func benchOps(client, n, commits int) []kv.Op {
	var ops []kv.Op
	for i := range commits {
		ops = append(ops, kvtest.BenchCommit(client+i, n).Batch.Ops()...)
	}
	return ops
}

// contest lets clients make calls between them and returns how long it took.
// The keys are new in every slice.
func contest(b *testing.B, clients, calls, slice int, call func(client, n int) error) time.Duration {
	b.Helper()
	var made atomic.Int64
	var users sync.WaitGroup
	began := time.Now()
	for client := range clients {
		users.Go(func() {
			for n := made.Add(1); n <= int64(calls); n = made.Add(1) {
				if err := call(client, slice*calls+int(n)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	users.Wait()
	return time.Since(began)
}
