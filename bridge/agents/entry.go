package agents

import (
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/share"
)

// tenantAgents holds the agents of one tenant. The directory's mu guards it.
type tenantAgents struct {
	tenant string
	agents map[string]*directoryEntry
	// providers are the agents that provide each tool, in the order of their
	// registrations; names are those by the name that models call the tool by.
	providers, names providers
	toolBytes        *share.Pool
	tools            int // of all registrations
	streams          int
	bytes            int // of all registrations
}

// provider is an agent with a tool, and the tool's index in its registration.
type provider struct {
	entry *directoryEntry
	place int
}

// directoryEntry is one agent. The directory's mu guards it.
type directoryEntry struct {
	tenant       *tenantAgents
	id           string
	registration Registration // never changed, only replaced
	order        uint64       // of the registration; 0 without one
	bytes        int
	lastSeen     time.Time
	idleSince    time.Time // of the last stream's end, or the registration
	links        []*Link   // by generation
	left         bool      // the last stream has ended
	parted       bool      // and the agent said that it would not come back
	toolBytes    *share.Holding
	hidden       bool   // deleted, but with streams still open
	reported     bool   // its status was reported
	status       Status // as last reported
	version      uint64 // of its last announced change
}

func (d *Directory) entry(tenant, id string) *directoryEntry {
	h := d.tenants[tenant]
	if h == nil {
		return nil
	}
	return h.agents[id]
}

// entryOf returns the entry that holds a link, nil when none does.
func (d *Directory) entryOf(l *Link) *directoryEntry {
	e := d.entry(l.tenant, l.id)
	if e == nil || !slices.Contains(e.links, l) {
		return nil
	}
	return e
}

// entryToOpen returns the entry for one more stream, a new one if there is none.
func (d *Directory) entryToOpen(tenant, id string) (*directoryEntry, error) {
	if d.closed {
		return nil, ErrClosed
	}
	if h := d.tenants[tenant]; h != nil && h.streams >= d.opts.MaxStreams {
		return nil, &share.LimitError{What: "streams", Limit: d.opts.MaxStreams}
	}
	if e := d.entry(tenant, id); e != nil {
		return e, nil
	}
	return d.add(tenant, id, 0)
}

// entryToRegister returns the entry for a registration of a size and with a number of
// tools, a new one if there is none.
func (d *Directory) entryToRegister(tenant, id string, size, tools int) (*directoryEntry, error) {
	if d.closed {
		return nil, ErrClosed
	}
	e, before := d.entry(tenant, id), 0
	if e != nil {
		before = len(e.registration.Tools)
	}
	if h := d.tenants[tenant]; h != nil && tools > before && h.tools-before+tools > d.opts.MaxTenantTools {
		return nil, &share.LimitError{What: "tools of all agents", Limit: d.opts.MaxTenantTools}
	}
	if e == nil {
		return d.add(tenant, id, size)
	}
	if size > e.bytes && e.tenant.bytes-e.bytes+size > d.opts.MaxBytes {
		return nil, &share.LimitError{What: "bytes of registrations", Limit: d.opts.MaxBytes}
	}
	return e, nil
}

// add makes an entry, if the tenant has room for a registration of that size.
func (d *Directory) add(tenant, id string, size int) (*directoryEntry, error) {
	h := d.tenants[tenant]
	if h == nil {
		h = &tenantAgents{
			tenant: tenant, agents: make(map[string]*directoryEntry),
			providers: make(providers), names: make(providers),
			toolBytes: newToolBytes(d.opts),
		}
	}
	if len(h.agents) >= d.opts.MaxAgents {
		return nil, &share.LimitError{What: "agents", Limit: d.opts.MaxAgents}
	}
	if h.bytes+size+len(id) > d.opts.MaxBytes {
		return nil, &share.LimitError{What: "bytes of registrations", Limit: d.opts.MaxBytes}
	}
	e := &directoryEntry{tenant: h, id: id}
	h.agents[id] = e
	h.bytes += len(id)
	d.tenants[tenant] = h
	return e, nil
}

// remove deletes an entry without links.
func (d *Directory) remove(e *directoryEntry) {
	e.unregister(d.opts.Catalogue.Called)
	h := e.tenant
	h.bytes -= len(e.id)
	delete(h.agents, e.id)
	if len(h.agents) == 0 {
		delete(d.tenants, h.tenant)
	}
}

// leave takes an agent out of the directory, and reports it. While streams are open, the
// entry stays, but is hidden.
func (d *Directory) leave(e *directoryEntry) {
	if e.status != Disconnected && !d.attachedElsewhere(e.tenant.tenant, e.id) {
		e.status = Disconnected
		d.changes.add(e)
	}
	e.reported = false
	d.touch(e)
	if len(e.links) == 0 {
		d.remove(e)
		return
	}
	e.unregister(d.opts.Catalogue.Called)
	e.hidden = true
}

// register replaces the registration. callName is Catalogue.Called.
func (e *directoryEntry) register(r Registration, size int, order uint64, now time.Time, callName func(string) string) {
	before := e.registration.Tools
	h := e.tenant
	h.bytes += size - e.bytes
	h.tools += len(r.Tools) - len(before)
	e.registration, e.order, e.bytes = r, order, size
	e.lastSeen, e.idleSince = now, now
	e.left, e.hidden, e.parted = false, false, false
	e.provide(before, callName)
}

func (e *directoryEntry) unregister(callName func(string) string) {
	before := e.registration.Tools
	h := e.tenant
	h.bytes -= e.bytes
	h.tools -= len(before)
	e.registration, e.order, e.bytes = Registration{}, 0, 0
	e.provide(before, callName)
	e.toolBytes.Leave()
	e.toolBytes = nil
}

// newest returns an agent's newest link.
func (d *Directory) newest(tenant, id string) (*Link, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, ErrClosed
	}
	e := d.entry(tenant, id)
	if e == nil {
		return nil, &NotConnectedError{Agent: id}
	}
	return e.newest()
}

func (e *directoryEntry) newest() (*Link, error) {
	if len(e.links) == 0 {
		return nil, &NotConnectedError{Agent: e.id}
	}
	return e.links[len(e.links)-1], nil
}

func (p provider) tool() AgentTool {
	e := p.entry
	return AgentTool{ProvidedTool: e.registration.Tools[p.place], AgentID: e.id, Connected: len(e.links) > 0}
}

func (e *directoryEntry) agent() Agent {
	a := Agent{
		ID:           e.id,
		Status:       e.status,
		Registration: e.registration,
		LastSeen:     e.lastSeen,
		Streams:      len(e.links),
	}
	if len(e.links) > 0 {
		a.Generation = e.links[len(e.links)-1].generation
	}
	return a
}

// statusAt is the status that the entry has at a time.
func (e *directoryEntry) statusAt(now time.Time, missed int) Status {
	for _, l := range e.links {
		if at := l.overdueAt(missed); at.IsZero() || now.Before(at) {
			return Active
		}
	}
	switch {
	case len(e.links) > 0:
		return Inactive
	case e.left:
		return Disconnected
	case e.registration.Present:
		return Active
	}
	return Idle
}

// Count returns the number of agents of all tenants, and how many of them have an open
// stream.
func (d *Directory) Count() (known, attached int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, h := range d.tenants {
		known += len(h.agents)
		for _, e := range h.agents {
			if len(e.links) > 0 {
				attached++
			}
		}
	}
	return known, attached
}
