//go:build cgo && !norocksdb

package main

import (
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// hub is the floor of events: what comes in on one stream goes out on all that
// listen to its topic, sent by the goroutine that received it. It keeps no
// order between publishers, no place, no queue, and forgets nobody who is slow.
type hub struct {
	mu        sync.RWMutex // guards listeners
	listeners map[string][]*listener
}

// listener is one stream that gets events.
type listener struct {
	mu     sync.Mutex // held while sending
	stream grpc.BidiStreamingServer[loombridgev1.AttachRequest, loombridgev1.AttachResponse]
}

func (h *hub) join(l *listener, topics []*loombridgev1.TopicPosition) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners == nil {
		h.listeners = map[string][]*listener{}
	}
	for _, t := range topics {
		h.listeners[t.GetTopic()] = append(h.listeners[t.GetTopic()], l)
	}
}

func (h *hub) leave(l *listener, topics []*loombridgev1.TopicPosition) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range topics {
		var rest []*listener
		for _, other := range h.listeners[t.GetTopic()] {
			if other != l {
				rest = append(rest, other)
			}
		}
		h.listeners[t.GetTopic()] = rest
	}
}

func (h *hub) send(out *loombridgev1.AttachResponse, topic string) error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, l := range h.listeners[topic] {
		l.mu.Lock()
		err := l.stream.Send(out)
		l.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// Attach echoes events to those who listen; a durable one is written first, in
// a synced batch of its own.
func (f *floor) Attach(stream grpc.BidiStreamingServer[loombridgev1.AttachRequest, loombridgev1.AttachResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	l, topics := &listener{stream: stream}, first.GetHello().GetTopics()
	f.hub.join(l, topics)
	defer f.hub.leave(l, topics)
	ready := &loombridgev1.AttachResponse{Item: &loombridgev1.AttachResponse_Ready{Ready: &loombridgev1.AttachReady{}}}
	if err := stream.Send(ready); err != nil {
		return err
	}
	for {
		in, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f.echo(in.GetPublish().GetEvent()); err != nil {
			return err
		}
	}
}

func (f *floor) echo(e *loombridgev1.EmitRequest) error {
	if e.GetDelivery() != loombridgev1.Delivery_DELIVERY_VOLATILE {
		if err := f.db.Write(f.emits.take(e.GetTopic()), true); err != nil {
			return err
		}
	}
	event := &loombridgev1.Event{
		Topic: e.GetTopic(), PayloadForm: &loombridgev1.Event_PayloadBytes{PayloadBytes: e.GetPayloadBytes()},
	}
	return f.hub.send(&loombridgev1.AttachResponse{
		Item: &loombridgev1.AttachResponse_Event{Event: &loombridgev1.AttachEvent{Event: event}},
	}, e.GetTopic())
}
