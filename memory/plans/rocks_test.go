//go:build !norocksdb && cgo

package plans_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/memory/plans"
)

func TestOnRocksDB(t *testing.T) {
	runSuite(t, func(tb testing.TB) kv.Engine {
		return MustRocks(tb, filepath.Join(tb.TempDir(), "store"), rockskv.None)
	})
}

// MustRocks opens a RocksDB store for the length of a test.
func MustRocks(tb testing.TB, dir string, durability rockskv.Durability) kv.Engine {
	tb.Helper()
	db, err := rockskv.Open(dir, &rockskv.Options{Durability: durability})
	must(tb, err)
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	return db
}

// What was appended is there after the store was closed, and in a copy of its
// files made while it was open, which is what a kill leaves behind.
func TestReopen(t *testing.T) {
	dir := t.TempDir()
	closed, killed := filepath.Join(dir, "closed"), filepath.Join(dir, "killed")
	t.Run("write", func(t *testing.T) {
		r := MustRig(t, MustRocks(t, closed, rockskv.Sync), nil)
		for i := range plans.MaxPlans + 5 {
			r.MustSavePlan(t, session, plans.Plan{Symbol: "BTC", Hash: numbered(i), Metadata: map[string]string{"k": "v"}})
		}
		r.MustMark(t, session, plans.Execution{PlanHash: "h", OrderID: "o-1"})
		r.MustAppend(t, session, "a", "b")
		r.MustAppend(t, "", "c")
		must(t, os.CopyFS(killed, os.DirFS(closed)))
	})
	for _, dir := range []string{closed, killed} {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			r := MustRig(t, MustRocks(t, dir, rockskv.Sync), nil)
			r.mustHaveAll(t)
			r.MustSavePlan(t, session, plans.Plan{Symbol: "BTC", Hash: "after"})
			if got := r.MustHashes(t, session, "BTC", 1000); len(got) != plans.MaxPlans || got[0] != "after" {
				t.Errorf("%d plans, the last is %q", len(got), got[0])
			}
		})
	}
}

func (r *rig) mustHaveAll(tb testing.TB) {
	tb.Helper()
	if got := r.MustHashes(tb, session, "BTC", 1000); len(got) != plans.MaxPlans || got[0] != numbered(plans.MaxPlans+4) {
		tb.Errorf("%d plans, the last is %q", len(got), got[0])
	}
	if e, found, err := r.FindExecution(tb.Context(), tenant, session, "h"); !found || e.OrderID != "o-1" || err != nil {
		tb.Errorf("execution %+v, %v, %v", e, found, err)
	}
	mustEqual(tb, "lines", []string{"[1] a from python", "[2] b from python"}, r.MustRetrieve(tb, session, "", -1))
	mustEqual(tb, "lines of all", []string{"[1] a from python", "[2] b from python", "[1] c from python"}, r.MustRetrieve(tb, "", "", -1))
}

// BenchmarkPlans is a synced append to a session that is full, and what reads
// whole rings of it.
func BenchmarkPlans(b *testing.B) {
	engine := MustRocks(b, filepath.Join(b.TempDir(), "store"), rockskv.Sync)
	r := MustRig(b, engine, nil)
	for i := range plans.MaxExecutions {
		r.MustMark(b, session, plans.Execution{PlanHash: fmt.Sprint("hash ", i), Symbol: "BTC", Status: "success"})
	}
	for i := range plans.MaxPlans {
		r.MustSavePlan(b, session, plans.Plan{Symbol: "BTC", Action: "BUY", TimestampMillis: int64(i), Reasoning: "because"})
	}
	b.Run("SavePlan", func(b *testing.B) {
		for b.Loop() {
			r.MustSavePlan(b, session, plans.Plan{Symbol: "BTC", Action: "BUY", Reasoning: "because"})
		}
	})
	b.Run("FindDuplicate, none", func(b *testing.B) {
		for b.Loop() {
			_, _, _, err := r.FindDuplicate(b.Context(), tenant, session, plans.Plan{Symbol: "ETH"}, 300)
			must(b, err)
		}
	})
	b.Run("FindExecution, none", func(b *testing.B) {
		for b.Loop() {
			_, _, err := r.FindExecution(b.Context(), tenant, session, "none")
			must(b, err)
		}
	})
	b.Run("Stats", func(b *testing.B) {
		for b.Loop() {
			_, err := r.Stats(b.Context(), tenant, session, "")
			must(b, err)
		}
	})
}
