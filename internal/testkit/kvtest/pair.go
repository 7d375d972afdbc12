package kvtest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// PairFactory makes two engines over one empty store, as two processes have them. The
// suite closes them. An engine that only one process can open may be given twice.
type PairFactory func(tb testing.TB) (a, b kv.Engine)

// RunPair checks what two processes on one store may rely on.
func RunPair(t *testing.T, factory PairFactory) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(t *testing.T, a, b kv.Engine)
	}{
		{"each reads what the other wrote", testPairReads},
		{"a conflict across", testPairConflict},
		{"snapshots stay", testPairSnapshot},
		{"writers of both lose no update", testPairWriters},
		{"one takes a lease", testPairLease},
		{"an unknown outcome is settled by the other", testPairSettle},
		{"moves are told", testPairMoved},
		{"a slow receiver misses nothing", testPairSlowReceiver},
		{"closing one leaves the other", testPairClose},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := factory(t)
			t.Cleanup(func() {
				for _, e := range []kv.Engine{a, b} {
					if err := e.Close(); err != nil && !errors.Is(err, kv.ErrClosed) {
						t.Errorf("close: %v", err)
					}
				}
			})
			c.run(t, a, b)
		})
	}
}

func testPairReads(t *testing.T, a, b kv.Engine) {
	for n := range uint64(300) {
		writer, reader := a, b
		if n%2 == 1 {
			writer, reader = b, a
		}
		value := fmt.Sprint(n)
		mustCommit(t, writer, put(at(kv.Records, alpha(), n), "a="+value))
		wantGet(t, reader, []string{"a"}, value)
		wantSequence(t, reader, ref(kv.Records, alpha()), n+1)
	}
}

func testPairConflict(t *testing.T, a, b kv.Engine) {
	mustCommit(t, a, put(at(kv.Records, alpha(), 0), "a=1"))
	wantError(t, "commit at what the other has raised", b.Commit(t.Context(), put(at(kv.Records, alpha(), 0), "a=2")), kv.ErrConflict)
	mustCommit(t, b, put(at(kv.Records, alpha(), 1), "a=3"))
	wantError(t, "commit at what the other has raised", a.Commit(t.Context(), put(at(kv.Records, alpha(), 1), "a=4")), kv.ErrConflict)
	wantGet(t, a, []string{"a"}, "3")
	mustCommit(t, a, put(at(kv.Log, alpha(), 0), "l=1")) // another keyspace of the scope
}

func testPairSnapshot(t *testing.T, a, b kv.Engine) {
	fill(t, a, "a=1")
	s, err := b.Snapshot(t.Context(), ref(kv.Records, alpha()))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fill(t, a, "a=2")
	wantGet(t, s, []string{"a"}, "1")
	if got := s.Sequences()[0]; got != 1 {
		t.Errorf("sequence %d, want 1", got)
	}
	wantGet(t, b, []string{"a"}, "2")
}

// testPairWriters has the writers of two processes add to one counter.
func testPairWriters(t *testing.T, a, b kv.Engine) {
	const clients, each = 8, 15
	r := ref(kv.Records, alpha())
	var users sync.WaitGroup
	for _, e := range []kv.Engine{a, b} {
		w := kv.NewWriter(e, nil)
		defer w.Close()
		for range clients {
			users.Go(func() {
				for range each {
					err := w.Do(t.Context(), kv.Request{Refs: []kv.Ref{r}, Stage: func(ctx context.Context, tx *kv.Tx) error {
						values, err := tx.Get(ctx, kv.Records, key(alpha(), "n"))
						if err != nil {
							return err
						}
						n, _ := strconv.Atoi(string(values[0])) // none is zero
						tx.Put(kv.Records, key(alpha(), "n"), []byte(strconv.Itoa(n+1)))
						return nil
					}})
					if err != nil {
						t.Errorf("add one: %v", err)
					}
				}
			})
		}
	}
	users.Wait()
	for _, e := range []kv.Engine{a, b} {
		wantGet(t, e, []string{"n"}, strconv.Itoa(2*clients*each))
	}
}

// testPairLease has two processes take a key by its value, again and again, with
// blind guards and with exact ones.
func testPairLease(t *testing.T, a, b kv.Engine) {
	for round := range 20 {
		var before []byte
		if round > 0 {
			values, err := a.Get(t.Context(), kv.Records, key(alpha(), "lease"))
			if err != nil {
				t.Fatal(err)
			}
			before = values[0]
		}
		var users sync.WaitGroup
		var mu sync.Mutex
		var winners []string
		for i, e := range []kv.Engine{a, b, a, b} {
			users.Go(func() {
				holder := fmt.Sprintf("%d.%d", round, i)
				c := watching("lease", before, "lease="+holder)
				if round%2 == 1 {
					c.Guards[0] = at(kv.Records, alpha(), uint64(round/2))
				}
				if err := e.Commit(t.Context(), c); err != nil {
					wantError(t, "take the lease", err, kv.ErrConflict)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				winners = append(winners, holder)
			})
		}
		users.Wait()
		if len(winners) != 1 {
			t.Fatalf("round %d: winners %v, want one", round, winners)
		}
		wantGet(t, b, []string{"lease"}, winners[0])
	}
}

func testPairSettle(t *testing.T, a, b kv.Engine) {
	c := put(at(kv.Records, alpha(), 0), "a=1")
	c.Token = 7
	mustCommit(t, a, c)
	if err := kv.Settle(t.Context(), b, c); err != nil {
		t.Errorf("settle the writes: %v", err)
	}
	other := put(at(kv.Records, alpha(), 0), "a=2")
	other.Token = 8
	wantError(t, "settle what another came before", kv.Settle(t.Context(), b, other), kv.ErrConflict)
	wantGet(t, b, []string{"a"}, "1")
}

// listen collects an engine's notifications until all of refs have moved, or anything. Meet
// runs inside the loop at the first move.
func listen(t *testing.T, e kv.Notifier, refs map[kv.Ref]bool, meet func()) (done <-chan struct{}) {
	t.Helper()
	moves, finished := e.Moved(t.Context()), make(chan struct{})
	go func() {
		defer close(finished)
		for move := range moves {
			if meet != nil {
				meet()
				meet = nil
			}
			if move.Any {
				return
			}
			if delete(refs, move.Ref); len(refs) == 0 {
				return
			}
		}
		t.Errorf("%d refs are not told of", len(refs))
	}()
	return finished
}

func testPairMoved(t *testing.T, a, b kv.Engine) {
	n, ok := b.(kv.Notifier)
	if !ok {
		t.Skip("the engine has its store for itself")
	}
	want := map[kv.Ref]bool{ref(kv.Records, alpha()): true, ref(kv.Log, alph()): true}
	done := listen(t, n, want, nil)
	mustCommit(t, b, put(at(kv.System, alpha(), 0), "s=1")) // its own
	mustCommit(t, a, put(anyOf(kv.Blobs, alpha()), "b=1"))  // raises nothing
	mustCommit(t, a, put(at(kv.Records, alpha(), 0), "a=1"))
	mustCommit(t, a, put(at(kv.Log, alph(), 0)))
	<-done
}

func testPairSlowReceiver(t *testing.T, a, b kv.Engine) {
	n, ok := b.(kv.Notifier)
	if !ok {
		t.Skip("the engine has its store for itself")
	}
	const scopes = 2000
	want := make(map[kv.Ref]bool)
	for i := range scopes {
		want[ref(kv.Events, kv.AgentScope("acme", fmt.Sprint(i)))] = true
	}
	met, moved := make(chan struct{}), make(chan struct{})
	done := listen(t, n, want, func() { close(met); <-moved })
	for i := range scopes {
		mustCommit(t, a, put(at(kv.Events, kv.AgentScope("acme", fmt.Sprint(i)), 0), "e=1"))
		if i == 0 {
			<-met
		}
	}
	close(moved)
	<-done
}

func testPairClose(t *testing.T, a, b kv.Engine) {
	if a == b {
		t.Skip("the engine has its store for itself")
	}
	fill(t, a, "a=1")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	wantReadsClosed(t, a)
	wantGet(t, b, []string{"a"}, "1")
	fill(t, b, "a=2")
}
