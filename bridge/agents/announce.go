package agents

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/loom-bridge/loom-bridge/bridge/events"
)

// Elsewhere reaches the agents of the other bridges on the store. A bridge is named by at, as it
// announced its agents. Its methods are safe for concurrent use.
type Elsewhere interface {
	// Changed notes that an agent of this bridge is not as it was announced. It is called
	// under a lock of the directory, and returns at once.
	Changed(tenant, id string)
	// Call is Directory.CallHere of another bridge, and Send Directory.SendHere.
	Call(ctx context.Context, at, tenant, id string, c ToolCall) (ToolResult, error)
	Send(ctx context.Context, at, tenant, id string, e events.Event) error
	// TakeGap is Directory.HandOverGap of another bridge, and Delete Directory.DeleteHere.
	TakeGap(ctx context.Context, at, tenant, id string) (Gap, bool, error)
	Delete(ctx context.Context, at, tenant, id string) error
}

// Announced is an agent of one bridge, as the other bridges know it.
type Announced struct {
	Tenant string
	Agent
	// Order is when it last registered, in the count of all bridges; 0 if it has not.
	Order uint64
	// Version rises with each change of an agent of that bridge.
	Version uint64
	// Parted: its last stream ended, and it said that it would not come back.
	Parted bool
	// Gone: it is in the directory no more. Only Tenant, ID and Version are set.
	Gone bool
}

// Bytes is about how large it is.
func (a *Announced) Bytes() int {
	return a.size() + len(a.Tenant) + len(a.ID) + itemBytes
}

// rank says which of several bridges an agent is at: where a stream was opened last,
// else where it registered last.
type rank struct {
	attached          bool
	generation, order uint64
}

func (r rank) compare(o rank) int {
	attached := 0
	if r.attached != o.attached {
		if attached = -1; r.attached {
			attached = 1
		}
	}
	return cmp.Or(attached, cmp.Compare(r.generation, o.generation), cmp.Compare(r.order, o.order))
}

func (a *Announced) rank() rank { return rank{a.Streams > 0, a.Generation, a.Order} }

func (e *directoryEntry) rank() rank {
	r := rank{attached: len(e.links) > 0, order: e.order}
	if r.attached {
		r.generation = e.links[len(e.links)-1].generation
	}
	return r
}

// holds reports whether the agent keeps the names of its tools.
func (a *Announced) holds() bool { return a.Streams > 0 || a.Order > 0 && !a.Parted }

// tool returns one of its tools by name.
func (a *Announced) tool(name string) (AgentTool, bool) {
	at := slices.IndexFunc(a.Tools, func(t ProvidedTool) bool { return t.Name == name })
	if at < 0 {
		return AgentTool{}, false
	}
	return AgentTool{ProvidedTool: a.Tools[at], AgentID: a.ID, Connected: a.Streams > 0}, true
}

// touch marks an entry to be announced to the other bridges. The caller holds mu.
func (d *Directory) touch(e *directoryEntry) {
	if d.opts.Elsewhere != nil {
		d.version++
		e.version = d.version
		d.opts.Elsewhere.Changed(e.tenant.tenant, e.id)
	}
}

// Announce describes an agent of this bridge, one that has left included.
func (d *Directory) Announce(tenant, id string) Announced {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.entry(tenant, id)
	if e == nil || e.hidden {
		return Announced{Tenant: tenant, Agent: Agent{ID: id}, Version: d.version, Gone: true}
	}
	return e.announced()
}

func (e *directoryEntry) announced() Announced {
	return Announced{Tenant: e.tenant.tenant, Agent: e.agent(), Order: e.order, Version: e.version, Parted: e.parted}
}

// AnnounceAll describes the agents of this bridge behind one of them, in the order of
// tenants and ids, until they take so many bytes. More reports whether there are others.
func (d *Directory) AnnounceAll(tenant, id string, bytes int) (all []Announced, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(d.tenants)) {
		if name < tenant {
			continue
		}
		h := d.tenants[name]
		for _, agent := range slices.Sorted(maps.Keys(h.agents)) {
			e := h.agents[agent]
			if e.hidden || name == tenant && agent <= id {
				continue
			}
			if bytes -= e.bytes + len(agent) + itemBytes; bytes < 0 && len(all) > 0 {
				return all, true
			}
			all = append(all, e.announced())
		}
	}
	return all, false
}
