package answers_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/answers"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// store is one in which requests are answered.
type store struct {
	*memkv.DB // nil in a process
	writer    *kv.Writer
}

func newStore() store {
	engine := memkv.New(nil)
	return store{engine, kv.NewWriter(engine, nil)}
}

func (a store) close(tb testing.TB) {
	tb.Helper()
	if err := errors.Join(a.writer.Close(), a.DB.Close()); err != nil {
		tb.Fatal(err)
	}
}

func digest(content string) [32]byte { return sha256.Sum256([]byte(content)) }

// ask answers a request with its content, unless it was answered before.
func (a store) ask(tb testing.TB, ref kv.Ref, id, content string) (replayed bool, err error) {
	tb.Helper()
	err = a.writer.Do(tb.Context(), kv.Request{Refs: []kv.Ref{ref}, Stage: func(ctx context.Context, tx *kv.Tx) (err error) {
		var answer []byte
		answer, replayed, err = kv.LookupOnce(ctx, tx, ref, id, digest(content))
		switch {
		case err != nil:
			return err
		case replayed && string(answer) != content:
			return fmt.Errorf("the answer to %q is %q", content, answer)
		case !replayed:
			kv.StageOnce(tx, ref, id, digest(content), []byte(content), time.Now())
		}
		return nil
	}})
	return replayed, err
}

// Answers are kept for a day and then forgotten, of many requests, scopes and
// keyspaces, and nothing beside them.
func TestAnsweredAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newStore()
		defer a.close(t)
		keeper := answers.NewSweeper(a.DB, a.writer, nil)
		defer keeper.Close()
		var refs []kv.Ref
		for _, ks := range []kv.Keyspace{kv.Records, kv.Log, kv.Blobs, kv.System} {
			for _, agent := range []string{"a", "b"} {
				refs = append(refs, kv.Ref{Keyspace: ks, Scope: kv.AgentScope("t", agent)})
			}
		}
		events := kv.Ref{Keyspace: kv.Events, Scope: kv.Scope{Tenant: "t", Kind: kv.OwnerTopic, Owner: "news"}}
		refs = append(refs, events)
		const many = 600 // more than one commit deletes
		mustAsk := func(ref kv.Ref, id, content string, want bool) {
			t.Helper()
			if replayed, err := a.ask(t, ref, id, content); err != nil || replayed != want {
				t.Errorf("%s of %v is replayed %v, want %v: %v", id, ref, replayed, want, err)
			}
		}
		for _, ref := range refs {
			for n := range many {
				mustAsk(ref, fmt.Sprint(n), "first", false)
			}
			err := a.writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{ref}, Stage: func(_ context.Context, tx *kv.Tx) error {
				tx.Put(ref.Keyspace, ref.Scope.Key('p', []byte("a")), make([]byte, 100))
				tx.Put(ref.Keyspace, ref.Scope.Key('r', []byte("b")), make([]byte, 100))
				tx.Put(ref.Keyspace, ref.Scope.Key('q', []byte("short")), []byte("?"))
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(12 * time.Hour)
		mustAsk(refs[0], "late", "first", false)
		time.Sleep(12*time.Hour - time.Second)
		for _, ref := range refs {
			mustAsk(ref, "7", "first", true)
			if _, err := a.ask(t, ref, "8", "other"); !errors.Is(err, kv.ErrRequestReused) {
				t.Errorf("after a day: %v", err)
			}
		}
		time.Sleep(7 * time.Hour)
		mustAsk(refs[0], "late", "first", true)
		mustAsk(events, "7", "first", true)
		for _, ref := range refs[:len(refs)-1] {
			mustAsk(ref, "8", "other", false)
			left := 0
			for _, err := range a.Scan(t.Context(), ref.Keyspace, kv.Prefix(ref.Scope.AppendPrefix(nil))) {
				if err != nil {
					t.Fatal(err)
				}
				left++
			}
			if want := 4; left != want && (ref != refs[0] || left != want+1) {
				t.Errorf("%d keys are left of %v", left, ref)
			}
		}
	})
}

// An id that is taken again while the old answer is being forgotten keeps the new
// one, and the time of a server that keeps answers for ever has no effect.
func TestForgettingSparesTheNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newStore()
		defer a.close(t)
		ref := kv.Ref{Keyspace: kv.Log, Scope: kv.AgentScope("t", "a")}
		if _, err := a.ask(t, ref, "r", "first"); err != nil {
			t.Fatal(err)
		}
		forever := answers.NewSweeper(a.DB, a.writer, &answers.Options{For: -1})
		defer forever.Close()
		time.Sleep(48 * time.Hour)
		if replayed, err := a.ask(t, ref, "r", "first"); err != nil || !replayed {
			t.Errorf("kept for ever: %v, %v", replayed, err)
		}
		// The view that the sweep decides by is older than the answer that it finds.
		stale := staleReader{a.DB, ref, func() {
			err := a.writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{ref}, Stage: func(_ context.Context, tx *kv.Tx) error {
				kv.StageOnce(tx, ref, "r", digest("second"), []byte("second"), time.Now())
				return nil
			}})
			if err != nil {
				t.Error(err)
			}
		}}
		keeper := answers.NewSweeper(stale, a.writer, nil)
		if n, err := keeper.Sweep(t.Context()); n != 0 || err != nil {
			t.Errorf("%d forgotten, %v", n, err)
		}
		if err := keeper.Close(); err != nil {
			t.Error(err)
		}
		if replayed, err := a.ask(t, ref, "r", "second"); err != nil || !replayed {
			t.Errorf("the new answer: %v, %v", replayed, err)
		}
	})
}

// staleReader lets something happen behind the back of a scan of answers.
type staleReader struct {
	*memkv.DB
	ref    kv.Ref
	behind func()
}

func (s staleReader) Scan(ctx context.Context, ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		for pair, err := range s.DB.Scan(ctx, ks, r) {
			if !yield(pair, err) {
				return
			}
		}
		if string(r.Start) >= string(s.ref.Scope.Key('q')) && ks == s.ref.Keyspace {
			s.behind()
		}
	}
}

// process is one of two on a store. It counts its commits that delete something.
type process struct {
	*kvtest.Peer
	requests store
	sweeper  *answers.Sweeper
	deletes  atomic.Int64
}

func (p *process) Commit(ctx context.Context, c kv.Commit) error {
	if slices.ContainsFunc(c.Batch.Ops(), func(op kv.Op) bool { return op.Delete }) {
		p.deletes.Add(1)
	}
	return p.Peer.Commit(ctx, c)
}

// Of two processes on a store one deletes the answers of a tenant, and the other goes on
// when that one has ended.
func TestOneProcessSweeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var both []*process
		for _, peer := range kvtest.Peers(2) {
			p := &process{Peer: peer}
			p.requests.writer = kv.NewWriter(p, nil)
			p.sweeper = answers.NewSweeper(p, p.requests.writer, nil)
			t.Cleanup(func() {
				if err := errors.Join(p.sweeper.Close(), p.requests.writer.Close(), p.Peer.Close()); err != nil {
					t.Error(err)
				}
			})
			both = append(both, p)
		}
		asked := 0
		ask := func(days int) {
			for range days * 24 {
				asked++
				ref := kv.Ref{Keyspace: kv.Log, Scope: kv.AgentScope("t", fmt.Sprint("agent ", asked%3))}
				if _, err := both[asked%2].requests.ask(t, ref, fmt.Sprint(asked), "x"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
			}
		}
		ask(4)
		busy, idle := both[0], both[1]
		if idle.deletes.Load() > 0 {
			busy, idle = idle, busy
		}
		if n, m := busy.deletes.Load(), idle.deletes.Load(); n == 0 || m != 0 {
			t.Fatalf("one process deleted %d times and the other %d, want only one to", n, m)
		}
		if err := busy.sweeper.Close(); err != nil {
			t.Fatal(err)
		}
		ask(1)
		if idle.deletes.Load() == 0 {
			t.Error("nobody went on when the first had ended")
		}
	})
}
