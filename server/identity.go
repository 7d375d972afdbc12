package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// DefaultTenant is the one tenant there is while authentication is off.
const DefaultTenant = "default"

// Identity is a caller: the tenant it belongs to and the agents it may act
// for. It is made from a credential, never from a request.
type Identity struct {
	tenant   string
	patterns []string
	// edits are the agents beside its own whose records in people's memories the caller
	// may change.
	edits []string
	// provides are the tools that the caller's agents may provide; nil: all.
	provides []string
}

// Tenant is whose data the caller sees.
func (i Identity) Tenant() string { return i.tenant }

// Owns tells whether the caller may act for agent.
func (i Identity) Owns(agent string) bool { return matchesAny(i.patterns, agent) }

// Provides tells whether the caller's agents may provide a tool of that name.
func (i Identity) Provides(tool string) bool {
	return i.provides == nil || matchesAny(i.provides, tool)
}

// ownsAll tells whether the caller may act for every agent of its tenant.
func (i Identity) ownsAll() bool { return slices.Contains(i.patterns, "*") }

// matchesAny tells whether a name is one of the patterns: exact names, or a beginning
// and *.
func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
			return strings.HasPrefix(name, prefix)
		}
		return pattern == name
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

// sharedMemory is memoryScope for calls that change something. A person's memory is
// shared, and what stands in it belongs to who saved it.
func sharedMemory(ctx context.Context, agent, user string) (context.Context, kv.Scope, error) {
	scope, err := memoryScope(ctx, agent, user)
	if err != nil || user == "" {
		return ctx, scope, err
	}
	actor := memory.Actor{Agent: agent}
	if id, _ := ctx.Value(identityKey{}).(Identity); !id.ownsAll() {
		actor.Acts = func(other string) bool { return id.Owns(other) || matchesAny(id.edits, other) }
	}
	return memory.As(ctx, actor), scope, nil
}

// mayProvide refuses tools that the caller's credential does not let its agents
// provide.
func mayProvide(ctx context.Context, tools []*loombridgev1.ProvidedTool) error {
	id, _ := ctx.Value(identityKey{}).(Identity)
	for _, tool := range tools {
		if !id.Provides(tool.GetName()) {
			return &toolNotAllowedError{tool.GetName()}
		}
	}
	return nil
}

// toolNotAllowedError names a tool that a credential does not let agents provide. It
// is an ErrToolNotAllowed.
type toolNotAllowedError struct{ tool string }

func (e *toolNotAllowedError) Error() string {
	return fmt.Sprintf("server: the credential does not let its agents provide the tool %q (provides in the credentials file)", e.tool)
}

func (e *toolNotAllowedError) Is(target error) bool { return target == ErrToolNotAllowed }

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
