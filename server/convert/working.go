package convert

import (
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/context/working"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/page"
)

// WorkingChange is what a request changes.
func WorkingChange(r *loombridgev1.UpdateWorkingRequest) working.Change {
	c := working.Change{
		Goal: r.Goal, Activate: r.GetActivate(), Deactivate: r.GetDeactivate(), Progress: r.GoalProgress, Scratchpad: r.Scratchpad,
		Signals: Signals(r.GetSignals()), Ask: r.GetAddQuestions(), Answered: r.GetRemoveQuestions(),
	}
	for _, a := range r.GetAcknowledge() {
		c.Acknowledge = append(c.Acknowledge, working.Acknowledgement{ID: a.GetEventId(), Verdict: working.Verdict(a.GetDecision())})
	}
	for _, e := range r.GetAddEvidence() {
		c.Found = append(c.Found, working.Evidence{
			Source: e.GetSource(), Title: e.GetTitle(), Content: e.GetContent(), Citation: e.GetCitation(), Score: e.GetScore(),
		})
	}
	if r.GetPlan() != nil {
		plan := make(working.Plan, len(r.GetPlan().GetItems()))
		for i, item := range r.GetPlan().GetItems() {
			plan[i] = working.Item{Text: item.GetText(), Status: shifted[working.Status](item.GetStatus())}
		}
		c.Plan = &plan
	}
	return c
}

// Signals are what requests say happened elsewhere.
func Signals(all []*loombridgev1.Signal) []working.Signal {
	var out []working.Signal
	for _, s := range all {
		one := working.Signal{ID: s.GetEventId(), Type: s.GetType(), Summary: s.GetSummary(), Delta: s.DeltaH}
		for urgency, number := range urgencies {
			if number == s.GetUrgency() {
				one.Urgency = urgency
			}
		}
		out = append(out, one)
	}
	return out
}

var urgencies = map[working.Urgency]loombridgev1.Urgency{
	working.Low: loombridgev1.Urgency_URGENCY_LOW, working.Normal: loombridgev1.Urgency_URGENCY_NORMAL,
	working.High: loombridgev1.Urgency_URGENCY_HIGH, working.Critical: loombridgev1.Urgency_URGENCY_CRITICAL,
}

// Working writes what an agent is at. active are the names of all active skills.
func Working(w working.Working, active []string, f working.Figures) *loombridgev1.Working {
	out := &loombridgev1.Working{
		Goal: w.Goal, ActiveSkills: active, Scratchpad: w.Scratchpad, Questions: w.Questions, Citations: w.Citations,
		Dashboard: &loombridgev1.Dashboard{
			Rho: f.Pressure, TokenBudget: Int32(f.Budget), GoalProgress: w.ShownProgress(), ErrorCount: Int32(f.Errors),
			Depth: Int32(f.Depth), LastHeartbeatTime: Timestamp(w.Heartbeat), InterruptRequested: w.Interrupt(),
		},
	}
	if len(w.Plan) > 0 {
		out.Plan = &loombridgev1.Plan{Items: make([]*loombridgev1.PlanItem, len(w.Plan))}
	}
	for i, item := range w.Plan {
		out.Plan.Items[i] = &loombridgev1.PlanItem{Text: item.Text, Status: loombridgev1.PlanStatus(item.Status + 1)}
	}
	for _, p := range w.Waiting() {
		out.PendingEvents = append(out.PendingEvents, &loombridgev1.PendingEvent{
			Type: p.Type, EventIds: p.IDs, Summary: p.Summary, Sample: p.Sample, Urgency: urgencies[p.Urgency],
		})
	}
	for _, d := range w.ShownDecisions() {
		out.Decisions = append(out.Decisions, &loombridgev1.Acknowledgement{
			EventId: d.ID, Summary: d.Summary, Decision: loombridgev1.EventDecision(d.Verdict),
		})
	}
	for i := range w.Evidence {
		e := &w.Evidence[i]
		out.Evidence = append(out.Evidence, &loombridgev1.Evidence{Source: e.Source, Title: e.Title, Content: e.Content, Citation: e.Citation, Score: e.Score})
	}
	return out
}

// Snapshot writes what an agent was at when its window was renewed.
func Snapshot(s *working.Snapshot) *loombridgev1.Snapshot {
	return &loombridgev1.Snapshot{
		Sprint: Int32(s.Sprint), SnapshotTime: Timestamp(s.Time), Working: Working(s.Working, s.Working.Active, s.Figures),
		Handoff: s.Handoff(), ProducedArtifacts: s.Artifacts,
	}
}

// SnapshotPage writes a page of snapshots, at least one and otherwise as many as fit an
// answer. What is not full is the last page.
func SnapshotPage(found []working.Snapshot, size, limit int) *loombridgev1.ListSnapshotsResponse {
	out := &loombridgev1.ListSnapshotsResponse{}
	// The frame of a snapshot in the page, and the token at its end.
	const overhead = 64
	used := 0
	for i := range found {
		one := Snapshot(&found[i])
		if used += proto.Size(one) + overhead; i > 0 && used > limit {
			out.NextPageToken = page.Token(uint64(found[i-1].Sprint))
			return out
		}
		out.Snapshots = append(out.Snapshots, one)
	}
	if len(found) == size {
		out.NextPageToken = page.Token(uint64(found[size-1].Sprint))
	}
	return out
}
