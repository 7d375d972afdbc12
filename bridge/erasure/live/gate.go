package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// ErrErasing: the subject is being erased.
var ErrErasing = errors.New("erasure: the subject is being erased")

// Gate counts the calls that are under way by whose they are. The zero value is open and
// ready. All methods are safe for concurrent use.
type Gate struct {
	shut atomic.Int64 // how many subjects the gate is closed for

	mu     sync.Mutex // guards the fields below
	inside map[kv.Scope]map[*Visit]struct{}
	closed map[kv.Scope]bool
	left   chan struct{} // closed when the next call has ended; nil: without a waiter
}

// Visit is a call that is under way.
type Visit struct {
	gate  *Gate
	scope kv.Scope
	end   func(error)
}

// Enter counts a call in, or refuses it with an ErrErasing. The caller leaves when it is over.
// Where the gate is closed meanwhile end is called, once, and must not block.
func (g *Gate) Enter(scope kv.Scope, end func(error)) (*Visit, error) {
	v := &Visit{g, scope, end}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed[scope] {
		return nil, refusal(scope)
	}
	of := g.inside[scope]
	if of == nil {
		if g.inside == nil {
			g.inside = make(map[kv.Scope]map[*Visit]struct{})
		}
		of = make(map[*Visit]struct{}, 1)
		g.inside[scope] = of
	}
	of[v] = struct{}{}
	return v, nil
}

// Leave counts a call out. A nil visit is fine.
func (v *Visit) Leave() {
	if v == nil {
		return
	}
	g := v.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	of := g.inside[v.scope]
	if delete(of, v); len(of) == 0 {
		delete(g.inside, v.scope)
	}
	if g.left != nil {
		close(g.left)
		g.left = nil
	}
}

func refusal(scope kv.Scope) error { return fmt.Errorf("%w: %s", ErrErasing, scope) }

// Closed reports whether a scope's subject is being erased.
func (g *Gate) Closed(scope kv.Scope) bool {
	if g.shut.Load() == 0 {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed[scope]
}

// close refuses further calls of a scope, and ends running ones.
func (g *Gate) close(scope kv.Scope) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == nil {
		g.closed = make(map[kv.Scope]bool)
	}
	if !g.closed[scope] {
		g.closed[scope] = true
		g.shut.Add(1)
	}
	for v := range g.inside[scope] {
		v.end(refusal(scope))
	}
}

func (g *Gate) open(scope kv.Scope) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed[scope] {
		delete(g.closed, scope)
		g.shut.Add(-1)
	}
}

// PromptsOf is the scope under which calls are counted that make prompts for agents of a
// tenant: those may show any person's memory.
func PromptsOf(tenant string) kv.Scope {
	return kv.Scope{Tenant: tenant, Kind: kv.OwnerSystem, Owner: "prompts"}
}

// drain waits until the calls of a scope that are under way now have ended.
func (g *Gate) drain(ctx context.Context, scope kv.Scope) error {
	g.mu.Lock()
	now := maps.Clone(g.inside[scope])
	g.mu.Unlock()
	for {
		g.mu.Lock()
		maps.DeleteFunc(now, func(v *Visit, _ struct{}) bool {
			_, there := g.inside[scope][v]
			return !there
		})
		n := len(now)
		if n == 0 {
			g.mu.Unlock()
			return nil
		}
		if g.left == nil {
			g.left = make(chan struct{})
		}
		left := g.left
		g.mu.Unlock()
		select {
		case <-left:
		case <-ctx.Done():
			return fmt.Errorf("%w: %d calls of %s have not ended", context.Cause(ctx), n, scope)
		}
	}
}
