package approval

import (
	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

// Asks tells whether every call of a tool needs approval under a rule.
func Asks(rule policy.Approval, d tools.Descriptor) bool {
	level, ok := rule.Level()
	return d.RequiresApproval || rule == policy.Always || ok && d.Level >= level
}
