package share

// fits tells whether an agent may have n units now, or else whose share is used
// up.
func (p *Pool) fits(a *agent, n int64) (Whose, bool) {
	t := a.tenant
	free := p.opts.Total - p.sum.held
	if n > free {
		return ByServer, false
	}
	room := p.tenantRoom(t.held, free)
	if t.held > 0 && (n > room || p.beyondPart(t, n)) {
		return ByTenant, false
	}
	if a.name != "" && a.held > 0 && n > roomOf(a.held, room) {
		return ByAgent, false
	}
	return "", true
}

// tenantRoom is how much more a tenant with use may take of what is free.
func (p *Pool) tenantRoom(use, free int64) int64 {
	if p.opts.OneTenant {
		return free
	}
	return roomOf(use, free)
}

// roomOf is how much more an owner with use may take of what is free: so much
// that it holds at most 15 times what is left. Who holds nothing may take all.
func roomOf(use, free int64) int64 {
	if use == 0 {
		return free
	}
	return ((kept-1)*free - use) / kept
}

// beyondPart tells whether a tenant would use more than its part while several
// are there and what they may use together is used.
func (p *Pool) beyondPart(t *tenant, n int64) bool {
	if p.opts.Contended == p.opts.Total || p.sum.held+n <= p.opts.Contended {
		return false
	}
	there := max(p.opts.Presence.count(), int64(len(p.tenants)))
	return there > 1 && t.held+n > max(1, p.opts.Contended/there)
}

// mayQueue tells whether an agent may have one more waiter. There are so many for
// all, and they are shared as the units are.
func (p *Pool) mayQueue(a *agent) bool {
	free := p.opts.Waiting - p.sum.waiting
	room := p.tenantRoom(a.tenant.waiting, free)
	if room < 1 || a.name == "" {
		return room >= 1
	}
	return roomOf(a.waiting, room) >= 1
}
