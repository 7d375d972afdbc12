package hand

import (
	"context"
	"fmt"
	"sync"

	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/bridge/throttle"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// newSlots are the places of the tools that run here.
func newSlots(o Options) *share.Pool {
	orDefault := func(value, fallback int) int64 {
		if value > 0 {
			return int64(value)
		}
		return int64(fallback)
	}
	return share.New(share.Options{
		Name: "running tools", Setting: "--max-tools", OneTenant: o.OneTenant,
		Total: orDefault(o.MaxRunning, DefaultMaxRunning), Waiting: orDefault(o.MaxWaiting, DefaultMaxWaiting),
	})
}

// limit counts the call for the limits of tools, or refuses it. A call that is answered
// again does not count.
func (h *Hand) limit(c *call) (err error) {
	if c.limited != nil { // it is tried again
		return nil
	}
	if c.limited, err = h.limits.Begin(c.Scope.Tenant, c.Scope.Owner, c.name()); err != nil {
		return fmt.Errorf("hand: call: %w", err)
	}
	return nil
}

// Limits says how the limits of tools are used; nothing where there are none.
func (h *Hand) Limits() []throttle.Used { return h.limits.Used() }

// enter waits for a slot. A tool that runs elsewhere needs none: here it only
// waits, and to answer it may call a tool that does run here.
func (h *Hand) enter(ctx context.Context, c *call) (err error) {
	if c.tool.Remote() || c.slot != nil {
		return nil
	}
	c.slot, err = h.slots.Take(ctx, share.Owner{Tenant: c.Scope.Tenant, Agent: c.Scope.Owner}, 1)
	if err != nil {
		return fmt.Errorf("hand: call: %w", err)
	}
	return nil
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

// lock waits until no other call runs the request, and returns what ends that. Who
// waits holds no place among the running calls.
func (l *requestLocks) lock(ctx context.Context, scope kv.Scope, id string) (unlock func(), err error) {
	key := requestKey{scope, id}
	for {
		l.mu.Lock()
		busy, ok := l.held[key]
		if !ok {
			break
		}
		l.mu.Unlock()
		resume := share.Pause(ctx)
		select {
		case <-busy:
			resume()
		case <-ctx.Done():
			resume()
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
