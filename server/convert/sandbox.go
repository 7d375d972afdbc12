package convert

import (
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Sandbox says how programs are confined.
func Sandbox(c sandbox.Confinement) *loombridgev1.SandboxStatus {
	return &loombridgev1.SandboxStatus{
		Setting: string(c.Setting), Tier: c.Tier, Layers: c.Layers, Gaps: c.Gaps, Problems: c.Problems,
	}
}
