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
	for _, o := range offers(s.tools, s.agents, scope.Tenant, levels...) {
		d := descriptorOf(o.Descriptor, r.GetJsonForm())
		d.AgentId = o.agentID
		out.Tools = append(out.Tools, d)
	}
	return out, nil
}

// offer is a tool that can be called, and the agent that provides it; none for
// the server's own.
type offer struct {
	tools.Descriptor
	agentID string
}

// offers are the tools that the agents of a tenant may call, of some levels or
// of all, by name: the server's own, and those of agents that no own one hides.
func offers(own Tools, others Agents, tenant string, levels ...int) []offer {
	var out []offer
	for _, d := range own.List(levels...) {
		out = append(out, offer{Descriptor: d})
	}
	if len(levels) == 0 || slices.Contains(levels, tools.LevelFunction) {
		out = append(out, provided(own, others, tenant)...)
	}
	slices.SortFunc(out, func(a, b offer) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func provided(own Tools, others Agents, tenant string) []offer {
	hidden := map[string]bool{}
	for _, d := range own.List() {
		hidden[d.Name] = true
	}
	var out []offer
	for _, t := range others.Tools(tenant) {
		if !hidden[t.Name] {
			out = append(out, offer{descriptorOfAgent(t), t.AgentID})
		}
	}
	return out
}
