package validate

import (
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/context/session"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// maxWait bounds one WaitAgents.
const maxWait = 10 * time.Minute

// SpawnAgentRequest checks what AgentService.SpawnAgent is asked. What an id of a child
// may be, and what its parent can give it, is checked by package children.
func SpawnAgentRequest(r *loombridgev1.SpawnAgentRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	c.requiredName("child_id", r.GetChildId(), children.MaxIDBytes)
	c.required("goal", r.GetGoal(), children.MaxGoalBytes)
	c.name("child_session_id", r.GetChildSessionId(), session.MaxSessionIDBytes)
	c.name("profile", r.GetProfile(), children.MaxToolBytes)
	c.request(r.GetRequestId())
	c.requiredNames("tools", r.GetTools(), children.MaxTools, children.MaxToolBytes)
	if r.GetWithoutTools() && len(r.GetTools()) > 0 {
		c.add("tools", "do not go with without_tools")
	}
	c.requiredNames("grants", r.GetGrants(), children.MaxGrants, children.MaxGrantBytes)
	c.childLimits(r.GetLimits())
	if r.ForkFrom != nil {
		c.name("fork_from", r.GetForkFrom(), children.MaxPromptIDBytes)
		if r.GetWithoutTools() || len(r.GetTools()) > 0 {
			c.add("fork_from", "does not go with tools or without_tools: a fork has its parent's")
		}
	}
	return c.err()
}

func (c *checker) childLimits(l *loombridgev1.ChildLimits) {
	c.between("limits.steps", l.GetSteps(), 0, children.MaxLimit)
	c.between("limits.tokens_per_step", l.GetTokensPerStep(), 0, children.MaxLimit)
	c.between("limits.files", l.GetFiles(), 0, children.MaxLimit)
	c.between("limits.bytes", l.GetBytes(), 0, children.MaxLimit)
	if t := l.GetTimeout(); t != nil && (!t.IsValid() || t.AsDuration() < 0 || t.AsDuration() > children.MaxTimeout) {
		c.add("limits.timeout", "must be from 0 to 30 days")
	}
}

// requiredNames checks a list of texts, each of which is required.
func (c *checker) requiredNames(field string, list []string, most, bytes int) {
	if !c.count(field, len(list), most) {
		return
	}
	for i, one := range list {
		c.requiredName(Item(field, i), one, bytes)
	}
}

// CompleteTaskRequest checks what AgentService.CompleteTask is asked.
func CompleteTaskRequest(r *loombridgev1.CompleteTaskRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	c.requiredName("task_id", r.GetTaskId(), session.MaxTaskIDBytes)
	if r.GetFailed() {
		c.text("conclusion", r.GetConclusion(), children.MaxResultBytes)
		c.required("error", r.GetError(), children.MaxErrorBytes)
	} else {
		c.required("conclusion", r.GetConclusion(), children.MaxResultBytes)
		if r.GetError() != "" {
			c.add("error", "needs failed")
		}
	}
	c.requiredNames("grants", r.GetGrants(), children.MaxGrants, children.MaxGrantBytes)
	c.listedSteps(r.GetStepIds())
	return c.err()
}

// ConcludedTask checks the fields other than the conclusion of a task that is no child, in
// its session.
func ConcludedTask(r *loombridgev1.CompleteTaskRequest, sessionID string) error {
	var c checker
	if asked := r.GetSessionId(); asked != "" && asked != sessionID {
		c.add("session_id", "is not the session of the task, which is %q", sessionID)
	}
	if len(r.GetGrants()) > 0 {
		c.add("grants", "are for the task of a child")
	}
	c.text("conclusion", r.GetConclusion(), session.MaxTaskResultBytes)
	return c.err()
}

// WaitAgentsRequest checks what AgentService.WaitAgents is asked.
func WaitAgentsRequest(r *loombridgev1.WaitAgentsRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	c.requiredNames("child_ids", r.GetChildIds(), children.MaxWaited, children.MaxIDBytes)
	if t := r.GetTimeout(); t != nil && (!t.IsValid() || t.AsDuration() < 0 || t.AsDuration() > maxWait) {
		c.add("timeout", "must be from 0 to 10 minutes")
	}
	return c.err()
}
