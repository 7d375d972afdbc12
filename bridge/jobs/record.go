package jobs

import (
	"context"
	"encoding/json"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/audit"
)

// EndTool is the tool that the audit's records of the ends of jobs name.
const EndTool = "job:end"

// Codes of such records, where a job did not end by itself.
const (
	codeStopped = "STOPPED"
	codeLimit   = "LIMIT"
	codeFailed  = "FAILED"
)

// auditTime bounds the writing of a record.
const auditTime = 10 * time.Second

// audit writes the record of the end of a job. It has the call id of the call that started
// it.
func (j *Jobs) audit(b *job) {
	if j.opts.Audit == nil {
		return
	}
	i, s := b.info(), b.start
	r := audit.Record{
		Tenant: s.Owner.Scope.Tenant, Agent: s.Owner.Scope.Owner, Session: s.Owner.Session, CallID: s.CallID, Tool: EndTool,
		Profile: s.Profile, Outcome: audit.OutcomeOK, Time: i.Started, Duration: i.Ended.Sub(i.Started), BytesOut: i.Printed,
		Tier: b.outcome.Confinement.Tier,
	}
	args := map[string]any{"job_id": i.ID, "command": i.Command}
	switch {
	case i.Status == Stopped:
		r.Outcome, r.Code = audit.OutcomeFailed, codeStopped
	case i.Status == Failed:
		r.Outcome, r.Code = audit.OutcomeFailed, codeFailed
	case i.Limit != "":
		r.Outcome, r.Code = audit.OutcomeFailed, codeLimit
		args["limit"] = i.Limit
	default:
		args["exit_code"] = i.Exit
	}
	text, _ := json.Marshal(args) // texts and a number
	r.Args = audit.Safe(text)
	ctx, cancel := context.WithTimeout(context.Background(), auditTime)
	defer cancel()
	if err := j.opts.Audit(ctx, r); err != nil {
		j.opts.Logger.Error("the end of a background job is not audited", "agent", s.Owner.Scope.String(), "job", i.ID, "error", err)
	}
}
