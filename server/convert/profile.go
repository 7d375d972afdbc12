package convert

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Profile says what calls may do, and what is wrong with the file of their workspace.
func Profile(p policy.Profile, approval policy.Approvals, refused []policy.Refusal, problem error) *loombridgev1.ToolProfile {
	out := &loombridgev1.ToolProfile{Rules: rulesOf(p, approval)}
	for _, r := range refused {
		out.Refused = append(out.Refused, &loombridgev1.RefusedKey{Key: utf8Text(r.Key), Line: Int32(r.Line), Reason: utf8Text(r.Reason)})
	}
	if problem != nil {
		out.Problem = utf8Text(problem.Error())
	}
	return out
}

// rulesOf writes a profile as the API documents it.
func rulesOf(p policy.Profile, approval policy.Approvals) *structpb.Struct {
	hosts := make([]*structpb.Value, len(p.Hosts))
	for i, h := range p.Hosts {
		hosts[i] = structpb.NewStructValue(hostRule(h))
	}
	return &structpb.Struct{Fields: map[string]*structpb.Value{
		"name": textValue(p.Name), "mode": textValue(string(p.Mode)), "approval": textValue(approval.String()),
		"read": textsValue(p.Read), "write": textsValue(p.Write), "protect": textsValue(p.Protect), "hide": textsValue(p.Hide),
		"environment": textsValue(slices.Sorted(maps.Keys(p.Environment))),
		"hosts":       structpb.NewListValue(&structpb.ListValue{Values: hosts}),
		"limits":      structpb.NewStructValue(programLimits(p)),
	}}
}

func textValue(s string) *structpb.Value { return structpb.NewStringValue(utf8Text(s)) }

func textsValue(all []string) *structpb.Value {
	out := make([]*structpb.Value, len(all))
	for i, s := range all {
		out[i] = textValue(s)
	}
	return structpb.NewListValue(&structpb.ListValue{Values: out})
}

func programLimits(p policy.Profile) *structpb.Struct {
	l := p.Limits
	out := &structpb.Struct{Fields: map[string]*structpb.Value{"cpu": structpb.NewNumberValue(l.CPU.Seconds())}}
	for name, n := range map[string]int64{
		"memory": l.Memory, "processes": int64(l.Processes), "file": l.File, "scratch": l.Scratch,
		"disk_floor": l.DiskFloor, "open_files": int64(l.OpenFiles), "output": l.Output,
	} {
		out.Fields[name] = structpb.NewNumberValue(float64(n))
	}
	if p.Wall > 0 {
		out.Fields["wall"] = structpb.NewNumberValue(p.Wall.Seconds())
	}
	return out
}

func hostRule(h policy.Host) *structpb.Struct {
	ports := make([]*structpb.Value, len(h.Ports))
	for i, port := range h.Ports {
		ports[i] = structpb.NewNumberValue(float64(port))
	}
	out := &structpb.Struct{Fields: map[string]*structpb.Value{
		"host": textValue(h.Host), "ports": structpb.NewListValue(&structpb.ListValue{Values: ports}),
		"paths": textsValue(h.Paths), "methods": textsValue(h.Methods), "address": textValue(h.Address),
	}}
	if h.Secret != nil {
		out.Fields["secret_variable"] = textValue(h.Secret.Env)
	}
	return out
}

// Sandbox says how programs are confined.
func Sandbox(c sandbox.Confinement) *loombridgev1.SandboxStatus {
	return &loombridgev1.SandboxStatus{
		Setting: string(c.Setting), Tier: c.Tier, Layers: c.Layers, Gaps: c.Gaps, Problems: c.Problems,
	}
}
