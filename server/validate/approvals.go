package validate

import (
	"github.com/loom-bridge/loom-bridge/bridge/mcp"
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

// ListMcpServersRequest checks what ToolService.ListMcpServers is asked.
func ListMcpServersRequest(r *loombridgev1.ListMcpServersRequest) error {
	var c checker
	c.namesPage(r, page.Servers, mcp.MaxServerName)
	return c.err()
}

// ConnectMcpServerRequest checks what ToolService.ConnectMcpServer is asked. What a server may
// be is for package mcp to say.
func ConnectMcpServerRequest(r *loombridgev1.ConnectMcpServerRequest) error {
	var c checker
	switch {
	case r.GetDefinition() == nil && r.GetName() == "":
		c.add("definition", "is required, or the name of a server that is there")
	case r.GetDefinition() == nil:
		c.requiredName("name", r.GetName(), mcp.MaxServerName)
	case r.GetName() != "" || r.GetAcceptChanged():
		c.add("name", "can't be given with a definition, nor can accept_changed")
	default:
		c.requiredName("definition.name", r.GetDefinition().GetName(), mcp.MaxServerName)
	}
	return c.err()
}

// RemoveMcpServerRequest checks what ToolService.RemoveMcpServer is asked.
func RemoveMcpServerRequest(r *loombridgev1.RemoveMcpServerRequest) error {
	var c checker
	c.requiredName("name", r.GetName(), mcp.MaxServerName)
	return c.err()
}
