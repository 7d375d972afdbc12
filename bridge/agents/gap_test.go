package agents_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// MustTake takes a gap that is there.
func MustTake(tb testing.TB, d *agents.Directory, id string) agents.Gap {
	tb.Helper()
	g, found, err := d.TakeGap(tb.Context(), tenant, id)
	if err != nil || !found {
		tb.Fatalf("gap of %q: %v, %v", id, found, err)
	}
	return g
}

// noGap fails the test when an agent has a gap.
func noGap(tb testing.TB, d *agents.Directory, id string) {
	tb.Helper()
	if g, found, err := d.TakeGap(tb.Context(), tenant, id); err != nil || found {
		tb.Errorf("gap of %q: %+v, %v, want none", id, g, err)
	}
}

// end ends a link as a stream's handler does.
func end(tb testing.TB, d *agents.Directory, link *agents.Link, abnormal bool) {
	tb.Helper()
	link.Close()
	if err := d.EndGap(tb.Context(), link, abnormal); err != nil {
		tb.Error(err)
	}
}

// mark says that a link was given one event.
func mark(d *agents.Directory, link *agents.Link, topic string, sequence uint64, id string) {
	d.MarkGap(link, agents.Gap{Delivered: map[string]uint64{topic: sequence}, RecentIDs: []string{id}})
}

func delivered(g agents.Gap) string { return fmt.Sprint(g.Delivered, g.RecentIDs) }

// The gap of an abnormal end is taken once; an end as it should be leaves none.
func TestGap(t *testing.T) {
	bubble(t, nil, func(t *testing.T, d *agents.Directory) {
		noGap(t, d, "one")
		link := MustOpen(t, d, "one")
		since := time.Now().Add(-time.Hour).UTC()
		want := agents.Gap{Since: since, Delivered: map[string]uint64{"a": 3, "b": 0}, RecentIDs: []string{"x", "y"}}
		d.MarkGap(link, agents.Gap{Delivered: map[string]uint64{"old": 1}})
		d.MarkGap(link, want)
		pass(time.Second)
		want.Ended = time.Now().UTC()
		end(t, d, link, true)
		pass(time.Minute)
		if diff := cmp.Diff(want, MustTake(t, d, "one")); diff != "" {
			t.Errorf("gap (-want +got):\n%s", diff)
		}
		noGap(t, d, "one")
		for _, marked := range []bool{true, false} {
			link = MustOpen(t, d, "one")
			if marked {
				d.MarkGap(link, want)
				pass(time.Second)
			}
			end(t, d, link, !marked)
			noGap(t, d, "one")
		}
	})
}

// MarkSent and MarkSince change what MarkGap has set.
func TestMarkSent(t *testing.T) {
	bubble(t, nil, func(t *testing.T, d *agents.Directory) {
		link := MustOpen(t, d, "one")
		since := time.Now().UTC()
		d.MarkGap(link, agents.Gap{Since: since, Delivered: map[string]uint64{"a": 1, "b": 1}, RecentIDs: []string{"w"}})
		pass(time.Second)
		d.MarkSent(link, "a", 2, "x")
		d.MarkSent(link, "c", 9, "y")
		d.MarkSent(link, "c", 8, "y")
		d.MarkSent(link, "", 0, "z")
		d.MarkSince(link, since.Add(time.Minute))
		d.MarkSince(link, since.Add(time.Second))
		end(t, d, link, true)
		g := MustTake(t, d, "one")
		if got, want := delivered(g), "map[a:2 b:1 c:9] [w x y y z]"; got != want || !g.Since.Equal(since.Add(time.Minute)) {
			t.Errorf("got %s since %v, want %s", got, g.Since, want)
		}
	})
}

// What a gap remembers is bounded; the newest stays.
func TestGapIsBounded(t *testing.T) {
	d := MustDirectory(t, nil, nil)
	link := MustOpen(t, d, "one")
	const events = 5 * agents.MaxGapTopics
	for i := range events {
		d.MarkSent(link, fmt.Sprint("topic.", i), uint64(i), fmt.Sprint(i))
	}
	d.MarkSent(link, strings.Repeat("t", agents.MaxGapTopicBytes+1), 1, strings.Repeat("i", agents.MaxGapIDBytes+1))
	end(t, d, link, true)
	g := MustTake(t, d, "one")
	if len(g.Delivered) != agents.MaxGapTopics || len(g.RecentIDs) != agents.MaxGapIDs {
		t.Errorf("%d topics and %d ids", len(g.Delivered), len(g.RecentIDs))
	}
	for i := events - agents.MaxGapIDs; i < events; i++ {
		if g.Delivered[fmt.Sprint("topic.", i)] != uint64(i) || g.RecentIDs[i-events+agents.MaxGapIDs] != fmt.Sprint(i) {
			t.Fatalf("event %d is forgotten", i)
		}
	}
}

// An agent that is back before the end of its old stream was noticed takes over
// from it; that one's end then changes nothing.
func TestTakeOver(t *testing.T) {
	for _, abnormal := range []bool{true, false} {
		bubble(t, nil, func(t *testing.T, d *agents.Directory) {
			older := MustOpen(t, d, "one")
			mark(d, older, "a", 7, "x")
			newer := MustOpen(t, d, "one")
			if got := delivered(MustTake(t, d, "one")); got != "map[a:7] [x]" {
				t.Errorf("taken over: %s", got)
			}
			mark(d, older, "a", 8, "y")
			noGap(t, d, "one")
			mark(d, newer, "a", 9, "z")
			pass(time.Second)
			mark(d, older, "a", 10, "late")
			end(t, d, older, abnormal)
			end(t, d, newer, true)
			if got := delivered(MustTake(t, d, "one")); got != "map[a:9] [z]" {
				t.Errorf("of the new stream: %s", got)
			}
		})
	}
}

// A new stream that takes nothing but is marked has the gap as well.
func TestNewerStreamHasTheGap(t *testing.T) {
	d := MustDirectory(t, nil, nil)
	older, newer := MustOpen(t, d, "one"), MustOpen(t, d, "one")
	mark(d, older, "a", 1, "x")
	mark(d, newer, "b", 2, "y")
	mark(d, older, "a", 3, "z")
	end(t, d, older, false)
	end(t, d, newer, true)
	if got := delivered(MustTake(t, d, "one")); got != "map[b:2] [y]" {
		t.Errorf("got %s", got)
	}
}

// A link that is closed without a word on how it ended counts as ended with its
// last mark.
func TestClosedWithoutAWord(t *testing.T) {
	bubble(t, nil, func(t *testing.T, d *agents.Directory) {
		link := MustOpen(t, d, "one")
		mark(d, link, "a", 1, "x")
		marked := time.Now().UTC()
		pass(time.Second)
		link.Close()
		pass(10 * time.Minute)
		if g := MustTake(t, d, "one"); !g.Ended.Equal(marked) {
			t.Errorf("ended %v, want %v", g.Ended, marked)
		}
	})
}

// A gap nobody takes is forgotten; that of a stream that stays open is not,
// however quiet it is.
func TestOldGaps(t *testing.T) {
	engine := &countingEngine{Engine: memkv.New(nil)}
	synctest.Test(t, func(t *testing.T) {
		d := MustDirectory(t, engine, nil)
		for i := range 3 {
			link := MustOpen(t, d, fmt.Sprint("gone-", i))
			mark(d, link, "a", 1, "x")
			end(t, d, link, true)
		}
		quiet := MustOpen(t, d, "quiet")
		mark(d, quiet, "a", 1, "x")
		pass(agents.DefaultKeepGaps - time.Minute)
		MustTake(t, d, "gone-0")
		pass(2 * time.Minute)
		noGap(t, d, "gone-1")
		pass(10 * time.Minute)
		if n := engine.keys(t, "gaps"); n != 1 {
			t.Errorf("%d gaps are stored, want that of the open stream", n)
		}
		quiet.Close()
		pass(2 * time.Minute)
		MustTake(t, d, "quiet")
	})
}

// An empty id names nobody.
func TestGapWithoutAnID(t *testing.T) {
	d := MustDirectory(t, nil, nil)
	link := MustOpen(t, d, "")
	mark(d, link, "a", 1, "x")
	end(t, d, link, true)
	noGap(t, d, "")
}

// Every other id may have a gap.
func TestGapOfAnyID(t *testing.T) {
	d := MustDirectory(t, nil, nil)
	for _, id := range []string{"\x00", "a\x00b", strings.Repeat("x", 5000), "\xff"} {
		link := MustOpen(t, d, id)
		mark(d, link, "a", 1, id[:1])
		end(t, d, link, true)
	}
	for _, id := range []string{"\x00", "a\x00b", strings.Repeat("x", 5000), "\xff"} {
		MustTake(t, d, id)
	}
}

// One commit stores what all streams were given meanwhile, none comes sooner
// than 10 ms after the last, and none when nothing has changed.
func TestGapsAreStoredTogether(t *testing.T) {
	engine := &countingEngine{Engine: memkv.New(nil)}
	synctest.Test(t, func(t *testing.T) {
		d := MustDirectory(t, engine, nil)
		var links []*agents.Link
		for i := range 50 {
			links = append(links, MustOpen(t, d, fmt.Sprint(i)))
		}
		for round := range 100 {
			for _, link := range links {
				mark(d, link, "a", uint64(round+1), "x")
			}
			time.Sleep(time.Millisecond)
		}
		pass(time.Second)
		lazy, synced := engine.commits()
		if lazy < 8 || lazy > 12 || synced != 0 {
			t.Errorf("%d lazy commits and %d synced ones in 100 ms, want one each 10 ms", lazy, synced)
		}
		for _, link := range links {
			mark(d, link, "a", 100, "x")
		}
		pass(time.Second)
		if again, _ := engine.commits(); again != lazy {
			t.Errorf("%d commits without a change", again-lazy)
		}
		engine.slow(time.Millisecond)
		var ends sync.WaitGroup
		for _, link := range links {
			ends.Go(func() { end(t, d, link, true) })
		}
		ends.Wait()
		if after, _ := engine.commits(); after-lazy > 3 {
			t.Errorf("%d commits for 50 ends at once", after-lazy)
		}
	})
}

// Of many that take a gap one gets it.
func TestTakenOnce(t *testing.T) {
	d := MustDirectory(t, nil, nil)
	for round := range 20 {
		link := MustOpen(t, d, "one")
		mark(d, link, "a", 1, "x")
		var wg sync.WaitGroup
		var mu sync.Mutex
		taken := 0
		for i := range 8 {
			wg.Go(func() {
				if i == 0 && round%2 == 0 {
					end(t, d, link, true)
				}
				_, found, err := d.TakeGap(t.Context(), tenant, "one")
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				if found {
					taken++
				}
			})
		}
		wg.Wait()
		if taken != 1 {
			t.Fatalf("round %d: taken %d times", round, taken)
		}
		link.Close()
	}
}

// A store that fails is told to those who wait for it, and what is open is tried
// again.
func TestStoreFails(t *testing.T) {
	engine := &countingEngine{Engine: memkv.New(nil)}
	synctest.Test(t, func(t *testing.T) {
		d := MustDirectory(t, engine, nil)
		ending, staying := MustOpen(t, d, "ending"), MustOpen(t, d, "staying")
		engine.fail(errors.New("no disk"))
		mark(d, ending, "a", 1, "x")
		mark(d, staying, "a", 1, "x")
		if err := d.EndGap(t.Context(), ending, true); err == nil || !strings.Contains(err.Error(), "no disk") {
			t.Errorf("end: %v", err)
		}
		if err := d.SaveState(t.Context(), tenant, "one", agents.State{}); err == nil {
			t.Error("a state was saved")
		}
		pass(5 * time.Second)
		engine.fail(nil)
		pass(5 * time.Second)
		if n := engine.keys(t, "gaps"); n != 1 {
			t.Errorf("%d gaps are stored, want the one that is open", n)
		}
		noGap(t, d, "ending")
		staying.Close()
	})
}

// Where the store refuses one tenant's gaps the others' are still stored, and
// nobody waits in vain.
func TestOneTenantsStoreFails(t *testing.T) {
	engine := &countingEngine{Engine: memkv.New(nil)}
	synctest.Test(t, func(t *testing.T) {
		d := MustDirectory(t, engine, nil)
		engine.fail(errors.New("no disk"))
		engine.slow(time.Millisecond)
		var ends sync.WaitGroup
		for _, tenant := range []string{"a", "b", "c"} {
			link, err := d.Open(tenant, "one", agents.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			d.MarkGap(link, agents.Gap{RecentIDs: []string{"x"}})
			ends.Go(func() {
				if err := d.EndGap(t.Context(), link, true); err == nil {
					t.Errorf("%s: stored", tenant)
				}
			})
		}
		ends.Wait()
	})
}

// A caller that gives up gets its ctx's error; its word counts all the same.
func TestEndGapGivesUp(t *testing.T) {
	d := MustDirectory(t, nil, nil)
	link := MustOpen(t, d, "one")
	mark(d, link, "a", 1, "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.EndGap(ctx, link, true); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	MustTake(t, d, "one")
}

// countingEngine counts commits, and fails them on demand.
type countingEngine struct {
	kv.Engine

	mu           sync.Mutex // guards the fields below
	lazy, synced int
	failure      error
	delay        time.Duration
}

// Commit is kv.Engine's.
func (e *countingEngine) Commit(ctx context.Context, c kv.Commit) error {
	e.mu.Lock()
	failure, delay := e.failure, e.delay
	if c.Lazy {
		e.lazy++
	} else {
		e.synced++
	}
	e.mu.Unlock()
	if failure != nil {
		return failure
	}
	if delay > 0 {
		time.Sleep(delay) // fake time: for tests in a bubble
	}
	return e.Engine.Commit(ctx, c)
}

func (e *countingEngine) commits() (lazy, synced int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lazy, e.synced
}

func (e *countingEngine) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failure = err
}

func (e *countingEngine) slow(delay time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.delay = delay
}

// keys counts the keys of a system scope.
func (e *countingEngine) keys(tb testing.TB, owner string) int {
	tb.Helper()
	n := 0
	scope := kv.Scope{Tenant: tenant, Kind: kv.OwnerSystem, Owner: owner}
	for _, err := range e.Scan(tb.Context(), kv.System, kv.Prefix(scope.AppendPrefix(nil))) {
		if err != nil {
			tb.Fatal(err)
		}
		n++
	}
	return n
}

func BenchmarkMarkSent(b *testing.B) {
	d := MustDirectory(b, nil, nil)
	link := MustOpen(b, d, "one")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d.MarkSent(link, "topic", uint64(i), "01JD3P9W8V5T7Q2R4S6X8Z0A1B")
	}
}
