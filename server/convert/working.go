package convert

import (
	"github.com/loom-bridge/loom-bridge/context/working"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// WorkingChange is what a request changes.
func WorkingChange(r *loombridgev1.UpdateWorkingRequest) working.Change {
	c := working.Change{Goal: r.Goal, Activate: r.GetActivate(), Deactivate: r.GetDeactivate()}
	if r.GetPlan() != nil {
		plan := make(working.Plan, len(r.GetPlan().GetItems()))
		for i, item := range r.GetPlan().GetItems() {
			plan[i] = working.Item{Text: item.GetText(), Status: statusToSet(item.GetStatus())}
		}
		c.Plan = &plan
	}
	return c
}

func statusToSet(s loombridgev1.PlanStatus) working.Status {
	switch s {
	case loombridgev1.PlanStatus_PLAN_STATUS_IN_PROGRESS:
		return working.InProgress
	case loombridgev1.PlanStatus_PLAN_STATUS_DONE:
		return working.Done
	case loombridgev1.PlanStatus_PLAN_STATUS_FAILED:
		return working.Failed
	}
	return working.Pending
}

// Working writes what an agent is at. active are the names of all active skills.
func Working(w working.Working, active []string) *loombridgev1.Working {
	out := &loombridgev1.Working{Goal: w.Goal, ActiveSkills: active}
	if len(w.Plan) > 0 {
		out.Plan = &loombridgev1.Plan{Items: make([]*loombridgev1.PlanItem, len(w.Plan))}
	}
	for i, item := range w.Plan {
		out.Plan.Items[i] = &loombridgev1.PlanItem{Text: item.Text, Status: statusOf(item.Status)}
	}
	return out
}

func statusOf(s working.Status) loombridgev1.PlanStatus {
	switch s {
	case working.InProgress:
		return loombridgev1.PlanStatus_PLAN_STATUS_IN_PROGRESS
	case working.Done:
		return loombridgev1.PlanStatus_PLAN_STATUS_DONE
	case working.Failed:
		return loombridgev1.PlanStatus_PLAN_STATUS_FAILED
	}
	return loombridgev1.PlanStatus_PLAN_STATUS_PENDING
}
