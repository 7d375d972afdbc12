package convert

import (
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/bridge/mcp"
	"github.com/loom-bridge/loom-bridge/bridge/places"
	"github.com/loom-bridge/loom-bridge/bridge/retention"
	"github.com/loom-bridge/loom-bridge/bridge/throttle"
	"github.com/loom-bridge/loom-bridge/memory/kv/bridges"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// ToolLimits says how the limits of tools are used.
func ToolLimits(all []throttle.Used) []*loombridgev1.ToolLimit {
	out := make([]*loombridgev1.ToolLimit, len(all))
	for i, u := range all {
		out[i] = &loombridgev1.ToolLimit{Rule: u.Rule.String(), RunningCalls: u.Running, RefusedCalls: u.Refused}
	}
	return out
}

// outcomeOK is the outcome of a call that succeeded.
const outcomeOK = "ok"

// ToolCalls says how calls of tools ended.
func ToolCalls(outcomes map[string]int64) *loombridgev1.ToolCallCounts {
	out := &loombridgev1.ToolCallCounts{Outcomes: outcomes}
	for outcome, calls := range outcomes {
		out.Calls += calls
		if outcome != outcomeOK {
			out.FailedCalls += calls
		}
	}
	return out
}

// McpServerCounts counts servers of the Model Context Protocol.
func McpServerCounts(all []mcp.Status) *loombridgev1.McpServerCounts {
	out := &loombridgev1.McpServerCounts{Servers: Int32(len(all))}
	tools := 0
	for _, s := range all {
		if s.State == mcp.Ready {
			out.ReadyServers++
			tools += s.Tools
		}
	}
	out.Tools = Int32(tools)
	return out
}

// Retention says what is deleted for its age; audited is how many records of calls were.
func Retention(s retention.Stats, audited int64) *loombridgev1.RetentionStatus {
	out := &loombridgev1.RetentionStatus{DeletedRecords: s.Records, DeletedSessions: s.Sessions, DeletedResults: s.Results, DeletedAuditRecords: audited, Failing: s.Failing}
	if s.RecordsAge > 0 {
		out.RecordsAge = durationpb.New(s.RecordsAge)
	}
	if s.SessionsAge > 0 {
		out.SessionsAge = durationpb.New(s.SessionsAge)
	}
	if !s.Swept.IsZero() {
		out.SweepTime = timestamppb.New(s.Swept)
	}
	return out
}

// Bridges are the servers on a store that several have; none on any other.
func Bridges(r *bridges.Registry) []*loombridgev1.BridgeStatus {
	all, _ := r.All()
	out := make([]*loombridgev1.BridgeStatus, len(all))
	for i, b := range all {
		out[i] = &loombridgev1.BridgeStatus{
			Name: b.Name, Epoch: b.Epoch, Address: b.Address, SinceTime: timestamppb.New(b.Since), Answering: b.String() == r.Holder(), Workspace: b.Workspace,
		}
	}
	return out
}

// Workspace says which server has a workspace; nil for nobody.
func Workspace(o places.Owner) *loombridgev1.Workspace {
	if o.Folder == "" {
		return nil
	}
	return &loombridgev1.Workspace{
		Server: o.Server, Address: o.Address, Folder: o.Folder, SinceTime: timestamppb.New(o.Since), Away: o.Away, Answering: o.Here,
	}
}
