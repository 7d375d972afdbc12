package egress

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// ToolName is the tool that the audit's records of connections name.
const ToolName = "net:connect"

const (
	codeDenied  = "PERMISSION_DENIED"
	codeLimit   = "TOO_LARGE"
	codeFailed  = "FAILED"
	maxPathShow = 200
	auditTime   = 10 * time.Second
)

// auditEntry is a connection or request under way, for the audit.
type auditEntry struct {
	session        *Session
	came           time.Time
	target         destination
	method, path   string
	sent, received atomic.Int64
}

// begin notes a connection; an ErrLimit says that there were too many.
func (s *Session) begin(t destination, method, path string) (*auditEntry, error) {
	e := &auditEntry{session: s, came: s.gate.now(), target: t, method: method, path: path}
	if s.requests.Add(1) > s.gate.limits.Requests {
		s.gate.counts.limited.Add(1)
		return nil, ErrLimit
	}
	return e, nil
}

// end counts the connection and writes it into the audit.
func (e *auditEntry) end(err error) {
	s := e.session
	r := audit.Record{
		Tenant: s.caller.Tenant, Agent: s.caller.Agent, Session: s.caller.Session, CallID: s.caller.CallID, Tool: ToolName,
		Profile: s.policy.Name, Outcome: audit.OutcomeOK, Time: e.came, Duration: s.gate.now().Sub(e.came),
		BytesIn: e.sent.Load(), BytesOut: e.received.Load(),
	}
	counts := &s.gate.counts
	switch {
	case err == nil:
		counts.allowed.Add(1)
	case errors.Is(err, ErrDenied):
		counts.denied.Add(1)
		r.Outcome, r.Code = audit.OutcomeDenied, codeDenied
	case errors.Is(err, ErrLimit):
		counts.limited.Add(1)
		r.Outcome, r.Code = audit.OutcomeFailed, codeLimit
	default:
		counts.failed.Add(1)
		r.Outcome, r.Code = audit.OutcomeFailed, codeFailed
	}
	if s.gate.opts.Audit == nil {
		return
	}
	// The path without its query, which may hold anything.
	args, _ := json.Marshal(map[string]string{ // texts alone
		"host": e.target.String(), "method": e.method, "path": text.Head(text.Valid(e.path), maxPathShow), "tool": s.caller.Tool,
	})
	r.Args = audit.Safe(args)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), auditTime)
	defer cancel()
	if err := s.gate.opts.Audit(ctx, r); err != nil {
		s.gate.logger.Error("connection not audited", "tenant", r.Tenant, "agent", r.Agent, "host", e.target.String(), "error", err)
	}
}
