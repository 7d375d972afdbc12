package mcp

import (
	"context"
	"encoding/json"
	"math"
	"time"
	"unicode/utf8"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	// maxEventWait is the longest that event_read waits for the first event.
	maxEventWait = time.Minute
	// quietTime is how long event_read waits for more events after one: stored events come
	// at once.
	quietTime = 100 * time.Millisecond
	// defaultEvents and maxEvents are how many events it gives.
	defaultEvents, maxEvents = 20, 200
	// maxEventsBytes bounds their payloads together.
	maxEventsBytes = 1 << 20
)

func eventTools() []tool {
	return []tool{
		{
			name: "event_emit", description: "Publish an event to other agents.",
			properties: `"topic":{"type":"string","description":"dot-separated, such as build.done; agent.<id>.x is that agent's inbox"},` +
				`"payload":{"description":"JSON"},"type":{"type":"string"}`,
			required: []string{"topic"}, call: taking(emitEvent), arguments: emitArguments{},
		},
		{
			name: "event_read", description: "Read the stored events of a topic behind a sequence, or wait for the next.",
			properties: `"topic":{"type":"string"},"after":{"type":"integer","description":"sequence; 0 (default): from the start"},` +
				`"limit":{"type":"integer","description":"default 20"},"wait_seconds":{"type":"number","description":"for the first event; default 0, at most 60"}`,
			required: []string{"topic"}, reads: true, call: taking(readEvents), arguments: eventArguments{},
		},
	}
}

type emitArguments struct {
	Topic   string          `json:"topic"`
	Payload json.RawMessage `json:"payload"`
	Type    string          `json:"type"`
}

func emitEvent(c toolCall, a emitArguments) (any, error) {
	request := &loombridgev1.EmitRequest{AgentId: c.agent, SessionId: c.session, Topic: a.Topic, Type: a.Type}
	if len(a.Payload) > 0 {
		request.PayloadForm = &loombridgev1.EmitRequest_PayloadJson{PayloadJson: string(a.Payload)}
	}
	taken, err := c.s.bridge.Emit(c.ctx, request)
	if err != nil {
		return nil, err
	}
	return struct {
		ID       string `json:"id"`
		Sequence int64  `json:"sequence"`
	}{taken.GetEventId(), taken.GetSequence()}, nil
}

type eventArguments struct {
	Topic       string  `json:"topic"`
	After       int64   `json:"after"`
	Limit       int     `json:"limit"`
	WaitSeconds float64 `json:"wait_seconds"`
}

// event is an event as models read it.
type event struct {
	Sequence int64           `json:"sequence,omitempty"`
	Source   string          `json:"source"`
	Type     string          `json:"type,omitempty"`
	Time     string          `json:"time"`
	Payload  json.RawMessage `json:"payload,omitempty"`
}

// check returns how many events are asked for, and for how long.
func (a eventArguments) check() (limit int, wait time.Duration, err error) {
	if limit = a.Limit; limit == 0 {
		limit = defaultEvents
	}
	if limit < 1 || limit > maxEvents {
		return 0, 0, badArgument("limit", "is 1 to 200")
	}
	if wait = seconds(a.WaitSeconds); wait < 0 || wait > maxEventWait {
		return 0, 0, badArgument("wait_seconds", "is 0 to 60")
	}
	return limit, max(wait, quietTime), nil
}

func readEvents(c toolCall, a eventArguments) (any, error) {
	limit, wait, err := a.check()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	stream, err := c.s.events.Subscribe(ctx, &loombridgev1.SubscribeRequest{
		AgentId: c.agent,
		Topics:  []*loombridgev1.TopicPosition{{Topic: a.Topic, AfterSequence: &a.After}},
	})
	if err != nil {
		return nil, err
	}
	if _, err := stream.Recv(); err != nil { // the subscription stands
		return nil, err
	}
	quiet := time.AfterFunc(wait, cancel)
	defer quiet.Stop()
	got := []event{}
	for bytes := 0; len(got) < limit && bytes < maxEventsBytes; {
		m, err := stream.Recv()
		if err != nil && ctx.Err() != nil && c.ctx.Err() == nil {
			break // nothing more came
		}
		if err != nil {
			return nil, err
		}
		e := eventOf(m.GetEvent())
		got, bytes = append(got, e), bytes+len(e.Payload)
		quiet.Reset(quietTime)
	}
	return struct {
		Events []event `json:"events"`
	}{got}, nil
}

func eventOf(e *loombridgev1.Event) event {
	out := event{Sequence: e.GetSequence(), Source: e.GetSource(), Type: e.GetType(), Time: timeOf(e.GetCreateTime())}
	switch {
	case e.GetPayloadJson() != "":
		out.Payload = json.RawMessage(e.GetPayloadJson())
	case len(e.GetPayloadBytes()) > 0:
		var payload any = e.GetPayloadBytes() // base64
		if utf8.Valid(e.GetPayloadBytes()) {
			payload = string(e.GetPayloadBytes())
		}
		out.Payload, _ = json.Marshal(payload) //nolint:errchkjson // a text or bytes
	}
	return out
}

// seconds is a number of them as a time; what is no number, or too long for a time, is
// longer than all that is allowed anywhere.
func seconds(n float64) time.Duration {
	if d := n * float64(time.Second); math.Abs(d) < math.MaxInt64 {
		return time.Duration(d)
	}
	return math.MaxInt64
}
