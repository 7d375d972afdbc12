package hand

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// gate bounds the calls that run at once, in all and for each agent. Those that
// find no room wait, in order, up to a limit.
type gate struct {
	maxRunning, maxPerAgent, maxWaiting int

	mu       sync.Mutex // guards the fields below
	running  int
	perAgent map[kv.Scope]int
	waiting  []*waiter
}

type waiter struct {
	scope kv.Scope
	ready chan struct{} // closed when the waiter may run
}

func newGate(o Options) *gate {
	orDefault := func(value, fallback int) int {
		if value > 0 {
			return value
		}
		return fallback
	}
	return &gate{
		maxRunning:  orDefault(o.MaxRunning, DefaultMaxRunning),
		maxPerAgent: orDefault(o.MaxPerAgent, DefaultMaxPerAgent),
		maxWaiting:  orDefault(o.MaxWaiting, DefaultMaxWaiting),
		perAgent:    map[kv.Scope]int{},
	}
}

// enter waits for room. The caller leaves afterwards, unless there is an error.
func (g *gate) enter(ctx context.Context, scope kv.Scope) error {
	g.mu.Lock()
	if g.room(scope) {
		g.take(scope)
		g.mu.Unlock()
		return nil
	}
	if len(g.waiting) >= g.maxWaiting {
		g.mu.Unlock()
		return fmt.Errorf("%w: limit is %d", ErrOverloaded, g.maxWaiting)
	}
	w := &waiter{scope: scope, ready: make(chan struct{})}
	g.waiting = append(g.waiting, w)
	g.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		return g.giveUp(ctx, w)
	}
}

// giveUp takes a waiter out, or keeps the room it was given meanwhile.
func (g *gate) giveUp(ctx context.Context, w *waiter) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, w)
	if i < 0 {
		return nil
	}
	g.waiting = slices.Delete(g.waiting, i, i+1)
	return fmt.Errorf("hand: wait to run: %w", ctx.Err())
}

// leave gives a call's room to the first waiter that may have it.
func (g *gate) leave(scope kv.Scope) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	if g.perAgent[scope]--; g.perAgent[scope] == 0 {
		delete(g.perAgent, scope)
	}
	i := slices.IndexFunc(g.waiting, func(w *waiter) bool { return g.room(w.scope) })
	if i < 0 {
		return
	}
	w := g.waiting[i]
	g.waiting = slices.Delete(g.waiting, i, i+1)
	g.take(w.scope)
	close(w.ready)
}

func (g *gate) room(scope kv.Scope) bool {
	return g.running < g.maxRunning && g.perAgent[scope] < g.maxPerAgent
}

func (g *gate) take(scope kv.Scope) {
	g.running++
	g.perAgent[scope]++
}

// requestLocks let one call of a request id run at a time. The zero value is
// ready.
type requestLocks struct {
	mu   sync.Mutex
	held map[requestKey]chan struct{} // guarded by mu; closed when given free
}

type requestKey struct {
	scope kv.Scope
	id    string
}

// lock waits until nobody else runs the request, and returns what ends that.
func (l *requestLocks) lock(ctx context.Context, scope kv.Scope, id string) (unlock func(), err error) {
	key := requestKey{scope, id}
	for {
		l.mu.Lock()
		busy, ok := l.held[key]
		if !ok {
			break
		}
		l.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, fmt.Errorf("hand: wait for the same request: %w", ctx.Err())
		}
	}
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[requestKey]chan struct{}{}
	}
	done := make(chan struct{})
	l.held[key] = done
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.held, key)
		close(done)
	}, nil
}
