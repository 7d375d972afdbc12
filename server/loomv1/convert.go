package loomv1

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
)

// What an event of the native API has for agents of loom.v1, where it says
// nothing itself. They are what loom-py gives its own events.
const (
	defaultType       = "event"
	defaultConfidence = 1
	defaultPriority   = 50
)

// eventOf is what an agent published on a topic, stamped and with an id, for the
// bus.
func eventOf(topic string, e *loomv1pb.Event, now time.Time) events.Event {
	id := e.GetId()
	if id == "" {
		id = ulid.MustNew(uint64(max(0, now.UnixMilli())), rand.Reader).String() // ids begin with 1970
	}
	return events.Event{
		ID:          id,
		Topic:       topic,
		Type:        e.GetType(),
		Source:      e.GetSource(),
		SentMillis:  e.GetTimestampMs(),
		Headers:     stamp(e.GetMetadata(), topic, id, now),
		Payload:     e.GetPayload(),
		PayloadKind: events.Bytes,
		Confidence:  e.GetConfidence(),
		Tags:        e.GetTags(),
		Priority:    e.GetPriority(),
	}
}

// messageOf is an event of the bus for an agent; recipient is empty where it is not
// known who listens. It shares the event's payload, tags and headers.
func messageOf(e events.Event, recipient string) *loomv1pb.Event {
	if isNative(e) {
		e = adapted(e)
	}
	return &loomv1pb.Event{
		Id:          e.ID,
		Type:        e.Type,
		TimestampMs: e.SentMillis,
		Source:      e.Source,
		Metadata:    echo(deliverable(e.Headers, e.Topic, e.Time), e.ID, recipient),
		Payload:     e.Payload,
		Confidence:  e.Confidence,
		Tags:        e.Tags,
		Priority:    e.Priority,
	}
}

// isNative reports whether an event came in through the native API: all others
// are stamped. A caller of that may write a whole stamp itself; it then gets what
// it wrote, and still harms no other, see deliverable.
func isNative(e events.Event) bool { return !isStamped(e.Headers) }

// adapted gives an event of the native API what agents of loom.v1 expect of one,
// so that they can answer it.
func adapted(e events.Event) events.Event {
	headers := make(map[string]string, len(e.Headers)+2)
	maps.Copy(headers, e.Headers)
	if e.Source != "" && headers[ownPrefix+keySender] == "" {
		headers[ownPrefix+keySender] = e.Source
	}
	if e.SessionID != "" {
		headers[events.HeaderSession] = e.SessionID
	}
	e.Headers = stamp(headers, e.Topic, e.ID, e.Time)
	if e.Type == "" {
		e.Type = defaultType
	}
	if e.SentMillis == 0 {
		e.SentMillis = e.Time.UnixMilli()
	}
	if e.Confidence == 0 {
		e.Confidence = defaultConfidence
	}
	if e.Priority == 0 {
		e.Priority = defaultPriority
	}
	return e
}

// deliverable returns headers that name the topic they are delivered from, and
// whose numbers parse, even when a client wrote them.
func deliverable(headers map[string]string, topic string, now time.Time) map[string]string {
	if headers[keyTopic] == topic && numbersStand(headers) {
		return headers
	}
	headers = maps.Clone(headers)
	headers[keyTopic] = topic
	stampNumbers(headers, now)
	return headers
}

// deliveryOf is an event on its way to an agent, under the topic or pattern that
// the agent subscribed.
func deliveryOf(pattern string, e events.Event, recipient string) *loomv1pb.ServerEvent {
	return &loomv1pb.ServerEvent{Msg: &loomv1pb.ServerEvent_Delivery{
		Delivery: &loomv1pb.Delivery{Topic: pattern, Event: messageOf(e, recipient)},
	}}
}

// toolCallOf is a call for an agent that provides the tool. Its id is the
// relay's own: ids that callers choose may collide.
func toolCallOf(c agents.PushedCall) *loomv1pb.ServerEvent {
	return &loomv1pb.ServerEvent{Msg: &loomv1pb.ServerEvent_ToolCall{ToolCall: &loomv1pb.ToolCall{
		Id:            c.ID,
		Name:          c.Name,
		Arguments:     c.Arguments,
		Headers:       c.Headers,
		TimeoutMs:     millisOf(c.ToolCall),
		CorrelationId: c.CorrelationID,
		Qos:           loomv1pb.QoSLevel(c.QoS),
	}}}
}

// millisOf is the limit of a call as its caller wrote it.
func millisOf(c agents.ToolCall) int64 {
	if c.TimeoutMillis != 0 {
		return c.TimeoutMillis
	}
	return c.Timeout.Milliseconds()
}

// resultOf is an agent's answer to a call.
func resultOf(r *loomv1pb.ToolResult) agents.ToolResult {
	return agents.ToolResult{
		Status:       int32(r.GetStatus()),
		Output:       r.GetOutput(),
		ErrorCode:    r.GetError().GetCode(),
		ErrorMessage: r.GetError().GetMessage(),
		Details:      r.GetError().GetDetails(),
		HasError:     r.GetError() != nil,
	}
}

// anyObject is the schema of a tool whose own is broken.
const anyObject = `{"type":"object"}`

// registrationOf is what an agent says of itself. Its capabilities are its
// tools. A broken schema, which would break the prompts of all agents that see the
// tool, becomes that of any object: agents of this API have always been taken with
// whatever they gave. broken is how many there are, first describes one.
func registrationOf(r *loomv1pb.AgentRegisterRequest) (registration agents.Registration, broken int, first string) {
	registration = agents.Registration{Topics: r.GetSubscribedTopics(), Metadata: r.GetMetadata(), Present: true}
	var schemas tools.Schemas
	for _, t := range r.GetTools() {
		schema := t.GetParametersSchema()
		if schema != "" {
			if err := schemas.Check(json.RawMessage(schema)); err != nil {
				if broken++; broken == 1 {
					first = clip(t.GetName()) + " " + err.Error()
				}
				schema = anyObject
			}
		}
		registration.Capabilities = append(registration.Capabilities, t.GetName())
		registration.Tools = append(registration.Tools, agents.ProvidedTool{
			Name:        t.GetName(),
			Description: t.GetDescription(),
			Schema:      schema,
			Metadata:    t.GetMetadata(),
		})
	}
	return registration, broken, first
}

// selectionOf subscribes a topic or pattern as loom.v1 matches it.
func selectionOf(topic string, qos events.QoS) events.Subscribed {
	return events.Subscribed{Pattern: pattern.Legacy(topic), QoS: qos}
}

// pongOf answers a ping on a stream.
func pongOf(now time.Time) *loomv1pb.ServerEvent {
	return &loomv1pb.ServerEvent{Msg: &loomv1pb.ServerEvent_Pong{
		Pong: &loomv1pb.HeartbeatResponse{TimestampMs: now.UnixMilli(), Status: statusOK},
	}}
}

func errorOf(code, message string) *loomv1pb.ServerEvent {
	return &loomv1pb.ServerEvent{Msg: &loomv1pb.ServerEvent_Err{Err: &loomv1pb.Error{Code: code, Message: message}}}
}
