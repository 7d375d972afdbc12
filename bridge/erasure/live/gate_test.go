package live

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

func scopes() []kv.Scope {
	return []kv.Scope{kv.AgentScope("t", "a"), kv.AgentScope("t", "b"), {Tenant: "t", Kind: kv.OwnerUser, Owner: "a"}}
}

// In any order of calls that come and go and of erasures: a closed scope lets nobody in, ends
// those inside once, and drain returns when they have left, and no sooner. Other scopes are as
// open as before.
func TestGate(t *testing.T) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(chance.Seed(t), 0))
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			var g Gate
			inside, ended := make(map[kv.Scope]int), make(map[kv.Scope]int)
			for range 1 + dice.IntN(20) {
				scope := scopes()[dice.IntN(3)]
				told := 0
				v, err := g.Enter(scope, func(err error) {
					if told++; told > 1 || !errors.Is(err, ErrErasing) {
						t.Errorf("told %d times: %v", told, err)
					}
					ended[scope]++
				})
				if err != nil {
					t.Fatal(err)
				}
				inside[scope]++
				time.AfterFunc(time.Duration(1+dice.IntN(1000))*time.Millisecond, v.Leave)
			}
			erased := scopes()[dice.IntN(3)]
			g.close(erased)
			if !g.Closed(erased) || ended[erased] != inside[erased] {
				t.Errorf("%d of %d were told", ended[erased], inside[erased])
			}
			for _, scope := range scopes() {
				v, err := g.Enter(scope, func(error) {})
				if closed := scope == erased; closed != errors.Is(err, ErrErasing) || closed != g.Closed(scope) || !closed && ended[scope] != 0 {
					t.Errorf("%s: %v", scope, err)
				}
				v.Leave()
			}
			if err := g.drain(t.Context(), erased); err != nil {
				t.Error(err)
			}
			g.mu.Lock()
			if n := len(g.inside[erased]); n != 0 {
				t.Errorf("%d are inside behind the drain", n)
			}
			g.mu.Unlock()
			g.open(erased)
			if v, err := g.Enter(erased, func(error) {}); err != nil || g.Closed(erased) {
				t.Errorf("open again: %v", err)
			} else {
				v.Leave()
			}
			time.Sleep(2 * time.Second) // all have left
		})
	}
}

// A drain of calls that do not end is over with its context, and says why.
func TestGateDrainEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g Gate
		if _, err := g.Enter(scopes()[0], func(error) {}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, ErrInUse)
		defer cancel()
		if err := g.drain(ctx, scopes()[0]); !errors.Is(err, ErrInUse) {
			t.Error(err)
		}
	})
}
