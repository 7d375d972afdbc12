package convert

import (
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Spawn is the child that a request asks for.
func Spawn(parent kv.Scope, r *loombridgev1.SpawnAgentRequest) children.Spawn {
	s := children.Spawn{
		Tenant: parent.Tenant, Parent: parent.Owner, ParentSession: r.GetSessionId(), Child: r.GetChildId(), Goal: r.GetGoal(),
		SessionID: r.GetChildSessionId(), Tools: r.GetTools(), Profile: r.GetProfile(), Grants: r.GetGrants(), RequestID: r.GetRequestId(),
	}
	if r.GetWithoutTools() {
		s.Tools = []string{}
	}
	if r.ForkFrom != nil {
		s.From = &children.Point{PromptID: r.GetForkFrom()}
	}
	if l := r.GetLimits(); l != nil {
		s.Limits = children.Asked{Steps: l.Steps, StepTokens: l.TokensPerStep, Files: l.Files, Bytes: l.Bytes}
		if l.GetTimeout() != nil {
			s.Limits.Timeout = new(l.GetTimeout().AsDuration())
		}
	}
	return s
}

// ChildResult is the result that a request gives.
func ChildResult(r *loombridgev1.CompleteTaskRequest) children.Result {
	return children.Result{Success: !r.GetFailed(), Text: r.GetConclusion(), Error: r.GetError(), Grants: r.GetGrants()}
}

// ConcludeRequest converts the end of a task that is no child's. What failed has its error
// for a conclusion.
func ConcludeRequest(scope kv.Scope, task session.Task, r *loombridgev1.CompleteTaskRequest) assemble.ConcludeRequest {
	ask := assemble.ConcludeRequest{Scope: scope, Task: task, Conclusion: r.GetConclusion()}
	if r.GetFailed() {
		ask.Conclusion = "✗ " + r.GetError()
	}
	for _, id := range r.GetStepIds() {
		number, _ := step.ParseID(id)
		ask.Steps = append(ask.Steps, number)
	}
	return ask
}

// CompleteTaskResponse converts the outcome of a task's steps.
func CompleteTaskResponse(c assemble.Concluded) *loombridgev1.CompleteTaskResponse {
	return &loombridgev1.CompleteTaskResponse{Fold: batchOf(c.Batch), Problem: c.Problem}
}

// ChildAgent converts a child.
func ChildAgent(c *children.Child) *loombridgev1.ChildAgent {
	l := c.Limits
	out := &loombridgev1.ChildAgent{
		ChildId: c.ID, ParentId: c.Parent, Goal: c.Goal, SessionId: c.SessionID,
		Tools: c.Tools, Depth: Int32(c.Depth), StepId: step.ID(c.Number),
		Limits: &loombridgev1.ChildLimits{
			Steps: new(int64(l.Steps)), TokensPerStep: new(int64(l.StepTokens)), Files: new(int64(l.Files)), Bytes: new(l.Bytes),
			Timeout: durationpb.New(l.Timeout),
		},
		Status: loombridgev1.ChildStatus_CHILD_STATUS_RUNNING, SpawnTime: Timestamp(c.Time), Fork: c.Fork != "",
	}
	if r := c.Result; r != nil {
		out.Status = loombridgev1.ChildStatus_CHILD_STATUS_FAILED
		if r.Success {
			out.Status = loombridgev1.ChildStatus_CHILD_STATUS_SUCCEEDED
		}
		out.Result, out.Error, out.ResultStepId = r.Text, r.Error, step.ID(r.Step)
	}
	return out
}

// WaitAgentsResponse says what came of children.
func WaitAgentsResponse(o children.WaitOutcome) *loombridgev1.WaitAgentsResponse {
	said, cut := o.Text()
	out := &loombridgev1.WaitAgentsResponse{Pending: o.Pending(), Outcome: said, Cut: cut}
	for i := range o.Children {
		out.Children = append(out.Children, ChildAgent(&o.Children[i]))
	}
	return out
}
