package validate

import (
	"github.com/loom-bridge/loom-bridge/bridge/mcp"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/page"
)

// WatchApprovalsRequest checks what ToolService.WatchApprovals is asked.
func WatchApprovalsRequest(r *loombridgev1.WatchApprovalsRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	return c.err()
}

// ApproveCallRequest checks what ToolService.ApproveCall is asked.
func ApproveCallRequest(r *loombridgev1.ApproveCallRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.requiredName("id", r.GetId(), MaxIDBytes)
	c.enum("decision", r.GetDecision())
	if r.GetDecision() == loombridgev1.ApprovalDecision_APPROVAL_DECISION_UNSPECIFIED {
		c.add("decision", "is required")
	}
	return c.err()
}

// ListApprovalsRequest checks what ToolService.ListApprovals is asked.
func ListApprovalsRequest(r *loombridgev1.ListApprovalsRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.namesPage(r, page.Approvals, MaxIDBytes)
	return c.err()
}

// RevokeApprovalRequest checks what ToolService.RevokeApproval is asked.
func RevokeApprovalRequest(r *loombridgev1.RevokeApprovalRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.requiredName("id", r.GetId(), MaxIDBytes)
	return c.err()
}

// GetProfileRequest checks what ToolService.GetProfile is asked.
func GetProfileRequest(r *loombridgev1.GetProfileRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.requiredName("tool", r.GetTool(), tools.MaxNameBytes)
	return c.err()
}

// ListMcpServersRequest checks what ToolService.ListMcpServers is asked.
func ListMcpServersRequest(r *loombridgev1.ListMcpServersRequest) error {
	var c checker
	c.namesPage(r, page.Servers, mcp.MaxServerName)
	return c.err()
}

// AddMcpServerRequest checks what ToolService.AddMcpServer is asked. What a server may be
// is for package mcp to say.
func AddMcpServerRequest(r *loombridgev1.AddMcpServerRequest) error {
	var c checker
	c.requiredName("definition.name", r.GetDefinition().GetName(), mcp.MaxServerName)
	return c.err()
}

// RemoveMcpServerRequest checks what ToolService.RemoveMcpServer is asked.
func RemoveMcpServerRequest(r *loombridgev1.RemoveMcpServerRequest) error {
	var c checker
	c.requiredName("name", r.GetName(), mcp.MaxServerName)
	return c.err()
}

// RefreshMcpServerRequest checks what ToolService.RefreshMcpServer is asked.
func RefreshMcpServerRequest(r *loombridgev1.RefreshMcpServerRequest) error {
	var c checker
	c.requiredName("name", r.GetName(), mcp.MaxServerName)
	return c.err()
}
