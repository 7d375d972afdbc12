package share

import "context"

// Holding is a number of units that an owner holds. Its methods are safe for concurrent
// use; on a nil place they do nothing.
type Holding struct {
	pool  *Pool
	owner Owner
	agent *agent
	n     int64
	// paused counts the pauses under way; while there are any, nothing is held.
	paused int
	left   bool
}

// Leave gives the units back. Leaving twice is harmless.
func (p *Holding) Leave() {
	if p == nil {
		return
	}
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	if p.left {
		return
	}
	p.left = true
	if p.paused == 0 {
		p.pool.giveBack(p.agent, p.n)
	}
}

// Move makes the place that of another agent of the same tenant, or returns an
// *ExhaustedError and changes nothing.
func (p *Holding) Move(agent string) error {
	if p == nil {
		return nil
	}
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	if p.left || p.paused > 0 || p.owner.Agent == agent {
		return nil
	}
	before, after := p.agent, p.pool.agent(Owner{p.owner.Tenant, agent})
	p.pool.add(before, -p.n)
	if whose, ok := p.pool.fits(after, p.n); !ok {
		defer p.pool.forget(after)
		p.pool.add(before, p.n)
		return p.pool.exhausted(whose, after, p.n)
	}
	p.pool.add(after, p.n)
	before.places, after.places = before.places-1, after.places+1
	p.agent, p.owner.Agent = after, agent
	p.pool.forget(before)
	return nil
}

// Resize changes the number of units to n, or returns an *ExhaustedError and changes
// nothing. A smaller number never fails.
func (p *Holding) Resize(n int64) error {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	more := n - p.n
	if p.left || p.paused > 0 {
		p.n = n
		return nil
	}
	if more > 0 {
		if whose, ok := p.pool.fits(p.agent, more); !ok {
			return p.pool.exhausted(whose, p.agent, more)
		}
	}
	p.n = n
	p.pool.add(p.agent, more)
	if more < 0 {
		p.pool.serveAll()
	}
	return nil
}

// pause gives the units back for a while.
func (p *Holding) pause() {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	if p.paused++; p.paused == 1 && !p.left {
		p.pool.giveBack(p.agent, p.n)
	}
}

// resume takes the units again, even beyond the share: the call has the answer that it
// waited for, and should not hold it while it waits again.
func (p *Holding) resume() {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	if p.paused--; p.paused == 0 && !p.left {
		p.agent = p.pool.agent(p.owner)
		p.pool.add(p.agent, p.n)
		p.agent.places++
	}
}

type placeKey struct{}

// placed is a list of the places that a call holds, the latest first.
type placed struct {
	place  *Holding
	before *placed
}

// With returns a context in which Pause finds the place, in addition to the places in ctx.
func With(ctx context.Context, p *Holding) context.Context {
	if p == nil {
		return ctx
	}
	before, _ := ctx.Value(placeKey{}).(*placed)
	return context.WithValue(ctx, placeKey{}, &placed{p, before})
}

// Pause gives back the places of the context (With) until resume is called. A call uses
// it while it waits for another agent, another call or another server. Call resume once.
// Without places in the context Pause does nothing.
func Pause(ctx context.Context) (resume func()) {
	held, _ := ctx.Value(placeKey{}).(*placed)
	for p := held; p != nil; p = p.before {
		p.place.pause()
	}
	return func() {
		for p := held; p != nil; p = p.before {
			p.place.resume()
		}
	}
}

// Split takes n units out of the place and returns them as a separate place; n is at most
// all of them. The split is atomic. The place must not be paused.
func (p *Holding) Split(n int64) *Holding {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	if p.left {
		return &Holding{pool: p.pool, left: true}
	}
	n = min(n, p.n)
	p.n -= n
	p.agent.places++
	return &Holding{pool: p.pool, owner: p.owner, agent: p.agent, n: n}
}
