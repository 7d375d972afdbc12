package share

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// linger is how long a tenant that does nothing counts as one that is there. It
	// bridges the pauses between the calls of one that makes them one by one.
	linger = time.Second
	// recount is how often the tenants that are there are counted.
	recount = linger / 10
)

// Presence knows which tenants are there: those that took something within the
// last second. Pools and rates that belong together have the same one. All methods
// are safe for concurrent use; nil knows of one tenant only.
type Presence struct {
	seen    sync.Map // of the tenants' names: *atomic.Int64, when, in ns since epoch
	epoch   time.Time
	counted atomic.Int64
	there   atomic.Int64
}

// NewPresence returns a presence of nobody.
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

// count returns how many tenants are there.
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
