package approval

import (
	"slices"

	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

// Asks reports whether every call of a tool needs approval under some rules.
func Asks(rules policy.Approvals, d tools.Descriptor) bool {
	return d.RequiresApproval || slices.ContainsFunc(rules, func(rule policy.Approval) bool {
		level, ok := rule.Level()
		return rule == policy.Always || ok && d.Level >= level
	})
}
