package server

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// eventToEmit takes over the message's memory.
func eventToEmit(r *loombridgev1.EmitRequest) (events.Event, error) {
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

func emitOptionsOf(r *loombridgev1.EmitRequest) events.EmitOptions {
	return events.EmitOptions{
		Volatile:  r.GetDelivery() == loombridgev1.Delivery_DELIVERY_VOLATILE,
		RequestID: r.GetRequestId(),
	}
}

// heard refuses an event that needs a listener and has none. For a durable one an
// agent that will come back and listens then counts, too.
func heard(bus Events, others Agents, tenant string, r *loombridgev1.EmitRequest, e events.Event) error {
	if !r.GetNeedsListener() || bus.Heard(tenant, e) {
		return nil
	}
	durable := r.GetDelivery() != loombridgev1.Delivery_DELIVERY_VOLATILE
	if durable && others.Awaits(tenant, e.Topic) {
		return nil
	}
	return fmt.Errorf("%w to the topic %q; it was not emitted", ErrNobodyListens, validate.Printable(e.Topic))
}

// readerOf says what the caller may read.
func readerOf(ctx context.Context) *events.SubscribeOptions {
	id, _ := auth.Of(ctx)
	if id.OwnsAll() {
		return nil
	}
	return &events.SubscribeOptions{MayRead: topics.ReadableBy(id.Owns)}
}

// selectionsOf converts topics that were checked.
func selectionsOf(topics []*loombridgev1.TopicPosition) ([]events.Selection, error) {
	selections := make([]events.Selection, len(topics))
	for i, t := range topics {
		pattern, err := pattern.Parse(t.GetTopic())
		if err != nil {
			return nil, err
		}
		selections[i] = events.Selection{
			Pattern: pattern, Since: timeOf(t.GetSince()), QoS: qosOf(t.GetQualityOfService()),
			EventTypes: t.GetEventTypes(), Headers: t.GetHeaders(),
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

func topicPositionsOf(positions []events.Position) []*loombridgev1.TopicPosition {
	topics := make([]*loombridgev1.TopicPosition, len(positions))
	for i, p := range positions {
		topics[i] = &loombridgev1.TopicPosition{Topic: p.Topic}
		if p.After != nil {
			topics[i].AfterSequence = new(int64(*p.After))
		}
	}
	return topics
}
