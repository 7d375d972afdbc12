package server_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

func emitOn(tb testing.TB, s *servertest.Server, topic string) *loombridgev1.EmitResponse {
	tb.Helper()
	return MustEmit(tb, s, &loombridgev1.EmitRequest{
		AgentId: "a", Topic: topic, PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: "1"},
	})
}

// wantSince resumes a pattern and wants the first event of each topic.
func wantSince(tb testing.TB, s *servertest.Server, since *timestamppb.Timestamp, topics ...string) {
	tb.Helper()
	stream, _ := MustSubscribe(tb, tb.Context(), s.Events, &loombridgev1.SubscribeRequest{
		AgentId: "b", Topics: []*loombridgev1.TopicPosition{{Topic: "news.**", Since: since}},
	})
	for _, want := range topics {
		if got := MustNext(tb, stream).GetEvent(); got.GetTopic() != want {
			tb.Fatalf("since %v comes %q, want %q", since.AsTime(), got.GetTopic(), want)
		}
	}
}

// The times of events rise although the clock is set back, also over a restart, so
// that who resumes a pattern from the time of the last event, or from the time that
// the subscription told, misses nothing.
func TestEventsAfterTheClockWasSetBack(t *testing.T) {
	engine := memkv.New(nil)
	defer engine.Close()
	var last *loombridgev1.Event
	t.Run("first server", func(t *testing.T) {
		s := servertest.Start(t, &servertest.Options{Engine: engine})
		emitOn(t, s, "news.a")
		s.Clock.Advance(time.Minute) // in which nothing happens
		live, ready := MustSubscribe(t, t.Context(), s.Events, &loombridgev1.SubscribeRequest{
			AgentId: "b", Topics: []*loombridgev1.TopicPosition{{Topic: "news.**"}},
		})
		s.Clock.Advance(-time.Hour)
		emitOn(t, s, "news.b")
		last = MustNext(t, live).GetEvent()
		wantSince(t, s, ready.GetServerTime(), "news.b")
		emitOn(t, s, "news.c")
		wantSince(t, s, last.GetCreateTime(), "news.c")
	})
	t.Run("second server", func(t *testing.T) {
		s := servertest.Start(t, &servertest.Options{Engine: engine})
		s.Clock.Advance(-24 * time.Hour)
		emitOn(t, s, "news.d")
		wantSince(t, s, last.GetCreateTime(), "news.c", "news.d")
	})
}

// A clock that stands before 1970 is no reason to refuse anything.
func TestClockBefore1970(t *testing.T) {
	s := servertest.Start(t, nil)
	s.Clock.Advance(-time.Since(time.Time{}))
	if at := s.Clock.Now(); at.Year() > 1969 {
		t.Fatalf("the clock stands at %v", at)
	}
	saved, err := s.Bridge.MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", Text: "tides follow the moon"})
	must(t, err)
	found, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: "moon"})
	must(t, err)
	if hits := found.GetHits(); len(hits) != 1 || hits[0].GetRecord().GetId() != saved.GetId() {
		t.Errorf("hits %v", hits)
	}
	emitOn(t, s, "news.a")
	wantSince(t, s, timestamppb.New(s.Clock.Now().Add(-time.Second)), "news.a")
	_, err = s.Context.RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
		AgentId: "a", SessionId: "s", ToolName: "shell", Success: true,
		OutputForm: &loombridgev1.RecordStepRequest_OutputJson{OutputJson: `"done"`},
	})
	must(t, err)
	_, err = s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "a", SessionId: "s", Goal: "go on", MaxTokens: 4000})
	must(t, err)
}
