package share

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Rate divides a number of units a second among the active tenants. A single tenant is
// not limited. All methods are safe for concurrent use; a nil Rate limits nothing.
type Rate struct {
	name      string
	perSecond int64
	presence  *Presence

	mu      sync.Mutex // guards the field below
	tenants map[string]*account
}

// account is the balance of a tenant. A tenant below zero waits.
type account struct {
	balance float64
	at      time.Time // of the balance
}

const (
	// saved bounds a balance: what a tenant gets in that time.
	saved = 100 * time.Millisecond
	// maxAccounts is the number of accounts beyond which full ones are dropped.
	maxAccounts = 1024
)

// NewRate returns a rate; name says in the plural what its units are. Presence must not
// be nil.
func NewRate(name string, perSecond int64, presence *Presence) *Rate {
	return &Rate{name: name, perSecond: perSecond, presence: presence, tenants: make(map[string]*account)}
}

// Pay takes n units for a tenant, and waits while the tenant has spent more than its
// part. While it waits it gives back the places of the context (Pause). The units count
// even if ctx ends meanwhile.
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

// Spend takes n units for a tenant and returns how long the tenant has to wait; zero or
// less: not at all.
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

// dropFull drops the accounts of tenants that spend nothing, when there are many.
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
