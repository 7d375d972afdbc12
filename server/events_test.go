package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

type subscription = grpc.ServerStreamingClient[loombridgev1.SubscribeResponse]

// MustSubscribe returns a stream that has sent its ready message.
func MustSubscribe(tb testing.TB, ctx context.Context, client loombridgev1.EventServiceClient, r *loombridgev1.SubscribeRequest) (subscription, *loombridgev1.SubscriptionReady) {
	tb.Helper()
	stream, err := client.Subscribe(ctx, r)
	must(tb, err)
	first, err := stream.Recv()
	must(tb, err)
	if first.GetReady() == nil {
		tb.Fatalf("first message = %v", first)
	}
	return stream, first.GetReady()
}

func MustEmit(tb testing.TB, s *servertest.Server, r *loombridgev1.EmitRequest) *loombridgev1.EmitResponse {
	tb.Helper()
	taken, err := s.Bridge.Emit(tb.Context(), r)
	must(tb, err)
	return taken
}

func MustNext(tb testing.TB, stream subscription) *loombridgev1.SubscribeResponse {
	tb.Helper()
	message, err := stream.Recv()
	must(tb, err)
	return message
}

// C07: an event that one agent emits reaches another one whole.
func TestEmitReachesSubscriber(t *testing.T) {
	s := servertest.Start(t, nil)
	stream, ready := MustSubscribe(t, t.Context(), s.Events, &loombridgev1.SubscribeRequest{
		AgentId: "listener", Topics: []*loombridgev1.TopicPosition{{Topic: "agent.findings"}},
	})
	want := []*loombridgev1.TopicPosition{{Topic: "agent.findings", AfterSequence: new(int64(0))}}
	if diff := cmp.Diff(want, ready.GetPositions(), protocmp.Transform()); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
	taken := MustEmit(t, s, &loombridgev1.EmitRequest{
		AgentId: agent, Topic: "agent.findings", SessionId: "s1", Headers: map[string]string{"k": "v"},
		PayloadForm: &loombridgev1.EmitRequest_Payload{Payload: structpb.NewStructValue(MustStruct(t, map[string]any{"found": true}))},
	})
	got := MustNext(t, stream)
	event := &loombridgev1.Event{
		Id: taken.GetEventId(), Topic: "agent.findings", Sequence: 1, Source: agent, SessionId: "s1",
		CreateTime: taken.GetCreateTime(), Headers: map[string]string{"k": "v"},
		PayloadForm: &loombridgev1.Event_Payload{Payload: structpb.NewStructValue(MustStruct(t, map[string]any{"found": true}))},
	}
	if diff := cmp.Diff(event, got.GetEvent(), protocmp.Transform()); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}

func TestSubscribeResumes(t *testing.T) {
	s := servertest.Start(t, nil)
	for i := range 5 {
		MustEmit(t, s, &loombridgev1.EmitRequest{
			AgentId: agent, Topic: "news", PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: fmt.Sprintf(`{"n":%d}`, i)},
		})
	}
	stream, _ := MustSubscribe(t, convert.AskText(t.Context()), s.Events, &loombridgev1.SubscribeRequest{
		AgentId: "listener",
		Topics:  []*loombridgev1.TopicPosition{{Topic: "news", AfterSequence: new(int64(2))}},
	})
	for n := int64(3); n <= 5; n++ {
		event := MustNext(t, stream).GetEvent()
		if event.GetSequence() != n || event.GetPayloadJson() != fmt.Sprintf(`{"n":%d}`, n-1) {
			t.Errorf("event = %v, want sequence %d", event, n)
		}
	}
	late, err := s.Events.Subscribe(t.Context(), &loombridgev1.SubscribeRequest{
		AgentId: "listener", Topics: []*loombridgev1.TopicPosition{{Topic: "news", AfterSequence: new(int64(100))}},
	})
	must(t, err)
	_, err = late.Recv()
	info := MustFail(t, err, codes.OutOfRange, "POSITION_UNKNOWN")
	if info.GetMetadata()["last_sequence"] != "5" {
		t.Errorf("metadata = %v", info.GetMetadata())
	}
}

func TestPayloadForms(t *testing.T) {
	s := servertest.Start(t, nil)
	exact := `{"big":9007199254740993}`
	deep := strings.Repeat("[", 60) + strings.Repeat("]", 60)
	wide, err := json.Marshal(make([]int, 200_000))
	must(t, err)
	emit := func(r *loombridgev1.EmitRequest) {
		r.AgentId, r.Topic = agent, "forms"
		MustEmit(t, s, r)
	}
	emit(&loombridgev1.EmitRequest{PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: exact}})
	emit(&loombridgev1.EmitRequest{PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: []byte{0, 255}}})
	emit(&loombridgev1.EmitRequest{})
	emit(&loombridgev1.EmitRequest{PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: deep}})
	emit(&loombridgev1.EmitRequest{PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: string(wide)}})
	read := func(ctx context.Context) []*loombridgev1.Event {
		stream, _ := MustSubscribe(t, ctx, s.Events, &loombridgev1.SubscribeRequest{
			AgentId: agent, Topics: []*loombridgev1.TopicPosition{{Topic: "forms", AfterSequence: new(int64(0))}},
		})
		var all []*loombridgev1.Event
		for range 5 {
			all = append(all, MustNext(t, stream).GetEvent())
		}
		return all
	}
	text := read(convert.AskText(t.Context()))
	if text[0].GetPayloadJson() != exact || string(text[1].GetPayloadBytes()) != "\x00\xff" || text[2].GetPayloadJson() != "null" {
		t.Errorf("as text: %v", text[:3])
	}
	pleasant := read(t.Context())
	if _, null := pleasant[2].GetPayload().GetKind().(*structpb.Value_NullValue); !null || pleasant[0].GetPayload().GetStructValue() == nil {
		t.Errorf("as struct: %v", pleasant[:3])
	}
	// What protobuf's JSON types would blow up comes as text in both forms.
	if pleasant[3].GetPayloadJson() != deep || pleasant[4].GetPayloadJson() != string(wide) {
		t.Error("deep or wide JSON did not come as text")
	}
}

func TestVolatileEvents(t *testing.T) {
	s := servertest.Start(t, nil)
	stream, _ := MustSubscribe(t, t.Context(), s.Events, &loombridgev1.SubscribeRequest{
		AgentId: "listener", Topics: []*loombridgev1.TopicPosition{{Topic: "ticks"}},
	})
	taken := MustEmit(t, s, &loombridgev1.EmitRequest{AgentId: agent, Topic: "ticks", Delivery: loombridgev1.Delivery_DELIVERY_VOLATILE, EventId: "tick-1"})
	event := MustNext(t, stream).GetEvent()
	if taken.GetSequence() != 0 || taken.GetEventId() != "tick-1" || event.GetId() != "tick-1" || event.GetSequence() != 0 {
		t.Errorf("taken %v, event %v", taken, event)
	}
}

func TestSubscriberMayLeave(t *testing.T) {
	s := servertest.Start(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	stream, _ := MustSubscribe(t, ctx, s.Events, &loombridgev1.SubscribeRequest{
		AgentId: "listener", Topics: []*loombridgev1.TopicPosition{{Topic: "news"}},
	})
	cancel()
	if _, err := stream.Recv(); err == nil {
		t.Error("the stream went on")
	}
}

// A pattern with filters lets through what matches, each event once.
func TestSubscribePatterns(t *testing.T) {
	s := servertest.Start(t, nil)
	stream, ready := MustSubscribe(t, t.Context(), s.Events, &loombridgev1.SubscribeRequest{AgentId: "listener", Topics: []*loombridgev1.TopicPosition{
		{Topic: "a.*"}, {Topic: "a.b"}, {Topic: "c.**", EventTypes: []string{"yes"}, Headers: map[string]string{"k": "v"}},
	}})
	want := []*loombridgev1.TopicPosition{{Topic: "a.b", AfterSequence: new(int64(0))}}
	if diff := cmp.Diff(want, ready.GetPositions(), protocmp.Transform()); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
	for _, r := range []*loombridgev1.EmitRequest{
		{EventId: "1", Topic: "a.b"},
		{EventId: "2", Topic: "a.b.c"},
		{EventId: "3", Topic: "c.d.e", Type: "yes"},
		{EventId: "4", Topic: "c.d.e", Type: "yes", Tags: []string{"t"}, Headers: map[string]string{"k": "v"}},
		{EventId: "5", Topic: "a.z", Delivery: loombridgev1.Delivery_DELIVERY_VOLATILE},
	} {
		r.AgentId = agent
		MustEmit(t, s, r)
	}
	var got []string
	for range 3 {
		event := MustNext(t, stream).GetEvent()
		got = append(got, event.GetId())
		if event.GetId() == "4" && (event.GetType() != "yes" || len(event.GetTags()) != 1) {
			t.Errorf("event %v", event)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"1", "4", "5"}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
