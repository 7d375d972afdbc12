package hooks

import (
	"context"
	"encoding/json"

	"github.com/loom-bridge/loom-bridge/context/text"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	// maxPlanItems is the native API's limit, and maxItemBytes of each fit with them into
	// what it takes of a plan.
	maxPlanItems, maxItemBytes = 64, 160
)

// planStatus are the words that hosts have for how far a task is.
var planStatus = map[string]loombridgev1.PlanStatus{
	"in_progress": loombridgev1.PlanStatus_PLAN_STATUS_IN_PROGRESS, "completed": loombridgev1.PlanStatus_PLAN_STATUS_DONE,
}

// planned is the list of tasks that a tool of a host keeps: nil if it is another tool, without
// items where nothing of it is left to do.
func (e Event) planned() *loombridgev1.Plan {
	type task struct {
		Content, Step words
		Status        string
	}
	var list struct{ Todos, Plan []task }
	if e.kind != called || e.tool != "TodoWrite" && e.tool != "update_plan" || json.Unmarshal(e.arguments, &list) != nil {
		return nil
	}
	plan, open := &loombridgev1.Plan{}, false
	for _, t := range append(list.Todos, list.Plan...) {
		item := &loombridgev1.PlanItem{Text: cut(text.OneLine(string(t.Content+t.Step)), maxItemBytes), Status: planStatus[t.Status]}
		if item.GetText() == "" || len(plan.GetItems()) == maxPlanItems {
			continue
		}
		plan.Items = append(plan.Items, item)
		open = open || item.GetStatus() != loombridgev1.PlanStatus_PLAN_STATUS_DONE
	}
	if !open {
		plan.Items = nil
	}
	return plan
}

// plan makes a host's list of tasks the session's plan, so that it stands in what is given back
// after a compaction.
func (h *Handler) plan(ctx context.Context, e Event, after int64) error {
	plan := e.planned()
	if plan == nil {
		return nil
	}
	ask := &loombridgev1.UpdateWorkingRequest{
		AgentId: h.agent, SessionId: e.Session, Plan: plan, RequestId: e.request("plan"+string(e.arguments), e.call, after),
	}
	return again(ctx, func() error {
		_, err := h.sessions.UpdateWorking(ctx, ask)
		return err
	})
}
