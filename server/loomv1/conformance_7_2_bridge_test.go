package loomv1_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/testing/protocmp"

	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
)

func TestConformance72RegisterTwoTopics(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	res, err := w.bridge.RegisterAgent(t.Context(), &loomv1pb.AgentRegisterRequest{AgentId: "a", SubscribedTopics: []string{"x", "y"}})
	if err != nil || !res.GetSuccess() || res.GetErrorMessage() != "" {
		t.Errorf("%v %v", res, err)
	}
}

func TestConformance72RegisterEmptyID(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	res, err := w.bridge.RegisterAgent(t.Context(), &loomv1pb.AgentRegisterRequest{SubscribedTopics: []string{"x"}})
	if err != nil || res.GetSuccess() || res.GetErrorMessage() != "agent_id cannot be empty" {
		t.Errorf("%v %v", res, err)
	}
}

func TestConformance72Heartbeat(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	got, err := w.bridge.Heartbeat(t.Context(), &loomv1pb.HeartbeatRequest{TimestampMs: 12345})
	want := &loomv1pb.HeartbeatResponse{TimestampMs: 12345, Status: "ok"}
	if diff := cmp.Diff(want, got, protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

func TestConformance72ToolThatReturnsItsArguments(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	MustSDK(w, "a", nil, nil, map[string]func(string) (string, error){
		"test.echo": func(arguments string) (string, error) { return arguments, nil },
	})
	got, err := w.bridge.ForwardToolCall(t.Context(), &loomv1pb.ToolCall{Id: "c1", Name: "test.echo", Arguments: `{"text":"hello loom"}`})
	if err != nil || got.GetStatus() != statusOK || !strings.Contains(got.GetOutput(), "hello loom") {
		t.Errorf("%v %v", got, err)
	}
}

// A Rust client has its Ack in the queue before it makes the call.
func TestConformance72AckQueuedBeforeTheCall(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	w.register("a", "own.topic")
	conn, _ := w.dial()
	ctx, cancel := context.WithTimeout(t.Context(), waitTime)
	defer cancel()
	stream, err := loomv1pb.NewBridgeClient(conn).EventStream(ctx, grpc.WaitForReady(true))
	mustBe(t, err)
	mustBe(t, stream.Send(ackOf("a")))
	mustBe(t, stream.Send(publishOf("own.topic", &loomv1pb.Event{Id: "e1"})))
	got, err := stream.Recv()
	mustBe(t, err)
	if d := got.GetDelivery(); d.GetTopic() != "own.topic" || d.GetEvent().GetId() != "e1" {
		t.Errorf("got %v", got)
	}
}

// What is asked of the agent is what the caller wrote, but for the id.
func TestConformance72PushedToolCall(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	res, err := w.bridge.RegisterAgent(t.Context(), &loomv1pb.AgentRegisterRequest{
		AgentId: "a", Tools: []*loomv1pb.ToolDescriptor{{Name: "work:do"}},
	})
	if err != nil || !res.GetSuccess() {
		t.Fatal(res, err)
	}
	a := w.open("a")
	sent := &loomv1pb.ToolCall{
		Id: "c1", Name: "work:do", Arguments: `{"n": 1}`, Headers: map[string]string{"x-agent-id": "b", "own": "x"},
		TimeoutMs: 5000, CorrelationId: "q1", Qos: loomv1pb.QoSLevel_QOS_BACKGROUND,
	}
	answer := make(chan *loomv1pb.ToolResult, 1)
	go func() {
		got, err := w.bridge.ForwardToolCall(t.Context(), sent)
		if err != nil {
			t.Error(err)
		}
		answer <- got
	}()
	pushed := a.next().GetToolCall()
	if diff := cmp.Diff(sent, pushed, protocmp.Transform(), protocmp.IgnoreFields(&loomv1pb.ToolCall{}, "id")); diff != "" {
		t.Error(diff)
	}
	a.send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_ToolResult{ToolResult: &loomv1pb.ToolResult{Id: "unknown", Output: "1"}}})
	a.send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_ToolResult{ToolResult: &loomv1pb.ToolResult{Id: pushed.GetId(), Output: "2"}}})
	want := &loomv1pb.ToolResult{Id: "c1", Status: statusOK, Output: "2"}
	if diff := cmp.Diff(want, await(t, answer), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}
