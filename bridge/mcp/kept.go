package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// keptList is the list of the servers that were added (memory/FORMAT.md).
const keptList kv.List = "mcp-servers"

// tagServer is the tag of their entries.
const tagServer = 's'

// kept is a server of a tenant that was added.
type kept struct {
	Server
	tenant string
}

func keptScope(tenant string) kv.Scope { return keptList.Part(kv.AgentScope(tenant, "mcp")) }

func keptKey(tenant, name string) []byte { return keptScope(tenant).Key(tagServer, []byte(name)) }

// load reads the servers that were added.
func (c *Clients) load(ctx context.Context) (all []kept, err error) {
	if c.opts.Engine == nil {
		return nil, nil
	}
	for scope, err := range keptList.Scopes(ctx, c.opts.Engine) {
		if err != nil {
			return nil, fmt.Errorf("mcp: read the servers: %w", err)
		}
		for pair, err := range c.opts.Engine.Scan(ctx, kv.System, kv.Prefix(scope.Key(tagServer))) {
			if err != nil {
				return nil, fmt.Errorf("mcp: read the servers: %w", err)
			}
			one := kept{tenant: scope.Tenant}
			if err := json.Unmarshal(pair.Value, &one.Server); err != nil {
				return nil, fmt.Errorf("mcp: read the servers: %w: %q: %w", kv.ErrDamaged, pair.Key, err)
			}
			all = append(all, one)
		}
	}
	return all, nil
}

// keep stores a server.
func (c *Clients) keep(ctx context.Context, tenant string, s Server) error {
	value, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("mcp: keep %s: %w", s.Name, err)
	}
	return c.commit(ctx, tenant, func(tx *kv.Tx) { tx.Put(kv.System, keptKey(tenant, s.Name), value) })
}

// forget deletes a server that was stored, and what its tools were: whoever adds it again has
// looked at it again.
func (c *Clients) forget(ctx context.Context, tenant, name string) error {
	return c.commit(ctx, tenant, func(tx *kv.Tx) {
		tx.Delete(kv.System, keptKey(tenant, name))
		tx.Delete(kv.System, pinsKey(tenant, name))
	})
}

func (c *Clients) commit(ctx context.Context, tenant string, stage func(tx *kv.Tx)) error {
	if c.opts.Writer == nil {
		return nil
	}
	ref := kv.Ref{Keyspace: kv.System, Scope: keptScope(tenant)}
	err := c.opts.Writer.Do(ctx, kv.Request{Refs: []kv.Ref{ref}, Stage: func(_ context.Context, tx *kv.Tx) error {
		stage(tx)
		return nil
	}})
	if err != nil {
		return fmt.Errorf("mcp: store the servers: %w", err)
	}
	return nil
}
