package share

// fits reports whether an agent may take n units now, and if not, whose share is used up.
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

// tenantRoom returns how many more of the free units a tenant may take.
func (p *Pool) tenantRoom(use, free int64) int64 {
	if p.opts.OneTenant {
		return free
	}
	return roomOf(use, free)
}

// roomOf returns how many more of the free units an owner may take: as many as leave at
// least a fifteenth of what it holds. An owner that holds nothing may take all.
func roomOf(use, free int64) int64 {
	if use == 0 {
		return free
	}
	return ((kept-1)*free - use) / kept
}

// beyondPart reports whether a tenant would use more than its part of Options.Contended,
// while other tenants are active and all of Contended is used.
func (p *Pool) beyondPart(t *tenant, n int64) bool {
	if p.opts.Contended == p.opts.Total || p.sum.held+n <= p.opts.Contended {
		return false
	}
	there := max(p.opts.Presence.count(), int64(len(p.tenants)))
	return there > 1 && t.held+n > max(1, p.opts.Contended/there)
}

// mayQueue reports whether an agent may have one more waiter. Places in the queue are
// shared as the units are.
func (p *Pool) mayQueue(a *agent) bool {
	free := p.opts.Waiting - p.sum.waiting
	room := p.tenantRoom(a.tenant.waiting, free)
	if room < 1 || a.name == "" {
		return room >= 1
	}
	return roomOf(a.waiting, room) >= 1
}
