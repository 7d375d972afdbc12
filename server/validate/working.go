package validate

import (
	"strings"

	"github.com/loom-bridge/loom-bridge/context/working"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// UpdateWorkingRequest checks what ContextService.UpdateWorking is asked.
func UpdateWorkingRequest(r *loombridgev1.UpdateWorkingRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	c.request(r.GetRequestId())
	c.text("goal", r.GetGoal(), working.MaxGoalBytes)
	for i, item := range r.GetPlan().GetItems() {
		field := Item("plan.items", i)
		c.enum(field+".status", item.GetStatus())
		c.text(field+".text", item.GetText(), working.MaxItemBytes)
		switch {
		case strings.TrimSpace(item.GetText()) == "":
			c.add(field+".text", "is required")
		case strings.ContainsAny(item.GetText(), "\r\n"):
			c.add(field+".text", "is more than one line")
		}
	}
	c.skills("activate", r.GetActivate())
	c.skills("deactivate", r.GetDeactivate())
	return c.err()
}

func (c *checker) skills(field string, names []string) {
	c.names(field, names, working.MaxSkillBytes)
}
