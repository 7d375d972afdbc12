package native

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/loom-bridge/loom-bridge/bridge/tiers"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// Memory is what the memory tools work on. An empty session is the default one, but
// for L4, where it is all.
type Memory interface {
	// L1 returns the last n tasks of a session, oldest first.
	L1(ctx context.Context, scope kv.Scope, sessionID string, n int) ([]session.Task, error)
	// Task returns a task of a session, or session.ErrTaskNotFound.
	Task(ctx context.Context, scope kv.Scope, sessionID, id string) (session.Task, error)
	// L2 returns up to n records, the most important first.
	L2(ctx context.Context, scope kv.Scope, sessionID string, n int) ([]record.Record, error)
	// L3 returns up to n records, the newest first.
	L3(ctx context.Context, scope kv.Scope, sessionID string, n int) ([]record.Record, error)
	// L4 returns up to n records that fit a query, the best first.
	L4(ctx context.Context, scope kv.Scope, sessionID, query string, n int) (memory.Answer, error)
	// Record returns a record of L4 by its id, or memory.ErrNotFound.
	Record(ctx context.Context, scope kv.Scope, id string) (record.Record, error)
	// Save saves a record in long-term memory.
	Save(ctx context.Context, scope kv.Scope, r record.Record) (record.Record, error)
}

var _ Memory = (*tiers.Tiers)(nil)

// How many items the memory tools give by default.
const (
	defaultRecent    = 10
	defaultImportant = 10
	defaultSummaries = 20
	defaultFound     = 5
)

// memories are the memory tools.
type memories struct{ memory Memory }

func (m memories) tools() []tool {
	list := []tool{
		{tools.Descriptor{
			Name:        "query_l1_memory",
			Description: "List the last tasks of the session, whole, oldest first. With task_id: that task, whole, however old it is.",
			Schema:      json.RawMessage(recentSchema),
		}, m.recent, nil},
		{tools.Descriptor{
			Name:        "query_l2_memory",
			Description: "List the important tasks of the session, the most important first.",
			Schema:      json.RawMessage(importantSchema),
		}, m.important, nil},
		{tools.Descriptor{
			Name:        "query_l3_memory",
			Description: "List summaries of earlier tasks of the session, the newest first.",
			Schema:      json.RawMessage(summariesSchema),
		}, m.summaries, nil},
		{tools.Descriptor{
			Name:        "query_l4_memory",
			Description: "Search long-term memory, of all sessions: what was saved, and tasks of long ago.",
			Schema:      json.RawMessage(foundSchema),
			ResultKind:  "search",
		}, m.found, nil},
		{tools.Descriptor{
			Name:        "memory:save",
			Description: "Save a fact, a decision or anything else worth knowing in long-term memory, where every session finds it.",
			Schema:      json.RawMessage(saveSchema),
			Mutates:     true,
			ResultKind:  "json",
		}, m.save, nil},
	}
	for i := range list {
		list[i].Level, list[i].Category = tools.LevelFunction, "memory"
		if list[i].ResultKind == "" {
			list[i].ResultKind = "list"
		}
	}
	return list
}

// The schemas of the memory tools' arguments.
const (
	sessionMember = `"session_id":{"type":"string","maxLength":256,"description":"Session to look into (default: this one)"}`
	recentSchema  = `{"type":"object","properties":{
"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"Most tasks to return (default 10)"},
"task_id":{"type":"string","minLength":1,"maxLength":160,"description":"The one task to return, by its task_id or by the ref of its summary"},
` + sessionMember + `}}`
	importantSchema = `{"type":"object","properties":{
"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"Most tasks to return (default 10)"},
` + sessionMember + `}}`
	summariesSchema = `{"type":"object","properties":{
"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"Most summaries to return (default 20)"},
` + sessionMember + `}}`
	foundSchema = `{"type":"object","properties":{
"query":{"type":"string","minLength":1,"description":"What to look for, in words"},
"limit":{"type":"integer","minimum":1,"maximum":100,"description":"Most records to return (default 5)"},
"session_id":{"type":"string","maxLength":256,"description":"Only what was saved in this session (default: in any)"},
"record_id":{"type":"string","minLength":1,"maxLength":128,"description":"The one record to return, whole, by the id that a prompt or an answer names"}},
"required":["query"]}`
	saveSchema = `{"type":"object","properties":{
"text":{"type":"string","minLength":1,"description":"What to remember, so that it can be understood alone"},
"kind":{"type":"string","description":"What it is: fact, state, pattern, note or another word, but not skill (default fact)"},
"key":{"type":"string","description":"A unique name of your own for it"},
"tags":{"type":"array","items":{"type":"string","minLength":1},"description":"Labels to find it by"},
"importance":{"type":"number","minimum":0,"maximum":1,"description":"How much it matters (default 0.5)"},
"metadata":{"type":"object","description":"Anything else to keep with it"},
"supersedes":{"type":"string","description":"Id of the record that this one replaces"}},
"required":["text"]}`
)

// layer is the answer of a query.
func layer(name, description string, items []any) tools.Output {
	return tools.Output{Values: map[string]any{
		"layer": name, "description": description, "count": int64(len(items)), "items": items,
	}}
}

func limitOf(c tools.Input, fallback int) int {
	if n, ok := c.Int("limit"); ok {
		return int(n)
	}
	return fallback
}

func (m memories) recent(ctx context.Context, c tools.Input) (tools.Output, error) {
	sessionID := c.String("session_id", c.SessionID)
	var tasks []session.Task
	if id := c.String("task_id", ""); id != "" {
		task, err := m.memory.Task(ctx, c.Scope, sessionID, id)
		if err != nil {
			return tools.Output{}, memoryFailure(err)
		}
		tasks = append(tasks, task)
	} else {
		var err error
		if tasks, err = m.memory.L1(ctx, c.Scope, sessionID, limitOf(c, defaultRecent)); err != nil {
			return tools.Output{}, memoryFailure(err)
		}
	}
	items := make([]any, len(tasks))
	for i, t := range tasks {
		items[i] = taskItem(t)
	}
	return layer("L1", "Recent tasks of the session, oldest first", items), nil
}

// taskItem is a whole task.
func taskItem(t session.Task) map[string]any {
	item := map[string]any{
		"task_id": t.ID, "action": t.Action, "parameters": map[string]any{}, "result": t.Result, "status": t.Status(),
		"source_agent": t.SourceAgent, "session_id": t.SessionID, "tags": anys(t.Tags), "importance": number(t.Importance),
		"created_at": timeText(t.CreateTime),
	}
	if parameters, err := text.DecodeJSON(t.Parameters); err == nil {
		item["parameters"] = parameters
	}
	for key, value := range map[string]string{"target_agent": t.TargetAgent, "parent_task_id": t.ParentTaskID} {
		if value != "" {
			item[key] = value
		}
	}
	return item
}

// How many characters a statement has of a task's parts.
const (
	importantParameters = 50
	importantResult     = 100
	summaryResult       = 50
	summaryTags         = 3
)

func (m memories) important(ctx context.Context, c tools.Input) (tools.Output, error) {
	records, err := m.memory.L2(ctx, c.Scope, c.String("session_id", c.SessionID), limitOf(c, defaultImportant))
	if err != nil {
		return tools.Output{}, memoryFailure(err)
	}
	items := make([]any, len(records))
	for i, r := range records {
		item := map[string]any{"statement": r.Text, "importance": number(r.Importance), "created_at": timeText(r.EventTime)}
		if s, ok := tiers.SummaryOf(r); ok {
			item["task_id"] = s.TaskID
			item["statement"] = fmt.Sprintf("%s: %s → %s", s.Action, text.CutChars(s.Parameters, importantParameters, text.Dots), text.CutChars(s.Result, importantResult, text.Dots))
		}
		items[i] = item
	}
	return layer("L2", "Important tasks of the session, the most important first", items), nil
}

func (m memories) summaries(ctx context.Context, c tools.Input) (tools.Output, error) {
	records, err := m.memory.L3(ctx, c.Scope, c.String("session_id", c.SessionID), limitOf(c, defaultSummaries))
	if err != nil {
		return tools.Output{}, memoryFailure(err)
	}
	items := make([]any, len(records))
	for i, r := range records {
		item := map[string]any{"statement": r.Text, "created_at": timeText(r.EventTime)}
		if s, ok := tiers.SummaryOf(r); ok {
			item["task_id"] = s.TaskID
			item["statement"] = s.Action + ": " + text.CutChars(s.Result, summaryResult, text.Dots)
			item["tags"] = anys(s.Tags[:min(len(s.Tags), summaryTags)])
		}
		items[i] = item
	}
	return layer("L3", "Summaries of earlier tasks of the session, the newest first", items), nil
}

func (m memories) found(ctx context.Context, c tools.Input) (tools.Output, error) {
	if id := c.String("record_id", ""); id != "" {
		r, err := m.memory.Record(ctx, c.Scope, id)
		if err == nil && r.Review.Hides() {
			err = &memory.NotFoundError{Field: "id", Name: id}
		}
		if err != nil {
			return tools.Output{}, memoryFailure(err)
		}
		return layer("L4", "The record of long-term memory that was named", []any{foundItem(r, 1)}), nil
	}
	found, err := m.memory.L4(ctx, c.Scope, c.String("session_id", ""), c.String("query", ""), limitOf(c, defaultFound))
	if err != nil {
		return tools.Output{}, memoryFailure(err)
	}
	items := make([]any, len(found.Hits))
	for i, hit := range found.Hits {
		items[i] = foundItem(hit.Record, hit.Score)
	}
	return layer("L4", "Long-term memory of all sessions, the best match first", items), nil
}

// foundItem is a record that was found.
func foundItem(r record.Record, score float64) map[string]any {
	item := map[string]any{
		"statement": r.Text, "id": r.ID, "kind": r.Kind, "score": number(score), "importance": number(r.Importance),
		"session_id": r.SessionID, "created_at": timeText(r.CreateTime), "tags": anys(r.Tags),
	}
	if r.Origin.Foreign() {
		item["origin"] = r.Origin.String()
	}
	if s, ok := tiers.SummaryOf(r); ok && r.Kind == tiers.Kind {
		item["task_id"] = s.TaskID
		item["created_at"] = timeText(s.CreateTime)
	}
	return item
}
