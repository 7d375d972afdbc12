package sharing

import (
	"context"
	"errors"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/grants"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
)

// OfMemory is a request about the memory of a person, a space, or an agent.
type OfMemory interface {
	GetAgentId() string
	GetUserId() string
	GetSpaceId() string
}

// need returns whose memory a request is about, and the permit for it.
func need(ctx context.Context, g *grants.Store, r OfMemory, level grants.Level) (kv.Scope, *grants.Permit, error) {
	scope, err := auth.MemoryScope(ctx, r.GetAgentId(), r.GetUserId(), r.GetSpaceId())
	if err != nil {
		return kv.Scope{}, nil, err
	}
	permit, err := g.Need(ctx, scope, r.GetAgentId(), level)
	return scope, permit, err
}

// Reading is for calls that read.
func Reading(ctx context.Context, g *grants.Store, r OfMemory) (kv.Scope, error) {
	scope, _, err := need(ctx, g, r, grants.Read)
	return scope, err
}

// Writing is for calls that change something. What stands in a memory that is shared belongs
// to who saved it: the context says for whom the change is made, and whose records the
// caller may change. Who administers it may change all.
func Writing(ctx context.Context, g *grants.Store, r OfMemory) (context.Context, kv.Scope, error) {
	scope, permit, err := need(ctx, g, r, grants.Write)
	if err != nil || scope.Kind == kv.OwnerAgent {
		return ctx, scope, err
	}
	actor := memory.Actor{Agent: r.GetAgentId(), Permission: permit}
	if id, _ := auth.Of(ctx); !id.OwnsAll() && !permit.Administers() {
		actor.Acts = id.Edits
	}
	return memory.As(ctx, actor), scope, nil
}

// Holding is access that a stream needs for as long as it lasts.
type Holding struct {
	// Scope is whose memory it is.
	Scope kv.Scope
	// Context ends when the access is lost.
	Context context.Context
	permit  *grants.Permit
	release func()
}

// Held is Reading for streams; streams that change something pass Write as the level. Call
// End when the stream is over.
func Held(ctx context.Context, g *grants.Store, r OfMemory, level grants.Level) (*Holding, error) {
	scope, permit, err := need(ctx, g, r, level)
	if err != nil {
		return nil, err
	}
	held, release := permit.Hold(ctx)
	return &Holding{Scope: scope, Context: held, permit: permit, release: release}, nil
}

// Still returns an error when the access is lost. It is asked before anything is sent.
func (h *Holding) Still() error { return h.permit.Still(h.Context) }

// End lets the access go, and returns why the stream ended: that the access was lost, or
// what its handler says.
func (h *Holding) End(err error) error {
	cause := context.Cause(h.Context)
	h.release()
	if err != nil && errors.Is(cause, grants.ErrDenied) {
		return cause
	}
	return err
}

// Searched are the memories that a query searches. The caller must own each agent among
// them, and may read the others.
func Searched(ctx context.Context, g *grants.Store, r *loombridgev1.MemoryQueryRequest) ([]kv.Scope, error) {
	owners := r.GetOwners()
	if len(owners) == 0 {
		scope, err := Reading(ctx, g, r)
		return []kv.Scope{scope}, err
	}
	if _, err := auth.AgentScope(ctx, r.GetAgentId()); err != nil {
		return nil, err
	}
	scopes := make([]kv.Scope, 0, len(owners))
	for _, owner := range owners {
		agent := r.GetAgentId()
		if owner.GetAgentId() != "" {
			agent = owner.GetAgentId()
		}
		scope, err := auth.MemoryScope(ctx, agent, owner.GetUserId(), owner.GetSpaceId())
		if err == nil {
			_, err = g.Need(ctx, scope, agent, grants.Read)
		}
		if err != nil {
			return nil, err
		}
		if !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	return scopes, nil
}

// Administers returns the test for memories that the caller administers: by its
// credential, or as an agent, unless that is empty, by what this was granted.
func Administers(ctx context.Context, g *grants.Store, agent string) func(context.Context, kv.Scope) (bool, error) {
	id, _ := auth.Of(ctx)
	operator := auth.Operator(ctx) == nil
	return func(ctx context.Context, scope kv.Scope) (bool, error) {
		switch {
		case operator:
			return true, nil
		case scope.Kind == kv.OwnerAgent:
			return id.Owns(scope.Owner), nil
		case scope.Kind == kv.OwnerSpace && id.OwnsAll(), scope.Kind == kv.OwnerUser && id.UserLevel(scope.Owner) == grants.Admin:
			return true, nil
		case agent == "":
			return false, nil
		}
		_, err := g.Need(ctx, scope, agent, grants.Admin)
		if errors.Is(err, grants.ErrDenied) {
			return false, nil
		}
		return err == nil, err
	}
}
