package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/auth"
)

const volatileDelivery = loombridgev1.Delivery_DELIVERY_VOLATILE

// An agent that attaches is in the directory for as long as it is there.
func TestAttachRegisters(t *testing.T) {
	s, directory := MustStartAttached(t, servertest.Options{})
	a := MustAttach(t, t.Context(), s.Bridge, &loombridgev1.AttachHello{
		AgentId: "worker", Topics: topicsOf("jobs", "news.*"), Metadata: map[string]string{"zone": "a"}, Capabilities: []string{"rank"},
		ParentId: "lead", HeartbeatInterval: durationpb.New(time.Second),
		Tools: []*loombridgev1.ToolDescriptor{
			{Name: "plain", Description: "says hello"},
			{Name: "team/x.y:z-1_2", ParametersSchemaJson: `{"type": "object"}`},
			{Name: "other", ParametersSchemaJson: `{"type":"object"}`},
		},
	})
	want := &loombridgev1.SubscriptionReady{
		Positions:         []*loombridgev1.TopicPosition{{Topic: "jobs", AfterSequence: new(int64(0))}},
		HeartbeatInterval: durationpb.New(time.Second), ServerTime: timestamppb.New(s.Clock.Now()),
	}
	if diff := cmp.Diff(want, a.ready, protocmp.Transform()); diff != "" {
		t.Errorf("ready (-want +got):\n%s", diff)
	}
	got, _ := directory.Get(auth.DefaultTenant, "worker")
	registration := agents.Registration{
		Exclusive: true,
		Topics:    []string{"jobs", "news.*"}, Metadata: map[string]string{"zone": "a"}, Parent: "lead",
		Capabilities: []string{"plain", "team/x.y:z-1_2", "other", "rank"},
		Tools: []agents.ProvidedTool{
			{Name: "plain", Description: "says hello", Schema: `{"type":"object"}`, Usable: true},
			{Name: "team/x.y:z-1_2", Schema: `{"type": "object"}`, Usable: true},
			{Name: "other", Schema: `{"type":"object"}`, Usable: true},
		},
	}
	if diff := cmp.Diff(registration, got.Registration); diff != "" || got.Status != agents.Active || got.Streams != 1 {
		t.Errorf("%v, %d streams, registration (-want +got):\n%s", got.Status, got.Streams, diff)
	}
	a.leave()
	MustBecome(t, "the agent has left", func() bool {
		left, _ := directory.Get(auth.DefaultTenant, "worker")
		return left.Status == agents.Disconnected && left.Streams == 0
	})
}

// What one agent publishes reaches others and itself, whole.
// C07, N08
func TestAttachDelivers(t *testing.T) {
	s, _ := MustStartAttached(t, servertest.Options{})
	one := MustAttach(t, asStruct(t.Context()), s.Bridge, &loombridgev1.AttachHello{AgentId: "one", SessionId: "s1", Topics: topicsOf("room")})
	two := MustAttach(t, t.Context(), s.Bridge, helloOf("two", "room"))
	json := &loombridgev1.EmitRequest_PayloadJson{PayloadJson: `{"n":9007199254740993}`}
	one.publish(1, &loombridgev1.EmitRequest{
		Topic: "room", Type: "talk", Tags: []string{"a", "b"}, Headers: map[string]string{"k": "v"}, PayloadForm: json,
	})
	one.publish(2, &loombridgev1.EmitRequest{
		AgentId: "one", SessionId: "s2", Topic: "room", Delivery: volatileDelivery, EventId: "e2",
		PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: []byte{0, 255}},
	})
	first, second := one.answer(1).GetEmitted(), one.answer(2).GetEmitted()
	if first.GetSequence() != 1 || first.GetEventId() == "" || second.GetSequence() != 0 || second.GetEventId() != "e2" {
		t.Fatalf("answers %v, %v", first, second)
	}
	want := []*loombridgev1.Event{
		{
			Id: first.GetEventId(), Topic: "room", Sequence: 1, Source: "one", SessionId: "s1", CreateTime: first.GetCreateTime(),
			Type: "talk", Tags: []string{"a", "b"}, Headers: map[string]string{"k": "v"},
			PayloadForm: &loombridgev1.Event_PayloadJson{PayloadJson: json.PayloadJson},
		},
		{
			Id: "e2", Topic: "room", Source: "one", SessionId: "s2", CreateTime: second.GetCreateTime(),
			PayloadForm: &loombridgev1.Event_PayloadBytes{PayloadBytes: []byte{0, 255}},
		},
	}
	if diff := cmp.Diff(want, []*loombridgev1.Event{two.event(), two.event()}, protocmp.Transform()); diff != "" {
		t.Errorf("as text (-want +got):\n%s", diff)
	}
	if own := one.event(); own.GetPayload().GetStructValue() == nil {
		t.Errorf("as struct: %v", own)
	}
}

func countPublish(n int, topic string, volatile bool) *loombridgev1.EmitRequest {
	r := &loombridgev1.EmitRequest{Topic: topic, PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: fmt.Sprint(n)}}
	if volatile {
		r.Delivery = volatileDelivery
	}
	return r
}

// Events of one stream keep their order, also where volatile ones stand
// between durable ones, and so do the answers.
func TestAttachKeepsTheOrder(t *testing.T) {
	const events = 600
	s, _ := MustStartAttached(t, servertest.Options{})
	reader := MustAttach(t, t.Context(), s.Bridge, helloOf("reader", "mixed"))
	writer := MustAttach(t, t.Context(), s.Bridge, helloOf("writer"))
	for n := range events {
		writer.publish(int64(n+1), countPublish(n, "mixed", n%3 == 1))
		if n%100 == 50 {
			writer.publish(int64(-n), countPublish(n, "agent.status", false))
		}
	}
	var refs, wanted []int64
	for n := range events {
		wanted = append(wanted, int64(n+1))
		if n%100 == 50 {
			wanted = append(wanted, int64(-n))
		}
	}
	var last int64
	for range wanted {
		m := writer.next(func(m *loombridgev1.AttachResponse) bool { return m.GetAnswer() != nil }).GetAnswer()
		refs = append(refs, m.GetRef())
		if (m.GetError() == nil) != (m.GetRef() > 0) {
			t.Fatalf("answer %v", m)
		}
		if sequence := m.GetEmitted().GetSequence(); sequence != 0 && sequence != last+1 {
			t.Fatalf("sequence %d after %d", sequence, last)
		} else if sequence != 0 {
			last = sequence
		}
	}
	if diff := cmp.Diff(wanted, refs); diff != "" {
		t.Errorf("refs (-want +got):\n%s", diff)
	}
	var got, want []string
	for n := range events {
		got, want = append(got, reader.event().GetPayloadJson()), append(want, fmt.Sprint(n))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// Ref 0 asks for an answer only if the publish fails.
func TestAttachSilentPublish(t *testing.T) {
	s, _ := MustStartAttached(t, servertest.Options{})
	a := MustAttach(t, t.Context(), s.Bridge, helloOf("quiet"))
	a.publish(0, countPublish(1, "news", false))
	a.publish(0, countPublish(1, "news", true))
	a.publish(0, countPublish(1, "agent.status", true))
	rest := a.leave()
	if len(rest) != 1 || rest[0].GetAnswer().GetError().GetReason() != loombridgev1.ErrorReason_ERROR_REASON_RESERVED_TOPIC {
		t.Errorf("answers %v", rest)
	}
}

// What is pending when the agent closes its side is answered before the end.
func TestAttachAnswersBeforeTheEnd(t *testing.T) {
	s, _ := MustStartAttached(t, servertest.Options{})
	a := MustAttach(t, t.Context(), s.Bridge, helloOf("hasty"))
	const publishes = 300
	for n := range publishes {
		a.publish(int64(n+1), countPublish(n, "news", false))
	}
	if rest := a.leave(); len(rest) != publishes || rest[publishes-1].GetAnswer().GetEmitted().GetSequence() != publishes {
		t.Errorf("%d answers", len(rest))
	}
}

// A message that is refused ends neither the stream nor what others do on it.
func TestAttachRefusesSingleMessages(t *testing.T) {
	s, _ := MustStartAttached(t, servertest.Options{})
	a := MustAttach(t, t.Context(), s.Bridge, helloOf("clumsy", "mine"))
	long := strings.Repeat("x", 257)
	pattern := &loombridgev1.TopicPosition{Topic: "a.*", AfterSequence: new(int64(0))}
	both := &loombridgev1.TopicPosition{Topic: "b", AfterSequence: new(int64(0)), Since: timestamppb.Now()}
	publish := func(r *loombridgev1.EmitRequest) func(int64) *loombridgev1.AttachAnswer {
		return func(ref int64) *loombridgev1.AttachAnswer { a.publish(ref, r); return a.answer(ref) }
	}
	subscribe := func(topics ...*loombridgev1.TopicPosition) func(int64) *loombridgev1.AttachAnswer {
		return func(ref int64) *loombridgev1.AttachAnswer { return a.subscribe(ref, topics...) }
	}
	for i, test := range []struct {
		name   string
		do     func(ref int64) *loombridgev1.AttachAnswer
		reason string
		fields []string
	}{
		{"no event", publish(nil), "INVALID_REQUEST", []string{"publish.topic"}},
		{"no topic", publish(&loombridgev1.EmitRequest{}), "INVALID_REQUEST", []string{"publish.topic"}},
		{"pattern as topic", publish(&loombridgev1.EmitRequest{Topic: "a.*"}), "INVALID_REQUEST", []string{"publish.topic"}},
		{"other agent", publish(&loombridgev1.EmitRequest{AgentId: "lead", Topic: "a"}), "INVALID_REQUEST", []string{"publish.agent_id"}},
		{"long type and tag", publish(&loombridgev1.EmitRequest{Topic: "a", Type: long, Tags: []string{"", long}}), "INVALID_REQUEST", []string{"publish.tags[1]", "publish.type"}},
		{"no JSON", publish(&loombridgev1.EmitRequest{Topic: "a", PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: "{"}}), "INVALID_REQUEST", []string{"publish.payload"}},
		{"reserved", publish(&loombridgev1.EmitRequest{Topic: "agent.status"}), "RESERVED_TOPIC", nil},
		{"nothing to subscribe to", subscribe(), "INVALID_REQUEST", []string{"subscribe.topics"}},
		{"subscribed already", subscribe(topicsOf("other", "mine")...), "INVALID_REQUEST", []string{"subscribe.topics[1].topic"}},
		{"twice at once", subscribe(topicsOf("other", "other")...), "INVALID_REQUEST", []string{"subscribe.topics[1].topic"}},
		{"pattern with position", subscribe(pattern), "INVALID_REQUEST", []string{"subscribe.topics[0].topic"}},
		{"two beginnings", subscribe(both), "INVALID_REQUEST", []string{"subscribe.topics[0].since"}},
		{"no such position", subscribe(&loombridgev1.TopicPosition{Topic: "b", AfterSequence: new(int64(7))}), "POSITION_UNKNOWN", nil},
		{"nothing to leave", func(ref int64) *loombridgev1.AttachAnswer { return a.unsubscribe(ref) }, "INVALID_REQUEST", []string{"unsubscribe.topics"}},
	} {
		failure := test.do(int64(i + 1)).GetError()
		if got := strings.TrimPrefix(failure.GetReason().String(), "ERROR_REASON_"); got != test.reason || failure.GetMessage() == "" {
			t.Errorf("%s: %v", test.name, failure)
		}
		var fields []string
		for field := range failure.GetFields() {
			fields = append(fields, field)
		}
		slices.Sort(fields)
		if diff := cmp.Diff(test.fields, fields); diff != "" {
			t.Errorf("%s: fields (-want +got):\n%s", test.name, diff)
		}
	}
	if answer := a.subscribe(100, topicsOf("other")...); answer.GetError() != nil {
		t.Errorf("what was refused took effect: %v", answer)
	}
	a.leave()
}

// What breaks the protocol ends the stream.
func TestAttachProtocol(t *testing.T) {
	s, _ := MustStartAttached(t, servertest.Options{})
	for _, test := range []struct {
		name     string
		messages []*loombridgev1.AttachRequest
		field    string
	}{
		{"nothing at all", nil, "hello"},
		{"empty message", []*loombridgev1.AttachRequest{{}}, "hello"},
		{"publish first", []*loombridgev1.AttachRequest{publishMessage(1, countPublish(1, "a", true))}, "hello"},
		{"hello without id", []*loombridgev1.AttachRequest{helloMessage(&loombridgev1.AttachHello{})}, "hello.agent_id"},
		{"second hello", []*loombridgev1.AttachRequest{helloMessage(helloOf("x")), helloMessage(helloOf("x"))}, "hello"},
		{"empty message later", []*loombridgev1.AttachRequest{helloMessage(helloOf("x")), {}}, "item"},
		{"schema is no object", []*loombridgev1.AttachRequest{helloMessage(&loombridgev1.AttachHello{AgentId: "x", Tools: []*loombridgev1.ToolDescriptor{
			{Name: "t", ParametersSchemaJson: "[]"},
		}})}, "hello.tools[0].parameters_schema_json"},
	} {
		a := MustOpen(t, t.Context(), s.Bridge, test.messages...)
		must(t, a.stream.CloseSend())
		err := a.end()
		MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
		if fields := fieldsOf(err); len(fields) != 1 || fields[0] != test.field {
			t.Errorf("%s: fields %v", test.name, fields)
		}
	}
}

// A stream on which nothing comes does not keep its place.
func TestAttachWithoutHello(t *testing.T) {
	s, _ := MustStartAttached(t, servertest.Options{Server: server.Options{Limits: server.Limits{ConnectionTimeout: 50 * time.Millisecond}}})
	stream, err := s.Bridge.Attach(t.Context())
	must(t, err)
	_, err = stream.Recv()
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
}

func TestAttachPositionUnknown(t *testing.T) {
	s, directory := MustStartAttached(t, servertest.Options{})
	a := MustOpen(t, t.Context(), s.Bridge, helloMessage(&loombridgev1.AttachHello{
		AgentId: "x", Topics: []*loombridgev1.TopicPosition{{Topic: "news", AfterSequence: new(int64(3))}},
	}))
	MustFail(t, a.end(), codes.OutOfRange, "POSITION_UNKNOWN")
	if _, known := directory.Get(auth.DefaultTenant, "x"); known {
		t.Error("an agent that was refused is in the directory")
	}
}

func TestAttachSubscribesAsItGoes(t *testing.T) {
	s, _ := MustStartAttached(t, servertest.Options{})
	MustEmit(t, s, &loombridgev1.EmitRequest{AgentId: agent, Topic: "old"})
	a := MustAttach(t, t.Context(), s.Bridge, helloOf("x"))
	answer := a.subscribe(1, &loombridgev1.TopicPosition{Topic: "old", AfterSequence: new(int64(0))}, &loombridgev1.TopicPosition{Topic: "a.*"},
		&loombridgev1.TopicPosition{Topic: "typed", EventTypes: []string{"yes"}, Headers: map[string]string{"k": "v"}})
	want := []*loombridgev1.TopicPosition{{Topic: "old", AfterSequence: new(int64(0))}, {Topic: "typed", AfterSequence: new(int64(0))}}
	if diff := cmp.Diff(want, answer.GetReady().GetPositions(), protocmp.Transform()); diff != "" || answer.GetReady().GetServerTime() == nil {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
	if e := a.event(); e.GetTopic() != "old" || e.GetSequence() != 1 {
		t.Errorf("event %v", e)
	}
	for i, r := range []*loombridgev1.EmitRequest{
		{Topic: "a.b"},
		{Topic: "a.b.c"},
		{Topic: "typed", Type: "no", Headers: map[string]string{"k": "v"}},
		{Topic: "typed", Type: "yes"},
		{Topic: "typed", Type: "yes", Headers: map[string]string{"k": "v", "l": "w"}},
	} {
		a.publish(int64(i+10), r)
	}
	if e := a.event(); e.GetTopic() != "a.b" {
		t.Errorf("event %v", e)
	}
	if e := a.event(); e.GetTopic() != "typed" || e.GetSequence() != 3 {
		t.Errorf("event %v", e)
	}
	if left := a.unsubscribe(2, "a.*", "typed", "never"); left.GetError() != nil {
		t.Errorf("answer %v", left)
	}
	a.publish(20, &loombridgev1.EmitRequest{Topic: "a.b"})
	a.publish(21, &loombridgev1.EmitRequest{Topic: "old"})
	if e := a.event(); e.GetTopic() != "old" {
		t.Errorf("after unsubscribing: %v", e)
	}
	if again := a.subscribe(3, topicsOf("a.*")...); again.GetError() != nil {
		t.Errorf("again: %v", again)
	}
}

func TestAttachTopicsAreBounded(t *testing.T) {
	s, _ := MustStartAttached(t, servertest.Options{})
	var names []string
	for i := range 64 {
		names = append(names, fmt.Sprintf("t%d", i))
	}
	a := MustAttach(t, t.Context(), s.Bridge, helloOf("x", names...))
	if answer := a.subscribe(1, topicsOf("one-more")...); answer.GetError().GetReason() != loombridgev1.ErrorReason_ERROR_REASON_INVALID_REQUEST {
		t.Errorf("answer %v", answer)
	}
	a.unsubscribe(2, "t0")
	if answer := a.subscribe(3, topicsOf("one-more")...); answer.GetError() != nil {
		t.Errorf("answer %v", answer)
	}
}

// Heartbeats keep an agent active, and missed ones show.
func TestAttachHeartbeats(t *testing.T) {
	s, directory := MustStartAttached(t, servertest.Options{})
	hello := helloOf("x")
	hello.HeartbeatInterval = durationpb.New(100 * time.Millisecond)
	a := MustAttach(t, t.Context(), s.Bridge, hello)
	status := func() agents.Status {
		got, _ := directory.Get(auth.DefaultTenant, "x")
		return got.Status
	}
	s.Clock.Advance(time.Second)
	MustBecome(t, "inactive", func() bool { return status() == agents.Inactive })
	a.send(heartbeatMessage(5))
	if answer := a.answer(5); !answer.GetReady().GetServerTime().AsTime().Equal(s.Clock.Now()) {
		t.Errorf("answer %v", answer)
	}
	if status() != agents.Active {
		t.Errorf("status %v", status())
	}
}

// An agent resumes where the last stream ended: nothing is lost, nothing comes
// twice.
func TestAttachResumes(t *testing.T) {
	engine := MustEngine(t)
	first := servertest.Start(t, &servertest.Options{Engine: engine})
	a := MustAttach(t, t.Context(), first.Bridge, helloOf("x", "news"))
	for n := range 3 {
		a.publish(int64(n+1), countPublish(n, "news", false))
	}
	for n := range 3 {
		a.answer(int64(n + 1)) // what is not answered is not there yet
	}
	last := a.event().GetSequence()
	stopped := make(chan error, 1)
	go func() { stopped <- first.Face.Shutdown(context.Background()) }()
	MustFail(t, a.end(), codes.Unavailable, "SHUTTING_DOWN")
	must(t, <-stopped)

	second := servertest.Start(t, &servertest.Options{Engine: engine})
	hello := helloOf("x")
	hello.Topics = []*loombridgev1.TopicPosition{{Topic: "news", AfterSequence: &last}}
	b := MustAttach(t, t.Context(), second.Bridge, hello)
	b.publish(1, countPublish(3, "news", false))
	for n := last; n < 4; n++ {
		if e := b.event(); e.GetSequence() != n+1 || e.GetPayloadJson() != fmt.Sprint(n) {
			t.Errorf("event %v, want %d", e, n+1)
		}
	}
}

func TestAttachSince(t *testing.T) {
	s, _ := MustStartAttached(t, servertest.Options{})
	MustEmit(t, s, &loombridgev1.EmitRequest{AgentId: agent, Topic: "a.old"})
	s.Clock.Advance(time.Minute)
	since := timestamppb.New(s.Clock.Now())
	s.Clock.Advance(time.Minute)
	MustEmit(t, s, &loombridgev1.EmitRequest{AgentId: agent, Topic: "a.old"})
	MustEmit(t, s, &loombridgev1.EmitRequest{AgentId: agent, Topic: "a.new"})
	hello := helloOf("x")
	hello.Topics = []*loombridgev1.TopicPosition{{Topic: "a.*", Since: since}}
	a := MustAttach(t, t.Context(), s.Bridge, hello)
	got := map[string]int64{}
	for range 2 {
		e := a.event()
		got[e.GetTopic()] = e.GetSequence()
	}
	if diff := cmp.Diff(map[string]int64{"a.old": 2, "a.new": 1}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestAttachAuthenticates(t *testing.T) {
	s, directory := MustStartAttached(t, servertest.Options{Server: server.Options{Credentials: MustCredentials(t, callers())}})
	for _, test := range []struct {
		name, header, agent string
		code                codes.Code
		reason              string
	}{
		{"no token", "", "lead", codes.Unauthenticated, "UNAUTHENTICATED"},
		{"agent not owned", "Bearer acme-token", "billing", codes.PermissionDenied, "AGENT_NOT_OWNED"},
	} {
		ctx := t.Context()
		if test.header != "" {
			ctx = withToken(ctx, test.header)
		}
		stream, err := s.Bridge.Attach(ctx)
		must(t, err)
		// The server may have turned the call away already.
		if err := stream.Send(helloMessage(helloOf(test.agent))); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		_, err = stream.Recv()
		MustFail(t, err, test.code, test.reason)
	}
	MustAttach(t, withToken(t.Context(), "Bearer acme-token"), s.Bridge, helloOf("lead"))
	if _, found := directory.Get("acme", "lead"); !found {
		t.Error("the agent is not in its tenant")
	}
	if _, found := directory.Get("umbrella", "lead"); found {
		t.Error("another tenant sees the agent")
	}
}

// An event for one stream alone arrives like any other.
func TestAttachDirectEvents(t *testing.T) {
	s, directory := MustStartAttached(t, servertest.Options{})
	a := MustAttach(t, t.Context(), s.Bridge, helloOf("x"))
	must(t, directory.Send(t.Context(), auth.DefaultTenant, "x", events.Event{ID: "e", Topic: "agent.x.replies", Payload: []byte("1")}))
	if e := a.event(); e.GetId() != "e" || e.GetPayloadJson() != "1" {
		t.Errorf("event %v", e)
	}
}
