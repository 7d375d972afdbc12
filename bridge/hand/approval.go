package hand

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/bridge/approval"
	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

// approve decides whether a call may run, before anything of it happens: no slot, no
// workspace, no intent. It returns why it may not, nil when it may. The time that a person
// takes counts as the call's. An error means that the call was refused.
func (h *Hand) approve(ctx context.Context, c *call) (*tools.Error, error) {
	if h.Approvals == nil {
		if c.tool.Descriptor().RequiresApproval {
			return h.denied(c, approval.Unattended), nil
		}
		return nil, nil
	}
	rule := h.Approvals.Rule(c.Scope.Tenant, c.Scope.Owner, c.name())
	switch {
	case !rule.Approval.Asks(c.tool.Descriptor()):
		return nil, nil
	case rule.Approval == approval.Never:
		return h.denied(c, approval.Unattended), nil
	}
	before := h.now()
	answer, err := h.Approvals.Ask(ctx, approval.Request{
		Tenant: c.Scope.Tenant, Agent: c.Scope.Owner, Session: c.SessionID, CallID: c.CallID,
		Capability: approval.Capability{Kind: approval.KindTool, Name: c.name()},
		Args:       audit.Safe(h.Reducer.MinimalArgs(c.name(), c.args)),
	}, c.timeout)
	if err != nil {
		return nil, err
	}
	if !answer.Allows() {
		return h.denied(c, answer), nil
	}
	c.approval = answer
	if c.timeout -= h.now().Sub(before); c.timeout <= 0 {
		return h.denied(c, approval.TimedOut), nil
	}
	return nil, nil
}

// denied is what a call is answered with that may not run. The beginning of the text is part
// of the contract with loom.v1 clients.
func (h *Hand) denied(c *call, answer approval.Answer) *tools.Error {
	c.approval = answer
	text := fmt.Sprintf("Permission denied: %s needs the approval of a person", c.name())
	switch answer {
	case approval.Denied:
		text += ", who said no"
	case approval.TimedOut:
		text += ", and nobody answered in time"
	}
	return &tools.Error{Code: tools.PermissionDenied, Message: text}
}
