package main

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	a2av1 "github.com/loom-bridge/loom-bridge/proto/gen/lf/a2a/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// MustServeTasks attaches an agent that serves tasks, also those since a time; zero for new ones
// alone. It returns the stream.
func MustServeTasks(tb testing.TB, ctx context.Context, c loombridgev1.BridgeServiceClient, id string, since *timestamppb.Timestamp) loombridgev1.BridgeService_AttachClient {
	tb.Helper()
	stream, err := c.Attach(ctx)
	must(tb, err)
	must(tb, stream.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_Hello{Hello: &loombridgev1.AttachHello{
		AgentId: id, Topics: []*loombridgev1.TopicPosition{{Topic: "agent." + id + ".a2a.*", EventTypes: []string{"a2a.message"}, Since: since}},
	}}}))
	first, err := stream.Recv()
	must(tb, err)
	if first.GetReady() == nil {
		tb.Fatalf("first message = %v", first)
	}
	return stream
}

// MustAnswer answers the next message that an agent gets, with its own text.
func MustAnswer(tb testing.TB, stream loombridgev1.BridgeService_AttachClient) string {
	tb.Helper()
	for {
		m, err := stream.Recv()
		must(tb, err)
		e := m.GetEvent()
		if e == nil {
			continue
		}
		said := e.GetPayload().GetStructValue().GetFields()["parts"].GetListValue().GetValues()[0].GetStructValue().GetFields()["text"].GetStringValue()
		must(tb, stream.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_Publish{Publish: &loombridgev1.EmitRequest{
			Topic: e.GetTopic(), PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: fmt.Sprintf("%q", said)},
		}}}))
		return said
	}
}

// giveTask gives a task to the only agent that serves some.
func giveTask(tb testing.TB, c a2av1.A2AServiceClient, text string, wait bool) *a2av1.Task {
	tb.Helper()
	answer, err := c.SendMessage(tb.Context(), &a2av1.SendMessageRequest{
		Message:       &a2av1.Message{MessageId: text, Role: a2av1.Role_ROLE_USER, Parts: []*a2av1.Part{{Content: &a2av1.Part_Text{Text: text}}}},
		Configuration: &a2av1.SendMessageConfiguration{ReturnImmediately: !wait},
	})
	must(tb, err)
	return answer.GetTask()
}

// A task that was acknowledged is not lost with the server: the agent that comes back gets those
// that wait for it, and none that it has answered.
//
// N17
func TestTasksOfAKilledServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := MustStartChild(t, dir)
	conn := MustDial(t, c.Address)
	agent := MustServeTasks(t, t.Context(), loombridgev1.NewBridgeServiceClient(conn), "helper", nil)
	tasks := a2av1.NewA2AServiceClient(conn)
	answered := make(chan *a2av1.Task, 1)
	go func() { answered <- giveTask(t, tasks, "answered", true) }()
	MustAnswer(t, agent)
	done := <-answered
	open := map[string]string{}
	for n := range 8 {
		text := fmt.Sprint("open ", n)
		open[text] = giveTask(t, tasks, text, false).GetId()
	}
	must(t, c.Process.Kill())
	_ = c.Wait()

	c = MustStartChild(t, dir)
	conn = MustDial(t, c.Address)
	tasks = a2av1.NewA2AServiceClient(conn)
	get := func(id string) *a2av1.Task {
		got, err := tasks.GetTask(t.Context(), &a2av1.GetTaskRequest{Tenant: "helper", Id: id})
		must(t, err)
		return got
	}
	if got := get(done.GetId()); got.GetStatus().GetState() != a2av1.TaskState_TASK_STATE_COMPLETED {
		t.Errorf("the answered task: %v", got)
	}
	agent = MustServeTasks(t, t.Context(), loombridgev1.NewBridgeServiceClient(conn), "helper", &timestamppb.Timestamp{Seconds: 1})
	last := giveTask(t, tasks, "last", false)
	for range len(open) + 1 {
		said := MustAnswer(t, agent)
		id, ok := open[said]
		if said == "last" {
			id, ok = last.GetId(), true
		}
		if delete(open, said); !ok {
			t.Fatalf("the agent got %q, again or for nothing", said)
		}
		stream, err := tasks.SubscribeToTask(t.Context(), &a2av1.SubscribeToTaskRequest{Id: id})
		for err == nil { // until the task has ended, which it may have already
			_, err = stream.Recv()
		}
		if got := get(id); got.GetStatus().GetState() != a2av1.TaskState_TASK_STATE_COMPLETED || got.GetStatus().GetMessage().GetParts()[0].GetText() != said {
			t.Errorf("%s: %v", said, got)
		}
	}
}

// Cards are found over HTTP, with the address of gRPC, by who has a credential.
func TestAgentCards(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir, "--http-addr", "127.0.0.1:0")
	base := p.httpURL(t)
	MustServeTasks(t, t.Context(), p.bridge(), "helper", nil)
	for _, path := range []string{"/.well-known/agent-card.json", "/a2a/helper/.well-known/agent-card.json"} {
		body := exchange{"GET", path, "", nil, 200, `"name":"helper"`}.check(t, base)
		card := &a2av1.AgentCard{}
		must(t, protojson.Unmarshal([]byte(body), card))
		if at := card.GetSupportedInterfaces()[0]; at.GetUrl() != p.conn.Target() || at.GetTenant() != "helper" {
			t.Errorf("%s: %s", path, body)
		}
	}
	exchange{"GET", "/a2a/nobody/.well-known/agent-card.json", "", nil, 404, ""}.check(t, base)
	own := t.TempDir()
	closed := MustRun(t, own, "--http-addr", "127.0.0.1:0", "--credentials", MustCallers(t, own, "acme")).httpURL(t)
	exchange{"GET", "/.well-known/agent-card.json", "", nil, 401, ""}.check(t, closed)
	exchange{"GET", "/a2a/nobody/.well-known/agent-card.json", "", []string{"Authorization: Bearer " + "acme"}, 404, ""}.check(t, closed)
}
