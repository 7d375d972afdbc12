package loomv1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
)

func TestConformance71Heartbeat(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	for range 3 {
		res, err := w.bridge.Heartbeat(t.Context(), &loomv1pb.HeartbeatRequest{})
		if err != nil || res.GetStatus() != "ok" || res.GetTimestampMs() < 0 {
			t.Fatalf("%v %v", res, err)
		}
	}
}

func TestConformance71Registration(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	res, err := w.bridge.RegisterAgent(t.Context(), &loomv1pb.AgentRegisterRequest{
		AgentId: "a", SubscribedTopics: []string{"work.new"}, Metadata: map[string]string{"team": "blue"},
		Tools: []*loomv1pb.ToolDescriptor{{Name: "work:do", ParametersSchema: "{}"}},
	})
	if diff := cmp.Diff(&loomv1pb.AgentRegisterResponse{Success: true}, res, protocmp.Transform()); err != nil || diff != "" {
		t.Fatalf("%v %s", err, diff)
	}
	a, _ := w.Agents.Get("default", "a")
	if a.Metadata["team"] != "blue" || !cmp.Equal(a.Capabilities, []string{"work:do"}) {
		t.Errorf("directory has %+v", a)
	}
}

func TestConformance71EchoOfOwnPublish(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	w.register("a", "work.new")
	a := w.open("a")
	a.publish("work.new", &loomv1pb.Event{Id: "e1", Type: "task", Payload: []byte("hello")})
	got := a.delivery()
	if e := got.GetEvent(); got.GetTopic() != "work.new" || e.GetType() != "task" || string(e.GetPayload()) != "hello" {
		t.Errorf("got %v", got)
	}
	a.silent()
}

func TestConformance71TwoAgentsHearEachOther(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	streams := map[string]*rawStream{}
	for _, id := range []string{"a", "b"} {
		w.register(id, "talk")
		streams[id] = w.open(id)
	}
	for _, id := range []string{"a", "b"} {
		streams[id].publish("talk", &loomv1pb.Event{Id: "from " + id})
		for hearer, s := range streams {
			if got := s.delivery().GetEvent().GetId(); got != "from "+id {
				t.Errorf("%s heard %q", hearer, got)
			}
		}
	}
}

func TestConformance71ForwardedAgentTool(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	MustSDK(w, "a", nil, nil, map[string]func(string) (string, error){
		"math:add": func(string) (string, error) { return `{"sum":3}`, nil },
	})
	got, err := w.bridge.ForwardToolCall(t.Context(), &loomv1pb.ToolCall{Id: "c1", Name: "math:add", Arguments: `{"a":1,"b":2}`})
	want := &loomv1pb.ToolResult{Id: "c1", Status: statusOK, Output: `{"sum":3}`}
	if diff := cmp.Diff(want, got, protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}
