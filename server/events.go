package server

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

type eventService struct {
	loombridgev1.UnimplementedEventServiceServer
	events Events
	limits Limits
	now    func() time.Time
	log    *slog.Logger
}

// Subscribe streams events until the caller leaves, stalls, or the server
// stops. Nothing of it grows with a reader that is behind: durable events wait
// in the store.
func (s *eventService) Subscribe(r *loombridgev1.SubscribeRequest, stream grpc.ServerStreamingServer[loombridgev1.SubscribeResponse]) error {
	scope, err := agentScope(stream.Context(), r, validate.SubscribeRequest)
	if err != nil {
		return err
	}
	selections, err := convert.Selections(r.GetTopics())
	if err != nil {
		return err
	}
	before := s.events.Now()
	subscription, err := s.events.Subscribe(stream.Context(), scope.Tenant, selections, readerOf(stream.Context()))
	if err != nil {
		return err
	}
	defer subscription.Close()
	ready := &loombridgev1.SubscriptionReady{
		Positions: convert.TopicPositions(subscription.Positions()), ServerTime: convert.Timestamp(before),
	}
	if err := stream.Send(&loombridgev1.SubscribeResponse{Item: &loombridgev1.SubscribeResponse_Ready{Ready: ready}}); err != nil {
		return err
	}
	return sendEvents(stream.Context(), subscription, framer{form: r.GetJsonForm(), limit: s.limits.MaxSendBytes, log: s.log}, stream)
}

func sendEvents(ctx context.Context, from *events.Subscription, frames framer, to grpc.ServerStream) error {
	for {
		delivery, err := from.Next(ctx)
		if err != nil {
			return err
		}
		if f := frames.subscribeEvent(delivery); frames.fits(delivery.Event) {
			if err := to.SendMsg(f); err != nil {
				return err
			}
		}
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
