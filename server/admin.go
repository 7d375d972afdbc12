package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/bridge/jobs"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

type adminService struct {
	loombridgev1.UnimplementedAdminServiceServer
	about          About
	started        time.Time
	authentication bool
	tools          Tools
	store          *kv.Health
	scrubbed       func() time.Time
	sandbox        sandbox.Confinement
	jobs           Jobs
	profiles       Profiles
}

// Jobs is what the handlers need of the programs that run in the background.
type Jobs interface{ Running() int }

var _ Jobs = (*jobs.Jobs)(nil)

// GetStatus tells what the server is and how it stores.
func (s *adminService) GetStatus(context.Context, *loombridgev1.GetStatusRequest) (*loombridgev1.GetStatusResponse, error) {
	return &loombridgev1.GetStatusResponse{
		Version:        s.about.Version,
		StartTime:      timestamppb.New(s.started),
		Durability:     s.about.Durability,
		StoreFormat:    convert.Int32(s.about.StoreFormat),
		Authentication: s.authentication,
		Tools:          convert.Int32(s.tools.CountOwn()),
		Store:          s.storeStatus(),
		Sandbox:        convert.Sandbox(s.sandbox, s.profiles.Names(), s.jobs.Running()),
	}, nil
}

// storeStatus tells how the store is. Whose data is damaged is for the log alone.
func (s *adminService) storeStatus() *loombridgev1.StoreStatus {
	condition, _ := s.store.Condition()
	status := &loombridgev1.StoreStatus{Writable: condition.Failed == nil}
	if condition.Failed != nil {
		status.Problem = publicText(condition.Failed)
	}
	for _, ks := range append(kv.Keyspaces(), kv.WholeStore) {
		if err := condition.Damaged[ks]; err != nil {
			status.Damage = append(status.Damage, publicDamage(ks, err))
		}
	}
	if at := s.scrubbed(); !at.IsZero() {
		status.ScrubTime = timestamppb.New(at)
	}
	return status
}

// publicDamage is what may be said outside the server of damage in a keyspace.
func publicDamage(ks kv.Keyspace, err error) string {
	if damage, ok := errors.AsType[*kv.DamageError](err); ok {
		return fmt.Sprintf("%s: %s %s", ks, damage.File, damage.Problem)
	}
	return ks.String() + ": something that is stored can't be read; the server's log says what"
}
