package server

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
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
	if err := validate.SubscribeRequest(r); err != nil {
		return err
	}
	scope, err := auth.AgentScope(stream.Context(), r.GetAgentId())
	if err != nil {
		return err
	}
	selections, err := selectionsOf(r.GetTopics())
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
		Positions: topicPositionsOf(subscription.Positions()), ServerTime: timestampOf(before),
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
