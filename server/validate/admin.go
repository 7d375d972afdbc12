package validate

import (
	"github.com/loom-bridge/loom-bridge/bridge/cluster/registry"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/filter"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/backup"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/page"
)

// ListScopesRequest checks what AdminService.ListScopes is asked.
func ListScopesRequest(r *loombridgev1.ListScopesRequest) error {
	var c checker
	c.name("tenant", r.GetTenant(), kv.MaxTenantBytes)
	c.enum("kind", r.GetKind())
	c.name("prefix", r.GetPrefix(), kv.MaxOwnerBytes)
	c.name("agent_id", r.GetAgentId(), kv.MaxOwnerBytes)
	_, known := page.ParseScopeToken(r.GetPageToken())
	c.page(r, memory.MaxOwnersPage, known)
	return c.err()
}

// ListBackupsRequest checks what AdminService.ListBackups is asked.
func ListBackupsRequest(r *loombridgev1.ListBackupsRequest) error {
	var c checker
	c.namesPage(r, page.Backups, backup.MaxNameBytes)
	return c.err()
}

// GetStatusRequest checks the agent whose workspace AdminService.GetStatus is asked for.
func GetStatusRequest(r *loombridgev1.GetStatusRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	return c.err()
}

// MoveWorkspaceRequest checks what AdminService.MoveWorkspace is asked.
func MoveWorkspaceRequest(r *loombridgev1.MoveWorkspaceRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.required("server", r.GetServer(), registry.MaxWorkspaceBytes)
	return c.err()
}

// EraseScopeRequest checks what MemoryService.EraseScope is asked.
func EraseScopeRequest(r *loombridgev1.EraseScopeRequest) error {
	var c checker
	s := r.GetSubject()
	c.name("subject.tenant", s.GetTenant(), kv.MaxTenantBytes)
	switch owner := s.GetOwner().(type) {
	case *loombridgev1.EraseSubject_AgentId:
		c.requiredName("subject.agent_id", owner.AgentId, kv.MaxOwnerBytes)
	case *loombridgev1.EraseSubject_UserId:
		c.requiredName("subject.user_id", owner.UserId, kv.MaxOwnerBytes)
	default:
		c.add("subject", "is required: agent_id or user_id")
	}
	c.name("subject.session_id", s.GetSessionId(), session.MaxSessionIDBytes)
	c.text("subject.filter", s.GetFilter(), filter.MaxBytes)
	if _, ok := step.ParseID(s.GetStepId()); !ok && s.GetStepId() != "" {
		c.add("subject.step_id", "is not `step_` and a number of at least three digits")
	}
	c.enum("shared", r.GetShared())
	return c.err()
}
