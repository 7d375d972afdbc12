package share

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// linger is how long a tenant counts as active after it took something. It bridges
	// the pauses between calls that are made one after another.
	linger = time.Second
	// recount is the time between two counts of the active tenants.
	recount = linger / 10
)

// Presence knows which tenants are active: tenants that took something within the last
// second (linger). Pools and rates of one server share it. All methods are safe for
// concurrent use; a nil Presence counts one tenant.
type Presence struct {
	seen    sync.Map // of the tenants' names: *atomic.Int64, when, in ns since epoch
	epoch   time.Time
	counted atomic.Int64
	there   atomic.Int64
}

// NewPresence returns a presence without active tenants.
func NewPresence() *Presence {
	p := &Presence{epoch: time.Now()}
	p.counted.Store(-int64(recount))
	return p
}

// saw notes that a tenant takes something.
func (p *Presence) saw(tenant string) {
	if p == nil {
		return
	}
	now := int64(time.Since(p.epoch))
	if at, ok := p.seen.Load(tenant); ok {
		at.(*atomic.Int64).Store(now)
		return
	}
	at := &atomic.Int64{}
	at.Store(now)
	p.seen.Store(tenant, at)
	p.counted.Store(now - int64(recount)) // the next one counts
}

// count returns the number of active tenants.
func (p *Presence) count() int64 {
	if p == nil {
		return 1
	}
	now := int64(time.Since(p.epoch))
	last := p.counted.Load()
	if now-last < int64(recount) || !p.counted.CompareAndSwap(last, now) {
		return p.there.Load()
	}
	there := int64(0)
	p.seen.Range(func(name, at any) bool {
		if now-at.(*atomic.Int64).Load() < int64(linger) {
			there++
		} else {
			p.seen.Delete(name)
		}
		return true
	})
	p.there.Store(there)
	return there
}
