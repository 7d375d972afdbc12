package share

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// waiter is a Take that waits.
type waiter struct {
	agent *agent
	n     int64
	ready chan struct{} // closed when place is set
	place *Holding
}

// patience is how long Options.Contended may delay a waiter whose agent holds nothing.
// It keeps long calls of one agent from blocking the other agents of its tenant.
const patience = time.Second

// takeOrQueue takes units, or adds a waiter to the queue.
func (p *Pool) takeOrQueue(o Owner, n int64) (*Holding, *waiter, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.agent(o)
	whose, ok := ByAgent, false
	if len(a.queue) == 0 {
		whose, ok = p.fits(a, n)
	}
	switch {
	case ok:
		return p.hold(a, n), nil, nil
	case !p.mayQueue(a):
		defer p.forget(a)
		return nil, nil, p.exhausted(whose, a, n)
	}
	w := &waiter{agent: a, n: n, ready: make(chan struct{})}
	p.join(w)
	return nil, w, nil
}

// await waits until the waiter is served or ctx ends.
func (p *Pool) await(ctx context.Context, w *waiter) (*Holding, error) {
	var impatient <-chan time.Time
	if p.opts.Contended < p.opts.Total {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		impatient = timer.C
	}
	var late <-chan time.Time
	if p.opts.MaxWait > 0 {
		timer := time.NewTimer(p.opts.MaxWait)
		defer timer.Stop()
		late = timer.C
	}
	for {
		select {
		case <-w.ready:
			return w.place, nil
		case <-impatient:
			p.insist(w)
		case <-late:
			return p.giveUp(w, nil)
		case <-ctx.Done():
			return p.giveUp(w, context.Cause(ctx))
		}
	}
}

// insist serves a waiter after patience, if its agent holds nothing.
func (p *Pool) insist(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := w.agent
	at := slices.Index(a.queue, w)
	if at < 0 || a.held > 0 || w.n > p.opts.Total-p.sum.held {
		return
	}
	p.part(a, at)
	w.serve(p)
}

// serve gives the waiter its place.
func (w *waiter) serve(p *Pool) {
	w.place = p.hold(w.agent, w.n)
	close(w.ready)
}

// join adds a waiter at the end of its agent's queue.
func (p *Pool) join(w *waiter) {
	a := w.agent
	if len(a.queue) == 0 {
		if len(a.tenant.ring) == 0 {
			p.ring = append(p.ring, a.tenant)
		}
		a.tenant.ring = append(a.tenant.ring, a)
	}
	a.queue = append(a.queue, w)
	p.addWaiting(a, 1)
}

func (p *Pool) addWaiting(a *agent, n int64) {
	p.sum.waiting += n
	a.tenant.waiting += n
	a.waiting += n
}

// part removes a waiter from its queue.
func (p *Pool) part(a *agent, at int) {
	a.queue = slices.Delete(a.queue, at, at+1)
	p.addWaiting(a, -1)
	if len(a.queue) > 0 {
		return
	}
	a.queue = nil
	t := a.tenant
	t.ring = slices.DeleteFunc(t.ring, func(other *agent) bool { return other == a })
	if len(t.ring) == 0 {
		p.ring = slices.DeleteFunc(p.ring, func(other *tenant) bool { return other == t })
	}
}

// giveUp removes a waiter from the queue and returns the cause, or an *ExhaustedError
// without one. If the waiter was served meanwhile, it keeps its place.
func (p *Pool) giveUp(w *waiter, cause error) (*Holding, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := w.agent
	at := slices.Index(a.queue, w)
	if at < 0 {
		return w.place, nil
	}
	p.part(a, at)
	defer p.forget(a)
	if cause == nil {
		whose, _ := p.fits(a, w.n)
		return nil, p.exhausted(whose, a, w.n)
	}
	return nil, fmt.Errorf("share: wait for %s: %w", p.opts.Name, cause)
}

// serveAll gives what is free to waiters: each tenant in its turn, and
// each of its agents in its own.
func (p *Pool) serveAll() {
	for p.sum.waiting > 0 && p.serveOne() {
	}
}

// serveOne serves the first waiter whose units are free, and moves its tenant and its
// agent to the end.
func (p *Pool) serveOne() bool {
tenants:
	for i, t := range p.ring {
		for k, a := range t.ring {
			w := a.queue[0]
			switch whose, ok := p.fits(a, w.n); {
			case ok:
				rotate(p.ring, i)
				rotate(t.ring, k)
				p.part(a, 0)
				w.serve(p)
				return true
			case whose == ByServer:
				return false
			case whose == ByTenant:
				continue tenants
			}
		}
	}
	return false
}

// rotate moves an item to the end; those before it keep their turns.
func rotate[T any](ring []T, at int) {
	moved := ring[at]
	copy(ring[at:], ring[at+1:])
	ring[len(ring)-1] = moved
}
