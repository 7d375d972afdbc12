package feed

import (
	"sync"
	"sync/atomic"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Bell wakes the waiters for changes of a scope. The zero value is ready. All
// methods are safe for concurrent use.
type Bell struct {
	waiting atomic.Int64
	mu      sync.Mutex
	scopes  map[kv.Scope]map[chan struct{}]struct{}
}

// Listen returns a channel that gets a value after every change of the scope, several
// together if they are not taken, until stop is called.
func (b *Bell) Listen(scope kv.Scope) (rings <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.scopes == nil {
		b.scopes = make(map[kv.Scope]map[chan struct{}]struct{})
	}
	if b.scopes[scope] == nil {
		b.scopes[scope] = make(map[chan struct{}]struct{})
	}
	b.scopes[scope][c] = struct{}{}
	b.waiting.Add(1)
	return c, func() { b.leave(scope, c) }
}

func (b *Bell) leave(scope kv.Scope, c chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.scopes[scope], c)
	if len(b.scopes[scope]) == 0 {
		delete(b.scopes, scope)
	}
	b.waiting.Add(-1)
}

// Ring says that the scope has changed. Without a waiter it costs nothing.
func (b *Bell) Ring(scope kv.Scope) {
	if b.waiting.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.scopes[scope] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
