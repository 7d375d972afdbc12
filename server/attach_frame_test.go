package server

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// MustRead sends a frame through the codec and reads it with generated code.
func MustRead(tb testing.TB, f *frame, into proto.Message) {
	tb.Helper()
	raw, err := newCodec(DefaultLimits()).Marshal(f)
	if err != nil {
		tb.Fatal(err)
	}
	if raw.Len() != f.size() {
		tb.Errorf("%d bytes, the frame says %d", raw.Len(), f.size())
	}
	if err := proto.Unmarshal(raw.Materialize(), into); err != nil {
		tb.Fatal(err)
	}
	if len(into.ProtoReflect().GetUnknown()) > 0 {
		tb.Errorf("unknown fields in %v", into)
	}
}

func frameTime() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 123000, time.UTC) }

// fullEvent has every field set.
func fullEvent() events.Event {
	return events.Event{
		ID: "id", Topic: "a.b", Sequence: 1 << 40, Source: "src", SessionID: "ses", Time: frameTime(), Payload: []byte(`{"a":1}`),
		Headers: map[string]string{"k": "v", "empty": ""}, Type: "typ", Tags: []string{"x", "", "z"},
	}
}

func fullMessage() *loombridgev1.Event {
	return &loombridgev1.Event{
		Id: "id", Topic: "a.b", Sequence: 1 << 40, Source: "src", SessionId: "ses", CreateTime: timestamppb.New(frameTime()),
		Headers: map[string]string{"k": "v", "empty": ""}, Type: "typ", Tags: []string{"x", "", "z"},
		PayloadForm: &loombridgev1.Event_PayloadJson{PayloadJson: `{"a":1}`},
	}
}

func TestEventFrames(t *testing.T) {
	text := true
	large := `"` + strings.Repeat("x", 100_000) + `"`
	for _, test := range []struct {
		name string
		form bool
		edit func(*events.Event, *loombridgev1.Event)
	}{
		{"full", text, func(*events.Event, *loombridgev1.Event) {}},
		{"empty", text, func(e *events.Event, m *loombridgev1.Event) {
			*e = events.Event{}
			proto.Reset(m)
			m.PayloadForm = &loombridgev1.Event_PayloadJson{}
		}},
		{"as struct", false, func(_ *events.Event, m *loombridgev1.Event) {
			value, _ := structpb.NewValue(map[string]any{"a": 1})
			m.PayloadForm = &loombridgev1.Event_Payload{Payload: value}
		}},
		{"deep", false, func(e *events.Event, m *loombridgev1.Event) {
			deep := strings.Repeat("[", 30) + strings.Repeat("]", 30)
			e.Payload, m.PayloadForm = []byte(deep), &loombridgev1.Event_PayloadJson{PayloadJson: deep}
		}},
		{"bytes", false, func(e *events.Event, m *loombridgev1.Event) {
			e.PayloadKind, m.PayloadForm = events.Bytes, &loombridgev1.Event_PayloadBytes{PayloadBytes: []byte(`{"a":1}`)}
		}},
		{"large", text, func(e *events.Event, m *loombridgev1.Event) {
			e.Payload, m.PayloadForm = []byte(large), &loombridgev1.Event_PayloadJson{PayloadJson: large}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, m := fullEvent(), fullMessage()
			test.edit(&e, m)
			for _, dropped := range []int64{0, 7, 1 << 50} {
				w := &framer{asText: test.form}
				var attached loombridgev1.AttachResponse
				MustRead(t, w.event(events.Delivery{Event: e, Dropped: dropped}), &attached)
				if diff := cmp.Diff(m, attached.GetEvent(), protocmp.Transform()); diff != "" || attached.GetDropped() != dropped {
					t.Errorf("attach, dropped %d (-want +got):\n%s", dropped, diff)
				}
				var subscribed loombridgev1.SubscribeResponse
				MustRead(t, w.event(events.Delivery{Event: e, Dropped: dropped}), &subscribed)
				if diff := cmp.Diff(m, subscribed.GetEvent(), protocmp.Transform()); diff != "" || subscribed.GetDroppedVolatile() != dropped {
					t.Errorf("subscribe, dropped %d (-want +got):\n%s", subscribed.GetDroppedVolatile(), diff)
				}
			}
		})
	}
}

func TestAnswerFrames(t *testing.T) {
	for _, one := range []streamAnswer{
		{ref: 1, id: "e", sequence: 7, time: frameTime()}, {ref: -1, id: "e"}, {ref: 1 << 60, sequence: 1 << 60},
	} {
		var got loombridgev1.AttachResponse
		MustRead(t, new(framer).emitted(one), &got)
		want := &loombridgev1.AttachAnswer{Ref: one.ref, Emitted: &loombridgev1.EmitResponse{
			EventId: one.id, Sequence: int64(one.sequence), CreateTime: convert.Timestamp(one.time),
		}}
		if diff := cmp.Diff(want, got.GetAnswer(), protocmp.Transform()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// Frames of one stream do not touch each other, and what a large one needed is
// given back.
func TestFramesAreApart(t *testing.T) {
	w := &framer{asText: true}
	e := fullEvent()
	first := *w.event(events.Delivery{Event: e})
	e.ID, e.Payload, e.Headers = "other", []byte("2"), map[string]string{"k": strings.Repeat("x", 2*keepScratch)}
	w.event(events.Delivery{Event: e})
	var got loombridgev1.AttachResponse
	MustRead(t, &first, &got)
	if diff := cmp.Diff(fullMessage(), got.GetEvent(), protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if cap(w.scratch) > keepScratch {
		t.Errorf("a scratch of %d bytes was kept", cap(w.scratch))
	}
}

func FuzzEventFrame(f *testing.F) {
	f.Add("id", "topic", uint64(1), []byte("null"), "key", "value", "tag", int64(3), int64(1), false)
	f.Fuzz(func(t *testing.T, id, topic string, sequence uint64, payload []byte, key, value, tag string, dropped, nanos int64, binary bool) {
		e := events.Event{
			ID: strings.ToValidUTF8(id, ""), Topic: strings.ToValidUTF8(topic, ""), Sequence: sequence >> 1, Time: time.Unix(nanos>>20, nanos&0xffff).UTC(),
			Payload: payload, PayloadKind: events.Bytes, Headers: map[string]string{strings.ToValidUTF8(key, ""): strings.ToValidUTF8(value, "")},
			Tags: []string{strings.ToValidUTF8(tag, "")},
		}
		form := &loombridgev1.Event{
			Id: e.ID, Topic: e.Topic, Sequence: int64(e.Sequence), CreateTime: convert.Timestamp(e.Time), Headers: e.Headers, Tags: e.Tags,
			PayloadForm: &loombridgev1.Event_PayloadBytes{PayloadBytes: payload},
		}
		if !binary {
			e.PayloadKind, e.Payload = events.JSON, []byte(strings.ToValidUTF8(string(payload), ""))
			form.PayloadForm = &loombridgev1.Event_PayloadJson{PayloadJson: string(e.Payload)}
		}
		w := &framer{asText: true}
		var got loombridgev1.AttachResponse
		MustRead(t, w.event(events.Delivery{Event: e, Dropped: dropped}), &got)
		if diff := cmp.Diff(form, got.GetEvent(), protocmp.Transform()); diff != "" || got.GetDropped() != dropped {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// BenchmarkEventFrame beside BenchmarkEventMessage is what writing frames by
// hand saves.
func BenchmarkEventFrame(b *testing.B) {
	c, w, d := newCodec(DefaultLimits()), &framer{asText: true}, events.Delivery{Event: fullEvent()}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Marshal(w.event(d)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEventMessage(b *testing.B) {
	c, e := encoding.GetCodecV2(protocodec.Name), fullEvent()
	b.ReportAllocs()
	for b.Loop() {
		m := &loombridgev1.AttachResponse{Item: &loombridgev1.AttachResponse_Event{Event: &loombridgev1.Event{
			Id: e.ID, Topic: e.Topic, Sequence: int64(e.Sequence), Source: e.Source, SessionId: e.SessionID, CreateTime: convert.Timestamp(e.Time),
			Headers: e.Headers, Type: e.Type, Tags: e.Tags, PayloadForm: &loombridgev1.Event_PayloadJson{PayloadJson: string(e.Payload)},
		}}}
		if _, err := c.Marshal(m); err != nil {
			b.Fatal(err)
		}
	}
}
