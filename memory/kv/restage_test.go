package kv_test

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// What is staged on top of a commit under way must not outlive it when a
// conflict makes that commit come out otherwise: here the first call finds, when
// it is staged again, that somebody else has forbidden it.
func TestStagingOnACommitThatChangedIsRepeated(t *testing.T) {
	veto := counterRef.Scope.Key('v')
	errVeto := errors.New("vetoed")
	for _, writes := range []bool{true, false} {
		g := &gate{Engine: memkv.New(nil), hold: make(chan struct{}), entered: make(chan struct{}, 1000)}
		w := newWriter(t, g, nil)
		first, second := make(chan error, 1), make(chan error, 1)
		go func() {
			first <- w.Do(context.Background(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: func(ctx context.Context, tx *kv.Tx) error {
				if values, err := tx.Get(ctx, kv.Log, veto); err != nil || values[0] != nil {
					return errors.Join(errVeto, err)
				}
				return increment(counterRef)(ctx, tx)
			}})
		}()
		<-g.entered
		staged := make(chan struct{}, 10)
		var seen uint64
		go func() {
			second <- w.Do(context.Background(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: func(ctx context.Context, tx *kv.Tx) error {
				staged <- struct{}{}
				values, err := tx.Get(ctx, kv.Log, counterRef.Scope.Key('n'))
				if seen = 0; err == nil && values[0] != nil {
					seen = binary.BigEndian.Uint64(values[0])
				}
				if err != nil || !writes {
					return err
				}
				return increment(counterRef)(ctx, tx)
			}})
		}()
		<-staged
		// Somebody else raises the sequence to where the first commit would have.
		other := &kv.Batch{}
		other.Put(kv.Log, veto, nil)
		if err := g.Engine.Commit(t.Context(), kv.Commit{Guards: []kv.Guard{{Ref: counterRef}}, Batch: other}); err != nil {
			t.Fatal(err)
		}
		close(g.hold)
		if err := <-first; !errors.Is(err, errVeto) {
			t.Errorf("writes %v: first: %v, want the veto", writes, err)
		}
		if err := <-second; err != nil {
			t.Errorf("writes %v: second: %v", writes, err)
		}
		want := uint64(0)
		if writes {
			want = 1
		}
		if got := mustCount(t, g, counterRef); got != want || seen != 0 {
			t.Errorf("writes %v: the second call saw %d and left %d, want 0 and %d: it built on what was never written", writes, seen, got, want)
		}
	}
}

// lateSnapshots is a gate that holds snapshots up, too.
type lateSnapshots struct {
	*gate
	snapshot chan chan struct{} // each gets what to wait for
}

func (l *lateSnapshots) Snapshot(ctx context.Context, refs ...kv.Ref) (kv.Snapshot, error) {
	select {
	case wait := <-l.snapshot:
		<-wait
	default:
	}
	return l.Engine.Snapshot(ctx, refs...)
}

// A call that only reads is not guarded by a commit, so it must not see the
// commit under way before it on top of something later.
func TestReadingOnACommitUnderWaySeesOneMoment(t *testing.T) {
	a, b := counterRef.Scope.Key('a'), counterRef.Scope.Key('b')
	put := func(value string, keys ...[]byte) *kv.Batch {
		batch := &kv.Batch{}
		for _, key := range keys {
			batch.Put(kv.Log, key, []byte(value))
		}
		return batch
	}
	l := &lateSnapshots{
		gate:     &gate{Engine: memkv.New(nil), hold: make(chan struct{}), entered: make(chan struct{}, 1000)},
		snapshot: make(chan chan struct{}, 1),
	}
	w := newWriter(t, l, nil)
	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		first <- w.Do(context.Background(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: func(_ context.Context, tx *kv.Tx) error {
			tx.Put(kv.Log, a, []byte("1"))
			return nil
		}})
	}()
	<-l.entered
	late := make(chan struct{})
	l.snapshot <- late
	var seen string
	go func() {
		second <- w.Do(context.Background(), kv.Request{Refs: []kv.Ref{counterRef}, Stage: func(ctx context.Context, tx *kv.Tx) error {
			values, err := tx.Get(ctx, kv.Log, a, b)
			seen = string(values[0]) + string(values[1])
			return err
		}})
	}()
	for len(l.snapshot) > 0 {
		runtime.Gosched() // until the second call is about to take its snapshot
	}
	close(l.hold)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	guards := []kv.Guard{{Ref: counterRef, Any: true}}
	if err := l.Engine.Commit(t.Context(), kv.Commit{Guards: guards, Batch: put("2", a, b)}); err != nil {
		t.Fatal(err)
	}
	close(late)
	if err := <-second; err != nil || seen != "22" {
		t.Errorf("saw %q, %v; want both as the later commit left them", seen, err)
	}
}

// A call whose context ends while it waits for refs that others have leaves,
// also when it is the one that waits for all of its queue.
func TestALeadingCallCanLeaveWhileItWaitsForItsTurn(t *testing.T) {
	g := &gate{Engine: memkv.New(nil), hold: make(chan struct{}), entered: make(chan struct{}, 1000)}
	w := newWriter(t, g, nil)
	answers := make(chan error, 3)
	do := func(ctx context.Context, refs ...kv.Ref) {
		answers <- w.Do(ctx, kv.Request{Refs: refs, Stage: increment(counterRef)})
	}
	go do(context.Background(), counterRef)
	<-g.entered // its commit is on its way
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	go do(ctx, otherRef, counterRef)
	select {
	case err := <-answers:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v, want DeadlineExceeded", err)
		}
	case <-time.After(time.Minute):
		t.Error("the call does not leave")
	}
	go do(context.Background(), otherRef, counterRef)
	go func() {
		answers <- w.Do(context.Background(), kv.Request{Refs: []kv.Ref{otherRef}, Stage: increment(otherRef)})
	}()
	close(g.hold)
	for range 3 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if got := mustCount(t, g, counterRef); got != 2 {
		t.Errorf("counter = %d, want 2: the call that left must not count", got)
	}
}
