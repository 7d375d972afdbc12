package agents

import (
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// toolOverhead is what a tool counts for in addition to its texts.
const toolOverhead = 64

func newToolBytes(o Options) *share.Pool {
	return share.New(share.Options{
		Name: "bytes of agents' tools", Total: int64(o.MaxTenantToolBytes),
		Quota: true, OneTenant: true,
	})
}

// taken returns a *TakenError for the first tool whose name is not to be had.
func (d *Directory) taken(tenant, id string, tools []ProvidedTool) error {
	own := make(map[string]string, len(tools))
	h := d.tenants[tenant]
	for _, t := range tools {
		name := d.opts.Catalogue.Called(t.Name)
		if other, twice := own[name]; twice {
			return &TakenError{Tool: t.Name, By: other, Agent: id}
		}
		own[name] = t.Name
		if !d.opts.Catalogue.Takes(t.Name) {
			return &TakenError{Tool: t.Name}
		}
		if o := d.others.tenants[tenant]; o != nil {
			for _, far := range o.names[name] {
				if far.ID != id && !far.Gone && far.holds() {
					return &TakenError{Tool: t.Name, By: d.calledAlike(far, name), Agent: far.ID}
				}
			}
		}
		if h == nil {
			continue
		}
		for _, p := range h.names[name] {
			if p.entry.id != id && p.entry.holds() {
				return &TakenError{Tool: t.Name, By: p.tool().Name, Agent: p.entry.id}
			}
		}
	}
	return nil
}

// calledAlike is the tool of another bridge's agent that models call by a name.
func (d *Directory) calledAlike(far *other, called string) string {
	for i := range far.Tools {
		if d.opts.Catalogue.Called(far.Tools[i].Name) == called {
			return far.Tools[i].Name
		}
	}
	return called
}

// holds reports whether the agent keeps the names of its tools: it is attached, or may
// come back.
func (e *directoryEntry) holds() bool { return len(e.links) > 0 || !e.parted }

// budget returns the tools of a registration that there is room for, and takes it.
// Where all are needed it is an error if there are others.
func (d *Directory) budget(e *directoryEntry, r Registration) ([]ProvidedTool, error) {
	tools, bytes := r.Tools, bytesOf(r.Tools)
	for {
		err := d.roomForTools(e, bytes)
		switch {
		case err == nil:
			return tools, nil
		case r.Exclusive:
			return nil, err
		}
		last := len(tools) - 1
		bytes -= bytesOf(tools[last:])
		tools = slices.Clip(tools[:last])
	}
}

func (d *Directory) roomForTools(e *directoryEntry, bytes int) error {
	switch {
	case bytes > d.opts.MaxToolBytes:
		return invalid.Field(ErrInvalid, "tools", "take %d bytes together, over the limit of %d", bytes, d.opts.MaxToolBytes)
	case e.toolBytes != nil:
		return e.toolBytes.Resize(int64(bytes))
	}
	place, err := e.tenant.toolBytes.TryTake(share.Owner{Agent: e.id}, int64(bytes))
	if err != nil {
		return fmt.Errorf("agents: register: %w", err)
	}
	e.toolBytes = place
	return nil
}

func bytesOf(tools []ProvidedTool) int {
	size := 0
	for _, t := range tools {
		size += len(t.Name) + len(t.Description) + len(t.Schema) + toolOverhead
	}
	return size
}

// provide puts the entry among the providers of its tools, and takes it out of those
// of tools that it had before. Where it stays it keeps its place.
func (e *directoryEntry) provide(before []ProvidedTool, callName func(string) string) {
	h := e.tenant
	places := make(map[string]int, len(e.registration.Tools))
	for i, t := range e.registration.Tools {
		places[t.Name] = i
	}
	for _, t := range before {
		if _, stays := places[t.Name]; !stays {
			h.providers.remove(t.Name, e)
			h.names.remove(callName(t.Name), e)
		}
	}
	for i, t := range e.registration.Tools {
		h.providers.put(t.Name, provider{e, i})
		h.names.put(callName(t.Name), provider{e, i})
	}
}

// providers are agents by the names of their tools. No list is empty.
type providers map[string][]provider

func (all providers) put(name string, p provider) {
	at := slices.IndexFunc(all[name], func(other provider) bool { return other.entry == p.entry })
	if at < 0 {
		all[name] = append(all[name], p)
		return
	}
	all[name][at] = p
}

func (all providers) remove(name string, e *directoryEntry) {
	left := slices.DeleteFunc(all[name], func(p provider) bool { return p.entry == e })
	if all[name] = left; len(left) == 0 {
		delete(all, name)
	}
}

// provider returns who answers calls of a tool that somebody registered: whose name
// it is, else the first with an open stream, else the latest.
func (h *tenantAgents) provider(name string) provider {
	all := h.providers[name]
	for _, p := range all {
		if p.entry.registration.Exclusive && p.entry.holds() {
			return p
		}
	}
	for _, p := range all {
		if len(p.entry.links) > 0 {
			return p
		}
	}
	return all[len(all)-1]
}

// provider returns the link for calls of a tool, or the agent of another bridge.
func (d *Directory) provider(tenant, name string) (*Link, *other, error) {
	link, far, found, err := d.attachedProvider(tenant, name)
	if found || err != nil {
		return link, far, err
	}
	if id, ok := d.awayProvider(tenant, name); ok {
		return nil, nil, &NotConnectedError{Agent: id}
	}
	return nil, nil, fmt.Errorf("%w: tool %s", ErrNotFound, name)
}

func (d *Directory) attachedProvider(tenant, name string) (link *Link, far *other, found bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, nil, false, ErrClosed
	}
	t, found := d.target(tenant, name)
	switch {
	case !found:
		return nil, nil, false, nil
	case t.other == nil:
		link, err = t.entry.newest()
		return link, nil, true, err
	case t.other.Streams == 0:
		return nil, nil, true, &NotConnectedError{Agent: t.other.ID}
	}
	return nil, t.other, true, nil
}

// awayProvider returns the agent that provided a tool lately, unless it has
// registered since without it.
func (d *Directory) awayProvider(tenant, name string) (id string, ok bool) {
	if id, ok = d.known.provider(tenant, name); !ok {
		return "", false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.entry(tenant, id)
	return id, e == nil || e.order == 0
}
