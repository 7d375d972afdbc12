package server

import (
	"context"

	"google.golang.org/grpc"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

type eventService struct {
	loombridgev1.UnimplementedEventServiceServer
	events Events
}

// Subscribe streams events until the caller leaves, stalls, or the server
// stops. Nothing of it grows with a reader that is behind: durable events wait
// in the store.
func (s *eventService) Subscribe(r *loombridgev1.SubscribeRequest, stream grpc.ServerStreamingServer[loombridgev1.SubscribeResponse]) error {
	if err := checkSubscribeRequest(r); err != nil {
		return err
	}
	scope, err := agentScope(stream.Context(), r.GetAgentId())
	if err != nil {
		return err
	}
	subscription, err := s.events.Subscribe(stream.Context(), scope.Tenant, positionsOf(r.GetTopics()))
	if err != nil {
		return err
	}
	defer subscription.Close()
	if err := stream.Send(readyOf(subscription.Positions())); err != nil {
		return err
	}
	return sendEvents(stream.Context(), subscription, r.GetJsonForm(), stream)
}

func sendEvents(ctx context.Context, from *events.Subscription, form loombridgev1.JsonForm, to grpc.ServerStreamingServer[loombridgev1.SubscribeResponse]) error {
	for {
		delivery, err := from.Next(ctx)
		if err != nil {
			return err
		}
		if err := to.Send(deliveryOf(delivery, form)); err != nil {
			return err
		}
	}
}
