package server

import (
	"github.com/loom-bridge/loom-bridge/bridge/events"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

func eventToEmit(r *loombridgev1.EmitRequest) (events.Event, error) {
	e := events.Event{
		ID: r.GetEventId(), Topic: r.GetTopic(), Source: r.GetAgentId(), SessionID: r.GetSessionId(), Headers: r.GetHeaders(),
	}
	var err error
	switch payload := r.GetPayloadForm().(type) {
	case *loombridgev1.EmitRequest_Payload:
		e.Payload, err = jsonOf("payload", payload.Payload)
	case *loombridgev1.EmitRequest_PayloadJson:
		e.Payload = []byte(payload.PayloadJson)
	case *loombridgev1.EmitRequest_PayloadBytes:
		e.Payload, e.PayloadKind = payload.PayloadBytes, events.Bytes
	}
	return e, err
}

func positionsOf(topics []*loombridgev1.TopicPosition) []events.Position {
	positions := make([]events.Position, len(topics))
	for i, t := range topics {
		positions[i].Topic = t.GetTopic()
		if t.AfterSequence != nil {
			positions[i].After = new(uint64(t.GetAfterSequence()))
		}
	}
	return positions
}

func readyOf(positions []events.Position) *loombridgev1.SubscribeResponse {
	ready := &loombridgev1.SubscriptionReady{}
	for _, p := range positions {
		topic := &loombridgev1.TopicPosition{Topic: p.Topic}
		if p.After != nil {
			topic.AfterSequence = new(int64(*p.After))
		}
		ready.Positions = append(ready.Positions, topic)
	}
	return &loombridgev1.SubscribeResponse{Item: &loombridgev1.SubscribeResponse_Ready{Ready: ready}}
}

func deliveryOf(d events.Delivery, form loombridgev1.JsonForm) *loombridgev1.SubscribeResponse {
	e := d.Event
	out := &loombridgev1.Event{
		Id: e.ID, Topic: e.Topic, Sequence: int64(e.Sequence), Source: e.Source, SessionId: e.SessionID,
		CreateTime: timestampOf(e.Time), Headers: e.Headers,
	}
	setPayload(out, e, form)
	return &loombridgev1.SubscribeResponse{
		Item: &loombridgev1.SubscribeResponse_Event{Event: out}, DroppedVolatile: d.Dropped,
	}
}

// setPayload falls back to text for JSON that a Value would blow up beyond what
// clients take: one event must not end a stream, again and again.
func setPayload(out *loombridgev1.Event, e events.Event, form loombridgev1.JsonForm) {
	if e.PayloadKind == events.Bytes {
		out.PayloadForm = &loombridgev1.Event_PayloadBytes{PayloadBytes: e.Payload}
		return
	}
	if value, ok := pleasantValue(e.Payload, form); ok {
		out.PayloadForm = &loombridgev1.Event_Payload{Payload: value}
		return
	}
	out.PayloadForm = &loombridgev1.Event_PayloadJson{PayloadJson: string(e.Payload)}
}
