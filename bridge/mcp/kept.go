package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// keptList is the list of the servers that were added (memory/FORMAT.md).
const keptList kv.List = "mcp-servers"

// tagServer is the tag of their entries.
const tagServer = 's'

// addedServer is a server of a tenant that was added.
type addedServer struct {
	Server
	tenant string
	form   byte // how it is stored; 0 in plain
	closed bool // this machine can't read it: it has a name and no more
}

func keptScope(tenant string) kv.Scope { return keptList.Part(kv.AgentScope(tenant, "mcp")) }

func keptKey(tenant, name string) []byte { return keptScope(tenant).Key(tagServer, []byte(name)) }

// load reads the servers that were added.
func (c *Clients) load(ctx context.Context) (all []addedServer, err error) {
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
			one := addedServer{tenant: scope.Tenant}
			one.form, one.Server, err = c.vault.open(pair.Key, pair.Value)
			if one.closed = errors.Is(err, errSealed); one.closed {
				one.Server = Server{Name: string(bytes.TrimPrefix(pair.Key, scope.Key(tagServer)))}
			} else if err != nil {
				return nil, fmt.Errorf("mcp: read the servers: %q: %w", pair.Key, err)
			}
			all = append(all, one)
		}
	}
	return all, nil
}

// keep stores a server in a form.
func (c *Clients) keep(ctx context.Context, form byte, tenant string, s Server) error {
	key := keptKey(tenant, s.Name)
	value, err := c.vault.seal(form, key, s)
	if err != nil {
		return fmt.Errorf("mcp: keep %s: %w", s.Name, err)
	}
	return c.commit(ctx, tenant, func(_ context.Context, tx *kv.Tx) error {
		tx.Put(kv.System, key, value)
		return nil
	})
}

func (c *Clients) commit(ctx context.Context, tenant string, stage func(ctx context.Context, tx *kv.Tx) error) error {
	if c.opts.Writer == nil {
		return nil
	}
	ref := kv.Ref{Keyspace: kv.System, Scope: keptScope(tenant)}
	err := c.opts.Writer.Do(ctx, kv.Request{Refs: []kv.Ref{ref}, Stage: stage})
	if err != nil {
		return fmt.Errorf("mcp: store the servers: %w", err)
	}
	return nil
}
