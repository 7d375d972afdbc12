package topics

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/messages"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/writer"
)

// messagesSuffix ends the topic on which an agent gets its direct messages.
const messagesSuffix = ".messages"

// Messages is the topic on which an agent gets its direct messages. Only the bridge
// emits there.
func Messages(agent string) string { return agentPrefix + agent + messagesSuffix }

// Messenger keeps direct messages. *messages.Box is one.
type Messenger interface {
	Send(ctx context.Context, tenant string, m messages.Message) (messages.Message, error)
}

var _ Messenger = (*messages.Box)(nil)

// Sender sends direct messages, and notifies their targets. Safe for concurrent use.
type Sender struct {
	Box Messenger
	Bus *events.Bus
}

// Send keeps a message and emits the durable event for its target, once however
// often it is sent. A target whose id no topic can hold is not notified; it lists the message
// all the same.
func (s Sender) Send(ctx context.Context, tenant string, m messages.Message) (messages.Message, error) {
	sent, err := s.Box.Send(ctx, tenant, m)
	if err != nil {
		return messages.Message{}, err
	}
	e, opts := telling(&sent)
	if e.Check() != nil {
		return sent, nil
	}
	opts.Own = true
	if _, err := s.Bus.Emit(ctx, tenant, e, opts); err != nil {
		return messages.Message{}, err
	}
	return sent, nil
}

// messagePayload is a message as the payload of an event: a task with the action
// node.message.
type messagePayload struct {
	TaskID       string           `json:"task_id"`
	Action       string           `json:"action"`
	SourceAgent  string           `json:"source_agent"`
	TargetAgent  string           `json:"target_agent"`
	Parameters   messageParameter `json:"parameters"`
	SessionID    string           `json:"session_id,omitempty"`
	ParentTaskID string           `json:"parent_task_id,omitempty"`
	CreatedAt    time.Time        `json:"created_at"`
}

// messageParameter are the parameters of a task that is a message.
type messageParameter struct {
	Content     string   `json:"content"`
	ContextRole string   `json:"context_role,omitempty"`
	Priority    *float64 `json:"priority,omitempty"`
	TTLSeconds  *float64 `json:"ttl_seconds,omitempty"`
	NodeID      string   `json:"target_node_id,omitempty"`
	// ParentTaskID may stand here as well as in the task.
	ParentTaskID string          `json:"parent_task_id,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
}

// telling is the event for the target of a message. It is the same for the same
// message.
func telling(m *messages.Message) (events.Event, events.EmitOptions) {
	t := messagePayload{
		TaskID: m.TaskID, Action: nodeMessage, SourceAgent: m.Source, TargetAgent: m.Target,
		Parameters: messageParameter{
			Content: m.Content, ContextRole: string(m.Role), Priority: &m.Priority, NodeID: m.Node, Metadata: m.Metadata,
		},
		SessionID: m.SessionID, ParentTaskID: m.ParentTaskID, CreatedAt: m.Time,
	}
	if m.TTL > 0 {
		seconds := m.TTL.Seconds()
		t.Parameters.TTLSeconds = &seconds
	}
	payload, _ := json.Marshal(t) // checked text, numbers and canonical JSON are JSON
	e := events.Event{Topic: Messages(m.Target), Type: nodeMessage, Source: m.Source, SessionID: m.SessionID, Payload: payload}
	return e, events.EmitOptions{RequestID: taskIDOf(nodeMessage, m.TaskID)}
}

// send keeps the message that an event on node.message is, and makes the event the one
// for its target.
func (r *Rules) send(ctx context.Context, tenant string, e *events.Event, opts *events.EmitOptions) error {
	m, err := messageOf(e)
	if err != nil {
		return err
	}
	if m.TaskID == "" && opts.RequestID != "" {
		m.TaskID = taskIDOf(e.Topic, opts.RequestID)
	}
	if probe, _ := telling(&m); probe.Check() != nil {
		return refuse("payload.target_agent", "can't be part of a topic; use SendMessage")
	}
	if writer.Of(ctx) != writer.Program && m.Role != "" {
		return refuse("payload.parameters.context_role", "is for programs: messages of a model's tool have no role")
	}
	sent, err := r.messages.Send(ctx, tenant, m)
	if err != nil {
		return inPayload(err)
	}
	own, said := telling(&sent)
	*e, opts.RequestID, opts.Volatile = own, said.RequestID, false
	return nil
}

// messageOf reads the message out of an event: its payload is a task.
func messageOf(e *events.Event) (messages.Message, error) {
	var p taskPayload
	if err := p.read(e); err != nil {
		return messages.Message{}, err
	}
	var given messageParameter
	if err := decodeStrictly(p.Parameters, &given); err != nil {
		return messages.Message{}, refuse("payload.parameters", "do not fit a message:  "+err.Error())
	}
	switch {
	case p.SourceAgent != "" && p.SourceAgent != e.Source:
		return messages.Message{}, refuse("payload.source_agent", "is not the agent that emits")
	case given.ParentTaskID != "" && p.ParentTaskID != "" && given.ParentTaskID != p.ParentTaskID:
		return messages.Message{}, refuse("payload.parameters.parent_task_id", "is another task than payload.parent_task_id")
	case len(p.Tags) > 0 || p.Importance != nil || !isNull(p.Result):
		return messages.Message{}, refuse("payload", "has tags, an importance or a result, which a message cannot have")
	}
	m := messages.Message{
		TaskID: p.TaskID, Source: e.Source, Target: p.TargetAgent, Node: given.NodeID, Content: given.Content,
		Role: messages.Role(given.ContextRole), Priority: messages.DefaultPriority, ParentTaskID: cmp.Or(p.ParentTaskID, given.ParentTaskID),
		Metadata: given.Metadata, SessionID: cmp.Or(e.SessionID, p.SessionID),
	}
	if given.Priority != nil {
		m.Priority = *given.Priority
	}
	if given.TTLSeconds != nil {
		if !(*given.TTLSeconds > 0 && *given.TTLSeconds <= messages.MaxTTL.Seconds()) {
			return messages.Message{}, refuse("payload.parameters.ttl_seconds", "must be above 0 and at most ten years")
		}
		m.TTL = time.Duration(math.Ceil(*given.TTLSeconds*1e6)) * time.Microsecond
	}
	return m, inPayload(m.Check())
}

// AsTask is a message as the task that prompts show.
func AsTask(m *messages.Message) session.Task {
	parameters, _ := json.Marshal(messageParameter{Content: m.Content, ContextRole: string(m.Role)})
	return session.Task{
		ID: m.TaskID, Action: nodeMessage, SourceAgent: m.Source, TargetAgent: m.Target, Parameters: parameters,
		ParentTaskID: m.ParentTaskID, SessionID: m.SessionID, CreateTime: m.Time,
	}
}

// decodeStrictly reads an object that has no other fields.
func decodeStrictly(from json.RawMessage, into any) error {
	if isNull(from) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(from))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// inPayload names a field of a message as one of the payload.
func inPayload(err error) error {
	if bad, ok := errors.AsType[*invalid.Error](err); ok {
		return invalid.Field(bad.Sentinel, "payload."+bad.Field, "%s", bad.Problem)
	}
	return err
}
