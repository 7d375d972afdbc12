package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// beatInterval is what attached peers agree to: long enough that a test that
// takes less need not send any.
const beatInterval = time.Minute

// peer is an agent of one of the two APIs, driven as its SDK would drive it.
// The hooks run on the goroutine that reads; nil hooks hear nothing.
type peer struct {
	id     string
	loom   bool // of loom.v1; else of the native API
	topics []string
	tool   string // provided to others; empty for none

	heard    func(heard)
	answered func(*loombridgev1.AttachAnswer)
	called   func(*peerStream, pushed)
	refused  func(string)

	// after is the sequence up to which each exact topic was heard, to resume
	// from: only the native API has it.
	after map[string]int64
}

// heard is an event as it came to a peer; loom.v1 has no sequence.
type heard struct {
	topic, text string
	sequence    int64
}

// pushed is a tool call as it came to a peer.
type pushed struct{ id, arguments string }

// message is what came on a stream: one of its fields.
type message struct {
	event   *heard
	call    *pushed
	answer  *loombridgev1.AttachAnswer
	refused string
}

// wire is a stream of one of the two APIs.
type wire interface {
	// publish emits text. A ref other than 0 asks for an answer, which only the
	// native API gives.
	publish(topic, text string, ref int64) error
	reply(call, output string) error
	beat() error
	receive() (message, error)
	CloseSend() error
}

// peerStream is one stream of a peer. Anybody may send; one goroutine runs it.
type peerStream struct {
	wire
	conn   *grpc.ClientConn
	cancel context.CancelFunc

	mu sync.Mutex // held during a send
}

func (s *peerStream) send(f func(wire) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f(s.wire)
}

func (s *peerStream) publish(topic, text string, ref int64) error {
	return s.send(func(w wire) error { return w.publish(topic, text, ref) })
}

func (s *peerStream) reply(call, output string) error {
	return s.send(func(w wire) error { return w.reply(call, output) })
}

// leave says goodbye: the stream then ends with OK.
func (s *peerStream) leave() error { return s.send(wire.CloseSend) }

// dialPeer makes a connection for one peer or several.
func dialPeer(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// open registers the peer and returns when it hears its topics and can be
// called.
func (p *peer) open(ctx context.Context, conn *grpc.ClientConn) (*peerStream, error) {
	ctx, cancel := context.WithCancel(ctx)
	open := p.openNative
	if p.loom {
		open = p.openLoom
	}
	w, err := open(ctx, conn)
	if err != nil {
		cancel()
		return nil, err
	}
	return &peerStream{wire: w, conn: conn, cancel: cancel}, nil
}

func (p *peer) openNative(ctx context.Context, conn *grpc.ClientConn) (wire, error) {
	stream, err := loombridgev1.NewBridgeServiceClient(conn).Attach(convert.AskText(ctx))
	if err != nil {
		return nil, err
	}
	// When a send fails, receiving tells why.
	_ = stream.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_Hello{Hello: p.hello()}})
	first, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	p.after = map[string]int64{}
	for _, position := range first.GetReady().GetPositions() {
		p.after[position.GetTopic()] = position.GetAfterSequence()
	}
	return nativeWire{stream, p.id}, nil
}

func (p *peer) hello() *loombridgev1.AttachHello {
	hello := &loombridgev1.AttachHello{
		AgentId:           p.id,
		HeartbeatInterval: durationpb.New(beatInterval),
	}
	for _, topic := range p.topics {
		position := &loombridgev1.TopicPosition{Topic: topic}
		if after, ok := p.after[topic]; ok {
			position.AfterSequence = &after
		}
		hello.Topics = append(hello.Topics, position)
	}
	if p.tool != "" {
		hello.Tools = []*loombridgev1.ToolDescriptor{{Name: p.tool}}
	}
	return hello
}

func (p *peer) openLoom(ctx context.Context, conn *grpc.ClientConn) (wire, error) {
	client := loomv1pb.NewBridgeClient(conn)
	register := &loomv1pb.AgentRegisterRequest{AgentId: p.id, SubscribedTopics: p.topics}
	if p.tool != "" {
		register.Tools = []*loomv1pb.ToolDescriptor{{Name: p.tool, ParametersSchema: "{}"}}
	}
	if answer, err := client.RegisterAgent(ctx, register); err != nil || !answer.GetSuccess() {
		return nil, fmt.Errorf("register %s: %v: %w", p.id, answer, err)
	}
	stream, err := client.EventStream(ctx)
	if err != nil {
		return nil, err
	}
	_ = stream.Send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Ack{Ack: &loomv1pb.Ack{MessageId: p.id}}})
	// The headers say that the topics are subscribed. A stream that was refused
	// has none.
	if headers, err := stream.Header(); err != nil || headers == nil {
		_, err = stream.Recv()
		return nil, err
	}
	return loomWire{stream}, nil
}

// run reads the stream until it ends, and returns how: io.EOF is OK.
func (p *peer) run(s *peerStream) error {
	for {
		m, err := s.receive()
		if err != nil {
			return err
		}
		switch {
		case m.event != nil:
			if m.event.sequence > 0 {
				p.after[m.event.topic] = m.event.sequence
			}
			if p.heard != nil {
				p.heard(*m.event)
			}
		case m.call != nil && p.called != nil:
			p.called(s, *m.call)
		case m.answer != nil && p.answered != nil:
			p.answered(m.answer)
		case m.refused != "" && p.refused != nil:
			p.refused(m.refused)
		}
	}
}

type nativeWire struct {
	loombridgev1.BridgeService_AttachClient
	id string
}

func (w nativeWire) publish(topic, text string, ref int64) error {
	return w.Send(&loombridgev1.AttachRequest{Ref: ref, Item: &loombridgev1.AttachRequest_Publish{Publish: emitOf(w.id, topic, text)}})
}

func emitOf(agent, topic, text string) *loombridgev1.EmitRequest {
	return &loombridgev1.EmitRequest{
		AgentId: agent, Topic: topic, PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: []byte(text)},
	}
}

func (w nativeWire) reply(call, output string) error {
	return w.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_ToolResult{ToolResult: &loombridgev1.AttachToolResult{
		CallId: call, Success: true, OutputForm: &loombridgev1.AttachToolResult_OutputJson{OutputJson: output},
	}}})
}

func (w nativeWire) beat() error {
	return w.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_Heartbeat{Heartbeat: &loombridgev1.AttachHeartbeat{}}})
}

func (w nativeWire) receive() (message, error) {
	m, err := w.Recv()
	if err != nil {
		return message{}, err
	}
	switch item := m.GetItem().(type) {
	case *loombridgev1.AttachResponse_Event:
		e := item.Event
		return message{event: &heard{e.GetTopic(), string(e.GetPayloadBytes()), e.GetSequence()}}, nil
	case *loombridgev1.AttachResponse_ToolCall:
		return message{call: &pushed{item.ToolCall.GetCallId(), item.ToolCall.GetArgumentsJson()}}, nil
	case *loombridgev1.AttachResponse_Answer:
		return message{answer: item.Answer, refused: item.Answer.GetError().GetMessage()}, nil
	}
	return message{}, nil
}

type loomWire struct {
	loomv1pb.Bridge_EventStreamClient
}

func (w loomWire) publish(topic, text string, _ int64) error {
	return w.Send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Publish{Publish: &loomv1pb.Publish{Topic: topic, Event: eventOf(text)}}})
}

func eventOf(text string) *loomv1pb.Event {
	id := strings.TrimRight(text, padding+" ")
	return &loomv1pb.Event{Id: id, Type: "soak", Source: "go", Payload: []byte(text), Confidence: 1, Priority: 50}
}

func (w loomWire) reply(call, output string) error {
	return w.Send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_ToolResult{ToolResult: &loomv1pb.ToolResult{Id: call, Output: output}}})
}

// beat does nothing: on a stream loom-py sends no pings.
func (w loomWire) beat() error { return nil }

func (w loomWire) receive() (message, error) {
	m, err := w.Recv()
	if err != nil {
		return message{}, err
	}
	switch item := m.GetMsg().(type) {
	case *loomv1pb.ServerEvent_Delivery:
		e := item.Delivery.GetEvent()
		return message{event: &heard{topic: e.GetMetadata()["loom.topic"], text: string(e.GetPayload())}}, nil
	case *loomv1pb.ServerEvent_ToolCall:
		return message{call: &pushed{item.ToolCall.GetId(), item.ToolCall.GetArguments()}}, nil
	case *loomv1pb.ServerEvent_Err:
		return message{refused: item.Err.GetCode() + ": " + item.Err.GetMessage()}, nil
	}
	return message{}, nil
}

// token is what a published event says: who made it, how many of the publisher's
// own on this topic it is, from 1, and when, in nanoseconds since 1970.
type token struct {
	publisher string
	count     int
	sent      int64
}

// padding fills events up to a size.
const padding = "."

func (t token) String() string { return fmt.Sprintf("%s %d %d ", t.publisher, t.count, t.sent) }

// parseToken ignores what stands behind the token.
func parseToken(text string) (token, error) {
	publisher, rest, _ := strings.Cut(text, " ")
	number, rest, _ := strings.Cut(rest, " ")
	at, _, _ := strings.Cut(rest, " ")
	count, err := strconv.Atoi(number)
	if err != nil {
		return token{}, fmt.Errorf("event %q: %w", text, err)
	}
	sent, err := strconv.ParseInt(at, 10, 64)
	return token{publisher, count, sent}, err
}
