package server

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/approval"
	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/mcp"
	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/page"
	"github.com/loom-bridge/loom-bridge/server/unread"
)

type toolService struct {
	loombridgev1.UnimplementedToolServiceServer
	tools     *tools.Catalogue
	audit     *audit.Log
	approvals *approval.Broker
	profiles  Profiles
	hosted    *mcp.Clients
	children  *children.Spawner
	limits    Limits
}

// touched is the agent whose workspace a tool touches; false for a tool that touches none,
// and for a caller who may not act for the agent.
func touched(ctx context.Context, known *tools.Catalogue, r interface{ GetAgentId() string }, name string) (kv.Scope, bool) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil || scope.Validate() != nil {
		return kv.Scope{}, false
	}
	tool, ok := known.Find(scope.Tenant, name)
	return scope, ok && tool.Descriptor().Workspace
}

// ListTools returns the tools of some or all levels, including agents' tools, that the
// caller may call.
func (s *toolService) ListTools(ctx context.Context, r *loombridgev1.ListToolsRequest) (*loombridgev1.ListToolsResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	levels := make([]int, len(r.GetLevels()))
	for i, level := range r.GetLevels() {
		levels[i] = int(level)
	}
	given, err := s.children.Given(ctx, scope)
	if err != nil {
		return nil, err
	}
	if r.GetTool() != "" {
		return s.oneTool(scope, given, r.GetTool())
	}
	after, _ := page.Tools.Parse(r.GetPageToken(), tools.MaxNameBytes)
	list := slices.DeleteFunc(s.tools.List(scope.Tenant, after, levels...), func(o tools.Offer) bool { return !given.Has(o.Name) })
	return toolPage(list, r, s.limits.MaxSendBytes), nil
}

// oneTool answers the tool of a name, and what calls of it may do.
func (s *toolService) oneTool(scope kv.Scope, given children.Given, name string) (*loombridgev1.ListToolsResponse, error) {
	found, known := s.tools.Find(scope.Tenant, name)
	all := s.tools.List(scope.Tenant, "")
	at := slices.IndexFunc(all, func(o tools.Offer) bool { return known && o.Name == found.Descriptor().Name })
	if at < 0 || !given.Has(all[at].Name) {
		return nil, tools.ErrToolNotFound
	}
	profile, err := s.profile(scope, all[at].Name)
	if err != nil {
		return nil, err
	}
	return &loombridgev1.ListToolsResponse{Tools: []*loombridgev1.ToolDescriptor{convert.Descriptor(all[at])}, Profile: profile}, nil
}

// toolPage is the first of the tools, as many as were asked for and fit.
func toolPage(list []tools.Offer, r *loombridgev1.ListToolsRequest, limit int) *loombridgev1.ListToolsResponse {
	out := &loombridgev1.ListToolsResponse{}
	size := 2 * tools.MaxNameBytes // the token, in base64
	for _, o := range list {
		d := convert.Descriptor(o)
		size += protowire.SizeTag(1) + protowire.SizeBytes(proto.Size(d))
		full := r.GetPageSize() > 0 && len(out.Tools) == int(r.GetPageSize()) || len(out.Tools) == page.MaxSize
		if full || size > limit && len(out.Tools) > 0 {
			out.NextPageToken = page.Tools.Token(out.Tools[len(out.Tools)-1].GetName())
			return out
		}
		out.Tools = append(out.Tools, d)
	}
	return out
}

// ListAudit returns records of calls of the agents that the caller may act for.
func (s *toolService) ListAudit(ctx context.Context, r *loombridgev1.ListAuditRequest) (*loombridgev1.ListAuditResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
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

// deciderOf is who makes the call behind ctx, speaking as an agent that it may act for.
func deciderOf(ctx context.Context, agent string) (approval.Decider, error) {
	scope, err := auth.AgentScope(ctx, agent)
	if err != nil {
		return approval.Decider{}, err
	}
	id, _ := auth.Of(ctx)
	if !id.IsApprover() {
		return approval.Decider{}, auth.ErrNotApprover
	}
	return approval.Decider{Tenant: scope.Tenant, Agent: agent, Approves: id.Approves, All: id.ApprovesAll()}, nil
}

// WatchApprovals streams the calls that wait, until the caller leaves or the server stops.
func (s *toolService) WatchApprovals(r *loombridgev1.WatchApprovalsRequest, stream grpc.ServerStreamingServer[loombridgev1.WatchApprovalsResponse]) error {
	by, err := deciderOf(stream.Context(), r.GetAgentId())
	if err != nil {
		return err
	}
	watcher := s.approvals.Watch(by)
	defer watcher.Close()
	if err := stream.SendHeader(nil); err != nil { // a caller that waits for the headers is watching
		return err
	}
	room := unread.SlotOf(stream.Context())
	for {
		came, gone, err := watcher.Next(stream.Context())
		if err != nil {
			return err
		}
		for change := range convert.ApprovalChanges(came, gone) {
			if err := room.Reserve(stream.Context(), s.limits.MaxSendBytes); err != nil {
				return err
			}
			if err := stream.Send(change()); err != nil {
				return err
			}
		}
	}
}

// ApproveCall answers a call that waits.
func (s *toolService) ApproveCall(ctx context.Context, r *loombridgev1.ApproveCallRequest) (*loombridgev1.PendingApproval, error) {
	by, err := deciderOf(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	request, err := s.approvals.Decide(ctx, by, r.GetId(), convert.ApprovalAnswer(r))
	if err != nil {
		return nil, err
	}
	return convert.PendingApproval(request), nil
}

// ListApprovals returns the answers that are remembered.
func (s *toolService) ListApprovals(ctx context.Context, r *loombridgev1.ListApprovalsRequest) (*loombridgev1.ListApprovalsResponse, error) {
	by, err := deciderOf(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	grants, err := s.approvals.Grants(ctx, by)
	if err != nil {
		return nil, err
	}
	out, next := page.Cut(page.Approvals, grants, r, s.limits.MaxSendBytes, func(g approval.Grant) string { return g.ID }, convert.RememberedApproval)
	return &loombridgev1.ListApprovalsResponse{Approvals: out, NextPageToken: next}, nil
}

// RevokeApproval takes a remembered answer back.
func (s *toolService) RevokeApproval(ctx context.Context, r *loombridgev1.RevokeApprovalRequest) (*loombridgev1.RevokeApprovalResponse, error) {
	by, err := deciderOf(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	return &loombridgev1.RevokeApprovalResponse{}, s.approvals.Revoke(ctx, by, r.GetId())
}

// Profiles is what the handlers need of what calls may do.
type Profiles interface {
	Names() []string
	Profile(scope kv.Scope, tool string) (policy.Profile, []policy.Refusal, error)
	Approvals(scope kv.Scope, tool string) policy.Approvals
}

// profile is what calls of an agent's tool may do.
func (s *toolService) profile(scope kv.Scope, tool string) (*loombridgev1.ToolProfile, error) {
	profile, refused, err := s.profiles.Profile(scope, tool)
	if err != nil && !errors.Is(err, policy.ErrFile) {
		return nil, err
	}
	return convert.Profile(profile, s.profiles.Approvals(scope, tool), refused, err), nil
}

// operated is the tenant of a caller who runs the server.
func operated(ctx context.Context) (tenant string, err error) {
	if err := auth.Operator(ctx); err != nil {
		return "", err
	}
	return auth.TenantOf(ctx)
}

// ListMcpServers returns the servers of the caller's tenant.
func (s *toolService) ListMcpServers(ctx context.Context, r *loombridgev1.ListMcpServersRequest) (*loombridgev1.ListMcpServersResponse, error) {
	tenant, err := auth.TenantOf(ctx)
	if err != nil {
		return nil, err
	}
	whole := auth.Operator(ctx) == nil
	name := func(one mcp.Status) string { return one.Name }
	out, next := page.Cut(page.Servers, s.hosted.List(tenant), r, s.limits.MaxSendBytes, name, func(one mcp.Status) *loombridgev1.McpServer {
		return convert.ToolServer(one, whole)
	})
	return &loombridgev1.ListMcpServersResponse{Servers: out, NextPageToken: next}, nil
}

// ConnectMcpServer begins to connect to a further server, or connects to one anew.
func (s *toolService) ConnectMcpServer(ctx context.Context, r *loombridgev1.ConnectMcpServerRequest) (*loombridgev1.McpServer, error) {
	tenant, err := operated(ctx)
	if err != nil {
		return nil, err
	}
	var now mcp.Status
	if r.GetDefinition() != nil {
		now, err = s.hosted.Add(ctx, tenant, convert.ToolServerToAdd(r.GetDefinition()))
	} else {
		now, err = s.hosted.Refresh(ctx, tenant, r.GetName(), r.GetAcceptChanged())
	}
	if err != nil {
		return nil, err
	}
	return convert.ToolServer(now, true), nil
}

// RemoveMcpServer forgets a server.
func (s *toolService) RemoveMcpServer(ctx context.Context, r *loombridgev1.RemoveMcpServerRequest) (*loombridgev1.RemoveMcpServerResponse, error) {
	tenant, err := operated(ctx)
	if err != nil {
		return nil, err
	}
	return &loombridgev1.RemoveMcpServerResponse{}, s.hosted.Remove(ctx, tenant, r.GetName())
}
