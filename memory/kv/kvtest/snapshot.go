package kvtest

import (
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

func snapshotCases() []testCase {
	return []testCase{
		{"answers do not change", testSnapshotStays},
		{"sees what was acknowledged before", testSnapshotSees},
		{"several at once", testSnapshotsSeveral},
		{"close", testSnapshotClose},
		{"close inside its own scan", testSnapshotCloseInScan},
		{"outlives nothing", testSnapshotAfterEngine},
	}
}

func mustSnapshot(tb testing.TB, e kv.Engine) kv.Snapshot {
	tb.Helper()
	s, err := e.Snapshot(tb.Context())
	if err != nil {
		tb.Fatalf("snapshot: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close snapshot: %v", err)
		}
	})
	return s
}

func testSnapshotStays(t *testing.T, e kv.Engine) {
	fill(t, e, "a=1", "b=2")
	s := mustSnapshot(t, e)
	mustCommit(t, e, kv.Commit{
		Guards: []kv.Guard{at(kv.Records, alpha(), 1)},
		Batch:  batchOf(kv.Op{Key: key(alpha(), "a"), Delete: true}),
	})
	fill(t, e, "b=3", "c=4")
	for range 2 {
		wantScan(t, s, kv.Records, kv.Range{}, "a=1", "b=2")
		wantScan(t, s, kv.Records, kv.Range{Reverse: true, Limit: 1}, "b=2")
		wantGet(t, s, []string{"a", "b", "c"}, "1", "2", "-")
		wantGet(t, s, []string{"a"}, "1")
		wantSequence(t, s, ref(kv.Records, alpha()), 1)
	}
	wantScan(t, e, kv.Records, kv.Range{}, "b=3", "c=4")
	wantSequence(t, e, ref(kv.Records, alpha()), 3)
}

func testSnapshotSees(t *testing.T, e kv.Engine) {
	empty := mustSnapshot(t, e)
	for i := range uint64(50) {
		c := put(at(kv.Records, alpha(), i), "a=1")
		c.Lazy = i%2 == 0
		mustCommit(t, e, c)
		wantSequence(t, mustSnapshot(t, e), ref(kv.Records, alpha()), i+1)
	}
	wantEmpty(t, empty, alpha())
}

func testSnapshotsSeveral(t *testing.T, e kv.Engine) {
	var all []kv.Snapshot
	values := []string{"0", "1", "2", "3"}
	for _, v := range values {
		fill(t, e, "a="+v)
		all = append(all, mustSnapshot(t, e))
	}
	if err := all[1].Close(); err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{3, 0, 2} {
		wantGet(t, all[i], []string{"a"}, values[i])
	}
}

func testSnapshotClose(t *testing.T, e kv.Engine) {
	fill(t, e, "a=1")
	s := mustSnapshot(t, e)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	wantReadsClosed(t, s)
	wantGet(t, e, []string{"a"}, "1")
}

// wantReadsClosed checks that every read is refused as closed.
func wantReadsClosed(tb testing.TB, r kv.Reader) {
	tb.Helper()
	_, err := r.Get(tb.Context(), kv.Records, key(alpha(), "a"))
	wantError(tb, "get", err, kv.ErrClosed)
	_, err = r.Get(tb.Context(), kv.Records)
	wantError(tb, "get nothing", err, kv.ErrClosed)
	_, err = r.Sequence(tb.Context(), ref(kv.Records, alpha()))
	wantError(tb, "sequence", err, kv.ErrClosed)
	wantError(tb, "scan", scanError(r.Scan(tb.Context(), kv.Records, kv.Range{})), kv.ErrClosed)
}

func testSnapshotCloseInScan(t *testing.T, e kv.Engine) {
	fill(t, e, "a=1", "b=2")
	s := mustSnapshot(t, e)
	for _, err := range s.Scan(t.Context(), kv.Records, kv.Range{}) {
		if err != nil {
			break
		}
		if err := s.Close(); err != nil {
			t.Errorf("close inside a scan: %v", err)
		}
	}
	wantReadsClosed(t, s)
}

func testSnapshotAfterEngine(t *testing.T, e kv.Engine) {
	fill(t, e, "a=1")
	s := mustSnapshot(t, e)
	seq := s.Scan(t.Context(), kv.Records, kv.Range{})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	wantReadsClosed(t, s)
	wantError(t, "scan made before", scanError(seq), kv.ErrClosed)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("close after the engine: %v", err)
		}
	}
}
