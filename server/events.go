package server

import (
	"context"
	"fmt"
	"log/slog"

	"google.golang.org/grpc"

	"github.com/loom-bridge/loom-bridge/bridge/a2a"
	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/messages"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/page"
	"github.com/loom-bridge/loom-bridge/server/unread"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

type eventService struct {
	loombridgev1.UnimplementedEventServiceServer
	events   Events
	given    *a2a.Tasks
	messages *messages.Box
	sender   topics.Sender
	children *children.Spawner
	limits   Limits
	log      *slog.Logger
}

// Subscribe streams events until the caller leaves, stalls, or the server
// stops. Nothing of it grows with a reader that is behind: durable events wait
// in the store.
func (s *eventService) Subscribe(r *loombridgev1.SubscribeRequest, stream grpc.ServerStreamingServer[loombridgev1.SubscribeResponse]) error {
	scope, err := auth.AgentScope(stream.Context(), r.GetAgentId())
	if err != nil {
		return err
	}
	selections, err := convert.Selections(r.GetTopics())
	if err != nil {
		return err
	}
	before, err := s.events.Now(stream.Context())
	if err != nil {
		return err
	}
	subscription, err := s.events.Subscribe(stream.Context(), scope.Tenant, selections, readerOf(stream.Context(), scope, s.children))
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
	return s.sendEvents(stream.Context(), scope.Tenant, subscription, framer{asText: convert.AsText(stream.Context()), limit: s.limits.MaxSendBytes, log: s.log}, stream)
}

func (s *eventService) sendEvents(ctx context.Context, tenant string, from *events.Subscription, frames framer, to grpc.ServerStream) error {
	for {
		delivery, err := from.Next(ctx)
		if err != nil {
			return err
		}
		if !s.given.Waits(ctx, tenant, &delivery.Event) {
			continue
		}
		if f := frames.event(delivery); frames.fits(delivery.Event) {
			if err := to.SendMsg(f); err != nil {
				return err
			}
		}
	}
}

// heard refuses an event that needs a listener and has none. For a durable one an
// agent that will come back and listens then counts, too.
func heard(bus Events, others *agents.Directory, tenant string, r *loombridgev1.EmitRequest, e events.Event) error {
	if !r.GetNeedsListener() || bus.Heard(tenant, e) {
		return nil
	}
	durable := r.GetDelivery() != loombridgev1.Delivery_DELIVERY_VOLATILE
	if durable && others.Awaits(tenant, e.Topic) {
		return nil
	}
	return fmt.Errorf("%w to the topic %q; it was not emitted", ErrNobodyListens, validate.Printable(e.Topic))
}

// readerOf says what the caller may read as an agent.
func readerOf(ctx context.Context, agent kv.Scope, family *children.Spawner) *events.SubscribeOptions {
	return &events.SubscribeOptions{Room: roomOf(ctx), MayRead: topics.Readable(agent.Owner, family.Spawned(agent), ownsOf(ctx)), Hears: topics.Hears(agent.Owner)}
}

// roomOf is the room for what a stream reads.
func roomOf(ctx context.Context) events.Room {
	if slot := unread.SlotOf(ctx); slot != nil {
		return slot
	}
	return nil
}

// ownsOf says which agents the caller may act for.
func ownsOf(ctx context.Context) func(agent string) bool {
	id, _ := auth.Of(ctx)
	return id.Owns
}

// SendMessage says something to one agent.
func (s *eventService) SendMessage(ctx context.Context, r *loombridgev1.SendMessageRequest) (*loombridgev1.SendMessageResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	m, err := convert.SentMessage(r)
	if err != nil {
		return nil, err
	}
	sent, err := s.sender.Send(ctx, scope.Tenant, m)
	if err != nil {
		return nil, within("message", err)
	}
	return convert.SendMessageResponse(&sent), nil
}

// ListMessages returns the live direct messages of an agent or node.
func (s *eventService) ListMessages(ctx context.Context, r *loombridgev1.ListMessagesRequest) (*loombridgev1.ListMessagesResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	after, _ := page.Messages.Parse(r.GetPageToken(), messages.MaxPlaceBytes)
	found, err := s.messages.List(ctx, scope.Tenant, scope.Owner, messages.Query{
		SessionID: r.GetSessionId(), ParentTaskID: r.GetParentTaskId(), After: after, Limit: page.Size(r) + 1,
	})
	if err != nil {
		return nil, err
	}
	out, next := page.Cut(page.Messages, found, r, s.limits.MaxSendBytes, messages.Message.Place, convert.DirectMessage)
	return &loombridgev1.ListMessagesResponse{Messages: out, NextPageToken: next}, nil
}

// DeleteMessages removes direct messages from the box of an agent or node.
func (s *eventService) DeleteMessages(ctx context.Context, r *loombridgev1.DeleteMessagesRequest) (*loombridgev1.DeleteMessagesResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	deleted, err := s.messages.Delete(ctx, scope.Tenant, scope.Owner, r.GetTaskIds())
	if err != nil {
		return nil, err
	}
	return &loombridgev1.DeleteMessagesResponse{Deleted: convert.Int32(deleted)}, nil
}
