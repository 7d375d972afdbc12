package share

import (
	"context"
	"sync"
	"time"
)

// kept is the part of the units (one in 16) that is reserved for owners that hold less:
// a single owner gets 15 of 16.
const kept = 16

// Owner is who takes units. Without an agent only the tenant's share counts.
type Owner struct{ Tenant, Agent string }

// Options adjusts a Pool. Total is required.
type Options struct {
	// Name says in the plural what the units are, such as "calls in flight". It
	// stands in errors.
	Name string
	// Setting is the setting that an operator raises for more units, such as
	// "--max-calls". Default: errors name none.
	Setting string
	// Total is how many units there are.
	Total int64
	// Waiting is how many callers may wait in Take; these places are shared as the units
	// are. Default: none waits.
	Waiting int64
	// MaxWait is how long Take waits at most. Default: as long as its context lasts.
	MaxWait time.Duration
	// Contended is how many units all tenants together may use while several are
	// active. It is divided among them, and units that some do not use go to others. It
	// keeps the work of one tenant from filling the processors when another one comes.
	// It needs Presence. Default: Total.
	Contended int64
	// Presence knows which tenants are active. Default: Contended has no effect.
	Presence *Presence
	// Quota says that waiting does not free units, as with stored bytes. It changes the
	// error.
	Quota bool
	// OneTenant says that there is one tenant only, so nothing is reserved for others.
	OneTenant bool
}

// Pool is a number of units that owners share. All methods are safe for
// concurrent use.
type Pool struct {
	opts Options

	mu      sync.Mutex // guards the fields below, and all owners and places
	sum     usage
	tenants map[string]*tenant
	// ring holds the tenants with waiting agents, in the order in which they are served.
	ring []*tenant
	// spare and spareTenants are entries that can be used again.
	spare        []*agent
	spareTenants []*tenant
}

// usage is how many units are held, and how many callers wait.
type usage struct{ held, waiting int64 }

// tenant is the state of a tenant in a pool.
type tenant struct {
	usage
	name   string
	agents map[string]*agent
	ring   []*agent // those with waiting callers, in the order in which they are served
}

// agent is the state of an agent in a pool.
type agent struct {
	usage
	tenant *tenant
	name   string
	queue  []*waiter
	// places counts its places, including ones of no units.
	places int
}

// maxSpare bounds the unused entries that are kept.
const maxSpare = 64

// New returns a pool with all units free.
func New(o Options) *Pool {
	if o.Contended <= 0 || o.Contended > o.Total || o.Presence == nil {
		o.Contended = o.Total
	}
	return &Pool{opts: o, tenants: make(map[string]*tenant)}
}

// TryTake takes n units, or returns an *ExhaustedError at once.
func (p *Pool) TryTake(o Owner, n int64) (*Holding, error) {
	p.opts.Presence.saw(o.Tenant)
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.agent(o)
	if whose, ok := p.fits(a, n); !ok {
		defer p.forget(a)
		return nil, p.exhausted(whose, a, n)
	}
	return p.hold(a, n), nil
}

// Take takes n units, and waits for them if necessary. Errors: an *ExhaustedError if the
// queue is full or after Options.MaxWait, and the error of ctx.
func (p *Pool) Take(ctx context.Context, o Owner, n int64) (*Holding, error) {
	p.opts.Presence.saw(o.Tenant)
	place, w, err := p.takeOrQueue(o, n)
	if w == nil {
		return place, err
	}
	return p.await(ctx, w)
}

// Held returns how many units are taken.
func (p *Pool) Held() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sum.held
}

// HeldBy returns how many units a tenant holds.
func (p *Pool) HeldBy(tenant string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.tenants[tenant]; t != nil {
		return t.held
	}
	return 0
}

// agent returns the state of an agent, which it makes if necessary. The caller must take
// units or wait for it, or call forget.
func (p *Pool) agent(o Owner) *agent {
	t := p.tenant(o.Tenant)
	a := t.agents[o.Agent]
	if a != nil {
		return a
	}
	if last := len(p.spare) - 1; last >= 0 {
		a, p.spare = p.spare[last], p.spare[:last]
	} else {
		a = &agent{}
	}
	a.tenant, a.name = t, o.Agent
	t.agents[o.Agent] = a
	return a
}

func (p *Pool) tenant(name string) *tenant {
	t := p.tenants[name]
	if t != nil {
		return t
	}
	if last := len(p.spareTenants) - 1; last >= 0 {
		t, p.spareTenants = p.spareTenants[last], p.spareTenants[:last]
	} else {
		t = &tenant{agents: make(map[string]*agent)}
	}
	t.name = name
	p.tenants[name] = t
	return t
}

// forget drops an agent that has no places and no waiting callers, and its tenant with the
// tenant's last agent.
func (p *Pool) forget(a *agent) {
	if a.places > 0 || len(a.queue) > 0 {
		return
	}
	t := a.tenant
	delete(t.agents, a.name)
	if len(p.spare) < maxSpare {
		a.tenant, a.name = nil, ""
		p.spare = append(p.spare, a)
	}
	if len(t.agents) == 0 {
		delete(p.tenants, t.name)
		if len(p.spareTenants) < maxSpare {
			t.name = ""
			p.spareTenants = append(p.spareTenants, t)
		}
	}
}

// hold takes units for an agent.
func (p *Pool) hold(a *agent, n int64) *Holding {
	p.add(a, n)
	a.places++
	return &Holding{pool: p, agent: a, owner: Owner{a.tenant.name, a.name}, n: n}
}

func (p *Pool) add(a *agent, n int64) {
	p.sum.held += n
	a.tenant.held += n
	a.held += n
}

// giveBack frees units of an agent and serves waiters.
func (p *Pool) giveBack(a *agent, n int64) {
	p.add(a, -n)
	a.places--
	p.forget(a)
	p.serveAll()
}
