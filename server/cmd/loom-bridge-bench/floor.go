//go:build cgo && !norocksdb

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/barerocks"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// floor answers MemorySave, Tool, RecordStep and a durable event with a captured
// batch and nothing else, and Assemble with so many bytes.
type floor struct {
	loombridgev1.UnimplementedBridgeServiceServer
	loombridgev1.UnimplementedSessionServiceServer
	loombridgev1.UnimplementedPromptServiceServer

	db        *barerocks.DB
	workspace string
	saves     tape
	tools     tape
	emits     tape
	// small and large are steps by the size of their results.
	small, large tape
	hub          hub
}

// tape holds the captured batches of each agent and where the agent is in its
// own.
type tape struct {
	batches map[string][][]kv.Op
	next    sync.Map // agent → *atomic.Uint64
}

func (t *tape) take(agent string) []kv.Op {
	counter, _ := t.next.LoadOrStore(agent, new(atomic.Uint64))
	batches := t.batches[agent]
	if len(batches) == 0 {
		return nil
	}
	return batches[counter.(*atomic.Uint64).Add(1)%uint64(len(batches))]
}

// MemorySave writes the agent's next captured batch.
func (f *floor) MemorySave(_ context.Context, req *loombridgev1.MemorySaveRequest) (*loombridgev1.MemorySaveResponse, error) {
	if err := f.db.Write(f.saves.take(req.GetAgentId()), true); err != nil {
		return nil, err
	}
	return &loombridgev1.MemorySaveResponse{Id: "floor"}, nil
}

// Tool reads the file and writes the agent's next captured batch.
func (f *floor) Tool(_ context.Context, req *loombridgev1.ToolRequest) (*loombridgev1.ToolResponse, error) {
	content, err := os.ReadFile(filepath.Join(f.workspace, benchFile))
	if err != nil {
		return nil, err
	}
	if err := f.db.Write(f.tools.take(req.GetAgentId()), true); err != nil {
		return nil, err
	}
	return &loombridgev1.ToolResponse{
		Success:    true,
		OutputForm: &loombridgev1.ToolResponse_OutputJson{OutputJson: string(content)},
	}, nil
}

// RecordStep writes the next captured batch of a step of about that size.
func (f *floor) RecordStep(_ context.Context, req *loombridgev1.RecordStepRequest) (*loombridgev1.RecordStepResponse, error) {
	steps := &f.small
	if len(req.GetOutputJson()) > largeOutput/2 {
		steps = &f.large
	}
	if err := f.db.Write(steps.take(recordTool), true); err != nil {
		return nil, err
	}
	return &loombridgev1.RecordStepResponse{Step: &loombridgev1.Step{Id: "floor"}}, nil
}

// Assemble answers one message of as many bytes as the request allows tokens.
func (*floor) Assemble(_ context.Context, req *loombridgev1.AssembleRequest) (*loombridgev1.AssembleResponse, error) {
	return &loombridgev1.AssembleResponse{Messages: []*loombridgev1.Message{{Content: strings.Repeat("a", int(req.GetMaxTokens()))}}}, nil
}

// captureSteps records the batches of RecordStep.
func (f *floor) captureSteps(ctx context.Context, workspace string) error {
	for _, c := range []struct {
		tape     *tape
		n, bytes int
	}{{&f.small, tapeLength, smallOutput}, {&f.large, tapeLength / 8, largeOutput}} {
		steps, err := captureRecords(ctx, workspace, c.n, c.bytes)
		if err != nil {
			return err
		}
		c.tape.batches = map[string][][]kv.Op{recordTool: steps}
	}
	return nil
}

// serveFloor serves until ctx ends and prints its address, as the server does.
func serveFloor(ctx context.Context, dir, workspace string, clients int) error {
	db, err := barerocks.Open(dir)
	if err != nil {
		return err
	}
	defer db.Close()
	f := &floor{db: db, workspace: workspace}
	if f.saves.batches, err = captureSaves(ctx, clients, nil); err != nil {
		return err
	}
	if f.saves.batches[turnAgent], err = captureTurns(ctx); err != nil {
		return err
	}
	if f.tools.batches, err = captureTools(ctx, workspace, clients); err != nil {
		return err
	}
	if f.emits.batches, err = captureEmits(ctx, clients); err != nil {
		return err
	}
	if err := f.captureSteps(ctx, workspace); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("bench: listen: %w", err)
	}
	s := grpc.NewServer()
	loombridgev1.RegisterBridgeServiceServer(s, f)
	loombridgev1.RegisterSessionServiceServer(s, f)
	loombridgev1.RegisterPromptServiceServer(s, f)
	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	fmt.Printf("listening on %s\n", listener.Addr())
	go func() { <-ctx.Done(); s.Stop() }()
	return s.Serve(listener)
}

// hub is the floor of events: what comes in on one stream goes out on all that
// listen to its topic, sent by the goroutine that received it. It keeps no
// order between publishers, no place, no queue, and drops no slow reader.
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

// Attach echoes events to listeners; a durable one is written first, in a separate synced
// batch.
func (f *floor) Attach(stream grpc.BidiStreamingServer[loombridgev1.AttachRequest, loombridgev1.AttachResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	l, topics := &listener{stream: stream}, first.GetHello().GetTopics()
	f.hub.join(l, topics)
	defer f.hub.leave(l, topics)
	ready := &loombridgev1.AttachResponse{Item: &loombridgev1.AttachResponse_Ready{Ready: &loombridgev1.SubscriptionReady{}}}
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
		if err := f.echo(in.GetPublish()); err != nil {
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
		Item: &loombridgev1.AttachResponse_Event{Event: event},
	}, e.GetTopic())
}
