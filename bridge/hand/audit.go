package hand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/bridge/throttle"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// Words for why a call was refused, where the tool has no code for it.
const (
	refusedTool      = "TOOL_NOT_FOUND"
	refusedArguments = string(tools.InvalidArguments)
	refusedRequest   = "INVALID_REQUEST"
	refusedReused    = "REQUEST_ID_REUSED"
	refusedRoom      = "OVERLOADED"
	refusedLimit     = "TOOL_LIMIT_REACHED"
	refusedGone      = "CANCELLED"
	refusedStore     = "STORE"
)

// refusal is why a call was refused, in one word.
func refusal(err error) string {
	switch {
	case errors.Is(err, tools.ErrToolNotFound):
		return refusedTool
	case errors.Is(err, tools.ErrInvalidArguments):
		return refusedArguments
	case errors.Is(err, share.ErrExhausted), errors.Is(err, share.ErrLimit):
		return refusedRoom
	case errors.Is(err, throttle.ErrLimited):
		return refusedLimit
	case errors.Is(err, kv.ErrRequestReused):
		return refusedReused
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return refusedGone
	}
	if _, ok := errors.AsType[*invalid.Error](err); ok {
		return refusedRequest
	}
	return refusedStore
}

// audited is the part of a record that comes from a request.
func (h *Hand) audited(req Request, came time.Time) audit.Record {
	return audit.Record{
		Tenant: req.Scope.Tenant, Agent: req.Scope.Owner, Session: req.SessionID, CallID: req.CallID, TurnID: req.TurnID,
		RequestID: req.RequestID, Tool: req.Name, Time: came, Duration: h.now().Sub(came), BytesIn: int64(len(req.Args)),
	}
}

// auditedCall is the part of a record that comes from a call.
func (h *Hand) auditedCall(c *call, args json.RawMessage) audit.Record {
	r := h.audited(c.Request, c.came)
	if r.Tool = c.name(); c.Name != r.Tool {
		r.CalledAs = c.Name
	}
	r.Args, r.Profile = audit.Safe(args), c.profile.Name
	c.asked.tell(&r)
	return r
}

// judge says in a record what came of a call that ran, or that a policy stopped.
func judge(r *audit.Record, success bool, code tools.Code) {
	r.Code = string(code)
	switch {
	case success:
		r.Outcome = audit.OutcomeOK
	case code == tools.PermissionDenied:
		r.Outcome = audit.OutcomeDenied
	case code == tools.OutcomeUnknown:
		r.Outcome = audit.OutcomeUnknown
	default:
		r.Outcome = audit.OutcomeFailed
	}
}

// auditRefused records a call that nothing came of.
func (h *Hand) auditRefused(ctx context.Context, req Request, came time.Time, err error) {
	if h.Audit == nil || req.Scope.Validate() != nil {
		return
	}
	r := h.audited(req, came)
	r.Outcome, r.Code = audit.OutcomeRefused, refusal(err)
	if r.Session == "" {
		r.Session = session.DefaultSession
	}
	if args, err := tools.ParseArguments(req.Args); err == nil {
		r.Args = audit.Safe(h.Reducer.MinimalArgs(h.toolName(req), args))
	}
	h.writeAudit(ctx, r)
}

// auditAnswer records a call whose step was not written, or had been before.
func (h *Hand) auditAnswer(ctx context.Context, c *call, a Answer) {
	if h.Audit == nil {
		return
	}
	r := h.auditedCall(c, h.Reducer.MinimalArgs(c.name(), c.kept))
	judge(&r, a.Success, a.ErrorCode)
	if c.mistake != nil {
		r.Outcome, r.Code = audit.OutcomeRefused, refusal(c.mistake)
	}
	if a.Replayed {
		r.Outcome, r.Step = audit.OutcomeReplayed, a.Step.Number
	}
	h.writeAudit(ctx, r)
}

// auditRaw records a call that has no step.
func (h *Hand) auditRaw(ctx context.Context, c *call, a RawAnswer) {
	if h.Audit == nil {
		return
	}
	r := h.auditedCall(c, h.Reducer.MinimalArgs(c.name(), c.kept))
	r.Tier, r.BytesOut = c.tier, int64(len(a.Output))
	code := tools.Code("")
	if a.Failure != nil {
		code = a.Failure.Code
	}
	judge(&r, a.Failure == nil, code)
	h.writeAudit(ctx, r)
}

// writeAudit writes a record on its own. The caller may have gone meanwhile.
func (h *Hand) writeAudit(ctx context.Context, r audit.Record) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	if err := h.Audit.Write(ctx, r); err != nil {
		h.logger.ErrorContext(ctx, "call not audited", "tenant", r.Tenant, "agent", r.Agent, "tool", r.Tool, "error", err)
	}
}

// beginAudit makes room for a record in a request; nothing without an audit.
func (h *Hand) beginAudit(ctx context.Context, tenant string, req *kv.Request) (audit.Entry, error) {
	if h.Audit == nil {
		return audit.Entry{}, nil
	}
	entry, err := h.Audit.Begin(ctx, tenant)
	if err == nil {
		req.Blind = append(req.Blind, entry.Ref())
	}
	return entry, err
}

// beginAudit makes the record of the call. What the caller ran itself has none: it was no
// act of the hand.
func (r *recording) beginAudit(ctx context.Context, req *kv.Request) (err error) {
	h, c := r.hand, r.call
	if h.Audit == nil || c.reported {
		return nil
	}
	record := h.auditedCall(c, r.reduced.MinimalArgs)
	judge(&record, r.answer.Success, r.answer.ErrorCode)
	if c.mistake != nil {
		record.Outcome, record.Code = audit.OutcomeRefused, refusal(c.mistake)
	}
	out := r.outcome
	record.Tier, record.BytesOut = out.result.Tier, max(out.body.size, int64(len(out.json)))
	if out.given.Form == step.FormJSON {
		record.BytesOut = int64(len(out.given.JSON))
	}
	r.audit = &record
	if r.auditing, err = h.beginAudit(ctx, c.Scope.Tenant, req); err != nil {
		return fmt.Errorf("hand: record %s: %w", c.name(), err)
	}
	return nil
}

func (r *recording) stageAudit(tx *kv.Tx, number uint64) {
	if r.audit != nil {
		r.audit.Step = number
		r.auditing.Stage(tx, *r.audit)
	}
}

func (r *recording) endAudit(err error) {
	if r.audit != nil {
		r.auditing.End(err)
	}
}

// lostAudit is the record of a call whose outcome is not known.
func (h *Hand) lostAudit(in session.Intent, number uint64) audit.Record {
	return audit.Record{
		Tenant: in.Scope.Tenant, Agent: in.Scope.Owner, Session: in.SessionID, CallID: in.CallID, TurnID: in.TurnID,
		RequestID: requestID(in.RequestID), Tool: in.Tool, CalledAs: in.CalledAs, Args: audit.Safe(in.MinimalArgs),
		Outcome: audit.OutcomeUnknown, Code: string(tools.OutcomeUnknown), Step: number, Time: in.Time,
	}
}
