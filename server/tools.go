package server

import (
	"context"
	"slices"
	"strings"

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
	tools  Tools
	agents Agents
}

// ListTools returns the tools of some levels or of all: the server's own, and
// those of agents that no own one hides.
func (s *toolService) ListTools(ctx context.Context, r *loombridgev1.ListToolsRequest) (*loombridgev1.ListToolsResponse, error) {
	if err := checkListToolsRequest(r); err != nil {
		return nil, err
	}
	scope, err := agentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	levels := make([]int, len(r.GetLevels()))
	for i, level := range r.GetLevels() {
		levels[i] = int(level)
	}
	out := &loombridgev1.ListToolsResponse{}
	for _, d := range s.tools.List(levels...) {
		out.Tools = append(out.Tools, descriptorOf(d, r.GetJsonForm()))
	}
	if len(levels) == 0 || slices.Contains(levels, tools.LevelFunction) {
		out.Tools = append(out.Tools, s.provided(scope.Tenant, r.GetJsonForm())...)
	}
	slices.SortFunc(out.Tools, func(a, b *loombridgev1.ToolDescriptor) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out, nil
}

// provided describes what attached agents can do and the server itself can't.
func (s *toolService) provided(tenant string, form loombridgev1.JsonForm) []*loombridgev1.ToolDescriptor {
	own := map[string]bool{}
	for _, d := range s.tools.List() {
		own[d.Name] = true
	}
	var out []*loombridgev1.ToolDescriptor
	for _, t := range s.agents.Tools(tenant) {
		if !own[t.Name] {
			out = append(out, providedOf(t, form))
		}
	}
	return out
}
