package server

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/assemble"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/page"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// Tools is what the handlers need of the registry.
type Tools interface {
	List(levels ...int) []tools.Descriptor
	Has(name string) bool
}

var _ Tools = (*tools.Registry)(nil)

type toolService struct {
	loombridgev1.UnimplementedToolServiceServer
	tools  Tools
	agents Agents
	limits Limits
}

// ListTools returns the tools of some levels or of all: the server's own, and
// those of agents that no own one hides.
func (s *toolService) ListTools(ctx context.Context, r *loombridgev1.ListToolsRequest) (*loombridgev1.ListToolsResponse, error) {
	scope, err := agentScope(ctx, r, validate.ListToolsRequest)
	if err != nil {
		return nil, err
	}
	levels := make([]int, len(r.GetLevels()))
	for i, level := range r.GetLevels() {
		levels[i] = int(level)
	}
	after, _ := page.ParseToolToken(r.GetPageToken())
	return toolPage(offers(s.tools, s.agents, scope.Tenant, levels...), after, r, s.limits.MaxSendBytes), nil
}

// toolPage is the tools behind a name, as many as were asked for and fit.
func toolPage(list []offer, after string, r *loombridgev1.ListToolsRequest, limit int) *loombridgev1.ListToolsResponse {
	out := &loombridgev1.ListToolsResponse{}
	size := 2 * tools.MaxNameBytes // the token, in base64
	for _, o := range list {
		if o.Name <= after {
			continue
		}
		d := convert.Descriptor(o.Descriptor, r.GetJsonForm())
		d.AgentId = o.agentID
		size += protowire.SizeTag(1) + protowire.SizeBytes(proto.Size(d))
		full := r.GetPageSize() > 0 && len(out.Tools) == int(r.GetPageSize()) || len(out.Tools) == validate.MaxToolPage
		if full || size > limit && len(out.Tools) > 0 {
			out.NextPageToken = page.ToolToken(out.Tools[len(out.Tools)-1].GetName())
			return out
		}
		out.Tools = append(out.Tools, d)
	}
	return out
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
	for _, o := range provided(own, others, tenant) {
		if len(levels) == 0 || slices.Contains(levels, o.Level) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b offer) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// provided are the tools of agents. What loom.v1 agents may register, but nobody can
// call here, is left out: a name that is too long, or that means a tool of the
// server.
func provided(own Tools, others Agents, tenant string) []offer {
	var out []offer
	for _, t := range others.Tools(tenant) {
		if len(t.Name) <= tools.MaxNameBytes && !own.Has(t.Name) {
			out = append(out, offer{convert.AgentDescriptor(t), t.AgentID})
		}
	}
	return out
}

// promptTools are the tools as prompts of a format offer them. Of an agent's that
// models would call by the name of another one, the other one stays, and one whose
// name the format does not take is left out: it would break the prompt.
func promptTools(list []offer, format assemble.Format) []assemble.Tool {
	names := make(map[string]bool, len(list))
	if format != assemble.Neutral {
		for _, o := range list {
			if o.agentID == "" {
				names[assemble.OpenAIName(o.Name)] = true
			}
		}
	}
	out := make([]assemble.Tool, 0, len(list))
	for _, o := range list {
		if format != assemble.Neutral && o.agentID != "" {
			name := assemble.OpenAIName(o.Name)
			if names[name] || len(o.Name) > assemble.MaxOpenAINameBytes {
				continue
			}
			names[name] = true
		}
		out = append(out, assemble.Tool{Name: o.Name, Description: o.Description, Schema: o.Schema})
	}
	return out
}
