package server

import (
	"context"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/page"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// Tools is what the handlers need of the catalogue.
type Tools interface {
	List(tenant, after string, levels ...int) []tools.Offer
	Own(name string) (*tools.Tool, bool)
	CountOwn() int
}

var _ Tools = (*tools.Catalogue)(nil)

type toolService struct {
	loombridgev1.UnimplementedToolServiceServer
	tools  Tools
	limits Limits
}

// ListTools returns the tools of some levels or of all, those of agents included.
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
	return toolPage(s.tools.List(scope.Tenant, after, levels...), r, s.limits.MaxSendBytes), nil
}

// toolPage is the first of the tools, as many as were asked for and fit.
func toolPage(list []tools.Offer, r *loombridgev1.ListToolsRequest, limit int) *loombridgev1.ListToolsResponse {
	out := &loombridgev1.ListToolsResponse{}
	size := 2 * tools.MaxNameBytes // the token, in base64
	for _, o := range list {
		d := convert.Descriptor(o, r.GetJsonForm())
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
