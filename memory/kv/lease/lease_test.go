package lease_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

var (
	work  = lease.Tenant("acme", "work")
	notes = kv.Ref{Keyspace: kv.Records, Scope: kv.AgentScope("acme", "notes")}
)

// process is one of several on a store. Its commits wait while it is paused.
type process struct {
	*kvtest.Peer
	writer  *kv.Writer
	leases  *lease.Holder
	ahead   time.Duration // of its clock
	commits atomic.Int64

	mu    sync.Mutex
	pause chan struct{} // guarded by mu; closed when it goes on
}

func (p *process) Commit(ctx context.Context, c kv.Commit) error {
	p.mu.Lock()
	pause := p.pause
	p.mu.Unlock()
	if pause != nil {
		<-pause
	}
	p.commits.Add(1)
	return p.Peer.Commit(ctx, c)
}

func (p *process) Pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pause = make(chan struct{})
}

func (p *process) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.pause)
	p.pause = nil
}

func processes(t *testing.T, ahead time.Duration) (a, b *process) {
	peers := kvtest.Peers(2)
	open := func(peer *kvtest.Peer, ahead time.Duration) *process {
		p := &process{Peer: peer, ahead: ahead}
		p.writer = kv.NewWriter(p, nil)
		p.leases = lease.NewHolder(p, p.writer, &lease.Options{Now: func() time.Time { return time.Now().Add(p.ahead) }})
		t.Cleanup(func() {
			if err := errors.Join(p.leases.Close(), p.writer.Close(), peer.Close()); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		return p
	}
	return open(peers[0], 0), open(peers[1], ahead)
}

// MustDo works under the lease for some time.
func (p *process) MustDo(t *testing.T, pause time.Duration) {
	t.Helper()
	err := p.leases.Do(t.Context(), work, func(ctx context.Context) error {
		time.Sleep(pause)
		return ctx.Err()
	})
	if err != nil {
		t.Fatalf("work: %v", err)
	}
}

func (p *process) MustBeRefused(t *testing.T) {
	t.Helper()
	err := p.leases.Do(t.Context(), work, func(context.Context) error { t.Error("both work"); return nil })
	if !errors.Is(err, lease.ErrHeld) {
		t.Fatalf("work while the other does: %v, want ErrHeld", err)
	}
}

// add adds one to the only note, fenced by the lease of ctx.
func (p *process) add(ctx context.Context) error {
	return p.writer.Do(ctx, lease.Fence(ctx, kv.Request{Refs: []kv.Ref{notes}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		key := notes.Scope.Key('n')
		values, err := tx.Get(ctx, kv.Records, key)
		if err != nil {
			return err
		}
		n, _ := strconv.Atoi(string(values[0])) // none is zero
		tx.Put(kv.Records, key, []byte(strconv.Itoa(n+1)))
		return nil
	}}))
}

func (p *process) MustCount(t *testing.T, want int) {
	t.Helper()
	values, err := p.Get(t.Context(), kv.Records, notes.Scope.Key('n'))
	if n, _ := strconv.Atoi(string(values[0])); err != nil || n != want {
		t.Errorf("counted %d, %v, want %d", n, err, want)
	}
}

func TestHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := processes(t, 0)
		a.MustDo(t, 0)
		b.MustBeRefused(t)
		if err := a.leases.Release(t.Context(), work); err != nil {
			t.Fatal(err)
		}
		b.MustDo(t, 0) // at once
		a.MustBeRefused(t)

		// Nobody gives it back: it runs out, later by what clocks may differ.
		time.Sleep(lease.Term + lease.MaxSkew - time.Second)
		a.MustBeRefused(t)
		time.Sleep(time.Second)
		a.MustDo(t, 0)
		b.MustBeRefused(t)

		// Closing gives it back.
		if err := a.leases.Close(); err != nil {
			t.Fatal(err)
		}
		b.MustDo(t, 0)
	})
}

func TestRenewedWhileItWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := processes(t, 0)
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.MustDo(t, 10*lease.Term)
		}()
		for range 9 {
			time.Sleep(lease.Term)
			b.MustBeRefused(t)
		}
		<-done
		if n := a.commits.Load(); n > 16 {
			t.Errorf("%d commits for ten terms", n)
		}
	})
}

// Calls in a row cost one write a term, and none while there are none.
func TestCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := processes(t, 0)
		for range 100 {
			a.MustDo(t, 0)
		}
		time.Sleep(100 * lease.Term)
		if n := a.commits.Load(); n != 1 {
			t.Errorf("%d commits, want 1", n)
		}
	})
}

// Work that is done from time to time stays with one process, whatever the pause.
func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := processes(t, 0)
		const pause = 10 * time.Minute
		name := work.Every(pause)
		for range 20 {
			if err := a.leases.Do(t.Context(), name, func(context.Context) error { return nil }); err != nil {
				t.Fatal(err)
			}
			time.Sleep(pause / 2)
			if err := b.leases.Do(t.Context(), name, func(context.Context) error { return nil }); !errors.Is(err, lease.ErrHeld) {
				t.Fatalf("work between the turns of the other: %v, want ErrHeld", err)
			}
			time.Sleep(pause / 2)
		}
		if n := a.commits.Load(); n > 11 {
			t.Errorf("%d commits for 20 turns", n)
		}
		time.Sleep(3 * pause)
		if err := b.leases.Do(t.Context(), name, func(context.Context) error { return nil }); err != nil {
			t.Errorf("work when the other is gone: %v", err)
		}
	})
}

// A store that one process has for itself needs no leases.
func TestAlone(t *testing.T) {
	engine := memkv.New(nil)
	defer engine.Close()
	writer := kv.NewWriter(engine, nil)
	defer writer.Close()
	h := lease.NewHolder(engine, writer, nil)
	defer h.Close()
	ran := false
	err := h.Do(t.Context(), work, func(ctx context.Context) error {
		ran = true
		return writer.Do(ctx, lease.Fence(ctx, kv.Request{Blind: []kv.Ref{notes}, Stage: func(context.Context, *kv.Tx) error { return nil }}))
	})
	if err != nil || !ran {
		t.Errorf("ran %v, %v", ran, err)
	}
	for pair, err := range engine.Scan(t.Context(), kv.System, kv.Range{}) {
		t.Errorf("wrote %q, %v", pair.Key, err)
	}
}

// A process that was stopped while it worked finds that another has taken over: its
// context has ended, and what it goes on to write under the lease is refused.
func TestPausedHolderIsFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := processes(t, 0)
		working, resumed := make(chan struct{}), make(chan struct{})
		var fenced, outcome error
		done := make(chan struct{})
		go func() {
			defer close(done)
			outcome = a.leases.Do(t.Context(), work, func(ctx context.Context) error {
				if err := a.add(ctx); err != nil {
					t.Errorf("write under the lease: %v", err)
				}
				close(working)
				<-resumed
				if !errors.Is(context.Cause(ctx), lease.ErrLost) {
					t.Errorf("context ended by %v, want ErrLost", context.Cause(ctx))
				}
				fenced = a.add(context.WithoutCancel(ctx))
				return ctx.Err()
			})
		}()
		<-working
		a.Pause()
		time.Sleep(lease.Term + lease.MaxSkew + time.Second)
		b.MustDo(t, 0)
		if err := b.leases.Do(t.Context(), work, b.add); err != nil {
			t.Errorf("write of the new holder: %v", err)
		}
		a.Resume()
		close(resumed)
		<-done
		if !errors.Is(fenced, lease.ErrLost) {
			t.Errorf("write of the former holder: %v, want ErrLost", fenced)
		}
		if !errors.Is(outcome, lease.ErrLost) {
			t.Errorf("work of the former holder: %v, want ErrLost", outcome)
		}
		b.MustCount(t, 2)
		a.MustBeRefused(t)
	})
}

// A commit that was staged under the lease and is on its way when another takes over
// is refused, too.
func TestCommitUnderWayIsFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := processes(t, 0)
		err := a.leases.Do(t.Context(), work, func(ctx context.Context) error {
			a.Pause()
			time.AfterFunc(2*lease.Term, func() {
				b.MustDo(t, 0)
				a.Resume()
			})
			return a.add(ctx)
		})
		if !errors.Is(err, lease.ErrLost) {
			t.Errorf("write of the former holder: %v, want ErrLost", err)
		}
		b.MustCount(t, 0)
	})
}

// A time that no right clock can have written keeps nobody from the lease for ever.
func TestClockFarAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := processes(t, 24*time.Hour)
		b.MustDo(t, 0)
		a.MustDo(t, 0)
		b.MustDo(t, 0) // it finds that of a run out
	})
}

// Two processes whose clocks differ by less than MaxSkew never work at once, and lose
// none of what they write.
func TestOneWorksAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := processes(t, lease.MaxSkew-time.Second)
		var inside, written atomic.Int64
		var users sync.WaitGroup
		for _, p := range []*process{a, b} {
			users.Go(func() {
				for range 60 {
					err := p.leases.Do(t.Context(), work, func(ctx context.Context) error {
						if n := inside.Add(1); n != 1 {
							t.Errorf("%d work at once", n)
						}
						defer inside.Add(-1)
						time.Sleep(rand.N(2 * lease.Term))
						err := p.add(ctx)
						if err == nil {
							written.Add(1)
						}
						return err
					})
					if err != nil && !errors.Is(err, lease.ErrHeld) {
						t.Errorf("work: %v", err)
					}
					if rand.N(2) == 0 {
						if err := p.leases.Release(t.Context(), work); err != nil {
							t.Errorf("release: %v", err)
						}
					}
					time.Sleep(rand.N(lease.Term))
				}
			})
		}
		users.Wait()
		if written.Load() < 10 {
			t.Errorf("only %d writes", written.Load())
		}
		a.MustCount(t, int(written.Load()))
	})
}
