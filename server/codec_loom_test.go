package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
)

// loomAgent is an agent's stream whose messages come on a channel, which is closed
// when the stream ends.
type loomAgent struct {
	grpc.BidiStreamingClient[loomv1pb.ClientEvent, loomv1pb.ServerEvent]
	tb   testing.TB
	came chan *loomv1pb.ServerEvent
	end  chan error
}

// MustLoomAgent registers an agent that listens to a topic and provides a tool, and
// opens its stream.
func MustLoomAgent(tb testing.TB, s *servertest.Server, id, topic, tool string) *loomAgent {
	tb.Helper()
	res, err := s.LoomBridge.RegisterAgent(tb.Context(), &loomv1pb.AgentRegisterRequest{
		AgentId: id, SubscribedTopics: []string{topic}, Tools: []*loomv1pb.ToolDescriptor{{Name: tool}},
	})
	if err != nil || !res.GetSuccess() {
		tb.Fatal(res, err)
	}
	stream, err := s.LoomBridge.EventStream(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	a := &loomAgent{BidiStreamingClient: stream, tb: tb, came: make(chan *loomv1pb.ServerEvent, 64), end: make(chan error, 1)}
	a.send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Ack{Ack: &loomv1pb.Ack{MessageId: id}}})
	if _, err := stream.Header(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		defer close(a.came)
		for {
			message, err := stream.Recv()
			if err != nil {
				a.end <- err
				return
			}
			a.came <- message
		}
	}()
	return a
}

func (a *loomAgent) send(message *loomv1pb.ClientEvent) {
	a.tb.Helper()
	if err := a.Send(message); err != nil {
		a.tb.Fatal(err)
	}
}

func (a *loomAgent) next() *loomv1pb.ServerEvent {
	a.tb.Helper()
	select {
	case message, open := <-a.came:
		if !open {
			a.tb.Fatalf("the stream has ended: %v", <-a.end)
		}
		return message
	case <-time.After(time.Minute):
		a.tb.Fatal("nothing came")
		return nil
	}
}

func publishOf(topic string, payload int) *loomv1pb.ClientEvent {
	return &loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Publish{
		Publish: &loomv1pb.Publish{Topic: topic, Event: &loomv1pb.Event{Id: "e", Payload: make([]byte, payload)}},
	}}
}

// An event or a tool result that is a little larger than what the server takes is
// told about, and the stream goes on. So it is from a payload that fits to the largest
// message that the transport lets through.
func TestLoomMessagesOverTheLimit(t *testing.T) {
	const limit = 4 << 20
	s := servertest.Start(t, &servertest.Options{Dial: []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(16 << 20))}})
	a := MustLoomAgent(t, s, "a", "t", "do")
	for _, payload := range []int{limit - 20, limit, limit + 1, 2*limit - 100} {
		message := publishOf("t", payload)
		a.send(message)
		want := fmt.Sprintf("event of %d bytes exceeds the limit of ", proto.Size(message))
		got := a.next().GetErr()
		if got.GetCode() != "RESOURCE_EXHAUSTED" || proto.Size(message) > limit && got.GetMessage() != want+fmt.Sprint(limit) {
			t.Errorf("payload of %d: %v", payload, got)
		}
		results := make(chan *loomv1pb.ToolResult, 1)
		go func() {
			result, err := s.LoomBridge.ForwardToolCall(t.Context(), &loomv1pb.ToolCall{Id: "c", Name: "do", TimeoutMs: 60_000})
			if err != nil {
				t.Error(err)
			}
			results <- result
		}()
		answer := &loomv1pb.ToolResult{Id: a.next().GetToolCall().GetId(), Output: strings.Repeat("x", payload)}
		a.send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_ToolResult{ToolResult: answer}})
		result := <-results
		text := result.GetError().GetMessage()
		if result.GetId() != "c" || result.GetStatus() != loomv1pb.ToolStatus_TOOL_ERROR || result.GetError().GetCode() != "EXECUTION_ERROR" ||
			!strings.HasPrefix(text, "Execution failed: result of ") || !strings.Contains(text, " bytes exceeds the limit of ") {
			t.Errorf("result of %d: %v", payload, result.GetError())
		}
	}
	a.send(publishOf("t", 1))
	if got := a.next().GetDelivery().GetEvent().GetId(); got != "e" {
		t.Errorf("got %q", got)
	}
}

// What is neither ends the stream, as does what the transport itself refuses.
func TestLoomMessagesFarOverTheLimit(t *testing.T) {
	ack := &loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Ack{Ack: &loomv1pb.Ack{MessageId: strings.Repeat("x", 5<<20)}}}
	for name, message := range map[string]*loomv1pb.ClientEvent{"ack": ack, "far too large": publishOf("t", 9<<20)} {
		s := servertest.Start(t, &servertest.Options{Dial: []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(16 << 20))}})
		a := MustLoomAgent(t, s, "a", "t", "do")
		_ = a.Send(message)
		if code := status.Code(<-a.end); code != codes.ResourceExhausted && code != codes.Unavailable {
			t.Errorf("%s: %v", name, code)
		}
	}
}
