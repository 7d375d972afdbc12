package convert

import (
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Sandbox says how programs are confined, how many run in the background, and for how many
// the start is prepared.
func Sandbox(c sandbox.Confinement, profiles []string, running, prepared int) *loombridgev1.SandboxStatus {
	return &loombridgev1.SandboxStatus{
		Setting: string(c.Setting), Tier: c.Tier, Layers: c.Layers, LandlockAbi: Int32(c.LandlockABI), Gaps: c.Gaps, Problems: c.Problems,
		Profiles: profiles, RunningJobs: Int32(running), PreparedStarts: Int32(prepared),
	}
}
