package convert

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Profile says what calls may do, and what is wrong with the file of their workspace.
func Profile(p policy.Profile, approval policy.Approvals, refused []policy.Refusal, problem error) *loombridgev1.GetProfileResponse {
	out := &loombridgev1.GetProfileResponse{Profile: &loombridgev1.ToolProfile{
		Name: p.Name, Mode: string(p.Mode), Approval: approval.String(), Read: p.Read, Write: p.Write, Protect: p.Protect, Hide: p.Hide,
		Environment: slices.Sorted(maps.Keys(p.Environment)), Limits: programLimits(p),
	}}
	for _, h := range p.Hosts {
		out.Profile.Hosts = append(out.Profile.Hosts, hostRule(h))
	}
	for _, r := range refused {
		out.Refused = append(out.Refused, &loombridgev1.RefusedKey{Key: utf8Text(r.Key), Line: Int32(r.Line), Reason: utf8Text(r.Reason)})
	}
	if problem != nil {
		out.Problem = utf8Text(problem.Error())
	}
	return out
}

func programLimits(p policy.Profile) *loombridgev1.ProgramLimits {
	l := p.Limits
	out := &loombridgev1.ProgramLimits{
		Cpu: durationpb.New(l.CPU), Memory: l.Memory, Processes: Int32(l.Processes), File: l.File, Scratch: l.Scratch,
		DiskFloor: l.DiskFloor, OpenFiles: Int32(l.OpenFiles), Output: l.Output,
	}
	if p.Wall > 0 {
		out.Wall = durationpb.New(p.Wall)
	}
	return out
}

func hostRule(h policy.Host) *loombridgev1.HostRule {
	out := &loombridgev1.HostRule{Host: h.Host, Paths: h.Paths, Methods: h.Methods, Address: h.Address}
	for _, port := range h.Ports {
		out.Ports = append(out.Ports, Int32(port))
	}
	if h.Secret != nil {
		out.SecretVariable = h.Secret.Env
	}
	return out
}

// Sandbox says how programs are confined.
func Sandbox(c sandbox.Confinement) *loombridgev1.SandboxStatus {
	return &loombridgev1.SandboxStatus{
		Setting: string(c.Setting), Tier: c.Tier, Layers: c.Layers, Gaps: c.Gaps, Problems: c.Problems,
	}
}
