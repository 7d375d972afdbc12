package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Defaults of Options.
const (
	// DefaultMax is far more than a machine gets done at once.
	DefaultMax = 64
	// DefaultMaxTenant leaves half of them to other tenants.
	DefaultMaxTenant = 32
	// DefaultMaxOwner leaves half of a tenant's to its other owners.
	DefaultMaxOwner = 16
	// DefaultQuantum is short compared with what people notice, and long compared with the
	// cost of switching.
	DefaultQuantum = 10 * time.Millisecond
)

// yieldEvery is how long work runs before short work that is ready, such as calls of
// others, runs in between. Go's scheduler by itself lets it wait 10 ms, and a call
// waits several times.
const yieldEvery = 200 * time.Microsecond

// ErrBusy: too much work is under way already. The error is a *BusyError.
var ErrBusy = errors.New("turn: busy")

// BusyError says which bound was reached. It is an ErrBusy.
type BusyError struct {
	// Whose is "the server", "the tenant" or "the agent".
	Whose string
	Limit int
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("turn: %s has %d under way, which is the limit; try again later", e.Whose, e.Limit)
}

// Is makes errors.Is(err, ErrBusy) true.
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// Options adjusts a Pool. Nil and zero fields mean the defaults.
type Options struct {
	// Running is how much work runs at a time. Default half of the processors that
	// Go uses, at least one.
	Running int
	// Max, MaxTenant and MaxOwner bound the work under way: in all, of a tenant and
	// of an owner within it. Defaults DefaultMax, DefaultMaxTenant, DefaultMaxOwner.
	Max, MaxTenant, MaxOwner int
	// Quantum is how long a turn lasts while others wait. Default DefaultQuantum.
	Quantum time.Duration
}

func withDefaults(opts *Options) Options {
	o := *cmp.Or(opts, &Options{})
	o.Running = cmp.Or(o.Running, max(1, runtime.GOMAXPROCS(0)/2))
	o.Max = cmp.Or(o.Max, DefaultMax)
	o.MaxTenant = cmp.Or(o.MaxTenant, DefaultMaxTenant)
	o.MaxOwner = cmp.Or(o.MaxOwner, DefaultMaxOwner)
	o.Quantum = cmp.Or(o.Quantum, DefaultQuantum)
	return o
}

// Pool is safe for concurrent use.
type Pool struct {
	opts Options

	mu      sync.Mutex // guards all below, and the parties
	entered int
	running int
	turns   uint64 // given so far
	tenants map[string]*party
	waiting []*Work
}

// party is a tenant, or an owner within one.
type party struct {
	entered int
	last    uint64 // the number of its latest turn
	owners  map[string]*party
}

// NewPool returns an empty pool.
func NewPool(opts *Options) *Pool {
	return &Pool{opts: withDefaults(opts), tenants: make(map[string]*party)}
}

// Work is one piece of work. It belongs to one goroutine.
type Work struct {
	pool          *Pool
	tenantID, id  string
	tenant, owner *party
	turn          chan struct{} // gets a token with the turn; has room for one
	began         time.Time     // of the turn under way; zero for none
	yielded       time.Time     // when it last let others of the process run
}

// Enter counts work in, or returns a *BusyError. Leave must follow.
func (p *Pool) Enter(tenant, owner string) (*Work, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.find(p.tenants, tenant)
	o := p.find(t.owners, owner)
	w := &Work{pool: p, tenantID: tenant, id: owner, tenant: t, owner: o, turn: make(chan struct{}, 1)}
	p.add(w, 1)
	var busy error
	switch {
	case o.entered > p.opts.MaxOwner:
		busy = &BusyError{"the agent", p.opts.MaxOwner}
	case t.entered > p.opts.MaxTenant:
		busy = &BusyError{"the tenant", p.opts.MaxTenant}
	case p.entered > p.opts.Max:
		busy = &BusyError{"the server", p.opts.Max}
	default:
		return w, nil
	}
	p.add(w, -1)
	return nil, busy
}

// find returns a party. A new party queues behind known ones: a party that comes and goes
// must not overtake one that stays.
func (p *Pool) find(parties map[string]*party, name string) *party {
	if parties[name] == nil {
		parties[name] = &party{last: p.turns, owners: make(map[string]*party)}
	}
	return parties[name]
}

// add counts a work in or out, and forgets parties that have none.
func (p *Pool) add(w *Work, n int) {
	p.entered += n
	w.tenant.entered += n
	w.owner.entered += n
	if w.owner.entered == 0 {
		delete(w.tenant.owners, w.id)
	}
	if w.tenant.entered == 0 {
		delete(p.tenants, w.tenantID)
	}
}

// Leave ends the work, and its turn if it has one.
func (w *Work) Leave() {
	w.End()
	w.pool.mu.Lock()
	defer w.pool.mu.Unlock()
	w.pool.add(w, -1)
}

// Begin waits for a turn, or for ctx to end.
func (w *Work) Begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	p := w.pool
	p.mu.Lock()
	p.waiting = append(p.waiting, w)
	p.give()
	p.mu.Unlock()
	select {
	case <-w.turn:
		w.began = time.Now()
		w.yielded = w.began
		return nil
	case <-ctx.Done():
		w.withdraw()
		return context.Cause(ctx)
	}
}

// withdraw stops waiting, and gives back a turn that came meanwhile.
func (w *Work) withdraw() {
	p := w.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.Index(p.waiting, w); at >= 0 {
		p.waiting = slices.Delete(p.waiting, at, at+1)
		return
	}
	<-w.turn
	p.running--
	p.give()
}

// give hands out the turns that are free. Callers hold mu.
func (p *Pool) give() {
	for p.running < p.opts.Running && len(p.waiting) > 0 {
		next := 0
		for i, w := range p.waiting {
			if w.before(p.waiting[next]) {
				next = i
			}
		}
		w := p.waiting[next]
		p.waiting = slices.Delete(p.waiting, next, next+1)
		p.turns++
		p.running++
		w.tenant.last, w.owner.last = p.turns, p.turns
		w.turn <- struct{}{}
	}
}

// before reports whether a work's turn comes first: the longest waiting are asked
// last, so that they keep their place.
func (w *Work) before(other *Work) bool {
	if w.tenant != other.tenant {
		return w.tenant.last < other.tenant.last
	}
	return w.owner.last < other.owner.last
}

// End ends the turn; without one it does nothing.
func (w *Work) End() {
	if w.began.IsZero() {
		return
	}
	w.began = time.Time{}
	w.pool.mu.Lock()
	defer w.pool.mu.Unlock()
	w.pool.running--
	w.pool.give()
}

// Pause is to be called often during a turn. When the quantum is over it ends the
// turn and waits for the next one. It returns the cause of ctx when that has ended;
// the turn is then over.
func (w *Work) Pause(ctx context.Context) error {
	if ctx.Err() != nil {
		w.End()
		return context.Cause(ctx)
	}
	now := time.Now()
	if now.Sub(w.began) < w.pool.opts.Quantum {
		if now.Sub(w.yielded) >= yieldEvery {
			runtime.Gosched()
			w.yielded = time.Now()
		}
		return nil
	}
	w.End()
	runtime.Gosched()
	return w.Begin(ctx)
}
