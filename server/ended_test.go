package server_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// naming is an empty request that names an agent, in itself or in its first message of a
// stream; false for one that names none.
func naming(d protoreflect.MessageDescriptor, agent string) (*dynamicpb.Message, bool) {
	m := dynamicpb.NewMessage(d)
	if id := d.Fields().ByName("agent_id"); id != nil {
		m.Set(id, protoreflect.ValueOfString(agent))
		return m, true
	}
	for _, name := range []protoreflect.Name{"hello", "step"} {
		if first := d.Fields().ByName(name); first != nil {
			inner := m.Mutable(first).Message()
			inner.Set(first.Message().Fields().ByName("agent_id"), protoreflect.ValueOfString(agent))
			return m, true
		}
	}
	return nil, false
}

// changesNothing reports whether a method is for reading alone.
func changesNothing(d protoreflect.MethodDescriptor) bool {
	o, _ := d.Options().(*descriptorpb.MethodOptions)
	return o.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
}

// A child that has its result, or that is out of time, does nothing any more: every method
// that names it and changes something says so. What it did can be read, and put in order.
//
// P18, P19
func TestEndedAgentsDoNothing(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, child := range []string{"done", "failed", "late"} {
		MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: child})
	}
	mustReturn(t, s, "done", "found")
	mustFailChild(t, s, "p", "failed", "stopped")
	s.Clock.Advance(2 * time.Minute) // beyond the minute that a child has
	MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: "alive"})
	tidy := []protoreflect.Name{"CompleteTask", "EndSession", "DeleteRecords", "DeleteMessages", "CollectGarbage", "RevokeApproval"}
	refused := 0
	everyMethod(func(method string, d protoreflect.MethodDescriptor) {
		if d.Name() == "WatchApprovals" || d.Name() == "Subscribe" || d.Name() == "WatchRecords" { // they wait, and change nothing
			return
		}
		for _, agent := range []string{"done", "failed", "late", "alive", "p"} {
			m, ok := naming(d.Input(), agent)
			if !ok {
				return
			}
			err := call(t.Context(), s.Conn(), method, d, m)
			acts := !changesNothing(d) && !slices.Contains(tidy, d.Name()) && agent != "alive" && agent != "p"
			switch ended := infoOf(err).GetReason() == "AGENT_ENDED"; {
			case acts:
				MustFail(t, err, codes.FailedPrecondition, "AGENT_ENDED")
				refused++
			case ended:
				t.Errorf("%s of %s: %v", method, agent, err)
			}
		}
	})
	if refused < 3*20 {
		t.Errorf("%d calls were refused", refused)
	}
	got, err := s.Context.ListSessions(t.Context(), &loombridgev1.ListSessionsRequest{AgentId: "done"})
	must(t, err)
	if len(got.GetSessions()) != 1 {
		t.Errorf("sessions of an ended child: %v", got)
	}
}

// A child that ends while it is attached publishes nothing any more, and its heartbeats
// bring nothing.
//
// P18, P35
func TestEndedOnAStream(t *testing.T) {
	s := servertest.Start(t, nil)
	MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: "k"})
	a := MustAttach(t, t.Context(), s.Bridge, helloOf("k"))
	a.publish(1, &loombridgev1.EmitRequest{Topic: "news"})
	if got := a.answer(1).GetError(); got != nil {
		t.Fatalf("alive: %v", got)
	}
	mustReturn(t, s, "k", "found")
	const ended = loombridgev1.ErrorReason_ERROR_REASON_AGENT_ENDED
	a.publish(2, &loombridgev1.EmitRequest{Topic: "news"})
	if got := a.answer(2).GetError(); got.GetReason() != ended {
		t.Errorf("a publish: %v", got)
	}
	a.send(heartbeatMessage(3))
	if got := a.answer(3).GetError(); got.GetReason() != ended {
		t.Errorf("a heartbeat: %v", got)
	}
}

// The same holds for loom.v1, in the ways it says no.
//
// P18
func TestEndedAgentsOfLoom(t *testing.T) {
	s := servertest.Start(t, nil)
	MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: "k"})
	event := func() *loomv1pb.Event { return &loomv1pb.Event{Id: "e", Type: "t", Source: "k", Payload: []byte("{}")} }
	calls := map[string]func(agent string) string{
		"SavePlan": func(agent string) string {
			_, err := s.LoomMemory.SavePlan(t.Context(), &loomv1pb.SavePlanRequest{SessionId: agent, Plan: &loomv1pb.PlanRecord{PlanHash: "h"}})
			return saidBy(err)
		},
		"MarkExecuted": func(agent string) string {
			_, err := s.LoomMemory.MarkExecuted(t.Context(), &loomv1pb.MarkExecutedRequest{SessionId: agent, Execution: &loomv1pb.ExecutionRecord{}})
			return saidBy(err)
		},
		"AppendEvent": func(agent string) string {
			_, err := s.LoomMemory.AppendEvent(t.Context(), &loomv1pb.MemoryWriteRequest{SessionId: agent, Event: event()})
			return saidBy(err)
		},
		"UpdateAgentState": func(agent string) string {
			_, err := s.LoomRuntime.UpdateAgentState(t.Context(), &loomv1pb.AgentState{AgentId: agent})
			return saidBy(err)
		},
		"CreateAgent": func(agent string) string {
			got, err := s.LoomRuntime.CreateAgent(t.Context(), &loomv1pb.AgentConfig{AgentId: agent})
			return saidBy(err) + got.GetErrorMessage()
		},
		"RegisterAgent": func(agent string) string {
			got, err := s.LoomBridge.RegisterAgent(t.Context(), &loomv1pb.AgentRegisterRequest{AgentId: agent})
			return saidBy(err) + got.GetErrorMessage()
		},
		"Publish": func(agent string) string {
			e := event()
			e.Source = agent
			got, err := s.LoomEvents.Publish(t.Context(), &loomv1pb.PublishRequest{Topic: "news", Event: e})
			return saidBy(err) + got.GetErrorMessage()
		},
		"Call": func(agent string) string {
			got, err := s.LoomTools.Call(t.Context(), &loomv1pb.ToolCall{Id: "1", Name: "fs:list_dir", Arguments: "{}", Headers: map[string]string{"x-agent-id": agent}})
			return saidBy(err) + got.GetError().GetMessage()
		},
	}
	for name, call := range calls {
		if said := call("k"); strings.Contains(said, "ended") {
			t.Errorf("%s while it lives: %s", name, said)
		}
	}
	mustReturn(t, s, "k", "found")
	for name, call := range calls {
		if said := call("k"); !strings.Contains(said, "the child has ended") {
			t.Errorf("%s: %q", name, said)
		}
	}
	stream, err := s.LoomBridge.EventStream(t.Context())
	must(t, err)
	must(t, stream.Send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Ack{Ack: &loomv1pb.Ack{MessageId: "k"}}}))
	_, err = stream.Recv()
	if got := codeOf(err); got != codes.FailedPrecondition {
		t.Errorf("EventStream: %v", err)
	}
}

func saidBy(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A message that the native API refuses is refused on loom.v1 as well, with the same
// words, and kept by neither; a good one is the same message on both.
//
// C09, C10, C12, C13, C16
func TestMessagesOnBothFaces(t *testing.T) {
	s := servertest.Start(t, nil)
	publish := func(payload string) string {
		got, err := s.LoomEvents.Publish(t.Context(), &loomv1pb.PublishRequest{Topic: "node.message", Event: &loomv1pb.Event{Id: "e", Type: "t", Source: "a", Payload: []byte(payload)}})
		must(t, err)
		return got.GetErrorMessage()
	}
	emit := func(payload string) error {
		_, err := s.Bridge.Emit(t.Context(), &loombridgev1.EmitRequest{AgentId: "a", Topic: "node.message", PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: payload}})
		return err
	}
	for payload, field := range map[string]string{
		`{"target_agent":"b","parameters":{"content":""}}`:                                  "payload.content",
		`{"task_id":"x","parameters":{"content":"x"}}`:                                      "payload.target_agent",
		`{"target_agent":"b","source_agent":"c","parameters":{"content":"x"}}`:              "payload.source_agent",
		`{"target_agent":"b","parameters":{"content":"x","steps":[1]}}`:                     "payload.parameters",
		`{"target_agent":"b","parameters":{"content":"x","priority":2}}`:                    "payload.priority",
		`{"target_agent":"b","parameters":{"content":"x","ttl_seconds":0}}`:                 "payload.parameters.ttl_seconds",
		`{"target_agent":"b","parameters":{"content":"` + strings.Repeat("x", 9000) + `"}}`: "payload.content",
	} {
		MustFail(t, emit(payload), codes.InvalidArgument, "INVALID_REQUEST")
		if said := publish(payload); !strings.Contains(said, strings.TrimPrefix(field, "payload.")) {
			t.Errorf("%.80s: loom.v1 says %q", payload, said)
		}
	}
	good := `{"task_id":"m1","target_agent":"b","parameters":{"content":"hello","priority":0.9}}`
	if said := publish(good); said != "" {
		t.Errorf("a good message: %q", said)
	}
	must(t, emit(good)) // the same
	other := strings.Replace(good, "hello", "bye", 1)
	MustFail(t, emit(other), codes.AlreadyExists, "RECORD_EXISTS")
	if said := publish(other); said == "" {
		t.Error("another message under the same id passes")
	}
	kept := mustMessages(t, s, &loombridgev1.ListMessagesRequest{AgentId: "b"})
	if len(kept) != 1 || kept[0].GetContent() != "hello" || kept[0].GetSourceAgentId() != "a" {
		t.Errorf("kept: %v", kept)
	}
	// What is no message at all passes as it always did.
	if said := publish(`{"hello":1}`); said != "" {
		t.Errorf("no message: %q", said)
	}
}
