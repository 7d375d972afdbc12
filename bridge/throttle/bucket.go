package throttle

import "time"

// bucket holds the calls that may still be made of a rate. It belongs to its Limits.
type bucket struct {
	size, perSecond float64
	every           time.Duration
	left            float64
	at              time.Time // of left
	tenants         map[string]*group
	parts           int       // of all tenants
	swept           time.Time // when unused buckets were last dropped
}

// group are the agents of a tenant that call.
type group struct{ agents map[string]*agentPart }

// agentPart is an agent's own: as much of half of the bucket as falls to it.
type agentPart struct {
	left float64
	seen time.Time // of left, too
	// own says that the last call was paid by the part.
	own bool
}

// maxParts bounds the agents that have a part in one bucket. What comes beyond has none,
// and takes what others leave.
const maxParts = 4096

func newBucket(amount int, every time.Duration, now time.Time) *bucket {
	return &bucket{
		size: float64(amount), perSecond: float64(amount) / every.Seconds(), every: every, left: float64(amount), at: now,
		tenants: map[string]*group{}, swept: now,
	}
}

// take takes a call of an agent, or says when there may be one for it.
func (b *bucket) take(now time.Time, tenant, agent string) (wait time.Duration, ok bool) {
	b.left = min(b.size, b.left+b.perSecond*max(now.Sub(b.at), 0).Seconds())
	b.at = now
	p, share := b.part(now, tenant, agent)
	if share == 1 {
		p.left = min(p.left, b.left/2) // when somebody comes, no part is more than there is
	}
	switch {
	case b.left < enough:
		return b.until(1-b.left, 1), false
	case share == 1:
		// Nobody else calls: all of the bucket is the agent's.
	case p != nil && p.left >= enough:
		p.left--
		p.own = true
		b.left--
		return 0, true
	case b.left-enough < b.size/2:
		wait = b.until(1+b.size/2-b.left, 1)
		if p != nil {
			wait = min(wait, b.until(1-p.left, share))
		}
		return wait, false
	}
	if p != nil {
		p.own = false
	}
	b.left--
	return 0, true
}

// enough is a call, less what adding up fractions loses.
const enough = 1 - 1e-6

// until is the time in which so many calls come, at a share of the rate; whole
// milliseconds, so that it is enough.
func (b *bucket) until(calls, share float64) time.Duration {
	return time.Duration(calls/(b.perSecond*share)*1000+1) * time.Millisecond
}

// part is the agent's own part as of now, nil where there are too many, and which share of
// the rate it is. Whoever has not called for as long as the rule counts has no part.
func (b *bucket) part(now time.Time, tenant, agent string) (*agentPart, float64) {
	if now.Sub(b.swept) >= b.every/sweeps {
		// Drops the parts of agents that do not call.
		b.swept = now
		for name, g := range b.tenants {
			for id, p := range g.agents {
				if now.Sub(p.seen) > b.every {
					delete(g.agents, id)
					b.parts--
				}
			}
			if len(g.agents) == 0 {
				delete(b.tenants, name)
			}
		}
	}
	g := b.tenants[tenant]
	if g == nil {
		g = &group{agents: map[string]*agentPart{}}
	}
	p := g.agents[agent]
	fresh := p == nil
	if fresh && b.parts >= maxParts {
		return nil, 0
	}
	if fresh {
		p = &agentPart{seen: now}
		g.agents[agent], b.tenants[tenant] = p, g
		b.parts++
	}
	share := 1 / float64(len(b.tenants)) / float64(len(g.agents))
	most := max(1, b.size/2*share)
	if p.left = min(most, p.left+b.perSecond*share*max(now.Sub(p.seen), 0).Seconds()); fresh {
		p.left = min(most, b.left/2*share)
	}
	p.seen = now
	return p, share
}

// sweeps is how often, in the time that a rate counts, parts are dropped.
const sweeps = 4
