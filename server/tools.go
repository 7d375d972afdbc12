package server

import (
	"context"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Tools is what the handlers need of the registry.
type Tools interface {
	List(levels ...int) []tools.Descriptor
}

var _ Tools = (*tools.Registry)(nil)

type toolService struct {
	loombridgev1.UnimplementedToolServiceServer
	tools Tools
}

// ListTools returns the tools of some levels or of all.
func (s *toolService) ListTools(ctx context.Context, r *loombridgev1.ListToolsRequest) (*loombridgev1.ListToolsResponse, error) {
	if err := checkListToolsRequest(r); err != nil {
		return nil, err
	}
	if _, err := agentScope(ctx, r.GetAgentId()); err != nil {
		return nil, err
	}
	levels := make([]int, len(r.GetLevels()))
	for i, level := range r.GetLevels() {
		levels[i] = int(level)
	}
	list := s.tools.List(levels...)
	out := &loombridgev1.ListToolsResponse{Tools: make([]*loombridgev1.ToolDescriptor, len(list))}
	for i, d := range list {
		out.Tools[i] = descriptorOf(d, r.GetJsonForm())
	}
	return out, nil
}
