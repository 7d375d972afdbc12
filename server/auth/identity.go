package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/loom-bridge/loom-bridge/memory/grants"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// DefaultTenant is the one tenant there is while authentication is off.
const DefaultTenant = "default"

// Errors of callers. Clients see the texts.
var (
	// ErrUnauthenticated: no credential, or an unknown one.
	ErrUnauthenticated = errors.New("server: unauthenticated")
	// ErrAgentNotOwned: the credential may not act for this agent.
	ErrAgentNotOwned = errors.New("server: agent not owned by the credential")
	// ErrNotApprover: the credential may not approve calls.
	ErrNotApprover = errors.New("server: the credential approves no calls (approves in the credentials file)")
	// ErrNotOperator: the credential is not one of who runs the server.
	ErrNotOperator = errors.New("server: the credential does not run the server (operates in the credentials file)")
	// ErrToolNotAllowed: the credential does not let its agents provide the tool.
	ErrToolNotAllowed = errors.New("server: tool not allowed by the credential")
)

// Identity is a caller: the tenant it belongs to and the agents it may act
// for. It is made from a credential, never from a request.
type Identity struct {
	tenant   string
	patterns []string
	// edits are the other agents whose records in people's memories the caller may change.
	edits []string
	// approves are the agents whose calls the caller may approve.
	approves []string
	// operates says that the caller runs the server.
	operates bool
	// open says that authentication is off, so that the identity is everybody's.
	open bool
	// users are the persons whose memories the caller may read, write and administer
	// without a grant, by level.
	users map[grants.Level][]string
	// provides are the tools that the caller's agents may provide; nil: all.
	provides []string
}

// Tenant is whose data the caller sees.
func (i Identity) Tenant() string { return i.tenant }

// Owns reports whether the caller may act for agent.
func (i Identity) Owns(agent string) bool { return matchesAny(i.patterns, agent) }

// OwnsAll reports whether the caller may act for every agent of its tenant.
func (i Identity) OwnsAll() bool { return slices.Contains(i.patterns, "*") }

// IsApprover reports whether the caller may approve any calls at all.
func (i Identity) IsApprover() bool { return len(i.approves) > 0 }

// Approves reports whether the caller may approve calls of agent.
func (i Identity) Approves(agent string) bool { return matchesAny(i.approves, agent) }

// ApprovesAll reports whether the caller may approve calls of every agent of its tenant.
func (i Identity) ApprovesAll() bool { return slices.Contains(i.approves, "*") }

// Anyone may act for every agent of a tenant, approve its calls and run the server: who
// calls while authentication is off.
func Anyone(tenant string) Identity {
	return Identity{tenant: tenant, patterns: []string{"*"}, approves: []string{"*"}, operates: true, open: true}
}

// Operator refuses a call of somebody who does not run the server.
func Operator(ctx context.Context) error {
	id, ok := Of(ctx)
	switch {
	case !ok:
		return ErrUnauthenticated
	case !id.operates:
		return ErrNotOperator
	}
	return nil
}

// Named returns the first agent that the caller may act for and that its credential
// names in full; false for one that has only patterns.
func (i Identity) Named() (agent string, ok bool) {
	for _, p := range i.patterns {
		if !strings.HasSuffix(p, "*") {
			return p, true
		}
	}
	return "", false
}

// matchesAny reports whether a name is one of the patterns: exact names, or a beginning
// and *.
func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return grants.Matches(pattern, name) })
}

// UserLevel is what the caller may do with a person's memory without a grant. Who may act
// for every agent of its tenant, and whose credential says nothing of persons, has what any
// of them could have: everything.
func (i Identity) UserLevel(user string) grants.Level {
	if len(i.users) == 0 && i.OwnsAll() {
		return grants.Admin
	}
	for level := grants.Admin; level > grants.None; level-- {
		if matchesAny(i.users[level], user) {
			return level
		}
	}
	return grants.None
}

// Edits reports whether the caller may change what an agent has saved in a memory that is
// shared.
func (i Identity) Edits(agent string) bool { return i.Owns(agent) || matchesAny(i.edits, agent) }

type identityKey struct{}

// TenantKey is the attribute of a call's span that says whose it is.
const TenantKey = attribute.Key("loom_bridge.tenant")

// With returns ctx as that of a caller, and says whose it is on the call's span.
func With(ctx context.Context, id Identity) context.Context {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(TenantKey.String(id.tenant))
	}
	ctx = grants.With(ctx, grants.Caller{Users: id.UserLevel, Operates: id.operates && !id.open})
	return context.WithValue(ctx, identityKey{}, id)
}

// Of returns who makes the call behind ctx; false without one.
func Of(ctx context.Context) (Identity, bool) {
	id, ok := ctx.Value(identityKey{}).(Identity)
	return id, ok
}

// MayProvide refuses a tool that the caller's credential does not let its agents
// provide, with a *ToolNotAllowedError.
func MayProvide(ctx context.Context, tool string) error {
	if id, _ := Of(ctx); id.provides != nil && !matchesAny(id.provides, tool) {
		return &ToolNotAllowedError{tool}
	}
	return nil
}

// ToolNotAllowedError names a tool that a credential does not let agents provide. It
// is an ErrToolNotAllowed.
type ToolNotAllowedError struct{ Tool string }

func (e *ToolNotAllowedError) Error() string {
	return fmt.Sprintf("server: the credential does not let its agents provide the tool %q (provides in the credentials file)", e.Tool)
}

// Is makes errors.Is(err, ErrToolNotAllowed) true.
func (e *ToolNotAllowedError) Is(target error) bool { return target == ErrToolNotAllowed }

// TenantOf is whose data the call behind ctx works on.
func TenantOf(ctx context.Context) (string, error) {
	id, ok := Of(ctx)
	if !ok {
		return "", ErrUnauthenticated
	}
	return id.tenant, nil
}

// AgentScope is the scope of the agent itself.
func AgentScope(ctx context.Context, agent string) (kv.Scope, error) {
	id, ok := Of(ctx)
	if !ok {
		return kv.Scope{}, ErrUnauthenticated
	}
	if !id.Owns(agent) {
		return kv.Scope{}, fmt.Errorf("%w: %q", ErrAgentNotOwned, agent)
	}
	return kv.AgentScope(id.tenant, agent), nil
}

// MemoryScope is the scope of the person or the space that is named, or the agent's. It
// says nothing of who has access to it.
func MemoryScope(ctx context.Context, agent, user, space string) (kv.Scope, error) {
	scope, err := AgentScope(ctx, agent)
	switch {
	case err != nil:
	case user != "":
		scope.Kind, scope.Owner = kv.OwnerUser, user
	case space != "":
		scope.Kind, scope.Owner = kv.OwnerSpace, space
	}
	return scope, err
}
