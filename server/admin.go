package server

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

type adminService struct {
	loombridgev1.UnimplementedAdminServiceServer
	about          About
	started        time.Time
	authentication bool
	tools          Tools
}

// GetStatus tells what the server is and how it stores.
func (s *adminService) GetStatus(context.Context, *loombridgev1.GetStatusRequest) (*loombridgev1.GetStatusResponse, error) {
	return &loombridgev1.GetStatusResponse{
		Version:        s.about.Version,
		StartTime:      timestamppb.New(s.started),
		Durability:     s.about.Durability,
		StoreFormat:    clampInt32(s.about.StoreFormat),
		Authentication: s.authentication,
		Tools:          clampInt32(len(s.tools.List())),
	}, nil
}
