package compose

import (
	"context"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/places"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// openChildren opens what makes children. It is behind the hand, which records the steps of
// parents.
func (d *Domain) openChildren(writer *kv.Writer, o *children.Options) {
	if d.peers != nil {
		o.OnResult = d.peers.Result
	}
	o.Attached = d.attached
	d.Children = children.New(children.Deps{
		Store: d.Family, Writer: writer, Log: d.Log, Hand: d.Hand, Blobs: d.Blobs, Keep: d.Blobs.StageKept, Folders: places.NewFolders(d.Places, d.folders), Forks: d.Assembler,
		Notifier: topics.Notifier{Bus: d.Events},
		InUse: func(tenant, agent string) bool {
			_, known := d.Agents.Get(tenant, agent)
			return known
		},
		ToolName: func(tenant, name string) (string, bool) {
			tool, err := d.Tools.Lookup(tenant, name)
			if err != nil {
				return "", false
			}
			return tool.Descriptor().Name, true
		},
		HasProfile: func(name string) bool {
			_, found := d.Policies.Set().Profile(name)
			return found
		},
	}, o)
	d.onClose(d.Children.Close)
}

// attached reports whether an agent has a stream, here or at another server on the store.
func (d *Domain) attached(tenant, agent string) bool {
	found, known := d.Agents.Get(tenant, agent)
	return known && hasStream(found.Status)
}

func hasStream(s agents.Status) bool { return s == agents.Active || s == agents.Inactive }

// spawner is the domain's own, which is opened behind the bus.
type spawner struct{ d *Domain }

func (s spawner) Spawn(ctx context.Context, r children.Spawn) (children.Child, error) {
	return s.d.Children.Spawn(ctx, r)
}

func (s spawner) Complete(ctx context.Context, scope kv.Scope, r children.Result) (children.Child, error) {
	return s.d.Children.Complete(ctx, scope, r)
}

func (s spawner) Acts(ctx context.Context, scope kv.Scope) error { return s.d.Family.Acts(ctx, scope) }

// changed takes changed statuses of agents.
func (d *Domain) changed(tenant string, c agents.Change) {
	if !c.Elsewhere || c.Lost {
		topics.Notices{Bus: d.Events}.Status(tenant, c)
	}
	if d.Children != nil {
		d.Children.Attached(tenant, c.AgentID, hasStream(c.Status))
	}
}
