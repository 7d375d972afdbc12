package main

import (
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/children"
)

// Children are the settings of the children of agents.
type Children struct {
	ChildLimits                   children.Limits
	ChildMaxDepth                 int
	ChildrenOfParent, ChildrenAll int
	ChildGrace                    time.Duration
	OwnWorkspace                  bool
}

// maxDepth is far more than anybody follows.
const maxDepth = 64

func (c *Config) childSettings() []setting {
	l, d := &c.ChildLimits, children.DefaultLimits()
	return []setting{
		{"child-steps", number(&l.Steps, "steps", 0, maxLimit), d.Steps, "steps that a child may have, unless its spawn says; 0: no limit"},
		{"child-step-tokens", number(&l.StepTokens, "tokens", 0, maxLimit), d.StepTokens, "tokens of one of its steps in prompts; 0: no limit"},
		{"child-files", number(&l.Files, "files", 0, maxLimit), d.Files, "files of its workspace; 0: no limit"},
		{"child-bytes", size(&l.Bytes, 0, unlimited), d.Bytes, "what they hold; 0: no limit"},
		{"child-timeout", zeroIsNone(span(&l.Timeout, 0, children.MaxTimeout)), d.Timeout, "how long it may take; 0: no limit"},
		{"child-grace", positive(&c.ChildGrace), children.DefaultGrace, "how long a child may be away whose stream has ended"},
		{"max-depth", number(&c.ChildMaxDepth, "agents", 1, maxDepth), children.DefaultMaxDepth, "agents above one that may have no children"},
		{"max-children", number(&c.ChildrenOfParent, "agents", 1, maxLimit), children.DefaultMaxChildren, "children of an agent at once"},
		{"max-tenant-children", number(&c.ChildrenAll, "agents", 1, maxLimit), children.DefaultMaxTenant, "children of a tenant's agents at once"},
		{"own-workspace", yes(&c.OwnWorkspace), nil, "give every agent a folder of its own in the workspace, as children have"},
	}
}

// children are the options that the settings make.
func (c *Config) children() children.Options {
	return children.Options{
		Limits: &c.ChildLimits, MaxDepth: c.ChildMaxDepth, MaxChildren: c.ChildrenOfParent, MaxTenant: c.ChildrenAll, Grace: c.ChildGrace,
	}
}
