package hand

import (
	"context"
	"fmt"

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

// Relay lets run pass a call on to the agent that has the tool, unless a limit of the tool
// has no room for it: then it returns a *throttle.LimitedError, and nothing ran. Either has
// its audit record, and no step. Of the request, only the scope, the name and the arguments
// are used. It returns ErrClosed, too.
func (h *Hand) Relay(ctx context.Context, req Request, run func() Relayed) error {
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
	result := run()
	if h.Audit == nil {
		return nil
	}
	r := h.audited(req, came)
	r.Session, r.BytesOut = session.DefaultSession, result.Bytes
	if args, err := tools.ParseArguments(req.Args); err == nil {
		r.Args = audit.Safe(h.Reducer.MinimalArgs(req.Name, args))
	}
	judge(&r, result.Code == "", result.Code)
	h.writeAudit(ctx, r)
	return nil
}
