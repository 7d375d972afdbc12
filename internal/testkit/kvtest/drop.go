package kvtest

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

func dropCases() []testCase {
	return []testCase{
		{name: "range", run: dropping(testDropRange)},
		{name: "all keeps the sequences", run: dropping(testDropAll)},
		{name: "leaves snapshots alone", run: dropping(testDropSnapshot)},
	}
}

// dropping runs a case on engines that can drop ranges; the contract leaves
// them free not to.
func dropping(run func(*testing.T, kv.Engine, kv.RangeDropper)) func(*testing.T, kv.Engine) {
	return func(t *testing.T, e kv.Engine) {
		if d, ok := e.(kv.RangeDropper); ok {
			run(t, e, d)
		}
	}
}

func mustDrop(t *testing.T, d kv.RangeDropper, ks kv.Keyspace, r kv.Range) {
	t.Helper()
	if err := d.DropRange(t.Context(), ks, r); err != nil {
		t.Fatalf("drop range: %v", err)
	}
}

func testDropRange(t *testing.T, e kv.Engine, d kv.RangeDropper) {
	fill(t, e, "a=1", "b=2", "c=3", "d=4")
	middle := kv.Range{Start: key(alpha(), "b"), End: key(alpha(), "d")}
	for range 2 { // idempotent
		mustDrop(t, d, kv.Records, middle)
		wantScan(t, e, kv.Records, kv.Range{}, "a=1", "d=4")
		wantSequence(t, e, ref(kv.Records, alpha()), 1)
	}
	mustDrop(t, d, kv.Records, kv.Range{Start: key(alpha(), "z"), End: key(alpha(), "a")})
	wantScan(t, e, kv.Records, kv.Range{}, "a=1", "d=4")
	mustCommit(t, e, put(at(kv.Records, alpha(), 1), "b=5"))
	wantScan(t, e, kv.Records, kv.Range{}, "a=1", "b=5", "d=4")
	wantError(t, "unknown keyspace", d.DropRange(t.Context(), 200, kv.Range{}), kv.ErrBadScope)
}

func testDropAll(t *testing.T, e kv.Engine, d kv.RangeDropper) {
	fill(t, e, "a=1", "b=2")
	fillRef(t, e, ref(kv.Records, alph()), "x=1")
	mustCommit(t, e, put(anyOf(kv.Log, alpha()), "stays=1"))
	mustDrop(t, d, kv.Records, kv.Prefix(alpha().AppendPrefix(nil)))
	wantScan(t, e, kv.Records, kv.Range{}, "x=1")
	mustDrop(t, d, kv.Records, kv.Range{})
	wantScan(t, e, kv.Records, kv.Range{})
	wantScan(t, e, kv.Log, kv.Range{}, "stays=1")
	wantSequence(t, e, ref(kv.Records, alpha()), 1)
	wantSequence(t, e, ref(kv.Records, alph()), 1)
}

func testDropSnapshot(t *testing.T, e kv.Engine, d kv.RangeDropper) {
	fill(t, e, "a=1", "b=2")
	s := mustSnapshot(t, e)
	mustDrop(t, d, kv.Records, kv.Range{})
	wantScan(t, s, kv.Records, kv.Range{}, "a=1", "b=2")
	wantScan(t, e, kv.Records, kv.Range{})
}
