package hand

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/approval"
	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

// approvalState is what people said about a call. A tool may ask while the hand has left it alone,
// so it has its own lock.
type approvalState struct {
	mu     sync.Mutex
	answer approval.Answer   // to the last question; empty when no person was asked
	what   policy.Capability // it was about; the zero Capability for the use of the tool
}

func (a *approvalState) set(answer approval.Answer, what policy.Capability) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// A denial outweighs an approval.
	if a.answer.Ruling == "" || a.answer.Allows() {
		a.answer, a.what = answer, what
	}
}

// tell puts the answer into a record, and what it was about unless that is the use of the tool.
func (a *approvalState) tell(r *audit.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r.Approval, r.Note = string(a.answer.Ruling), audit.SafeText(a.answer.Note)
	if a.what.Kind != policy.KindTool && a.what.Kind != "" {
		r.Capability = a.what.Kind + " " + a.what.Name
	}
}

// approve decides whether a call may run, before anything of it happens: no slot, no
// workspace, no intent. It returns why it may not, nil when it may. The time that a person
// takes counts as the call's. An error means that the call was refused.
func (h *Hand) approve(ctx context.Context, c *call) (*tools.Error, error) {
	what := policy.Capability{Kind: policy.KindTool, Name: c.name()}
	rules := h.Policies.Approvals(c.Scope, c.name())
	switch {
	case !approval.Asks(rules, c.tool.Descriptor()):
		return nil, nil
	case slices.Contains(rules, policy.Never):
		return c.bound(what), nil
	case h.Approvals == nil:
		return c.denied(what, approval.Answer{Ruling: approval.Unattended}), nil
	}
	before := h.now()
	answer, err := h.askPerson(ctx, c, what, c.timeout, func(ctx context.Context) (approval.Sheet, error) {
		s, err := h.sheet(ctx, c, nil)
		if err == nil {
			c.shown = &s
		}
		return s, err
	})
	if failure, ok := errors.AsType[*tools.Error](err); ok {
		return failure, nil
	}
	if err != nil {
		return nil, err
	}
	if !answer.Allows() {
		return c.denied(what, answer), nil
	}
	c.asked.set(answer, what)
	if c.timeout -= h.now().Sub(before); c.timeout <= 0 {
		return c.denied(what, approval.Answer{Ruling: approval.TimedOut}), nil
	}
	return nil, nil
}

func (h *Hand) askPerson(ctx context.Context, c *call, what policy.Capability, limit time.Duration, describe func(context.Context) (approval.Sheet, error)) (approval.Answer, error) {
	return h.Approvals.Ask(ctx, approval.Request{
		Tenant: c.Scope.Tenant, Agent: c.Scope.Owner, Session: c.SessionID, CallID: c.CallID, Tool: c.name(),
		Above: h.Policies.Above(c.Scope), Capability: what, Describe: describe,
	}, limit)
}

// ask is tools.Input.Ask for a call that runs.
func (h *Hand) ask(ctx context.Context, c *call, root *os.Root, what policy.Capability) error {
	if problem := h.Policies.Set().Refuses(what); problem != "" {
		return tools.Errorf(tools.PermissionDenied, "Permission denied: %s %s %s", what.Kind, what.Name, problem)
	}
	switch {
	case !h.Policies.Approvals(c.Scope, c.name()).Leaves():
		return c.bound(what)
	case h.Approvals == nil:
		return c.denied(what, approval.Answer{Ruling: approval.Unattended})
	}
	answer, err := h.askPerson(ctx, c, what, MaxTimeout, func(ctx context.Context) (approval.Sheet, error) {
		if c.shown != nil {
			return *c.shown, nil
		}
		return h.sheet(ctx, c, root)
	})
	switch {
	case err != nil:
		return err
	case !answer.Allows():
		return c.denied(what, answer)
	}
	c.asked.set(answer, what)
	return nil
}

// bound is the answer to a call about which no person may be asked.
func (c *call) bound(what policy.Capability) *tools.Error {
	failure := c.denied(what, approval.Answer{Ruling: approval.Unattended})
	failure.Message = needsPerson(what) + `, and its binding forbids asking a person (approval = "never" or "tool" in the settings file)`
	return failure
}

// denied is what a call is answered with that may not run, or not do what it tried.
func (c *call) denied(what policy.Capability, answer approval.Answer) *tools.Error {
	c.asked.set(answer, what)
	failure := &tools.Error{Code: tools.PermissionDenied, Message: needsPerson(what)}
	switch answer.Ruling {
	case approval.Denied:
		failure.Message += ", who said no"
		if answer.Note != "" {
			failure.Message += ": " + answer.Note
		}
	case approval.TimedOut:
		failure.Message += ", but no answer came in time"
	case approval.Unattended:
		failure.Message += ", but no approver is connected: run `loom-bridge-server approvals watch --answer`, then call again"
		failure.Cause = policy.ErrUnattended
	}
	return failure
}

// needsPerson begins what such calls are answered with. The beginning of the text is part of
// the contract with loom.v1 clients.
func needsPerson(what policy.Capability) string {
	name := what.Name
	if what.Kind != policy.KindTool {
		name = what.Kind + " " + what.Name
	}
	return "Permission denied: " + name + " needs the approval of a person"
}

// confine finds what a call of a tool of the server's may do in its workspace. The tools of
// agents run elsewhere: nothing here holds them. It returns why the call may not run; nil
// when it may.
func (h *Hand) confine(c *call, root *os.Root) *tools.Error {
	if _, own := h.Tools.Own(c.name()); !own {
		return nil
	}
	profile, err := h.Policies.Resolve(c.Scope, c.name(), root)
	c.profile = profile
	if err != nil {
		return &tools.Error{Code: tools.PermissionDenied, Message: "Permission denied: " + err.Error(), Cause: err}
	}
	return nil
}
