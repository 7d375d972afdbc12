package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// DefaultTenant is the one tenant there is while authentication is off.
const DefaultTenant = "default"

// Identity is a caller: the tenant it belongs to and the agents it may act
// for. It is made from a credential, never from a request.
type Identity struct {
	tenant   string
	patterns []string
}

// Tenant is whose data the caller sees.
func (i Identity) Tenant() string { return i.tenant }

// Owns tells whether the caller may act for agent.
func (i Identity) Owns(agent string) bool {
	return slices.ContainsFunc(i.patterns, func(pattern string) bool {
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
			return strings.HasPrefix(agent, prefix)
		}
		return pattern == agent
	})
}

type identityKey struct{}

func withIdentity(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// callerFor returns the identity behind ctx if it may act for agent.
func callerFor(ctx context.Context, agent string) (Identity, error) {
	id, ok := ctx.Value(identityKey{}).(Identity)
	if !ok {
		return Identity{}, ErrUnauthenticated
	}
	if !id.Owns(agent) {
		return Identity{}, fmt.Errorf("%w: %q", ErrAgentNotOwned, agent)
	}
	return id, nil
}

// tenantOf is whose data the call behind ctx works on.
func tenantOf(ctx context.Context) (string, error) {
	id, ok := ctx.Value(identityKey{}).(Identity)
	if !ok {
		return "", ErrUnauthenticated
	}
	return id.tenant, nil
}

// agentScope is the scope of the agent itself.
func agentScope(ctx context.Context, agent string) (kv.Scope, error) {
	id, err := callerFor(ctx, agent)
	if err != nil {
		return kv.Scope{}, err
	}
	return kv.AgentScope(id.tenant, agent), nil
}

// memoryScope is the scope of the person, when one is named, or the agent's.
func memoryScope(ctx context.Context, agent, user string) (kv.Scope, error) {
	scope, err := agentScope(ctx, agent)
	if err != nil || user == "" {
		return scope, err
	}
	return kv.Scope{Tenant: scope.Tenant, Kind: kv.OwnerUser, Owner: user}, nil
}
