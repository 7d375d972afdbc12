package kv_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

var (
	counterRef = kv.Ref{Keyspace: kv.Log, Scope: kv.AgentScope("t", "counter")}
	otherRef   = kv.Ref{Keyspace: kv.Index, Scope: kv.AgentScope("t", "counter")}
)

// gate is an engine that counts commits and can hold them up.
type gate struct {
	kv.Engine
	commits atomic.Int64
	hold    chan struct{} // nil lets everything through
	entered chan struct{}
	fail    atomic.Pointer[error]
}

func (g *gate) Commit(ctx context.Context, c kv.Commit) error {
	g.commits.Add(1)
	if g.hold != nil {
		g.entered <- struct{}{}
		<-g.hold
	}
	if err := g.fail.Load(); err != nil {
		return *err
	}
	return g.Engine.Commit(ctx, c)
}

func newWriter(t *testing.T, engine kv.Engine, opts *kv.WriterOptions) *kv.Writer {
	t.Helper()
	w := kv.NewWriter(engine, opts)
	t.Cleanup(func() { w.Close() })
	return w
}

// increment adds one to a counter, reading and writing it in the stage.
func increment(ref kv.Ref) kv.Stage {
	key := ref.Scope.Key('n')
	return func(ctx context.Context, tx *kv.Tx) error {
		values, err := tx.Get(ctx, ref.Keyspace, key)
		if err != nil {
			return err
		}
		var n uint64
		if values[0] != nil {
			n = binary.BigEndian.Uint64(values[0])
		}
		tx.Put(ref.Keyspace, key, binary.BigEndian.AppendUint64(nil, n+1))
		return nil
	}
}

func mustCount(t *testing.T, r kv.Reader, ref kv.Ref) uint64 {
	t.Helper()
	values, err := r.Get(t.Context(), ref.Keyspace, ref.Scope.Key('n'))
	if err != nil {
		t.Fatal(err)
	}
	if values[0] == nil {
		return 0
	}
	return binary.BigEndian.Uint64(values[0])
}

func TestCallsThatWaitShareOneCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiting = 50
		g := &gate{Engine: memkv.New(nil), hold: make(chan struct{}), entered: make(chan struct{}, 1000)}
		w := newWriter(t, g, nil)
		var wg sync.WaitGroup
		do := func() {
			if err := w.Do(context.Background(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: increment(counterRef)}); err != nil {
				t.Error(err)
			}
		}
		wg.Go(do)
		<-g.entered // the first commit is on its way: all others now wait
		for range waiting {
			wg.Go(do)
		}
		synctest.Wait()
		close(g.hold)
		wg.Wait()
		if got := mustCount(t, g, counterRef); got != waiting+1 {
			t.Errorf("counter = %d, want %d", got, waiting+1)
		}
		// The second may have begun before the others came.
		if got := g.commits.Load(); got > 3 {
			t.Errorf("%d calls took %d commits, want them joined", waiting+1, got)
		}
	})
}

func TestNoUpdateIsLost(t *testing.T) {
	const callers, rounds = 16, 50
	engine := memkv.New(nil)
	// Two writers on one engine stand for two processes: they can't see each
	// other's turns and meet in conflicts.
	writers := []*kv.Writer{newWriter(t, engine, nil), newWriter(t, engine, nil)}
	sets := [][]kv.Ref{{counterRef}, {otherRef, counterRef}, {counterRef, otherRef}}
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for j := range rounds {
				req := kv.Request{Refs: sets[(i+j)%len(sets)], Stage: increment(counterRef)}
				if err := writers[i%2].Do(context.Background(), req); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := mustCount(t, engine, counterRef); got != callers*rounds {
		t.Errorf("counter = %d, want %d", got, callers*rounds)
	}
}

func TestAFailingStageLeavesNothing(t *testing.T) {
	engine := memkv.New(nil)
	w := newWriter(t, engine, nil)
	boom := errors.New("boom")
	tests := []struct {
		name  string
		stage kv.Stage
		want  error
	}{
		{"its own error", func(_ context.Context, tx *kv.Tx) error {
			tx.Put(kv.Log, counterRef.Scope.Key('x'), []byte("half"))
			return boom
		}, boom},
		{"a key outside its refs", func(_ context.Context, tx *kv.Tx) error {
			tx.Put(kv.Log, kv.AgentScope("t", "stranger").Key('x'), nil)
			return nil
		}, kv.ErrUnguarded},
		{"an oversized value", func(_ context.Context, tx *kv.Tx) error {
			tx.Put(kv.Log, counterRef.Scope.Key('x'), make([]byte, kv.MaxValueBytes+1))
			return nil
		}, kv.ErrLimit},
		{"a reserved key", func(_ context.Context, tx *kv.Tx) error {
			tx.Put(kv.Log, kv.SequenceKey(counterRef.Scope), nil)
			return nil
		}, kv.ErrBadKey},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := w.Do(t.Context(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: tt.stage})
			if !errors.Is(err, tt.want) {
				t.Errorf("err = %v, want %v", err, tt.want)
			}
			values, _ := engine.Get(t.Context(), kv.Log, counterRef.Scope.Key('x'))
			if values[0] != nil {
				t.Error("a failed stage left a key behind")
			}
		})
	}
	err := w.Do(t.Context(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: func(context.Context, *kv.Tx) error { panic("oh") }})
	if err == nil {
		t.Error("a panicking stage gave no error")
	}
	if err := w.Do(t.Context(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: increment(counterRef)}); err != nil {
		t.Errorf("the writer stopped working after failures: %v", err)
	}
}

func TestOneFailureSparesItsNeighbours(t *testing.T) {
	g := &gate{Engine: memkv.New(nil), hold: make(chan struct{}), entered: make(chan struct{}, 1000)}
	w := newWriter(t, g, nil)
	boom := errors.New("boom")
	var wg sync.WaitGroup
	var failed atomic.Int64
	start := func(i int) {
		err := w.Do(context.Background(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: func(ctx context.Context, tx *kv.Tx) error {
			if err := increment(counterRef)(ctx, tx); err != nil {
				return err
			}
			if i%3 == 1 {
				return boom
			}
			return nil
		}})
		if errors.Is(err, boom) {
			failed.Add(1)
		} else if err != nil {
			t.Error(err)
		}
	}
	wg.Go(func() { start(0) })
	<-g.entered
	for i := 1; i < 30; i++ {
		wg.Go(func() { start(i) })
	}
	close(g.hold)
	wg.Wait()
	if got, want := mustCount(t, g, counterRef), uint64(30-failed.Load()); got != want || failed.Load() != 10 {
		t.Errorf("counter = %d with %d failures, want %d with 10", got, failed.Load(), want)
	}
}

func TestAFailedCommitFailsEveryCallOfIt(t *testing.T) {
	g := &gate{Engine: memkv.New(nil)}
	w := newWriter(t, g, nil)
	full := kv.ErrFull
	g.fail.Store(&full)
	if err := w.Do(t.Context(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: increment(counterRef)}); !errors.Is(err, kv.ErrFull) {
		t.Errorf("err = %v, want ErrFull", err)
	}
	g.fail.Store(nil)
	if err := w.Do(t.Context(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: increment(counterRef)}); err != nil {
		t.Fatal(err)
	}
	if got := mustCount(t, g, counterRef); got != 1 {
		t.Errorf("counter = %d, want 1", got)
	}
}

func TestEndlessConflictsEnd(t *testing.T) {
	g := &gate{Engine: memkv.New(nil)}
	w := newWriter(t, g, nil)
	var conflict error = &kv.ConflictError{Guard: kv.Guard{Ref: counterRef}}
	g.fail.Store(&conflict)
	if err := w.Do(t.Context(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: increment(counterRef)}); !errors.Is(err, kv.ErrConflict) {
		t.Errorf("err = %v, want ErrConflict", err)
	}
}

func TestAWaitingCallCanLeave(t *testing.T) {
	g := &gate{Engine: memkv.New(nil), hold: make(chan struct{}), entered: make(chan struct{}, 1000)}
	w := newWriter(t, g, &kv.WriterOptions{MaxWaiting: 1})
	req := kv.Request{Refs: []kv.Ref{counterRef}, Stage: increment(counterRef)}
	staged := make(chan struct{}, 2)
	signalling := kv.Request{Refs: req.Refs, Stage: func(ctx context.Context, tx *kv.Tx) error {
		staged <- struct{}{}
		return increment(counterRef)(ctx, tx)
	}}
	answers := make(chan error, 2)
	go func() { answers <- w.Do(context.Background(), signalling) }()
	<-g.entered // the first commit is on its way
	<-staged
	go func() { answers <- w.Do(context.Background(), signalling) }()
	<-staged // the second is staged on top of it
	ctx, cancel := context.WithCancel(t.Context())
	leaving := make(chan error, 1)
	go func() {
		err := w.Do(ctx, req)
		for errors.Is(err, kv.ErrLimit) { // the call below held the only place
			err = w.Do(ctx, req)
		}
		leaving <- err
	}()
	var refused error
	for !errors.Is(refused, kv.ErrLimit) { // until the one that leaves waits, this takes its place
		short, stop := context.WithTimeout(t.Context(), time.Millisecond)
		refused = w.Do(short, req)
		stop()
	}
	cancel()
	if err := <-leaving; !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want Canceled", err)
	}
	close(g.hold)
	for range 2 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if got := mustCount(t, g, counterRef); got != 2 {
		t.Errorf("counter = %d, want 2: a call that left must not count", got)
	}
}

// What is staged on top of a commit under way must not outlive it when it
// fails, not even when somebody else has raised the sequence meanwhile.
func TestStagingOnAFailedCommitIsRepeated(t *testing.T) {
	g := &gate{Engine: memkv.New(nil), hold: make(chan struct{}), entered: make(chan struct{}, 1000)}
	w := newWriter(t, g, nil)
	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		first <- w.Do(context.Background(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: increment(counterRef)})
	}()
	<-g.entered
	staged := make(chan struct{}, 10)
	go func() {
		second <- w.Do(context.Background(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: func(ctx context.Context, tx *kv.Tx) error {
			staged <- struct{}{}
			return increment(counterRef)(ctx, tx)
		}})
	}()
	<-staged
	// Somebody else raises the sequence to where the first commit would have.
	if err := g.Engine.Commit(t.Context(), kv.Commit{Guards: []kv.Guard{{Ref: counterRef, Any: true}}}); err != nil {
		t.Fatal(err)
	}
	full := kv.ErrFull
	g.fail.Store(&full)
	g.hold <- struct{}{}
	if err := <-first; !errors.Is(err, kv.ErrFull) {
		t.Errorf("first: %v, want ErrFull", err)
	}
	g.fail.Store(nil)
	close(g.hold)
	if err := <-second; err != nil {
		t.Errorf("second: %v", err)
	}
	if got := mustCount(t, g, counterRef); got != 1 {
		t.Errorf("counter = %d, want 1: the second call counted what was never written", got)
	}
}

func TestBlindWritesWaitForNobody(t *testing.T) {
	engine := memkv.New(nil)
	w := newWriter(t, engine, nil)
	staging, goOn := make(chan struct{}, 10), make(chan struct{})
	held := make(chan error, 1)
	go func() {
		held <- w.Do(context.Background(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: func(ctx context.Context, tx *kv.Tx) error {
			staging <- struct{}{}
			<-goOn
			return increment(counterRef)(ctx, tx)
		}})
	}()
	<-staging // somebody has the ref to himself
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			key := counterRef.Scope.Key('b', []byte(fmt.Sprint(i)))
			err := w.Do(context.Background(), kv.Request{Blind: []kv.Ref{counterRef}, Lazy: true, Stage: func(_ context.Context, tx *kv.Tx) error {
				tx.Put(kv.Log, key, []byte("x"))
				return nil
			}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	close(goOn)
	if err := <-held; err != nil {
		t.Error(err)
	}
	sequences, err := engine.Sequence(t.Context(), counterRef)
	if err != nil || sequences[0] != 1 {
		t.Errorf("sequence = %v, %v; want 1: a blind write does not raise it", sequences, err)
	}
}

// beside is an engine on which a blind write to counterRef always comes just
// before a commit, as it does beside uploads that never pause.
type beside struct {
	kv.Engine
	commits int
}

func (b *beside) Commit(ctx context.Context, c kv.Commit) error {
	b.commits++
	blind := &kv.Batch{}
	blind.Put(kv.Log, counterRef.Scope.Key('b'), []byte{byte(b.commits)})
	if err := b.Engine.Commit(ctx, kv.Commit{Guards: []kv.Guard{{Ref: counterRef, Any: true}}, Batch: blind, Lazy: true}); err != nil {
		return err
	}
	return b.Engine.Commit(ctx, c)
}

func TestBlindWritesStarveNobody(t *testing.T) {
	engine := &beside{Engine: memkv.New(nil)}
	w := newWriter(t, engine, nil)
	for range 10 {
		if err := w.Do(t.Context(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: increment(counterRef)}); err != nil {
			t.Fatalf("after %d commits: %v", engine.commits, err)
		}
	}
	if engine.commits != 10 || mustCount(t, engine, counterRef) != 10 {
		t.Errorf("%d commits for a count of %d, want 10 for 10", engine.commits, mustCount(t, engine, counterRef))
	}
}

// TestWatchedKeyIsStagedAgain deletes a key because of what it holds, while a
// blind write gives it another value.
func TestWatchedKeyIsStagedAgain(t *testing.T) {
	engine := memkv.New(nil)
	w := newWriter(t, engine, nil)
	key := counterRef.Scope.Key('w')
	put := func(value string) {
		t.Helper()
		err := w.Do(t.Context(), kv.Request{Blind: []kv.Ref{counterRef}, Stage: func(_ context.Context, tx *kv.Tx) error {
			tx.Put(kv.Log, key, []byte(value))
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	put("old")
	var seen []string
	err := w.Do(t.Context(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		value, err := tx.Watch(ctx, kv.Log, key)
		if err != nil {
			return err
		}
		if seen = append(seen, string(value)); len(seen) == 1 {
			put("new")
		}
		if string(value) == "old" {
			tx.Delete(kv.Log, key)
		}
		tx.Put(kv.Log, counterRef.Scope.Key('n'), []byte("done"))
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	values, err := engine.Get(t.Context(), kv.Log, key)
	if err != nil || string(values[0]) != "new" || !slices.Equal(seen, []string{"old", "new"}) {
		t.Errorf("key = %q, %v, seen as %q; want the new value kept", values, err, seen)
	}
}

// TestWatchedKeyOfTheSameCommit reads by Watch what was staged before it, in a
// commit under way and in its own.
func TestWatchedKeyOfTheSameCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{Engine: memkv.New(nil), hold: make(chan struct{}), entered: make(chan struct{}, 1000)}
		w := newWriter(t, g, nil)
		key := counterRef.Scope.Key('n')
		add := func(ctx context.Context, tx *kv.Tx) error {
			value, err := tx.Watch(ctx, kv.Log, key)
			if err != nil {
				return err
			}
			n := uint64(0)
			if value != nil {
				n = binary.BigEndian.Uint64(value)
			}
			tx.Put(kv.Log, key, binary.BigEndian.AppendUint64(nil, n+1))
			return nil
		}
		var wg sync.WaitGroup
		for range 30 {
			wg.Go(func() {
				if err := w.Do(context.Background(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: add}); err != nil {
					t.Error(err)
				}
			})
		}
		<-g.entered
		synctest.Wait()
		close(g.hold)
		wg.Wait()
		if got := mustCount(t, g, counterRef); got != 30 {
			t.Errorf("counter = %d, want 30", got)
		}
	})
}

func TestClosedWriterRefuses(t *testing.T) {
	w := kv.NewWriter(memkv.New(nil), nil)
	w.Close()
	if err := w.Do(t.Context(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: increment(counterRef)}); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("err = %v, want ErrClosed", err)
	}
}

func TestOnceAnswersARequestOnce(t *testing.T) {
	w := newWriter(t, memkv.New(nil), nil)
	ask := func(id string, digest byte) (answer string, replayed bool, err error) {
		err = w.Do(t.Context(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: func(ctx context.Context, tx *kv.Tx) error {
			kept, again, err := kv.LookupOnce(ctx, tx, counterRef, id, [32]byte{digest})
			if answer, replayed = string(kept), again; again || err != nil {
				return err
			}
			answer = fmt.Sprintf("answer %d", digest)
			kv.StageOnce(tx, counterRef, id, [32]byte{digest}, []byte(answer), time.Unix(1, 0))
			return nil
		}})
		return answer, replayed, err
	}
	tests := []struct {
		name     string
		id       string
		digest   byte
		answer   string
		replayed bool
		err      error
	}{
		{"first", "a", 1, "answer 1", false, nil},
		{"again", "a", 1, "answer 1", true, nil},
		{"other content", "a", 2, "", false, kv.ErrRequestReused},
		{"other id", "b", 2, "answer 2", false, nil},
		{"no id is always new", "", 3, "answer 3", false, nil},
		{"no id, again", "", 3, "answer 3", false, nil},
		{"too long", string(make([]byte, kv.MaxRequestIDBytes+1)), 3, "", false, kv.ErrLimit},
	}
	for _, tt := range tests {
		answer, replayed, err := ask(tt.id, tt.digest)
		if answer != tt.answer || replayed != tt.replayed || !errors.Is(err, tt.err) {
			t.Errorf("%s: got %q, %v, %v; want %q, %v, %v", tt.name, answer, replayed, err, tt.answer, tt.replayed, tt.err)
		}
	}
}

// A stage that finds its snapshot too old is run again on another one, as are those
// behind it; one that never comes to an end gets the error.
func TestStagesThatFindTheirSnapshotTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memkv.New(nil)
		defer engine.Close()
		w := newWriter(t, engine, nil)
		slow := func(runs *int, times int) kv.Stage {
			return func(ctx context.Context, tx *kv.Tx) error {
				if *runs++; *runs <= times {
					time.Sleep(kv.SnapshotLife)
					synctest.Wait()
				}
				return increment(counterRef)(ctx, tx)
			}
		}
		once, always := 0, 0
		if err := w.Do(t.Context(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: slow(&once, 1)}); err != nil || once != 2 {
			t.Errorf("slow once: %v after %d runs, want nil after 2", err, once)
		}
		if err := w.Do(t.Context(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: slow(&always, 99)}); !errors.Is(err, kv.ErrTooOld) || always != 3 {
			t.Errorf("slow always: %v after %d runs, want ErrTooOld after 3", err, always)
		}
		if got := mustCount(t, engine, counterRef); got != 1 {
			t.Errorf("counter = %d, want 1", got)
		}
	})
}

// The first commit to a ref reads its sequence along with the snapshot.
func TestAWriterReadsSequencesWithItsSnapshot(t *testing.T) {
	engine := kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{})
	w := newWriter(t, engine, nil)
	for range 2 {
		err := w.Do(t.Context(), kv.Request{Refs: []kv.Ref{counterRef, otherRef}, Stage: func(_ context.Context, tx *kv.Tx) error {
			tx.Put(kv.Log, counterRef.Scope.Key('a'), nil)
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if commits, reads := engine.Calls(); commits != 2 || reads != 2 {
		t.Errorf("%d reads for %d commits, want one each", reads, commits)
	}
}
