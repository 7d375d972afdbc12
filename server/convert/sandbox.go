package convert

import (
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Sandbox tells how programs are confined, and how many run in the background.
func Sandbox(c sandbox.Confinement, profiles []string, running int) *loombridgev1.SandboxStatus {
	return &loombridgev1.SandboxStatus{
		Setting: string(c.Setting), Tier: c.Tier, Layers: c.Layers, LandlockAbi: Int32(c.LandlockABI), Gaps: c.Gaps, Problems: c.Problems,
		Profiles: profiles, RunningJobs: Int32(running),
	}
}
