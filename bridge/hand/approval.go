package hand

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/approval"
	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

// asked is what people said about a call. A tool may ask while the hand has left it alone,
// so it has a lock of its own.
type asked struct {
	mu     sync.Mutex
	answer approval.Answer   // of the last question; empty when nobody was asked
	what   policy.Capability // it was about; the zero Capability for the use of the tool
}

func (a *asked) set(answer approval.Answer, what policy.Capability) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// A denial says more than what was allowed beside it.
	if a.answer == "" || a.answer.Allows() {
		a.answer, a.what = answer, what
	}
}

// get returns the answer, and what it was about as text; empty for the use of the tool.
func (a *asked) get() (answer, what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.what.Kind != policy.KindTool && a.what.Kind != "" {
		what = a.what.Kind + " " + a.what.Name
	}
	return string(a.answer), what
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
	case slices.Contains(rules, policy.Never) || h.Approvals == nil:
		return c.denied(what, approval.Unattended), nil
	}
	before := h.now()
	answer, err := h.askPerson(ctx, c, what, c.timeout)
	if err != nil {
		return nil, err
	}
	if !answer.Allows() {
		return c.denied(what, answer), nil
	}
	c.asked.set(answer, what)
	if c.timeout -= h.now().Sub(before); c.timeout <= 0 {
		return c.denied(what, approval.TimedOut), nil
	}
	return nil, nil
}

func (h *Hand) askPerson(ctx context.Context, c *call, what policy.Capability, limit time.Duration) (approval.Answer, error) {
	return h.Approvals.Ask(ctx, approval.Request{
		Tenant: c.Scope.Tenant, Agent: c.Scope.Owner, Session: c.SessionID, CallID: c.CallID, Tool: c.name(),
		Above: h.Policies.Above(c.Scope), Capability: what, Args: audit.Safe(h.Reducer.MinimalArgs(c.name(), c.kept)),
	}, limit)
}

// ask is tools.Input.Ask for a call that runs.
func (h *Hand) ask(ctx context.Context, c *call, what policy.Capability) error {
	if problem := h.Policies.Set().Refuses(what); problem != "" {
		return tools.Errorf(tools.PermissionDenied, "Permission denied: %s %s %s", what.Kind, what.Name, problem)
	}
	if h.Approvals == nil || !h.Policies.Approvals(c.Scope, c.name()).Leaves() {
		return c.denied(what, approval.Unattended)
	}
	answer, err := h.askPerson(ctx, c, what, MaxTimeout)
	switch {
	case err != nil:
		return err
	case !answer.Allows():
		return c.denied(what, answer)
	}
	c.asked.set(answer, what)
	return nil
}

// denied is what a call is answered with that may not run, or not do what it tried. The
// beginning of the text is part of the contract with loom.v1 clients.
func (c *call) denied(what policy.Capability, answer approval.Answer) *tools.Error {
	c.asked.set(answer, what)
	text := fmt.Sprintf("Permission denied: %s needs the approval of a person", what.Name)
	if what.Kind != policy.KindTool {
		text = fmt.Sprintf("Permission denied: %s %s needs the approval of a person", what.Kind, what.Name)
	}
	switch answer {
	case approval.Denied:
		text += ", who said no"
	case approval.TimedOut:
		text += ", and nobody answered in time"
	}
	failure := &tools.Error{Code: tools.PermissionDenied, Message: text}
	if answer == approval.Unattended {
		failure.Cause = policy.ErrUnattended
	}
	return failure
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
