package hand

import "github.com/loom-bridge/loom-bridge/bridge/tools"

// Decision is whether a call may run. It is made when the call is checked, before
// anything of it happens: no slot, no workspace, no intent.
type Decision uint8

// The decisions.
const (
	// Approved: the tool may run.
	Approved Decision = iota
	// NeedsApproval: a person has to agree first. Nobody can be asked yet, so the call
	// is answered as one that was denied.
	NeedsApproval
)

// decide decides on a call of a tool.
func decide(tool *tools.Tool) Decision {
	if tool.Descriptor().RequiresApproval {
		return NeedsApproval
	}
	return Approved
}

// failure is what a call that may not run is answered with; nil when it may.
func (d Decision) failure(tool string) *tools.Error {
	if d == Approved {
		return nil
	}
	return tools.Errorf(tools.PermissionDenied, "Permission denied: %s needs the approval of a person", tool)
}
