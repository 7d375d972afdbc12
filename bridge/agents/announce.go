package agents

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/mesh"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// Elsewhere reaches the agents of the other bridges on the store. Its methods are safe for
// concurrent use.
type Elsewhere interface {
	// Changed notes that an agent of this bridge is not as it was announced. It is called
	// under a lock of the directory, and returns at once.
	Changed(tenant, id string)
	// Call is Directory.CallHere of another bridge, and Send Directory.SendHere.
	Call(ctx context.Context, at mesh.Peer, tenant, id string, c ToolCall) (ToolResult, error)
	Send(ctx context.Context, at mesh.Peer, tenant, id string, e events.Event) error
	// TakeGap is Directory.HandOverGap of another bridge, and Delete Directory.DeleteHere.
	TakeGap(ctx context.Context, at mesh.Peer, tenant, id string) (Gap, bool, error)
	Delete(ctx context.Context, at mesh.Peer, tenant, id string) error
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

// Fields of an Announced.
const (
	fieldOtherTenant = iota + 1
	fieldOtherID
	fieldOtherStatus
	fieldOtherSeen
	fieldOtherRegistered
	fieldOtherStreams
	fieldOtherGeneration
	fieldOtherOrder
	fieldOtherVersion
	fieldOtherParted
	fieldOtherGone
	fieldOtherTopic
	fieldOtherTool
	fieldOtherMetadata
	fieldOtherCapability
	fieldOtherKind
	fieldOtherParent
	fieldOtherDepth
	fieldOtherExclusive
	fieldOtherPresent
)

// Fields of a tool in it.
const (
	fieldToolName = iota + 1
	fieldToolDescription
	fieldToolSchema
	fieldToolLevel
	fieldToolApproval
	fieldToolMetadata
	fieldToolProvider
)

func appendFlag(b []byte, number int, set bool) []byte {
	if set {
		return wire.AppendNumber(b, number, 1)
	}
	return b
}

func appendPairs(b []byte, number int, pairs map[string]string) []byte {
	for _, pair := range wire.Pairs(pairs) {
		b = wire.AppendItem(b, number, wire.Marshal(pair))
	}
	return b
}

// Encode writes it for another bridge.
func (a *Announced) Encode() []byte {
	b := wire.AppendText(nil, fieldOtherTenant, a.Tenant)
	b = wire.AppendText(b, fieldOtherID, a.ID)
	b = wire.AppendUint(b, fieldOtherStatus, uint64(a.Status))
	b = wire.AppendTime(b, fieldOtherSeen, a.LastSeen)
	b = wire.AppendTime(b, fieldOtherRegistered, a.RegisteredAt)
	b = wire.AppendUint(b, fieldOtherStreams, uint64(a.Streams)) //nolint:gosec // a count
	b = wire.AppendUint(b, fieldOtherGeneration, a.Generation)
	b = wire.AppendUint(b, fieldOtherOrder, a.Order)
	b = wire.AppendUint(b, fieldOtherVersion, a.Version)
	b = appendFlag(b, fieldOtherParted, a.Parted)
	b = appendFlag(b, fieldOtherGone, a.Gone)
	for _, topic := range a.Topics {
		b = wire.AppendItem(b, fieldOtherTopic, topic)
	}
	for i := range a.Tools {
		b = wire.AppendItem(b, fieldOtherTool, a.Tools[i].encode())
	}
	b = appendPairs(b, fieldOtherMetadata, a.Metadata)
	for _, name := range a.Capabilities {
		b = wire.AppendItem(b, fieldOtherCapability, name)
	}
	b = wire.AppendText(b, fieldOtherKind, a.Kind)
	b = wire.AppendText(b, fieldOtherParent, a.Parent)
	b = wire.AppendInt(b, fieldOtherDepth, int64(a.Depth))
	b = appendFlag(b, fieldOtherExclusive, a.Exclusive)
	return appendFlag(b, fieldOtherPresent, a.Present)
}

func (t *ProvidedTool) encode() []byte {
	b := wire.AppendText(nil, fieldToolName, t.Name)
	b = wire.AppendText(b, fieldToolDescription, t.Description)
	b = wire.AppendText(b, fieldToolSchema, t.Schema)
	b = wire.AppendInt(b, fieldToolLevel, int64(t.Level))
	b = appendFlag(b, fieldToolApproval, t.RequiresApproval)
	b = appendPairs(b, fieldToolMetadata, t.Metadata)
	return wire.AppendInt(b, fieldToolProvider, int64(t.Provider))
}

// DecodeAnnounced reads what Encode wrote.
func DecodeAnnounced(b []byte) (a Announced, err error) {
	for f, err := range wire.Fields(b) {
		if err != nil {
			return Announced{}, damaged(err)
		}
		switch f.Number {
		case fieldOtherTenant:
			a.Tenant = string(f.Bytes)
		case fieldOtherID:
			a.ID = string(f.Bytes)
		case fieldOtherStatus:
			a.Status = Status(min(f.Value, uint64(Disconnected)))
		case fieldOtherSeen:
			a.LastSeen = f.Time()
		case fieldOtherRegistered:
			a.RegisteredAt = f.Time()
		case fieldOtherStreams:
			a.Streams = int(min(f.Value, 1<<30))
		case fieldOtherGeneration:
			a.Generation = f.Value
		case fieldOtherOrder:
			a.Order = f.Value
		case fieldOtherVersion:
			a.Version = f.Value
		case fieldOtherParted:
			a.Parted = f.Value != 0
		case fieldOtherGone:
			a.Gone = f.Value != 0
		default:
			if err := a.Registration.decodeField(f); err != nil {
				return Announced{}, err
			}
		}
	}
	return a, nil
}

func (r *Registration) decodeField(f wire.Field) error {
	switch f.Number {
	case fieldOtherTopic:
		r.Topics = append(r.Topics, string(f.Bytes))
	case fieldOtherTool:
		t, err := decodeTool(f.Bytes)
		r.Tools = append(r.Tools, t)
		return err
	case fieldOtherMetadata:
		return addPair(f.Bytes, &r.Metadata)
	case fieldOtherCapability:
		r.Capabilities = append(r.Capabilities, string(f.Bytes))
	case fieldOtherKind:
		r.Kind = string(f.Bytes)
	case fieldOtherParent:
		r.Parent = string(f.Bytes)
	case fieldOtherDepth:
		r.Depth = int(f.Int())
	case fieldOtherExclusive:
		r.Exclusive = f.Value != 0
	case fieldOtherPresent:
		r.Present = f.Value != 0
	}
	return nil
}

func decodeTool(b []byte) (t ProvidedTool, err error) {
	for f, err := range wire.Fields(b) {
		if err != nil {
			return ProvidedTool{}, damaged(err)
		}
		switch f.Number {
		case fieldToolName:
			t.Name = string(f.Bytes)
		case fieldToolDescription:
			t.Description = string(f.Bytes)
		case fieldToolSchema:
			t.Schema = string(f.Bytes)
		case fieldToolLevel:
			t.Level = int(f.Int())
		case fieldToolApproval:
			t.RequiresApproval = f.Value != 0
		case fieldToolMetadata:
			if err := addPair(f.Bytes, &t.Metadata); err != nil {
				return ProvidedTool{}, err
			}
		case fieldToolProvider:
			t.Provider = int32(f.Int()) //nolint:gosec // written from an int32
		}
	}
	t.Usable = isObject(t.Schema)
	return t, nil
}

func addPair(b []byte, to *map[string]string) error {
	var pair storev1.Pair
	if err := wire.Unmarshal(b, &pair); err != nil {
		return damaged(err)
	}
	if *to == nil {
		*to = make(map[string]string)
	}
	(*to)[pair.Key] = pair.Value
	return nil
}

// Encode writes a gap for another bridge.
func (g Gap) Encode() []byte { return encodeGap(storedGap{Gap: g}) }

// DecodeGap reads what Encode wrote.
func DecodeGap(b []byte) (Gap, error) {
	stored, err := decodeGap(b)
	return stored.Gap, err
}
