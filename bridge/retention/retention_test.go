package retention

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/tiers"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// world is a store with a clock, and a sweeper that looks when it is told to.
type world struct {
	Parts
	now    time.Time
	engine *memkv.DB
	gone   []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{now: time.Unix(1_000_000, 0), engine: memkv.New(nil)}
	now := func() time.Time { return w.now }
	w.Engine, w.Writer = w.engine, kv.NewWriter(w.engine, nil)
	w.Memory = memory.New(w.engine, w.Writer, &memory.Options{Now: now, SweepEvery: -1})
	w.Log = session.New(w.engine, w.Writer, &session.Options{Now: now})
	w.Blobs = blob.New(w.engine, w.Writer, &blob.Options{Now: now, Sessions: w.Log, CollectEvery: -1})
	w.Tiers = tiers.New(w.Log, w.Memory, w.Writer, nil)
	w.Gone = func(scope kv.Scope, id string) { w.gone = append(w.gone, scope.Tenant+"/"+scope.Owner+"/"+id) }
	t.Cleanup(func() {
		if err := errors.Join(w.Memory.Close(), w.Blobs.Close(), w.Writer.Close(), w.engine.Close()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// sweep looks once, as a server that has just been started.
func (w *world) sweep(t *testing.T, records, sessions time.Duration) Stats {
	t.Helper()
	s := New(w.Parts, &Options{Records: records, Sessions: sessions, Now: func() time.Time { return w.now }})
	defer s.Close()
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s.Stats()
}

func (w *world) save(t *testing.T, scope kv.Scope, r record.Record) record.Record {
	t.Helper()
	saved, err := w.Memory.Save(t.Context(), scope, r, "")
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

func (w *world) say(t *testing.T, scope kv.Scope, id string) {
	t.Helper()
	if _, err := w.Log.AppendMessages(t.Context(), scope, id, []session.Message{{Role: session.User, Content: "x"}}, ""); err != nil {
		t.Fatal(err)
	}
}

func (w *world) result(t *testing.T, scope kv.Scope, id, path string) {
	t.Helper()
	stored, err := w.Blobs.Add(t.Context(), scope, []byte(path))
	if err != nil {
		t.Fatal(err)
	}
	err = w.Writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{w.Blobs.Ref(scope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		_, err := w.Blobs.Stage(ctx, tx, scope, stored, blob.Entry{Path: path, SessionID: id})
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
}

const day = 24 * time.Hour

// TestRecords: what was neither saved nor changed for the age goes; what is pinned stays.
func TestRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	scopes := []kv.Scope{kv.AgentScope("t", "a"), kv.AgentScope("t", "b"), kv.AgentScope("u", "a")}
	kept := map[string]bool{}
	for i, scope := range scopes {
		w.save(t, scope, record.Record{Text: fmt.Sprint("old ", i)})
		kept[w.save(t, scope, record.Record{Text: fmt.Sprint("pinned ", i), Pinned: true}).ID] = true
		changed := w.save(t, scope, record.Record{Text: fmt.Sprint("changed ", i)})
		w.now = w.now.Add(10 * day)
		if _, err := w.Memory.Update(t.Context(), scope, memory.Update{ID: changed.ID, Fields: memory.TextField, Values: record.Record{Text: fmt.Sprint("new words ", i)}}, ""); err != nil {
			t.Fatal(err)
		}
		kept[changed.ID] = true
		kept[w.save(t, scope, record.Record{Text: fmt.Sprint("young ", i)}).ID] = true
		w.now = w.now.Add(-10 * day)
	}
	w.now = w.now.Add(5 * day)
	if s := w.sweep(t, 0, day); s.Records != 0 {
		t.Errorf("%+v", s)
	}
	w.now = w.now.Add(6 * day) // the old are 11 days old
	if s := w.sweep(t, 10*day, 0); s.Records != 3 || s.Failing || !s.Swept.Equal(w.now) {
		t.Errorf("%+v", s)
	}
	for _, scope := range scopes {
		n := 0
		for r, err := range record.All(t.Context(), w.engine, scope) {
			if err != nil || !kept[r.ID] {
				t.Errorf("%s keeps %q, %v", scope, r.Text, err)
			}
			n++
		}
		if n != 3 {
			t.Errorf("%s keeps %d records", scope, n)
		}
	}
}

// TestOneSweeper: the sweeper that knows when the next record is due looks again when one was
// changed meanwhile.
func TestOneSweeper(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	scope := kv.AgentScope("t", "a")
	s := New(w.Parts, &Options{Records: 10 * day, Now: func() time.Time { return w.now }})
	defer s.Close()
	deleted := func() int64 {
		if err := s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		return s.Stats().Records
	}
	w.save(t, scope, record.Record{Text: "first"})
	if got := deleted(); got != 0 {
		t.Error(got)
	}
	w.now = w.now.Add(9 * day)
	w.save(t, scope, record.Record{Text: "second"})
	if got := deleted(); got != 0 {
		t.Error(got)
	}
	w.now = w.now.Add(2 * day)
	if got := deleted(); got != 1 {
		t.Errorf("%d are deleted, of which the first is due", got)
	}
	w.now = w.now.Add(8 * day)
	if got := deleted(); got != 1 {
		t.Errorf("%d are deleted before they are due", got)
	}
	w.now = w.now.Add(2 * day)
	if got := deleted(); got != 2 {
		t.Errorf("%d are deleted, of which all are due", got)
	}
}

// TestSessions: a session goes with its results when nothing was recorded in it for the age,
// unless it is in use.
func TestSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	scope := kv.AgentScope("t", "a")
	for _, id := range []string{"busy", "old", "older", "worked"} {
		w.say(t, scope, id)
		w.result(t, scope, id, "of-"+id)
	}
	if _, err := w.Log.AddTask(t.Context(), scope, session.Task{SessionID: "task", Action: "x"}); err != nil {
		t.Fatal(err)
	}
	w.save(t, scope, record.Record{Text: "what was learned", SessionID: "old"})
	w.now = w.now.Add(10 * day)
	w.say(t, scope, "worked")
	w.say(t, scope, "young")
	w.now = w.now.Add(day)
	w.Busy = func(_ context.Context, _ kv.Scope, id string) (bool, error) { return id == "busy", nil }
	if s := w.sweep(t, 0, 10*day); s.Sessions != 3 || s.Records != 0 || s.Results != 2 {
		t.Errorf("%+v", s)
	}
	slices.Sort(w.gone)
	if want := []string{"t/a/old", "t/a/older", "t/a/task"}; !slices.Equal(w.gone, want) {
		t.Errorf("%q are gone, want %q", w.gone, want)
	}
	var left []string
	for id, err := range w.Log.Sessions(t.Context(), scope, "") {
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, id)
	}
	if want := []string{"busy", "worked", "young"}; !slices.Equal(left, want) {
		t.Errorf("%q are left, want %q", left, want)
	}
	for path, want := range map[string]bool{"of-old": false, "of-older": false, "of-busy": true, "of-worked": true} {
		if _, err := w.Blobs.Lookup(t.Context(), scope, path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	if s := w.sweep(t, 0, 10*day); s.Sessions != 0 {
		t.Errorf("once more: %+v", s)
	}
}

// TestBareSessions: a session in which nothing was ever recorded goes, too, when its settings and
// its working state are that old, and one of an older version, which has no times, stays.
func TestBareSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, scope := t.Context(), kv.AgentScope("t", "a")
	configure := func(id string) {
		t.Helper()
		if _, err := w.Log.Configure(ctx, scope, id, func(c session.Config) (session.Config, error) {
			c.MaxTokens++
			return c, nil
		}, "", nil); err != nil {
			t.Fatal(err)
		}
	}
	plan := func(id string) {
		t.Helper()
		goal := "g"
		if _, err := w.Log.UpdateWorking(ctx, scope, id, session.WorkingUpdate{Change: working.Change{Goal: &goal}}); err != nil {
			t.Fatal(err)
		}
	}
	configure("configured")
	plan("planned")
	configure("both")
	plan("both")
	configure("again")
	plan("planned again")
	configure("said")
	w.say(t, scope, "said")
	for tag, value := range map[byte]string{'o': "\x50\x01", 'g': "\x0a\x01g"} { // a budget, a goal
		err := w.Writer.Do(ctx, kv.Request{Refs: []kv.Ref{w.Log.Ref(scope)}, Stage: func(_ context.Context, tx *kv.Tx) error {
			tx.Put(kv.Log, kv.AppendEscaped(scope.Key(tag), "timeless "+string(tag)), []byte(value))
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	w.now = w.now.Add(10 * day)
	configure("again")
	plan("planned again")
	if s := w.sweep(t, 0, 11*day); s.Sessions != 0 {
		t.Errorf("%+v", s)
	}
	w.now = w.now.Add(2 * day)
	if s := w.sweep(t, 0, 11*day); s.Sessions != 4 {
		t.Errorf("%+v", s)
	}
	slices.Sort(w.gone)
	if want := []string{"t/a/both", "t/a/configured", "t/a/planned", "t/a/said"}; !slices.Equal(w.gone, want) {
		t.Errorf("%q are gone, want %q", w.gone, want)
	}
	var left []string
	for id, err := range merged(w.Log.ConfiguredSessions(ctx, scope, ""), w.Log.WorkingSessions(ctx, scope, "")) {
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, id)
	}
	if want := []string{"again", "planned again", "timeless g", "timeless o"}; !slices.Equal(left, want) {
		t.Errorf("%q are left, want %q", left, want)
	}
	w.say(t, scope, "timeless o")
	w.now = w.now.Add(20 * day)
	if s := w.sweep(t, 0, 11*day); s.Sessions != 3 {
		t.Errorf("%+v", s)
	}
}

// TestFailure: what fails in one scope keeps nothing else, and is reported until it works.
func TestFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, agent := range []string{"a", "b", "c"} {
		w.say(t, kv.AgentScope("t", agent), "old")
	}
	w.now = w.now.Add(11 * day)
	broken := errors.New("broken")
	w.Busy = func(_ context.Context, scope kv.Scope, _ string) (bool, error) {
		if scope.Owner == "b" {
			return false, broken
		}
		return false, nil
	}
	s := New(w.Parts, &Options{Sessions: 10 * day, Now: func() time.Time { return w.now }})
	defer s.Close()
	if err := s.Sweep(t.Context()); !errors.Is(err, broken) {
		t.Error(err)
	}
	if got := s.Stats(); got.Sessions != 2 || !got.Failing || !got.Swept.IsZero() {
		t.Errorf("%+v", got)
	}
	s.Busy = nil
	if err := s.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	if got := s.Stats(); got.Sessions != 3 || got.Failing || !got.Swept.Equal(w.now) {
		t.Errorf("%+v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Sweep(ctx); !errors.Is(err, context.Canceled) || s.Stats().Failing {
		t.Errorf("%v, %+v", err, s.Stats())
	}
}

// TestWork: without an age nothing works; with one the first look comes soon, and the next ones
// as often as the age says, an hour at most.
func TestWork(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ records, sessions, every time.Duration }{
		{0, 0, 0}, {-1, -1, 0}, {time.Millisecond, 0, sweepPause}, {time.Minute, day, time.Minute}, {0, 300 * day, sweepEvery},
	} {
		synctest.Test(t, func(t *testing.T) {
			engine := memkv.New(nil)
			writer := kv.NewWriter(engine, nil)
			s := New(Parts{Engine: engine, Writer: writer}, &Options{Records: row.records, Sessions: row.sessions})
			began := time.Now()
			if row.every == 0 {
				time.Sleep(100 * day)
				synctest.Wait()
				if got := s.Stats(); !got.Swept.IsZero() {
					t.Errorf("%+v: %+v", row, got)
				}
			} else {
				for looks := range time.Duration(5) {
					at := began.Add(min(row.every, firstSweep) + looks*row.every)
					time.Sleep(time.Until(at))
					synctest.Wait()
					if got := s.Stats(); !got.Swept.Equal(at) {
						t.Errorf("%+v: look %d ended %v, want %v", row, looks, got.Swept.Sub(began), at.Sub(began))
					}
				}
			}
			if err := errors.Join(s.Close(), s.Close(), writer.Close(), engine.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFailedLookIsRepeated: a look that failed is made again soon, and later each time it fails
// again, but as often as the others at least.
func TestFailedLookIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		engine := kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{Read: 1, Repeat: true})
		writer := kv.NewWriter(engine, nil)
		s := New(Parts{Engine: engine, Writer: writer}, &Options{Records: 30 * day})
		for range 20 {
			time.Sleep(sweepEvery)
		}
		synctest.Wait()
		if _, looks := engine.Calls(); looks < 25 || looks > 35 || !s.Stats().Failing {
			t.Errorf("%d looks that fail in 20 hours, %+v", looks, s.Stats())
		}
		engine.Replan(kvtest.FailurePlan{})
		time.Sleep(sweepEvery)
		synctest.Wait()
		if s.Stats().Failing {
			t.Error("no look was made")
		}
		engine.Replan(kvtest.FailurePlan{Read: 1})
		time.Sleep(sweepEvery + sweepAgain)
		synctest.Wait()
		if _, looks := engine.Calls(); looks < 2 || s.Stats().Failing {
			t.Errorf("a look that failed is not made again: %d looks, %+v", looks, s.Stats())
		}
		if err := errors.Join(s.Close(), writer.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
}

// TestMerged: two sequences in order are one, each once, up to the first error or the end of
// the reader.
func TestMerged(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	sequence := func() (iter.Seq2[string, error], map[string]bool) {
		all := map[string]bool{}
		for range random.IntN(6) {
			all[fmt.Sprint(random.IntN(9))] = true
		}
		return func(yield func(string, error) bool) {
			for _, id := range slices.Sorted(maps.Keys(all)) {
				if !yield(id, nil) {
					return
				}
			}
		}, all
	}
	for range 500 {
		a, inA := sequence()
		b, inB := sequence()
		maps.Copy(inA, inB)
		want := slices.Sorted(maps.Keys(inA))
		var got []string
		stop := random.IntN(12)
		for id, err := range merged(a, b) {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, id); len(got) == stop {
				break
			}
		}
		if stop > 0 {
			want = want[:min(stop, len(want))]
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
	}
	broken := errors.New("broken")
	failing := func(yield func(string, error) bool) { _ = yield("a", nil) && yield("", broken) }
	fine := func(yield func(string, error) bool) { _ = yield("b", nil) && yield("c", nil) }
	for _, all := range []iter.Seq2[string, error]{merged(failing, fine), merged(fine, failing)} {
		var got []string
		var failed error
		for id, err := range all {
			if failed = err; err == nil {
				got = append(got, id)
			}
		}
		if !errors.Is(failed, broken) || !slices.Equal(got, []string{"a"}) {
			t.Errorf("%q, %v", got, failed)
		}
	}
}
