package server_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
)

// apart are agents of one tenant with credentials of their own, and an operator that
// may act for all of them.
const apart = `
[[credential]]
token = "a"
tenant = "acme"
agents = ["a", "a.b"]

[[credential]]
token = "victim"
tenant = "acme"
agents = ["victim"]

[[credential]]
token = "operator"
tenant = "acme"
agents = ["*"]
`

// The inbox of an agent takes events from everybody and is read by who may act for
// that agent; patterns of others do not match it.
func TestInboxesHaveOwners(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Credentials: MustCredentials(t, apart)}})
	as := func(token string) context.Context { return withToken(t.Context(), "Bearer "+token) }
	read := func(token, id, topic string) error {
		ctx, cancel := context.WithTimeout(as(token), attachPatience)
		defer cancel()
		stream, err := s.Events.Subscribe(ctx, &loombridgev1.SubscribeRequest{AgentId: id, Topics: topicsOf(topic)})
		must(t, err)
		_, err = stream.Recv()
		return err
	}
	for _, topic := range []string{"agent.victim.replies", "agent.victim.jobs", "agent.a.c.replies"} {
		MustFail(t, read("a", "a", topic), codes.PermissionDenied, "AGENT_NOT_OWNED")
	}
	for _, topic := range []string{"agent.a.replies", "agent.a.jobs.new", "agent.a.b.replies", "agent.status", "agents.victim.x", "agent.victim"} {
		must(t, read("a", "a", topic))
	}
	must(t, read("victim", "victim", "agent.victim.replies"))
	must(t, read("operator", "any", "agent.victim.replies"))
	hello := helloOf("a", "agent.victim.replies")
	MustFail(t, attachError(t, as("a"), s, hello), codes.PermissionDenied, "AGENT_NOT_OWNED")
	a := MustAttach(t, as("a"), s.Bridge, helloOf("a"))
	if answer := a.subscribe(1, topicsOf("agent.victim.replies")...); answer.GetError().GetReason() != loombridgev1.ErrorReason_ERROR_REASON_AGENT_NOT_OWNED {
		t.Errorf("subscribed on the stream: %v", answer)
	}

	began := s.Clock.Now().Add(-time.Hour)
	emit := func(token, id, topic string) error {
		_, err := s.Bridge.Emit(as(token), &loombridgev1.EmitRequest{AgentId: id, Topic: topic})
		return err
	}
	must(t, emit("a", "a", "agent.victim.replies"))
	for _, topic := range []string{"agent.status", "context.folded"} {
		MustFail(t, emit("operator", "any", topic), codes.InvalidArgument, "RESERVED_TOPIC")
	}
	topics := func() []*loombridgev1.TopicPosition {
		return []*loombridgev1.TopicPosition{{Topic: "**", Since: timestamppb.New(began)}}
	}
	spy, _ := MustSubscribe(t, as("a"), s.Events, &loombridgev1.SubscribeRequest{AgentId: "a", Topics: topics()})
	operator, _ := MustSubscribe(t, as("operator"), s.Events, &loombridgev1.SubscribeRequest{AgentId: "any", Topics: topics()})
	must(t, emit("victim", "victim", "agent.victim.jobs"))
	must(t, emit("victim", "victim", "news"))
	next := func(stream loombridgev1.EventService_SubscribeClient) string {
		for {
			m, err := stream.Recv()
			must(t, err)
			if topic := m.GetEvent().GetTopic(); topic != "agent.status" {
				return topic
			}
		}
	}
	if got := next(spy); got != "news" {
		t.Errorf("the pattern of another agent matches %q", got)
	}
	seen := map[string]bool{next(operator): true, next(operator): true, next(operator): true}
	if !seen["agent.victim.replies"] || !seen["agent.victim.jobs"] || !seen["news"] {
		t.Errorf("the operator reads %v", seen)
	}
}

// Nobody forges the status of agents, in loom.v1 neither.
func TestLoomCannotForgeStatus(t *testing.T) {
	s := servertest.Start(t, nil)
	answer, err := s.LoomEvents.Publish(t.Context(), &loomv1pb.PublishRequest{Topic: "agent.status", Event: &loomv1pb.Event{Id: "1"}})
	must(t, err)
	if answer.GetSuccess() {
		t.Error("published")
	}
}

// A request id of one agent is no other agent's.
func TestRequestIDsOfEmitBelongToAgents(t *testing.T) {
	s := servertest.Start(t, nil)
	emit := func(id string) *loombridgev1.EmitResponse {
		t.Helper()
		r, err := s.Bridge.Emit(t.Context(), &loombridgev1.EmitRequest{AgentId: id, Topic: "jobs", RequestId: "1"})
		must(t, err)
		return r
	}
	if a, b, again := emit("a"), emit("b"), emit("a"); a.GetSequence() != 1 || b.GetSequence() != 2 || again.GetSequence() != 1 {
		t.Errorf("sequences %d, %d, %d", a.GetSequence(), b.GetSequence(), again.GetSequence())
	}
}

// An event that needs a listener is refused where there is none. An agent whose
// stream has just broken counts for what is stored.
func TestNeedsListener(t *testing.T) {
	s, _ := MustStartAttached(t, servertest.Options{})
	s.Clock.Advance(time.Minute) // agents of before the start have come back
	emit := func(topic string, delivery loombridgev1.Delivery) error {
		_, err := s.Bridge.Emit(t.Context(), &loombridgev1.EmitRequest{AgentId: "a", Topic: topic, Delivery: delivery, NeedsListener: true})
		return err
	}
	const durable, volatile = loombridgev1.Delivery_DELIVERY_DURABLE, loombridgev1.Delivery_DELIVERY_VOLATILE
	nobody := func(err error) {
		t.Helper()
		MustFail(t, err, codes.FailedPrecondition, "NOBODY_LISTENS")
	}
	nobody(emit("jobs.new", durable))
	nobody(emit("jobs.new", volatile))
	asking := MustAttach(t, t.Context(), s.Bridge, helloOf("asking"))
	asking.publish(1, &loombridgev1.EmitRequest{Topic: "jobs.new", NeedsListener: true})
	if answer := asking.answer(1); answer.GetError().GetReason() != loombridgev1.ErrorReason_ERROR_REASON_NOBODY_LISTENS {
		t.Errorf("published on the stream: %v", answer)
	}
	ctx, cut := context.WithCancel(t.Context())
	worker := MustAttach(t, ctx, s.Bridge, helloOf("worker", "jobs.*"))
	if answer := worker.subscribe(1, topicsOf("later")...); answer.GetError() != nil {
		t.Fatal(answer)
	}
	for _, topic := range []string{"jobs.new", "later"} {
		must(t, emit(topic, durable))
		must(t, emit(topic, volatile))
	}
	cut()
	_, _ = worker.stream.Recv()
	MustBecome(t, "nobody listens now", func() bool { return emit("jobs.new", volatile) != nil })
	for _, topic := range []string{"jobs.new", "later"} {
		must(t, emit(topic, durable))
		nobody(emit(topic, volatile))
	}
	back := MustAttach(t, t.Context(), s.Bridge, helloOf("worker", "jobs.*"))
	back.leave()
	MustBecome(t, "it has left for good", func() bool { return emit("jobs.new", durable) != nil })
	nobody(emit("jobs.new", durable))
}
