package turn_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/context/turn"
)

func mustEnter(tb testing.TB, p *turn.Pool, tenant, owner string) *turn.Work {
	tb.Helper()
	w, err := p.Enter(tenant, owner)
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

// Who has reached a bound is refused; others are not, and leaving makes room.
func TestBounds(t *testing.T) {
	p := turn.NewPool(&turn.Options{Max: 5, MaxTenant: 4, MaxOwner: 2})
	busy := func(tenant, owner, whose string) {
		t.Helper()
		_, err := p.Enter(tenant, owner)
		var b *turn.BusyError
		if !errors.As(err, &b) || b.Whose != whose || !errors.Is(err, turn.ErrBusy) {
			t.Errorf("%s of %s: %v", owner, tenant, err)
		}
	}
	first := mustEnter(t, p, "t", "a")
	mustEnter(t, p, "t", "a")
	busy("t", "a", "the agent")
	mustEnter(t, p, "t", "b")
	mustEnter(t, p, "t", "c")
	busy("t", "d", "the tenant")
	mustEnter(t, p, "u", "a")
	busy("u", "b", "the server")
	first.Leave()
	mustEnter(t, p, "t", "a")
}

// Turns go round by tenant and then by owner, however many each has waiting.
func TestTurnsAreFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := turn.NewPool(&turn.Options{Running: 1, Quantum: time.Millisecond})
		ctx, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
		defer cancel()
		var mu sync.Mutex
		got := map[string]time.Duration{}
		run := func(tenant, owner string) {
			w := mustEnter(t, p, tenant, owner)
			defer w.Leave()
			for err := w.Begin(ctx); err == nil; err = w.Pause(ctx) {
				time.Sleep(time.Millisecond)
				mu.Lock()
				got[tenant+owner] += time.Millisecond
				mu.Unlock()
			}
		}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { run("t", "a") })
		}
		all.Go(func() { run("t", "b") })
		all.Go(func() { run("u", "a") })
		all.Wait()
		for who, want := range map[string]time.Duration{"ta": 300, "tb": 300, "ua": 600} {
			if share := got[who] / time.Millisecond; share < want-30 || share > want+30 {
				t.Errorf("%s got %v of 1200 ms, want about %d", who, got[who], want)
			}
		}
	})
}

// No more run at a time than may, cancelled ones among them, and all turns come
// back.
func TestTurnsAreBounded(t *testing.T) {
	p := turn.NewPool(&turn.Options{Running: 2, Quantum: time.Microsecond})
	var running, most atomic.Int64
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for k := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				w := mustEnter(t, p, "t", fmt.Sprint(i))
				if (i+k)%3 == 0 {
					go cancel()
				}
				begun := time.Now()
				for err := w.Begin(ctx); err == nil; err = w.Pause(ctx) {
					n := running.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
						continue
					}
					running.Add(-1)
					if time.Since(begun) > 20*time.Microsecond {
						break
					}
				}
				w.Leave()
				cancel()
			}
		})
	}
	all.Wait()
	if most.Load() > 2 {
		t.Errorf("%d ran at a time", most.Load())
	}
	for range 2 {
		if err := mustEnter(t, p, "t", "a").Begin(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// Who waits for nobody waits for no turn.
func TestBeginEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := turn.NewPool(&turn.Options{Running: 1})
		w := mustEnter(t, p, "t", "a")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.Begin(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("begin of an ended context: %v", err)
		}
		w.Leave()
	})
}
