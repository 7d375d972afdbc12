package loomv1_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	"github.com/loom-bridge/loom-bridge/server/loomv1"
)

// An agent that has closed its side gets no calls any more, even if it takes
// nothing, and those it has not answered fail at once.
func TestConformance24HalfClosedGetsNoCalls(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	res, err := w.bridge.RegisterAgent(t.Context(), &loomv1pb.AgentRegisterRequest{
		AgentId: "a", SubscribedTopics: []string{"work.new"}, Tools: []*loomv1pb.ToolDescriptor{{Name: "work:do"}},
	})
	if err != nil || !res.GetSuccess() {
		t.Fatal(res, err)
	}
	a := w.openUnread("a")
	w.flood("work.new", 1000) // more than fits: the sender waits for the agent
	results := make(chan *loomv1pb.ToolResult, 2)
	call := func() {
		result, err := w.bridge.ForwardToolCall(t.Context(), &loomv1pb.ToolCall{Id: "c", Name: "work:do", TimeoutMs: 30_000})
		if err != nil {
			t.Error(err)
		}
		results <- result
	}
	go call()
	time.Sleep(quiet) // it is on its way
	mustBe(t, a.CloseSend())
	want := "Execution failed: agent a is not connected"
	if got := await(t, results); got.GetError().GetMessage() != want {
		t.Errorf("pending: %v", got)
	}
	began := time.Now()
	call()
	if got := await(t, results); got.GetError().GetMessage() != want || time.Since(began) > 25*time.Second {
		t.Errorf("after %v: %v", time.Since(began), got)
	}
}

// What the caller wrote and what the agent answered pass unchanged, at their limits
// as well.
func TestConformance26PassesUnchanged(t *testing.T) {
	for _, millis := range []int64{1<<63 - 1, 1 << 60, 60_000, 0, -1, -1 << 63} {
		w := MustLoom(t, loomOptions{})
		res, err := w.bridge.RegisterAgent(t.Context(), &loomv1pb.AgentRegisterRequest{
			AgentId: "a", Tools: []*loomv1pb.ToolDescriptor{{Name: "work:do"}},
		})
		if err != nil || !res.GetSuccess() {
			t.Fatal(res, err)
		}
		a := w.open("a")
		results := make(chan *loomv1pb.ToolResult, 1)
		go func() {
			result, _ := w.bridge.ForwardToolCall(t.Context(), &loomv1pb.ToolCall{Id: "c", Name: "work:do", TimeoutMs: millis})
			results <- result
		}()
		call := a.next().GetToolCall()
		if call.GetTimeoutMs() != millis {
			t.Errorf("the agent got %d, want %d", call.GetTimeoutMs(), millis)
		}
		answer := &loomv1pb.ToolResult{Id: call.GetId(), Status: loomv1pb.ToolStatus_TOOL_ERROR, Error: &loomv1pb.ToolError{}}
		a.send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_ToolResult{ToolResult: answer}})
		want := &loomv1pb.ToolResult{Id: "c", Status: loomv1pb.ToolStatus_TOOL_ERROR, Error: &loomv1pb.ToolError{}}
		if diff := cmp.Diff(want, await(t, results), protocmp.Transform()); diff != "" {
			t.Errorf("timeout %d: %s", millis, diff)
		}
	}
}

// Registering makes an agent active, until its stream ends.
func TestConformance21RegisteredIsActive(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	w.register("a", "work.new")
	status := func() agents.Status {
		a, _ := w.Agents.Get("default", "a")
		return a.Status
	}
	if got := status(); got != agents.Active {
		t.Errorf("registered: %v", got)
	}
	w.open("a").cancel()
	settled(t, "disconnected", func() bool { return status() == agents.Disconnected })
	w.register("a", "work.new")
	if got := status(); got != agents.Active {
		t.Errorf("registered again: %v", got)
	}
}

// What can't be registered as a whole is refused in words, and changes nothing.
func TestConformance21LimitsAreTold(t *testing.T) {
	var tools []*loomv1pb.ToolDescriptor
	for i := range agents.DefaultMaxTools + 1 {
		tools = append(tools, &loomv1pb.ToolDescriptor{Name: fmt.Sprint("t", i)})
	}
	var topics []string
	for i := range events.MaxSelections + 1 {
		topics = append(topics, fmt.Sprint("t", i))
	}
	for name, tt := range map[string]struct {
		topics []string
		tools  []*loomv1pb.ToolDescriptor
		want   string
	}{
		"tools":      {nil, tools, "the limit of 1024 tools of one agent is reached"},
		"topics":     {topics, nil, "subscribed_topics has 4097 topics, over the limit of 4096"},
		"long topic": {[]string{strings.Repeat("x", 4097)}, nil, "subscribed_topics has a topic of 4097 bytes, over the limit of 4096"},
	} {
		w := MustLoom(t, loomOptions{})
		res, err := w.bridge.RegisterAgent(t.Context(), &loomv1pb.AgentRegisterRequest{AgentId: "a", SubscribedTopics: tt.topics, Tools: tt.tools})
		if err != nil || res.GetSuccess() || res.GetErrorMessage() != tt.want {
			t.Errorf("%s: %v %v", name, res, err)
		}
		if _, there := w.Agents.Get("default", "a"); there {
			t.Errorf("%s: it is in the directory", name)
		}
		created, err := w.runtime.CreateAgent(t.Context(), &loomv1pb.AgentConfig{AgentId: "a", SubscribedTopics: tt.topics})
		if tt.topics != nil && (err != nil || created.GetSuccess() || created.GetErrorMessage() != tt.want) {
			t.Errorf("%s: %v %v", name, created, err)
		}
	}
	w := MustLoom(t, loomOptions{})
	res, err := w.bridge.RegisterAgent(t.Context(), &loomv1pb.AgentRegisterRequest{
		AgentId: "a", SubscribedTopics: append(topics[:events.MaxSelections], topics[0]), Tools: tools[1:],
	})
	if err != nil || !res.GetSuccess() {
		t.Errorf("just within: %v %v", res, err)
	}
}

// The sequence rises on every topic, whether the store keeps it or not.
func TestConformance5SequenceRises(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	for _, topic := range []string{"work.new", "agent.a.replies", "", strings.Repeat("x", 300), "a\x00b"} {
		for want := int64(1); want <= 3; want++ {
			res, err := w.bus.Publish(t.Context(), &loomv1pb.PublishRequest{Topic: topic, Event: &loomv1pb.Event{}})
			if err != nil || !res.GetSuccess() || res.GetSequenceNumber() != want {
				t.Fatalf("%.20q: got %v %v, want %d", topic, res, err, want)
			}
		}
	}
	last := int64(0)
	for i := range 10_000 {
		if i%1000 == 0 {
			res, err := w.bus.Publish(t.Context(), &loomv1pb.PublishRequest{Topic: "one.replies", Event: &loomv1pb.Event{}})
			if err != nil || res.GetSequenceNumber() <= last {
				t.Fatalf("got %v %v after %d", res, err, last)
			}
			last = res.GetSequenceNumber()
		}
		if _, err := w.bus.Publish(t.Context(), &loomv1pb.PublishRequest{Topic: fmt.Sprint(i, ".replies"), Event: &loomv1pb.Event{}}); err != nil {
			t.Fatal(err)
		}
	}
}

// An agent of any id but the empty one keeps its state.
func TestConformance5StateOfAnyID(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	for _, id := range []string{"a", "a\x00b", strings.Repeat("x", 257)} {
		want := &loomv1pb.AgentState{AgentId: id, PersistentState: []byte(id), LastUpdateMs: 1}
		res, err := w.runtime.UpdateAgentState(t.Context(), want)
		if err != nil || !res.GetSuccess() {
			t.Fatalf("%.20q: %v", id, err)
		}
		got, err := w.runtime.GetAgentState(t.Context(), &loomv1pb.GetAgentStateRequest{AgentId: id})
		if diff := cmp.Diff(want, got, protocmp.Transform()); err != nil || diff != "" {
			t.Errorf("%.20q: %v %s", id, err, diff)
		}
	}
}

// An event that fits a message but not the bus is refused as one that is too large,
// both ways.
func TestConformance2TooLargeForTheBus(t *testing.T) {
	w := MustLoom(t, loomOptions{Loom: loomv1.Options{MaxSendBytes: 4<<20 - 1}})
	w.register("a", "work.new")
	a := w.open("a")
	event := &loomv1pb.Event{Payload: make([]byte, store.MaxLegacyEventBytes)}
	const want = "bytes exceeds the limit of 4124672"
	a.publish("work.new", event)
	if got := a.next().GetErr(); got.GetCode() != "RESOURCE_EXHAUSTED" || !strings.Contains(got.GetMessage(), want) {
		t.Errorf("got %v", got)
	}
	res, err := w.bus.Publish(t.Context(), &loomv1pb.PublishRequest{Topic: "work.new", Event: event})
	if err != nil || res.GetSuccess() || !strings.Contains(res.GetErrorMessage(), want) {
		t.Errorf("got %v %v", res, err)
	}
	a.silent()
}
