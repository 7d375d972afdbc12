package working

import "github.com/loom-bridge/loom-bridge/context/text"

// SnapshotDocument is a snapshot of a session as canonical JSON, with the field names of
// the API.
func SnapshotDocument(s *Snapshot, session string) []byte {
	w := &s.Working
	objects := func(n int, one func(i int) map[string]any) []any {
		all := make([]any, n)
		for i := range all {
			all[i] = one(i)
		}
		return all
	}
	texts := func(list []string) []any {
		all := make([]any, len(list))
		for i, one := range list {
			all[i] = one
		}
		return all
	}
	event := func(e *Event) map[string]any {
		return map[string]any{"event_id": e.ID, "type": e.Type, "summary": e.Summary, "urgency": e.Urgency.String()}
	}
	risks := w.Risks()
	return text.CanonicalJSON(map[string]any{
		"session_id": session, "sprint": s.Sprint, "snapshot_time": Stamp(s.Time),
		"working": map[string]any{
			"rho": s.Figures.Pressure, "token_budget": s.Figures.Budget, "goal_progress": w.ShownProgress(), "error_count": s.Figures.Errors,
			"depth": s.Figures.Depth, "last_heartbeat_time": Stamp(w.Heartbeat), "interrupt_requested": w.Interrupt(), "scratchpad": w.Scratchpad,
		},
		"plan": map[string]any{"goal": w.Goal, "items": objects(len(w.Plan), func(i int) map[string]any {
			return map[string]any{"text": w.Plan[i].Text, "status": w.Plan[i].Status.String()}
		})},
		"event": map[string]any{
			"pending": objects(len(w.Events), func(i int) map[string]any { return event(&w.Events[i]) }),
			"risks":   objects(len(risks), func(i int) map[string]any { return event(&risks[i]) }),
			"decisions": objects(len(w.Decisions), func(i int) map[string]any {
				d := &w.Decisions[i]
				return map[string]any{"event_id": d.ID, "summary": d.Summary, "decision": d.Verdict.String(), "decide_time": Stamp(d.Time)}
			}),
		},
		"knowledge": map[string]any{
			"questions": texts(w.Questions), "citations": texts(w.Citations),
			"evidence": objects(len(w.Evidence), func(i int) map[string]any {
				e := &w.Evidence[i]
				return map[string]any{"source": e.Source, "title": e.Title, "content": e.Content, "citation": e.Citation, "score": e.Score}
			}),
		},
		"handoff": map[string]any{
			"goal": s.Goal, "sprint": s.Sprint, "progress_summary": s.Progress(), "produced_artifacts": texts(s.Artifacts), "open_tasks": texts(s.OpenTasks()),
			"context_snapshot": map[string]any{"rho": s.Figures.Pressure, "error_count": s.Figures.Errors, "depth": s.Figures.Depth}, "handoff_ts": Stamp(s.Time),
		},
	})
}
