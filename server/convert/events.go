package convert

import (
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Event takes over the message's memory.
func Event(r *loombridgev1.EmitRequest) (events.Event, error) {
	e := events.Event{
		ID: r.GetEventId(), Topic: r.GetTopic(), Source: r.GetAgentId(), SessionID: r.GetSessionId(), Headers: r.GetHeaders(),
		Type: r.GetType(), Tags: r.GetTags(),
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

// EmitOptions says how an event is to be emitted by a caller who may act for some agents.
func EmitOptions(r *loombridgev1.EmitRequest, owns func(agent string) bool) events.EmitOptions {
	return events.EmitOptions{
		Owns:      owns,
		Volatile:  r.GetDelivery() == loombridgev1.Delivery_DELIVERY_VOLATILE,
		RequestID: r.GetRequestId(),
	}
}

// Selections converts topics that were checked.
func Selections(topics []*loombridgev1.TopicPosition) ([]events.Subscribed, error) {
	selections := make([]events.Subscribed, len(topics))
	for i, t := range topics {
		pattern, err := pattern.Parse(t.GetTopic())
		if err != nil {
			return nil, err
		}
		selections[i] = events.Subscribed{
			Pattern: pattern, Since: timeOf(t.GetSince()), QoS: qosOf(t.GetQualityOfService()),
			EventTypes: t.GetEventTypes(), Headers: t.GetHeaders(), SessionID: t.GetSessionId(),
		}
		if t.AfterSequence != nil {
			selections[i].After = new(uint64(t.GetAfterSequence()))
		}
	}
	return selections, nil
}

func qosOf(q loombridgev1.QualityOfService) events.QoS {
	switch q {
	case loombridgev1.QualityOfService_QUALITY_OF_SERVICE_REALTIME:
		return events.Realtime
	case loombridgev1.QualityOfService_QUALITY_OF_SERVICE_BACKGROUND:
		return events.Background
	}
	return events.Batched
}

// TopicPositions says where a subscription stands in each topic.
func TopicPositions(positions []events.Position) []*loombridgev1.TopicPosition {
	topics := make([]*loombridgev1.TopicPosition, len(positions))
	for i, p := range positions {
		topics[i] = &loombridgev1.TopicPosition{Topic: p.Topic}
		if p.After != nil {
			topics[i].AfterSequence = new(int64(*p.After))
		}
	}
	return topics
}
