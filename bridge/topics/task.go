package topics

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// taskIDOf makes the id of a task whose event names none, always the same for the
// same request.
func taskIDOf(topic, requestID string) string {
	sum := sha256.Sum256([]byte(topic + "\x00" + requestID))
	const enough = 16 // bytes, as in a UUID
	return "task-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:enough]))
}

// taskPayload is what the payload of an event may say of its task. Whatever else it
// says is a parameter of the task.
type taskPayload struct {
	TaskID         string          `json:"task_id"`
	Action         string          `json:"action"`
	Parameters     json.RawMessage `json:"parameters"`
	ParametersJSON string          `json:"parameters_json"`
	SourceAgent    string          `json:"source_agent"`
	TargetAgent    string          `json:"target_agent"`
	SessionID      string          `json:"session_id"`
	ParentTaskID   string          `json:"parent_task_id"`
	Result         json.RawMessage `json:"result"`
	Tags           []string        `json:"tags"`
	Importance     *float64        `json:"importance"`
	CreatedAt      *time.Time      `json:"created_at"`
	CreateTime     *time.Time      `json:"create_time"`
}

// taskOf reads the task out of an event: its topic is the action, its payload the
// rest.
func taskOf(e *events.Event) (session.Task, error) {
	var p taskPayload
	if err := p.read(e); err != nil {
		return session.Task{}, err
	}
	t := session.Task{
		ID: p.TaskID, Action: e.Topic, Parameters: p.Parameters, SourceAgent: p.SourceAgent, TargetAgent: p.TargetAgent,
		SessionID: cmp.Or(e.SessionID, p.SessionID), ParentTaskID: p.ParentTaskID, Result: resultText(p.Result), Tags: p.Tags,
		Importance: session.ImportanceOf(e.Topic),
	}
	if isNull(p.Parameters) {
		t.Parameters = json.RawMessage(p.ParametersJSON)
	}
	if p.Importance != nil {
		t.Importance = *p.Importance
	}
	for _, at := range []*time.Time{p.CreatedAt, p.CreateTime} {
		if at != nil {
			t.CreateTime = *at
		}
	}
	err := t.Check()
	if bad, ok := errors.AsType[*invalid.Error](err); ok {
		return t, refuse("payload."+bad.Field, bad.Problem)
	}
	return t, err
}

func refuse(field, problem string) error {
	return invalid.Field(events.ErrInvalid, field, "%s", problem)
}

func (p *taskPayload) read(e *events.Event) error {
	if e.PayloadKind != events.JSON {
		return refuse("payload_bytes", "is not a task: the payload on this topic must be a JSON object")
	}
	if !isNull(e.Payload) {
		err := json.Unmarshal(e.Payload, p)
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			if wrong.Field == "" {
				return refuse("payload", "is not a JSON object, as a task's is")
			}
			return refuse("payload."+wrong.Field, "is not of the type it has in a Task")
		}
		if err != nil {
			return refuse("payload", "is not that of a task: "+err.Error())
		}
	}
	switch {
	case p.Action != "" && p.Action != e.Topic:
		return refuse("payload.action", "is not the topic, which is the action")
	case p.SessionID != "" && e.SessionID != "" && p.SessionID != e.SessionID:
		return refuse("payload.session_id", "is another session than that of the event")
	case !isNull(p.Parameters) && p.ParametersJSON != "":
		return refuse("payload.parameters_json", "and parameters are both set")
	}
	return p.addParameters(e.Payload)
}

// addParameters makes parameters from the fields that a task does not have.
func (p *taskPayload) addParameters(payload json.RawMessage) error {
	var rest map[string]json.RawMessage
	if isNull(payload) || json.Unmarshal(payload, &rest) != nil {
		return nil
	}
	maps.DeleteFunc(rest, func(name string, _ json.RawMessage) bool { return isTaskField(name) })
	if len(rest) == 0 {
		return nil
	}
	given, field := p.Parameters, "parameters"
	if isNull(given) {
		given, field = json.RawMessage(p.ParametersJSON), "parameters_json"
	}
	merged := map[string]json.RawMessage{}
	if !isNull(given) && json.Unmarshal(given, &merged) != nil {
		return nil // that they are no object is said by the task's own check
	}
	for name, value := range rest {
		if _, twice := merged[name]; twice {
			return refuse("payload."+name, "is in "+field+" as well")
		}
		merged[name] = value
	}
	p.ParametersJSON = ""
	var err error
	p.Parameters, err = json.Marshal(merged)
	return err
}

// isTaskField reports the names that taskPayload reads, in any case, as
// encoding/json reads them.
func isTaskField(name string) bool {
	return slices.ContainsFunc(taskFields, func(field string) bool { return strings.EqualFold(field, name) })
}

var taskFields = []string{
	"task_id", "action", "parameters", "parameters_json", "source_agent", "target_agent", "session_id", "parent_task_id",
	"result", "tags", "importance", "created_at", "create_time",
}

// resultText returns a result as text; a non-text result as its JSON.
func resultText(result json.RawMessage) string {
	var text string
	if isNull(result) || json.Unmarshal(result, &text) == nil {
		return text
	}
	return string(result)
}

func isNull(text json.RawMessage) bool {
	text = bytes.TrimSpace(text)
	return len(text) == 0 || string(text) == "null"
}
