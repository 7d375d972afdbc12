package share

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Rate divides so many units a second among the tenants that are there. One alone
// may have as many as it likes. All methods are safe for concurrent use; nil lets
// everything pass.
type Rate struct {
	name      string
	perSecond int64
	presence  *Presence

	mu      sync.Mutex // guards the field below
	tenants map[string]*account
}

// account is what a tenant has to spend; what is below zero is waited for.
type account struct {
	balance float64
	at      time.Time // of the balance
}

const (
	// saved is for how long an account saves what is not spent.
	saved = 100 * time.Millisecond
	// maxAccounts is from how many on those that have everything saved are dropped.
	maxAccounts = 1024
)

// NewRate returns a rate of what name says in the plural. Presence must not be nil.
func NewRate(name string, perSecond int64, presence *Presence) *Rate {
	return &Rate{name: name, perSecond: perSecond, presence: presence, tenants: make(map[string]*account)}
}

// Pay takes n units for a tenant, and waits while it has spent more than its part.
// Who waits holds no places of Pause. The units count even if ctx ends meanwhile.
func (r *Rate) Pay(ctx context.Context, tenant string, n int64) error {
	wait := r.Spend(tenant, n)
	if wait <= 0 {
		return nil
	}
	defer Pause(ctx)()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("share: wait for %s: %w", r.name, context.Cause(ctx))
	}
}

// Spend takes n units for a tenant and returns how long it has to wait before it
// goes on; zero or less: not at all.
func (r *Rate) Spend(tenant string, n int64) time.Duration {
	if r == nil {
		return 0
	}
	r.presence.saw(tenant)
	there := r.presence.count()
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.tenants[tenant]
	if there <= 1 {
		delete(r.tenants, tenant)
		return 0
	}
	part := float64(r.perSecond) / float64(there)
	most := part * saved.Seconds()
	if a == nil {
		r.dropFull(now)
		a = &account{balance: most, at: now}
		r.tenants[tenant] = a
	}
	a.balance = min(most, a.balance+part*now.Sub(a.at).Seconds()) - float64(n)
	a.at = now
	return time.Duration(-a.balance / part * float64(time.Second))
}

// dropFull forgets tenants that spend nothing, when there are many.
func (r *Rate) dropFull(now time.Time) {
	if len(r.tenants) < maxAccounts {
		return
	}
	for name, a := range r.tenants {
		if a.balance > 0 && now.Sub(a.at) > saved || now.Sub(a.at) > time.Minute {
			delete(r.tenants, name)
		}
	}
}
