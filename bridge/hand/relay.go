package hand

import (
	"context"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/session"
)

// Relayed is what came of a call that an agent answered.
type Relayed struct {
	// Code is why the tool failed; empty after success.
	Code tools.Code
	// Bytes is how long its result is.
	Bytes int64
}

// Relay lets run pass a call on to the agent that has the tool d, under the rules of Call: the
// tools that the agent was given, the limits of the tool, and the approval of a person, who is
// shown the arguments as they go out. Where these say no it returns a *tools.Error or a
// *throttle.LimitedError, and nothing ran. Either way there is an audit record, and no step. Of
// the request, only the scope, the name, the arguments and the timeout are used. It returns
// ErrClosed, too.
func (h *Hand) Relay(ctx context.Context, req Request, d tools.Descriptor, run func() Relayed) error {
	if err := h.begin(); err != nil {
		return err
	}
	defer h.running.Done()
	came := h.now()
	bounds, err := h.Bounds(ctx, req.Scope)
	if err == nil {
		err = bounds.Ended
	}
	if err != nil {
		h.auditRefused(ctx, req, came, err)
		return err
	}
	limited, err := h.limits.Begin(req.Scope.Tenant, req.Scope.Owner, req.Name)
	if err != nil {
		err = fmt.Errorf("hand: relay: %w", err)
		h.auditRefused(ctx, req, came, err)
		return err
	}
	defer limited.End()
	c, err := relayedCall(req, d, came)
	if err != nil {
		return err
	}
	c.bounds = bounds
	failure := c.forbidden()
	if failure == nil {
		if failure, err = h.approve(ctx, c); err != nil {
			h.auditRefused(ctx, req, came, err)
			return err
		}
	}
	if failure != nil {
		h.auditRelayed(ctx, c, Relayed{Code: failure.Code})
		return failure
	}
	h.auditRelayed(ctx, c, run())
	return nil
}

// relayedCall is a call that goes out as it came. Its name and its arguments may be any text.
func relayedCall(req Request, d tools.Descriptor, came time.Time) (*call, error) {
	tool, err := tools.NewRemote(tools.Descriptor{Name: toolNameOf(req.Name), Level: d.Level, RequiresApproval: d.RequiresApproval, Mutates: true}, nil)
	if err != nil {
		return nil, fmt.Errorf("hand: relay: %w", err)
	}
	args, err := tools.ParseArguments(req.Args)
	if err != nil {
		args = map[string]any{}
	}
	c := &call{Request: req, tool: tool, args: args, kept: args, came: came, timeout: req.Timeout, asItCame: true}
	if c.timeout <= 0 {
		c.timeout = DefaultTimeout
	}
	c.timeout = min(c.timeout, MaxTimeout)
	return c, nil
}

func (h *Hand) auditRelayed(ctx context.Context, c *call, result Relayed) {
	if h.Audit == nil {
		return
	}
	r := h.audited(c.Request, c.came)
	r.Session, r.BytesOut = session.DefaultSession, result.Bytes
	r.Args = audit.Safe(h.Reducer.MinimalArgs(c.Name, c.args))
	c.asked.tell(&r)
	judge(&r, result.Code == "", result.Code)
	h.writeAudit(ctx, r)
}
