package validate

import (
	"math"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/working"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/page"
)

// UpdateWorkingRequest checks what SessionService.UpdateWorking is asked.
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
	c.text("goal_progress", r.GetGoalProgress(), working.MaxProgressBytes)
	c.text("scratchpad", r.GetScratchpad(), working.MaxScratchpadBytes)
	c.signals("signals", r.GetSignals())
	for i, a := range r.GetAcknowledge() {
		field := Item("acknowledge", i)
		c.requiredLine(field+".event_id", a.GetEventId(), working.MaxEventIDBytes)
		c.enum(field+".decision", a.GetDecision())
		if a.GetDecision() == loombridgev1.EventDecision_EVENT_DECISION_UNSPECIFIED {
			c.add(field+".decision", "is required")
		}
		if a.GetSummary() != "" {
			c.add(field+".summary", setByServer)
		}
	}
	for field, questions := range map[string][]string{"add_questions": r.GetAddQuestions(), "remove_questions": r.GetRemoveQuestions()} {
		for i, q := range questions {
			c.requiredLine(Item(field, i), q, working.MaxQuestionBytes)
		}
	}
	for i, e := range r.GetAddEvidence() {
		c.evidence(Item("add_evidence", i), e)
	}
	c.skills("activate", r.GetActivate())
	c.skills("deactivate", r.GetDeactivate())
	return c.err()
}

func (c *checker) skills(field string, names []string) {
	c.names(field, names, working.MaxSkillBytes)
}

// signals checks what happened elsewhere.
func (c *checker) signals(field string, all []*loombridgev1.Signal) {
	for i, s := range all {
		field := Item(field, i)
		c.requiredLine(field+".event_id", s.GetEventId(), working.MaxEventIDBytes)
		c.line(field+".type", s.GetType(), working.MaxTypeBytes)
		c.requiredLine(field+".summary", s.GetSummary(), working.MaxSummaryBytes)
		c.enum(field+".urgency", s.GetUrgency())
		if s.DeltaH != nil {
			c.share(field+".delta_h", s.GetDeltaH())
		}
	}
}

func (c *checker) evidence(field string, e *loombridgev1.Evidence) {
	c.requiredLine(field+".source", e.GetSource(), working.MaxSourceBytes)
	c.line(field+".title", e.GetTitle(), working.MaxSourceBytes)
	c.required(field+".content", e.GetContent(), working.MaxContentBytes)
	c.line(field+".citation", e.GetCitation(), working.MaxSourceBytes)
	c.share(field+".score", e.GetScore())
}

// line is a text on one line.
func (c *checker) line(field, s string, limit int) {
	c.name(field, s, limit)
	if strings.ContainsAny(s, "\r\n") {
		c.add(field, "is more than one line")
	}
}

func (c *checker) requiredLine(field, s string, limit int) {
	c.line(field, s, limit)
	if strings.TrimSpace(s) == "" {
		c.add(field, "is required")
	}
}

// DefaultSnapshots is how many snapshots a page has by default.
const DefaultSnapshots = 20

// RenewRequest checks what SessionService.Renew is asked.
func RenewRequest(r *loombridgev1.RenewRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	c.name("turn_id", r.GetTurnId(), MaxIDBytes)
	c.text("goal", r.GetGoal(), working.MaxGoalBytes)
	c.request(r.GetRequestId())
	return c.err()
}

// ListSnapshotsRequest checks what SessionService.ListSnapshots is asked.
func ListSnapshotsRequest(r *loombridgev1.ListSnapshotsRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	_, known := page.ParseToken(r.GetPageToken())
	c.page(r, session.MaxSnapshots, known)
	c.between("sprint", int64(r.GetSprint()), 0, math.MaxInt32)
	if r.GetSprint() != 0 && r.GetLast() {
		c.add("last", "can't be given with sprint: it names another snapshot")
	}
	if (r.GetSprint() != 0 || r.GetLast()) && (r.GetPageSize() != 0 || r.GetPageToken() != "") {
		c.add("page_size", "can't be given with sprint or last, nor can page_token: they are of one snapshot")
	}
	return c.err()
}
