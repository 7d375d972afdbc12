package server

import (
	"context"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// CompressResult shortens one result of a tool.
func (s *contextService) CompressResult(ctx context.Context, r *loombridgev1.CompressResultRequest) (*loombridgev1.CompressResultResponse, error) {
	if err := validate.CompressResultRequest(r); err != nil {
		return nil, err
	}
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	answer, err := s.hand.Compress(ctx, convert.CompressRequest(scope, r))
	if err != nil {
		return nil, err
	}
	return convert.Compressed(answer), nil
}
