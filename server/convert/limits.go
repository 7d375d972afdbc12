package convert

import (
	"github.com/loom-bridge/loom-bridge/bridge/throttle"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// ToolLimits tells how the limits of tools are used.
func ToolLimits(all []throttle.Used) []*loombridgev1.ToolLimit {
	out := make([]*loombridgev1.ToolLimit, len(all))
	for i, u := range all {
		out[i] = &loombridgev1.ToolLimit{Rule: u.Rule.String(), RunningCalls: u.Running, RefusedCalls: u.Refused}
	}
	return out
}
