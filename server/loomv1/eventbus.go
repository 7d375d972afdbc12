package loomv1

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	"github.com/loom-bridge/loom-bridge/server/unread"
)

// subscriptionHeader is the response header with a subscription's id: the
// messages of the stream have no field for it.
const subscriptionHeader = "loom-subscription-id"

// maxIDTopicBytes bounds the part of a subscription's id with its topic.
const maxIDTopicBytes = 128

// eventBusService is the bus for callers that are no agents with a stream.
type eventBusService struct {
	loomv1pb.UnimplementedEventBusServer
	Deps

	numbers numbering // of events that are not stored

	mu   sync.Mutex
	open map[subscriptionKey]*events.Subscription // guarded by mu
}

// subscriptionKey names a subscription: it cannot be ended by another tenant.
type subscriptionKey struct{ tenant, id string }

// Publish takes one event and stores it before it answers, unless its topic is not
// stored: then the sequence counts the events published here. The answer says why an event
// is refused.
func (s *eventBusService) Publish(ctx context.Context, r *loomv1pb.PublishRequest) (*loomv1pb.PublishResponse, error) {
	tenant, err := s.Tenant(ctx)
	if err != nil {
		return nil, err
	}
	ready, refused := s.prepared(r.GetTopic(), r.GetEvent())
	if refused != nil {
		return &loomv1pb.PublishResponse{ErrorMessage: refused.message}, nil
	}
	stored, err := s.Events.Emit(ctx, tenant, ready, events.EmitOptions{Legacy: true, Emitter: ready.Headers[keySender]})
	switch {
	case err == nil && stored.Sequence == 0:
		return &loomv1pb.PublishResponse{Success: true, SequenceNumber: s.numbers.next(tenant, ready.Topic)}, nil
	case err == nil:
		return &loomv1pb.PublishResponse{Success: true, SequenceNumber: int64(stored.Sequence)}, nil
	case errors.Is(err, events.ErrInvalid), errors.Is(err, topics.ErrReserved):
		return &loomv1pb.PublishResponse{ErrorMessage: s.notTaken(ctx, ready.Topic, err).message}, nil
	case errors.Is(err, events.ErrClosed):
		return nil, errStopping
	}
	if refused := ofFamily(err); refused != nil {
		return &loomv1pb.PublishResponse{ErrorMessage: refused.message}, nil
	}
	return nil, s.fault(ctx, "publish event", err)
}

// Subscribe streams the events of a topic or pattern until the caller leaves or
// unsubscribes. Whatever else ends it is UNAVAILABLE.
func (s *eventBusService) Subscribe(r *loomv1pb.SubscribeRequest, stream grpc.ServerStreamingServer[loomv1pb.Event]) error {
	ctx := stream.Context()
	tenant, err := s.Tenant(ctx)
	if err != nil {
		return err
	}
	selection, rest := selected(r)
	subscription, err := s.Events.Subscribe(ctx, tenant, []events.Subscribed{selection}, s.reader(ctx, tenant, ""))
	if err != nil {
		return s.subscriptionEnded(ctx, err)
	}
	defer subscription.Close()
	key := s.enter(tenant, r.GetTopic(), subscription)
	defer s.leave(key)
	if err := stream.SendHeader(metadata.Pairs(subscriptionHeader, key.id)); err != nil {
		return err
	}
	return s.serve(ctx, subscription, rest, stream)
}

// reader says what an agent may read; the empty one is an unknown caller.
func (d Deps) reader(ctx context.Context, tenant, agent string) *events.SubscribeOptions {
	spawned := d.Spawned != nil && agent != "" && d.Spawned(kv.AgentScope(tenant, agent))
	var room events.Room
	if slot := unread.SlotOf(ctx); slot != nil {
		room = slot
	}
	return &events.SubscribeOptions{
		Room: room, PerSelection: true, Wait: true, MayRead: topics.Readable(agent, spawned, func(string) bool { return true }),
		Hears: topics.Hears(agent),
	}
}

// serve sends events on its own goroutine, because a send may wait for the
// caller as long as it is connected.
func (s *eventBusService) serve(ctx context.Context, from *events.Subscription, rest filter, stream grpc.ServerStreamingServer[loomv1pb.Event]) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := newStall(s.Options.StallTimeout, cancel, unavailable("the subscriber took nothing for %v", s.Options.StallTimeout))
	defer stall.Stop()
	sent := make(chan error, 1)
	go func() { sent <- s.send(ctx, from, rest, stall, stream) }()
	select {
	case err := <-sent:
		return err
	case <-s.Options.Draining:
		return errStopping
	case <-ctx.Done():
		return ended(ctx)
	}
}

// ended is the status of a stream whose context has ended.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); status.Code(cause) != codes.Unknown {
		return cause
	}
	return status.FromContextError(ctx.Err()).Err()
}

func (s *eventBusService) send(ctx context.Context, from *events.Subscription, rest filter, stall *time.Timer, stream grpc.ServerStreamingServer[loomv1pb.Event]) error {
	for {
		delivery, err := from.Next(ctx)
		if err != nil {
			return s.subscriptionEnded(ctx, err)
		}
		if err := s.sendEvent(ctx, messageOf(delivery.Event, ""), rest, stall, stream); err != nil {
			return err
		}
	}
}

// sendEvent leaves out what does not pass the filter, and what is too large for
// clients.
func (s *eventBusService) sendEvent(ctx context.Context, e *loomv1pb.Event, rest filter, stall *time.Timer, stream grpc.ServerStreamingServer[loomv1pb.Event]) error {
	if !rest.passes(e) {
		return nil
	}
	if size := proto.Size(e); size > s.Options.MaxSendBytes {
		s.Options.Logger.WarnContext(ctx, "loom.v1 event left out: too large",
			"event_id", clip(e.GetId()), "size", size, "limit", s.Options.MaxSendBytes)
		return nil
	}
	stall.Reset(s.Options.StallTimeout)
	defer stall.Stop()
	return stream.Send(e)
}

// subscriptionEnded is the status of a subscription that could not begin, or
// that has ended: OK when the caller ended it.
func (s *eventBusService) subscriptionEnded(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, events.ErrSubscriptionClosed):
		return nil
	case ctx.Err() != nil:
		return ended(ctx)
	case errors.Is(err, events.ErrSlowSubscriber):
		return unavailable("the subscriber takes events too slowly")
	case errors.Is(err, events.ErrClosed), errors.Is(err, kv.ErrClosed):
		return errStopping
	case errors.Is(err, share.ErrLimit):
		return status.Error(codes.ResourceExhausted, s.plain(ctx, "subscribe", err))
	case errors.Is(err, events.ErrInvalid):
		return status.Error(codes.InvalidArgument, s.plain(ctx, "subscribe", err))
	}
	return s.fault(ctx, "read events", err)
}

// Unsubscribe ends a subscription.
func (s *eventBusService) Unsubscribe(ctx context.Context, r *loomv1pb.UnsubscribeRequest) (*loomv1pb.UnsubscribeResponse, error) {
	tenant, err := s.Tenant(ctx)
	if err != nil {
		return nil, err
	}
	from := s.leave(subscriptionKey{tenant, r.GetSubscriptionId()})
	if from == nil {
		return &loomv1pb.UnsubscribeResponse{}, nil
	}
	from.Close()
	return &loomv1pb.UnsubscribeResponse{Success: true}, nil
}

// GetStats returns what happened on a topic since the server started.
func (s *eventBusService) GetStats(ctx context.Context, r *loomv1pb.StatsRequest) (*loomv1pb.StatsResponse, error) {
	tenant, err := s.Tenant(ctx)
	if err != nil {
		return nil, err
	}
	stats := s.Events.Stats(tenant, r.GetTopic())
	return &loomv1pb.StatsResponse{
		TotalEvents:         stats.Total,
		ActiveSubscriptions: int64(stats.Subscriptions),
		ThroughputPerSec:    stats.PerSecond,
		BacklogSize:         int64(stats.Backlog),
	}, nil
}

// enter gives a subscription an id of the form that the old core used: it has
// the topic, and is unique.
func (s *eventBusService) enter(tenant, topic string, from *events.Subscription) subscriptionKey {
	at := s.Options.Now().UnixNano()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		key := subscriptionKey{tenant, "sub_" + headerText(topic) + "_" + strconv.FormatInt(at, 16)}
		if s.open[key] == nil {
			s.open[key] = from
			return key
		}
		at++
	}
}

// leave forgets a subscription and returns it; nil if there is none.
func (s *eventBusService) leave(key subscriptionKey) *events.Subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.open[key]
	delete(s.open, key)
	return from
}

// headerText is what of a text can stand in a header.
func headerText(text string) string {
	text = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '_'
		}
		return r
	}, text)
	return text[:min(len(text), maxIDTopicBytes)]
}

// filter is what an event has to be beyond what the bus selects.
type filter struct {
	types []string
	pairs map[string]string
}

func (f filter) passes(e *loomv1pb.Event) bool {
	if len(f.types) > 0 && !slices.Contains(f.types, e.GetType()) {
		return false
	}
	for key, value := range f.pairs {
		if got, ok := e.GetMetadata()[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// maxBusTypes is how many event types are left to the bus to compare.
const maxBusTypes = 64

// selected is what a request selects: what the bus can select by, and the rest.
// The bus knows events of the native API as they were emitted: without the
// envelope, and without the type that they are delivered with. Nor does it
// compare with any number of types and pairs.
func selected(r *loomv1pb.SubscribeRequest) (events.Subscribed, filter) {
	selection := selectionOf(r.GetTopic(), qosOf(r.GetQos()))
	rest := filter{pairs: make(map[string]string)}
	if types := r.GetEventTypes(); len(types) > maxBusTypes || slices.Contains(types, defaultType) {
		rest.types = types
	} else {
		selection.EventTypes = types
	}
	selection.Headers = make(map[string]string)
	for key, value := range r.GetFilters() {
		if key == events.HeaderSession && value != "" {
			selection.SessionID = value // native events say it in a field
		} else if inEnvelope(key) || len(selection.Headers) >= store.MaxHeaders {
			rest.pairs[key] = value
		} else {
			selection.Headers[key] = value
		}
	}
	return selection, rest
}

// qosOf takes a number that has no name for the level that loses nothing.
func qosOf(level loomv1pb.QoSLevel) events.QoS {
	switch level {
	case loomv1pb.QoSLevel_QOS_REALTIME:
		return events.Realtime
	case loomv1pb.QoSLevel_QOS_BACKGROUND:
		return events.Background
	}
	return events.Batched
}
