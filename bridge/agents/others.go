package agents

import (
	"context"
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/bridge/events"
)

// maxOthers bounds the agents of other bridges that are known; further ones are not.
const maxOthers = 16 * DefaultMaxAgents

// others are the agents of other bridges. The directory's mu guards them.
type others struct {
	tenants map[string]*otherTenant
	rounds  map[string]uint64 // of Directory.Relearn
	count   int
}

// otherTenant are other bridges' agents of one tenant; no list is empty.
type otherTenant struct {
	agents map[string][]*other // by id
	tools  map[string][]*other // by the names of their tools
	names  map[string][]*other // by the names that models call those tools by
}

// other is an agent as one other bridge announced it.
type other struct {
	Announced
	at    string // its bridge
	round uint64
}

// best returns the bridge that an agent is at; nil for none.
func (o *others) best(tenant, id string) *other {
	h := o.tenants[tenant]
	if h == nil {
		return nil
	}
	return bestOf(h.agents[id])
}

func bestOf(all []*other) (best *other) {
	for _, a := range all {
		if !a.Gone && (best == nil || a.rank().compare(best.rank()) > 0) {
			best = a
		}
	}
	return best
}

func (o *others) find(at, tenant, id string) *other {
	if h := o.tenants[tenant]; h != nil {
		for _, a := range h.agents[id] {
			if a.at == at {
				return a
			}
		}
	}
	return nil
}

func (o *others) put(a *other, called func(string) string) {
	h := o.tenants[a.Tenant]
	if h == nil {
		h = &otherTenant{agents: make(map[string][]*other), tools: make(map[string][]*other), names: make(map[string][]*other)}
		if o.tenants == nil {
			o.tenants, o.rounds = make(map[string]*otherTenant), make(map[string]uint64)
		}
		o.tenants[a.Tenant] = h
	}
	o.count++
	h.agents[a.ID] = append(h.agents[a.ID], a)
	for i := range a.Tools {
		name := a.Tools[i].Name
		h.tools[name] = append(h.tools[name], a)
		h.names[called(name)] = append(h.names[called(name)], a)
	}
}

func (o *others) remove(a *other, called func(string) string) {
	h := o.tenants[a.Tenant]
	o.count--
	drop(h.agents, a.ID, a)
	for i := range a.Tools {
		drop(h.tools, a.Tools[i].Name, a)
		drop(h.names, called(a.Tools[i].Name), a)
	}
	if len(h.agents) == 0 {
		delete(o.tenants, a.Tenant)
	}
}

func drop(from map[string][]*other, key string, a *other) {
	left := slices.DeleteFunc(from[key], func(x *other) bool { return x == a })
	if from[key] = left; len(left) == 0 {
		delete(from, key)
	}
}

// Learn takes in how another bridge announced an agent, unless a later version is known.
func (d *Directory) Learn(from string, a Announced) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.others.find(from, a.Tenant, a.ID)
	if d.closed || known != nil && known.Version > a.Version || known == nil && d.others.count >= maxOthers {
		return
	}
	before := d.others.best(a.Tenant, a.ID)
	if known != nil {
		d.others.remove(known, d.opts.Catalogue.Called)
	}
	d.lastGeneration, d.lastOrder = max(d.lastGeneration, a.Generation), max(d.lastOrder, a.Order)
	d.others.put(&other{a, from, d.others.rounds[from]}, d.opts.Catalogue.Called)
	d.follow(a.Tenant, a.ID, before, false)
}

// Relearn starts a new listing of all agents of another bridge. Call done when it is
// complete: it removes the agents that were not listed.
func (d *Directory) Relearn(from string) (done func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.others.rounds == nil {
		d.others.tenants, d.others.rounds = make(map[string]*otherTenant), make(map[string]uint64)
	}
	d.others.rounds[from]++
	round := d.others.rounds[from]
	return func() {
		d.forget(func(a *other) bool { return a.at == from && (a.round < round || a.Gone) }, false)
	}
}

// Forget forgets all agents of a bridge that is gone. Those that are attached nowhere else
// are reported as disconnected, and as lost.
func (d *Directory) Forget(from string) {
	d.forget(func(a *other) bool { return a.at == from }, true)
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.others.rounds, from)
}

func (d *Directory) forget(match func(*other) bool, lost bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var gone []*other
	for _, h := range d.others.tenants {
		for _, all := range h.agents {
			for _, a := range all {
				if match(a) {
					gone = append(gone, a)
				}
			}
		}
	}
	for _, a := range gone {
		before := d.others.best(a.Tenant, a.ID)
		d.others.remove(a, d.opts.Catalogue.Called)
		d.follow(a.Tenant, a.ID, before, lost)
	}
}

// follow reports what another bridge's agent has become. The caller holds mu.
func (d *Directory) follow(tenant, id string, before *other, lost bool) {
	e, after := d.entry(tenant, id), d.others.best(tenant, id)
	if e != nil && len(e.links) > 0 || d.closed {
		return // it is at this bridge
	}
	was, is := Disconnected, Disconnected
	if before != nil {
		was = before.Status
	}
	agent := before
	if after != nil {
		is, agent = after.Status, after
	}
	if e != nil {
		e.status, e.reported = is, true
	}
	if agent != nil && was != is {
		d.changes.push(changedAgent{tenant, Change{
			AgentID: id, Status: is, Capabilities: firstOf(agent.Capabilities), Parent: agent.Parent, Depth: agent.Depth,
			LastSeen: agent.LastSeen, Elsewhere: true, Lost: lost,
		}})
	}
}

// attachedElsewhere reports whether another bridge has a stream of an agent. The caller
// holds mu.
func (d *Directory) attachedElsewhere(tenant, id string) bool {
	best := d.others.best(tenant, id)
	return best != nil && best.Streams > 0
}

// merged returns an agent as all bridges together have it. Either may be nil. The caller
// holds mu.
func merged(e *directoryEntry, all []*other) (Agent, bool) {
	best := bestOf(all)
	if e != nil && e.hidden {
		e = nil
	}
	if e == nil && best == nil {
		return Agent{}, false
	}
	streams := 0
	for _, a := range all {
		if !a.Gone {
			streams += a.Streams
		}
	}
	if best == nil || e != nil && e.rank().compare(best.rank()) >= 0 {
		a := e.agent()
		a.Streams += streams
		return a, true
	}
	a := best.Agent
	if a.Streams = streams; e != nil {
		a.Streams += len(e.links)
	}
	return a, true
}

// answerer is who answers calls of a tool: an agent of this bridge, or of another one.
type answerer struct {
	entry *directoryEntry
	other *other
	tool  AgentTool
}

// target returns who answers calls of a tool that somebody registered, at whichever
// bridge: whose name it is, else one with an open stream, of this bridge before others,
// else the latest of this bridge. The caller holds mu.
func (d *Directory) target(tenant, name string) (t answerer, found bool) {
	h, o := d.tenants[tenant], d.others.tenants[tenant]
	var local *provider
	if h != nil && len(h.providers[name]) > 0 {
		p := h.provider(name)
		local = &p
	}
	var far *other
	if o != nil {
		far = chosen(o.tools[name])
	}
	switch {
	case local == nil && far == nil:
		return answerer{}, false
	case far == nil || local != nil && !preferred(far, local.entry):
		id := local.entry.id
		t = answerer{entry: local.entry, tool: local.tool()}
		far = nil
		if o != nil {
			far = bestOf(o.agents[id])
		}
		if far == nil || far.rank().compare(local.entry.rank()) <= 0 {
			return t, true
		}
		if tool, has := far.tool(name); has { // it has moved
			return answerer{other: far, tool: tool}, true
		}
		return t, true
	}
	tool, _ := far.tool(name)
	return answerer{other: far, tool: tool}, true
}

// chosen is the agent of other bridges that answers calls of a tool that all have.
func chosen(all []*other) (best *other) {
	better := func(a, b *other) bool {
		switch aKeeps, bKeeps := a.Exclusive && a.holds(), b.Exclusive && b.holds(); {
		case aKeeps != bKeeps:
			return aKeeps
		case a.ID == b.ID:
			return a.rank().compare(b.rank()) > 0
		case a.Streams > 0 != (b.Streams > 0):
			return a.Streams > 0
		}
		return a.Order < b.Order
	}
	for _, a := range all {
		if !a.Gone && (best == nil || better(a, best)) {
			best = a
		}
	}
	return best
}

// preferred reports whether a call goes to the agent of another bridge and not to that of
// this one.
func preferred(far *other, near *directoryEntry) bool {
	if far.ID == near.id {
		return far.rank().compare(near.rank()) > 0
	}
	farKeeps, nearKeeps := far.Exclusive && far.holds(), near.registration.Exclusive && near.holds()
	switch {
	case farKeeps != nearKeeps:
		return farKeeps
	case len(near.links) > 0:
		return farKeeps && far.Streams > 0 && far.Order < near.order // two took the name at once
	}
	return far.Streams > 0
}

// CallHere has an agent of this bridge run one of its tools, for a caller at another
// bridge; see Call.
func (d *Directory) CallHere(ctx context.Context, tenant, id string, c ToolCall) (ToolResult, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultCallTimeout)
		defer cancel()
		deadline, _ = ctx.Deadline()
	}
	for {
		link, err := d.newest(tenant, id)
		if err != nil {
			return ToolResult{}, err
		}
		if result, ended, err := link.run(ctx, c, deadline); !ended {
			return result, err
		}
	}
}

// SendHere is Send for an agent of this bridge.
func (d *Directory) SendHere(tenant, id string, e events.Event) error {
	for {
		link, err := d.newest(tenant, id)
		if err != nil {
			return err
		}
		if err = link.direct.push(e); !isEnded(err) {
			return busy(id, err)
		}
	}
}

// elsewhereFor returns the bridge of an agent that is at another one.
func (d *Directory) elsewhereFor(tenant, id string) (at string, found bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	best := d.others.best(tenant, id)
	if best == nil || best.Streams == 0 {
		return "", false
	}
	if e := d.entry(tenant, id); e != nil && e.rank().compare(best.rank()) >= 0 {
		return "", false
	}
	return best.at, true
}

// knownBy returns the other bridges that know an agent, the one that it was at last first.
func (d *Directory) knownBy(tenant, id string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.others.tenants[tenant]
	if h == nil {
		return nil
	}
	all := slices.Clone(h.agents[id])
	slices.SortFunc(all, func(a, b *other) int { return b.rank().compare(a.rank()) })
	var peers []string
	for _, a := range all {
		if !a.Gone {
			peers = append(peers, a.at)
		}
	}
	return peers
}

// takeElsewhere takes the gap of an agent from another bridge that knows it. What a bridge
// can't be asked for is in the store.
func (d *Directory) takeElsewhere(ctx context.Context, tenant, id string) (g Gap, found bool) {
	if d.opts.Elsewhere == nil {
		return Gap{}, false
	}
	for _, at := range d.knownBy(tenant, id) {
		g, found, err := d.opts.Elsewhere.TakeGap(ctx, at, tenant, id)
		if err != nil {
			d.opts.Logger.Warn("could not ask a bridge for the events sent to an agent", "bridge", at, "agent", id, "error", err)
		}
		if found {
			return g, true
		}
	}
	return Gap{}, false
}

// deleteElsewhere deletes an agent at the other bridges that know it.
func (d *Directory) deleteElsewhere(ctx context.Context, tenant, id string) (known bool, err error) {
	if d.opts.Elsewhere == nil {
		return false, nil
	}
	for _, at := range d.knownBy(tenant, id) {
		if err := d.opts.Elsewhere.Delete(ctx, at, tenant, id); err != nil {
			return true, fmt.Errorf("agents: delete at another bridge: %w", err)
		}
		known = true
	}
	return known, nil
}
