package convert

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/places"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/registry"
	"github.com/loom-bridge/loom-bridge/bridge/retention"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Retention converts the counters of deletions by age.
func Retention(s retention.Stats) *loombridgev1.RetentionStatus {
	out := &loombridgev1.RetentionStatus{DeletedRecords: s.Records, DeletedSessions: s.Sessions, Failing: s.Failing}
	if !s.Swept.IsZero() {
		out.SweepTime = timestamppb.New(s.Swept)
	}
	return out
}

// Bridges are the servers on a store that several have; none on any other.
func Bridges(r *registry.Registry) []*loombridgev1.BridgeStatus {
	all, _ := r.All()
	out := make([]*loombridgev1.BridgeStatus, len(all))
	for i, b := range all {
		out[i] = &loombridgev1.BridgeStatus{
			Name: b.Name, Address: b.Address, Answering: b.String() == r.Holder(), Workspace: b.Workspace,
		}
	}
	return out
}

// Workspace returns the server that has a workspace; nil if none has.
func Workspace(o places.FolderOwner) *loombridgev1.BridgeStatus {
	if o.Folder == "" {
		return nil
	}
	return &loombridgev1.BridgeStatus{
		Name: o.Server, Address: o.Address, Workspace: o.Folder, Away: o.Away, Answering: o.Here,
	}
}
