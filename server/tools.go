package server

import (
	"context"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
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

// Audit is what the handlers need of the records of calls.
type Audit interface {
	List(ctx context.Context, tenant string, q audit.Query) ([]audit.Record, audit.Cursor, error)
}

var (
	_ Tools = (*tools.Catalogue)(nil)
	_ Audit = (*audit.Log)(nil)
)

type toolService struct {
	loombridgev1.UnimplementedToolServiceServer
	tools     Tools
	audit     Audit
	approvals Approvals
	limits    Limits
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

// ListAudit returns records of calls of the agents that the caller may act for.
func (s *toolService) ListAudit(ctx context.Context, r *loombridgev1.ListAuditRequest) (*loombridgev1.ListAuditResponse, error) {
	scope, err := agentScope(ctx, r, validate.ListAuditRequest)
	if err != nil {
		return nil, err
	}
	if r.GetCallerId() != "" {
		if _, err := auth.AgentScope(ctx, r.GetCallerId()); err != nil {
			return nil, err
		}
	}
	id, _ := auth.Of(ctx)
	query := convert.AuditQuery(r)
	query.May = id.Owns
	records, next, err := s.audit.List(ctx, scope.Tenant, query)
	if err != nil {
		return nil, err
	}
	return auditPage(records, next, s.limits.MaxSendBytes), nil
}

// auditPage is the first of the records, as many as fit.
func auditPage(records []audit.Record, next audit.Cursor, limit int) *loombridgev1.ListAuditResponse {
	out := &loombridgev1.ListAuditResponse{NextPageToken: page.AuditToken(next)}
	size := len(page.AuditToken(audit.Cursor{Epoch: 1 << 63, Number: 1 << 63})) + protowire.SizeTag(2)
	for i, r := range records {
		record := convert.AuditRecord(r)
		size += protowire.SizeTag(1) + protowire.SizeBytes(proto.Size(record))
		if size > limit && i > 0 {
			out.NextPageToken = page.AuditToken(audit.Cursor{Epoch: records[i-1].Epoch, Number: records[i-1].Number})
			break
		}
		out.Records = append(out.Records, record)
	}
	return out
}
