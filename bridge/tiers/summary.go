package tiers

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// Kind is the kind of the records that are tasks.
const Kind = "task"

// summaryRunes is how many characters of the parameters and of the results a summary has.
const summaryRunes = 200

// Key is the key of the record of a task.
func Key(taskID string) string { return session.TaskFolder + taskID }

// Summary is what a record says about its task, as metadata.
type Summary struct {
	TaskID     string `json:"task_id"`
	Action     string `json:"action"`
	Parameters string `json:"parameters"`
	Result     string `json:"result"`
	Status     string `json:"status"`
	// Tags are the tags of the task, or action and status if it has none.
	Tags         []string  `json:"tags"`
	Importance   float64   `json:"importance"`
	CreateTime   time.Time `json:"created_at"`
	SessionID    string    `json:"session_id"`
	SourceAgent  string    `json:"source_agent"`
	TargetAgent  string    `json:"target_agent,omitempty"`
	ParentTaskID string    `json:"parent_task_id,omitempty"`
	// Ref leads to the whole task: query_l1_memory takes it.
	Ref string `json:"ref"`
	// Moved is the place in the order in which tasks entered L3; zero before.
	Moved uint64 `json:"moved,omitempty"`
}

// Summarize makes the summary of a task.
func Summarize(t session.Task) Summary {
	s := Summary{
		TaskID: t.ID, Action: t.Action, Parameters: text.CutChars(parameters(t), summaryRunes, text.Dots), Result: text.CutChars(t.Result, summaryRunes, text.Dots),
		Status: t.Status(), Tags: t.Tags, Importance: t.Importance, CreateTime: t.CreateTime.UTC(), SessionID: t.SessionID,
		SourceAgent: t.SourceAgent, TargetAgent: t.TargetAgent, ParentTaskID: t.ParentTaskID, Ref: Key(t.ID),
	}
	if len(s.Tags) == 0 {
		s.Tags = []string{t.Action, s.Status}
	}
	return s
}

// SummaryOf reads the summary out of a record; false when it has none.
func SummaryOf(r record.Record) (Summary, bool) {
	var s Summary
	err := json.Unmarshal(r.Metadata, &s)
	return s, err == nil && s.TaskID != ""
}

// text is the summary in one line.
func (s Summary) text() string { return line(s.Action, s.Parameters, s.Result) }

// parameters returns a task's parameters as one line of JSON.
func parameters(t session.Task) string {
	if len(t.Parameters) == 0 {
		return "{}"
	}
	value, err := text.DecodeJSON(t.Parameters)
	if err != nil {
		return string(t.Parameters)
	}
	return string(text.CanonicalJSON(value))
}

func line(action, parameters, result string) string {
	return strings.TrimRight(action+": "+parameters+" -> "+result, " ")
}

// recordText returns the text of a task's record in a tier: a summary in L3, the whole
// task elsewhere.
func recordText(t session.Task, tier int) string {
	if tier == tierSummary {
		return Summarize(t).text()
	}
	return line(t.Action, parameters(t), t.Result)
}

// recordOf is a task as it enters L2.
func recordOf(t session.Task) (record.Record, error) {
	metadata, err := json.Marshal(Summarize(t))
	if err != nil {
		return record.Record{}, err
	}
	return record.Record{
		Text: recordText(t, tierWorking), Key: Key(t.ID), Kind: Kind, SessionID: t.SessionID, EventTime: t.CreateTime,
		Metadata: metadata, Tags: t.Tags, Importance: t.Importance, Tier: tierWorking,
	}, nil
}

// withFields overwrites the fields of a summary in the metadata of a record, and keeps
// its other fields.
func withFields(metadata json.RawMessage, fields map[string]any) (json.RawMessage, error) {
	object := map[string]json.RawMessage{}
	if len(metadata) > 0 {
		if err := json.Unmarshal(metadata, &object); err != nil {
			return nil, err
		}
	}
	for name, value := range fields {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		object[name] = text
	}
	return json.Marshal(object)
}
