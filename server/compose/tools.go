package compose

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/messages"
	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/bridge/native/web"
	"github.com/loom-bridge/loom-bridge/bridge/tools/search"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/server/auth"
)

// openTools puts the server's own tools into the registry.
func (d *Domain) openTools(o Options) error {
	if err := native.Register(d.Registry, &native.Options{Store: o.StoreDir, Blobs: d.reader(true), Memory: d.Tiers, Shell: o.Shell, Agents: agentTools{d}}); err != nil {
		return err
	}
	if o.Web != nil {
		o.Web.Gate = d.Egress
		if err := web.Register(d.Registry, *o.Web); err != nil {
			return err
		}
	}
	if err := search.Register(d.Registry, search.NewFinder(d.Tools)); err != nil {
		return err
	}
	if err := d.Registry.CheckLevels(); err != nil {
		return fmt.Errorf("the level of a tool: %w", err)
	}
	return nil
}

// agentTools is what the tools of agents work on; children are opened behind the tools.
type agentTools struct{ d *Domain }

func (a agentTools) Prepare(ctx context.Context, r children.Spawn) (*children.Birth, error) {
	if _, err := auth.AgentScope(ctx, r.Child); err != nil {
		return nil, fmt.Errorf("%w: %w", native.ErrNotOwned, err)
	}
	return a.d.Children.Prepare(ctx, r)
}

func (a agentTools) Complete(ctx context.Context, scope kv.Scope, r children.Result) (children.Child, error) {
	return a.d.Children.Complete(ctx, scope, r)
}

func (a agentTools) Send(ctx context.Context, tenant string, m messages.Message) (messages.Message, error) {
	return topics.Sender{Box: a.d.Messages, Bus: a.d.Events}.Send(ctx, tenant, m)
}
