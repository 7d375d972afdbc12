//go:build cgo && !norocksdb

package rockskv_test

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

// mustOpen opens a store that the test closes, or that closes with it.
func mustOpen(tb testing.TB, dir string, opts *rockskv.Options) *rockskv.DB {
	tb.Helper()
	db, err := rockskv.Open(dir, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

func opener(opts *rockskv.Options) kvtest.Opener {
	return func(tb testing.TB, dir string) kv.Engine {
		tb.Helper()
		return mustOpen(tb, dir, opts)
	}
}

func factory(opts *rockskv.Options) kvtest.Factory {
	return func(tb testing.TB) kv.Engine {
		tb.Helper()
		return mustOpen(tb, tb.TempDir(), opts)
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	kvtest.Run(t, factory(nil))
}

// A directory is open in one process, so both sides have the same engine.
func TestContractOfTwo(t *testing.T) {
	t.Parallel()
	kvtest.RunPair(t, func(tb testing.TB) (a, b kv.Engine) {
		db := mustOpen(tb, tb.TempDir(), nil)
		return db, db
	})
}

// TestContractWithoutLog runs the random operations under the other write
// options; what else the suite checks does not depend on them.
func TestContractWithoutLog(t *testing.T) {
	t.Parallel()
	kvtest.RunSeed(t, factory(&rockskv.Options{Durability: rockskv.None}), chance.Seed(t))
}

func TestReopen(t *testing.T) {
	t.Parallel()
	for _, d := range []rockskv.Durability{rockskv.Sync, rockskv.WAL, rockskv.None} {
		t.Run(d.String(), func(t *testing.T) { kvtest.RunReopen(t, opener(&rockskv.Options{Durability: d})) })
	}
}
