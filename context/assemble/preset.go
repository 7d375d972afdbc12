package assemble

import (
	"context"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// inForce returns the preset that the prompts of a session go by, if one does.
func (a *Assembler) inForce(ctx context.Context, scope kv.Scope, sessionID string) (p history.Preset, ok bool, err error) {
	c, err := a.log.Config(ctx, scope, sessionID)
	if err == nil {
		p, ok = presetOf(c)
	}
	return p, ok, err
}

// presetOf is the preset of some settings, if they have one.
func presetOf(c session.Config) (p history.Preset, ok bool) {
	if c.Policy != "" && c.Policy != session.PolicyPreset {
		return history.Preset{}, false
	}
	return history.Named(c.Preset)
}

// NumbersKinds reports whether the offloaded results of a session are named by the
// number of each kind, as its preset says: search_001, search_002, read_001.
func (a *Assembler) NumbersKinds(ctx context.Context, scope kv.Scope, sessionID string) (bool, error) {
	p, ok, err := a.inForce(ctx, scope, sessionID)
	return ok && p.NumberKinds, err
}

// Forgets reports whether the short-term memory of a session ends with the server, as its
// preset says.
func (a *Assembler) Forgets(ctx context.Context, scope kv.Scope, sessionID string) (bool, error) {
	p, ok, err := a.inForce(ctx, scope, sessionID)
	return ok && p.Forgets, err
}

// Forgetful is Forgets for sessions that have these settings.
func (a *Assembler) Forgetful(c session.Config) bool {
	p, ok := presetOf(c)
	return ok && p.Forgets
}

// Reference is how the answers of a session refer to blobs: as its preset says, or
// without one as the options do.
func (a *Assembler) Reference(ctx context.Context, scope kv.Scope, sessionID string) step.ReferenceStyle {
	if p, ok, _ := a.inForce(ctx, scope, sessionID); ok {
		return p.Reference
	}
	return a.reference
}

// Observation is how much the observations of a session say: as its preset says, or 0
// without one.
func (a *Assembler) Observation(ctx context.Context, scope kv.Scope, sessionID string) step.ObservationStyle {
	if p, ok, _ := a.inForce(ctx, scope, sessionID); ok {
		return p.Observation
	}
	return 0
}
