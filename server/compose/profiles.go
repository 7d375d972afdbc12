package compose

import (
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// profiles gives the face the profiles of calls in their workspaces.
type profiles struct {
	*policy.Resolver
	workspaces hand.Workspaces
}

// Names are the names of the operator's profiles.
func (p profiles) Names() []string { return p.Set().Names() }

// Profile is what calls of an agent's tool may do now, which keys of the workspace's file
// were refused, and a policy.ErrFile when that can't be used.
func (p profiles) Profile(scope kv.Scope, tool string) (policy.Profile, []policy.Refusal, error) {
	root, err := p.workspaces.Root(scope)
	if err != nil {
		return policy.Profile{}, nil, err
	}
	return p.Explain(scope, tool, root)
}
