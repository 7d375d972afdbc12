package kvtest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

func snapshotCases() []testCase {
	return []testCase{
		{name: "answers do not change", run: testSnapshotStays},
		{name: "sees what was acknowledged before", run: testSnapshotSees},
		{name: "several at once", run: testSnapshotsSeveral},
		{name: "close", run: testSnapshotClose},
		{name: "close inside its own scan", run: testSnapshotCloseInScan},
		{name: "outlives nothing", run: testSnapshotAfterEngine},
		{name: "knows the sequences it was opened with", run: testSnapshotSequences},
		{name: "what is read along is of its moment", run: testSnapshotAlong},
		{name: "more than is read along", run: testSnapshotAlongTooMuch},
		{name: "lives for a bounded time", timed: testSnapshotLife, exact: true},
		{name: "becomes too old", timed: testSnapshotTooOld},
		{name: "a slow scan of a snapshot becomes too old", timed: testSlowScanOfSnapshot},
		{name: "a slow scan of an engine goes on", timed: testSlowScanOfEngine},
		{name: "a long reader goes on", timed: testLongReader},
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

func testSnapshotSequences(t *testing.T, e kv.Engine) {
	fill(t, e, "a=1")
	fill(t, e, "a=2")
	records, log := ref(kv.Records, alpha()), ref(kv.Log, alph())
	s, err := e.Snapshot(t.Context(), log, records, records)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, e, "a=3")
	for range 2 { // also when it is closed
		if got := s.Sequences(); !slices.Equal(got, []uint64{0, 2, 2}) {
			t.Errorf("sequences %v, want [0 2 2]", got)
		}
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if got := mustSnapshot(t, e).Sequences(); len(got) != 0 {
		t.Errorf("opened with no refs: sequences %v", got)
	}
	_, err = e.Snapshot(t.Context(), records, kv.Ref{Keyspace: 200, Scope: alpha()})
	wantError(t, "snapshot of an unknown keyspace", err, kv.ErrBadScope)
	_, err = e.Snapshot(t.Context(), kv.Ref{})
	wantError(t, "snapshot of an empty scope", err, kv.ErrBadScope)
}

// clock lets snapshots grow old.
type clock interface {
	// outlive returns when all snapshots and scans that are open are too old.
	outlive(tb testing.TB, e kv.Engine)
	// sharp reports whether what is due has happened to the nanosecond.
	sharp() bool
}

// bubble is the clock of a bubble of testing/synctest.
type bubble struct{}

func (bubble) outlive(testing.TB, kv.Engine) { sleep(kv.SnapshotLife) }
func (bubble) sharp() bool                   { return true }

// realTime waits for a snapshot that is opened last, and so much later that its timer is not
// seen to end before theirs.
type realTime struct{}

const apart = 200 * time.Millisecond

func (realTime) outlive(tb testing.TB, e kv.Engine) {
	tb.Helper()
	time.Sleep(apart)
	s := mustSnapshot(tb, e)
	for !errors.Is(scanError(s.Scan(tb.Context(), kv.System, kv.Range{})), kv.ErrTooOld) {
		if tb.Context().Err() != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (realTime) sharp() bool { return false }

// sleep lets time pass in a bubble, and what is due then happen.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// wantReadsTooOld checks that every read is refused as too old.
func wantReadsTooOld(tb testing.TB, r kv.Reader) {
	tb.Helper()
	_, err := r.Get(tb.Context(), kv.Records, key(alpha(), "a"))
	wantError(tb, "get", err, kv.ErrTooOld)
	_, err = r.Sequence(tb.Context(), ref(kv.Records, alpha()))
	wantError(tb, "sequence", err, kv.ErrTooOld)
	wantError(tb, "scan", scanError(r.Scan(tb.Context(), kv.Records, kv.Range{})), kv.ErrTooOld)
}

func testSnapshotTooOld(t *testing.T, e kv.Engine, c clock) {
	fill(t, e, "a=1")
	s := mustSnapshot(t, e)
	c.outlive(t, e)
	wantReadsTooOld(t, s)
	fill(t, e, "a=2")
	values, err := mustSnapshot(t, e).Get(t.Context(), kv.Records, key(alpha(), "a"))
	for !c.sharp() && errors.Is(err, kv.ErrTooOld) { // a busy machine took longer than it lives
		values, err = mustSnapshot(t, e).Get(t.Context(), kv.Records, key(alpha(), "a"))
	}
	if err != nil || string(values[0]) != "2" {
		t.Errorf("a new one has %q, %v", values, err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	wantReadsClosed(t, s)
}

func testSnapshotLife(t *testing.T, e kv.Engine, _ clock) {
	fill(t, e, "a=1")
	first := mustSnapshot(t, e)
	time.Sleep(time.Second)
	second := mustSnapshot(t, e)
	fill(t, e, "a=2")
	time.Sleep(kv.SnapshotLife - time.Second - 1)
	wantGet(t, first, []string{"a"}, "1")
	sleep(1)
	wantReadsTooOld(t, first)
	wantGet(t, second, []string{"a"}, "1")
	sleep(time.Minute)
	wantReadsTooOld(t, second)
	wantGet(t, mustSnapshot(t, e), []string{"a"}, "2")
	for range 2 {
		if err := first.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	wantReadsClosed(t, first)
}

func testSlowScanOfSnapshot(t *testing.T, e kv.Engine, c clock) {
	fill(t, e, "a=1", "b=2")
	var last error
	seen := 0
	for again := true; again; again = !c.sharp() && seen == 1 { // a busy machine may begin too late
		seen = 0
		for _, err := range mustSnapshot(t, e).Scan(t.Context(), kv.Records, kv.Range{}) {
			seen, last = seen+1, err
			c.outlive(t, e)
		}
	}
	wantError(t, "scan", last, kv.ErrTooOld)
	if seen != 2 {
		t.Errorf("the scan yields %d times, want a pair and the error", seen)
	}
}

// testSlowScanOfEngine writes before and behind where a slow scan stands. What it has
// read ahead it may yield as it was.
func testSlowScanOfEngine(t *testing.T, e kv.Engine, clock clock) {
	for _, c := range []struct {
		of   kv.Range
		want string
		// ahead is what it yields if it has read on before.
		ahead string
	}{
		{kv.Range{}, "b c d e f", "b d f"},
		{kv.Range{Reverse: true}, "f e d c b a", "f d b"},
		{kv.Range{Limit: 3}, "b c d", "b d f"},
		{kv.Range{Limit: 2, Reverse: true}, "f e", "f d"},
		{kv.Range{Start: key(alpha(), "c"), End: key(alpha(), "f")}, "d e", "d"},
	} {
		drop := batchOf()
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			drop.Delete(kv.Records, key(alpha(), name))
		}
		mustCommit(t, e, kv.Commit{Guards: []kv.Guard{anyOf(kv.Records, alpha())}, Batch: drop})
		fill(t, e, "b=1", "d=1", "f=1")
		var got []string
		for pair, err := range e.Scan(t.Context(), kv.Records, c.of) {
			if err != nil {
				t.Fatal(err)
			}
			name, _, _ := strings.Cut(show(t, pair), "=")
			got = append(got, name)
			clear(pair.Key) // it is the loop's own
			if len(got) == 1 {
				clock.outlive(t, e)
				fill(t, e, "a=2", "c=2", "e=2")
			}
		}
		if names := strings.Join(got, " "); names != c.want && (clock.sharp() || names != c.ahead) {
			t.Errorf("%+v: scan yields %q, want %q", c.of, names, c.want)
		}
	}
}

// testLongReader reads through a kv.LongReader on both sides of a snapshot's end.
func testLongReader(t *testing.T, e kv.Engine, c clock) {
	fill(t, e, "a=1", "b=1", "c=1")
	l := kv.ReadLong(e)
	wantGet(t, l, []string{"a"}, "1")
	var got []string
	for pair, err := range l.Scan(t.Context(), kv.Records, kv.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, show(t, pair)); len(got) == 1 {
			fill(t, e, "a=2", "b=2")
			wantGet(t, l, []string{"a", "b"}, "1", "1")
			c.outlive(t, e)
			wantGet(t, l, []string{"a", "b"}, "2", "2")
			wantSequence(t, l, ref(kv.Records, alpha()), 2)
		}
	}
	if diff := cmp.Diff([]string{"a=1", "b=2", "c=1"}, got); diff != "" || l.Moments() != 2 {
		t.Errorf("%d moments, scan (-want +got):\n%s", l.Moments(), diff)
	}
	for range 2 {
		if err := l.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	wantReadsClosed(t, l)
}
