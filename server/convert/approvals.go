package convert

import (
	"crypto/sha256"
	"encoding/hex"
	"iter"

	"github.com/loom-bridge/loom-bridge/bridge/approval"
	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/context/text"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// decisions are the answers of people by their numbers on the wire.
var decisions = map[loombridgev1.ApprovalDecision]approval.Ruling{
	loombridgev1.ApprovalDecision_APPROVAL_DECISION_DENY:    approval.Denied,
	loombridgev1.ApprovalDecision_APPROVAL_DECISION_ONCE:    approval.Once,
	loombridgev1.ApprovalDecision_APPROVAL_DECISION_SESSION: approval.ForSession,
	loombridgev1.ApprovalDecision_APPROVAL_DECISION_AGENT:   approval.ForAgent,
	loombridgev1.ApprovalDecision_APPROVAL_DECISION_ALWAYS:  approval.ForAll,
}

// ApprovalAnswer is a decision, which was checked, with its note.
func ApprovalAnswer(r *loombridgev1.ApproveCallRequest) approval.Answer {
	return approval.Answer{Ruling: decisions[r.GetDecision()], Note: r.GetNote()}
}

// PendingApproval converts a call that waits.
func PendingApproval(r approval.Request) *loombridgev1.PendingApproval {
	out := &loombridgev1.PendingApproval{
		Id: r.ID, AgentId: r.Agent, SessionId: r.Session, CallId: utf8Text(r.CallID), Capability: capability(r.Capability),
		ArgumentsJson: text.VisibleJSON(r.Secrets.Named(string(r.Args))), ExpireTime: Timestamp(r.Expires), Tool: r.Tool,
		Digest: r.Digest(),
	}
	out.Rule, out.AlsoAllows = approval.Rule(r)
	for _, p := range r.Parts {
		sum := sha256.Sum256(p.Content)
		out.Parts = append(out.Parts, &loombridgev1.ApprovalPart{
			Name: text.VisibleLine(p.Name), Text: text.Visible(r.Secrets.Named(string(p.Content))), Sha256: hex.EncodeToString(sum[:]), Bytes: int64(len(p.Content)),
		})
	}
	return out
}

func capability(c policy.Capability) *loombridgev1.Capability {
	return &loombridgev1.Capability{Kind: c.Kind, Name: c.Name}
}

// ApprovalChanges are calls that came and calls that wait no more, as a stream sends them.
func ApprovalChanges(came []approval.Request, gone []string) iter.Seq[func() *loombridgev1.WatchApprovalsResponse] {
	return func(yield func(func() *loombridgev1.WatchApprovalsResponse) bool) {
		for _, r := range came {
			if !yield(func() *loombridgev1.WatchApprovalsResponse {
				return &loombridgev1.WatchApprovalsResponse{Change: &loombridgev1.WatchApprovalsResponse_Pending{Pending: PendingApproval(r)}}
			}) {
				return
			}
		}
		for _, id := range gone {
			if !yield(func() *loombridgev1.WatchApprovalsResponse {
				return &loombridgev1.WatchApprovalsResponse{Change: &loombridgev1.WatchApprovalsResponse_ClosedId{ClosedId: id}}
			}) {
				return
			}
		}
	}
}

// RememberedApproval describes an answer that is remembered.
func RememberedApproval(g approval.Grant) *loombridgev1.RememberedApproval {
	out := &loombridgev1.RememberedApproval{
		Id: g.ID, Capability: capability(g.Capability), AgentId: g.Agent, SessionId: g.Session, ApproverId: g.By,
		CreateTime: Timestamp(g.Time),
	}
	for decision, answer := range decisions {
		if answer == g.Scope {
			out.Decision = decision
		}
	}
	return out
}
