package server_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// MustMessage sends a direct message from a to b.
func MustMessage(tb testing.TB, s *servertest.Server, r *loombridgev1.SendMessageRequest) *loombridgev1.SendMessageResponse {
	tb.Helper()
	r.AgentId, r.Message.TargetAgentId = "a", "b"
	sent, err := s.Events.SendMessage(tb.Context(), r)
	must(tb, err)
	return sent
}

func mustMessages(tb testing.TB, s *servertest.Server, r *loombridgev1.ListMessagesRequest) []*loombridgev1.DirectMessage {
	tb.Helper()
	got, err := s.Events.ListMessages(tb.Context(), r)
	must(tb, err)
	return got.GetMessages()
}

// A message comes as it was sent, in order of priority and age, to its
// target and node; sent again it is the same one, and expired or deleted it is gone.
//
// C09, C11, C12, C13, C14, C16, C17, C18, P28
func TestDirectMessages(t *testing.T) {
	s := servertest.Start(t, nil)
	low := 0.1
	sent := MustMessage(t, s, &loombridgev1.SendMessageRequest{
		Message: &loombridgev1.DirectMessage{
			Content: "the deploy is done", Priority: &low, TargetNodeId: "node-7", ParentTaskId: "p", SessionId: "s1", ContextRole: "user",
			Ttl: durationpb.New(time.Minute), Metadata: MustStruct(t, map[string]any{"n": 1.0}), TaskId: "t1",
		},
	})
	MustMessage(t, s, &loombridgev1.SendMessageRequest{Message: &loombridgev1.DirectMessage{Content: "look at the log", TaskId: "t2"}})
	s.Clock.Advance(time.Second)
	again := MustMessage(t, s, &loombridgev1.SendMessageRequest{
		Message: &loombridgev1.DirectMessage{
			Content: "the deploy is done", Priority: &low, TargetNodeId: "node-7", ParentTaskId: "p", SessionId: "s1", ContextRole: "user",
			Ttl: durationpb.New(time.Minute), Metadata: MustStruct(t, map[string]any{"n": 1.0}), TaskId: "t1",
		},
	})
	if again.GetTaskId() != sent.GetTaskId() || sent.GetWarning() != "" {
		t.Errorf("sent again: %v, at first %v", again, sent)
	}
	_, err := s.Events.SendMessage(t.Context(), &loombridgev1.SendMessageRequest{AgentId: "c", Message: &loombridgev1.DirectMessage{TargetAgentId: "b", Content: "other", TaskId: "t1"}})
	MustFail(t, err, codes.AlreadyExists, "RECORD_EXISTS")

	all := mustMessages(t, s, &loombridgev1.ListMessagesRequest{AgentId: "b"})
	if len(all) != 2 || all[0].GetTaskId() != "t2" || all[0].GetPriority() != 0.5 || all[0].GetSourceAgentId() != "a" {
		t.Fatalf("messages: %v", all)
	}
	got := all[1]
	if got.GetContent() != "the deploy is done" || got.GetTargetNodeId() != "node-7" || got.GetParentTaskId() != "p" || got.GetSessionId() != "s1" ||
		got.GetContextRole() != "user" || got.GetTtl().AsDuration() != time.Minute || got.GetMetadata().AsMap()["n"] != 1.0 || got.GetPriority() != low {
		t.Errorf("message: %v", got)
	}
	for _, q := range []*loombridgev1.ListMessagesRequest{{AgentId: "node-7"}, {AgentId: "b", SessionId: "s1"}, {AgentId: "b", ParentTaskId: "p"}} {
		if some := mustMessages(t, s, q); len(some) != 1 || some[0].GetTaskId() != "t1" {
			t.Errorf("%v: %v", q, some)
		}
	}
	s.Clock.Advance(time.Minute)
	if left := mustMessages(t, s, &loombridgev1.ListMessagesRequest{AgentId: "b"}); len(left) != 1 || left[0].GetTaskId() != "t2" {
		t.Errorf("after its time to live: %v", left)
	}
	deleted, err := s.Events.DeleteMessages(t.Context(), &loombridgev1.DeleteMessagesRequest{AgentId: "b", TaskIds: []string{"t2", "none"}})
	if must(t, err); deleted.GetDeleted() != 1 || len(mustMessages(t, s, &loombridgev1.ListMessagesRequest{AgentId: "b"})) != 0 {
		t.Errorf("deleted %v", deleted)
	}
}

// Bad requests are refused by their field; a long message is taken with a warning.
//
// C10, C12, C15, C18, C20
func TestBadDirectMessages(t *testing.T) {
	s := servertest.Start(t, nil)
	above, none := 1.5, math.NaN()
	for field, r := range map[string]*loombridgev1.SendMessageRequest{
		"target_agent_id": {Message: &loombridgev1.DirectMessage{Content: "x"}},
		"content":         {Message: &loombridgev1.DirectMessage{TargetAgentId: "b", Content: " "}},
		"priority":        {Message: &loombridgev1.DirectMessage{TargetAgentId: "b", Content: "x", Priority: &above}},
		"ttl":             {Message: &loombridgev1.DirectMessage{TargetAgentId: "b", Content: "x", Ttl: durationpb.New(-time.Second)}},
		"context_role":    {Message: &loombridgev1.DirectMessage{TargetAgentId: "b", Content: "x", ContextRole: "tool"}},
		"metadata":        {Message: &loombridgev1.DirectMessage{TargetAgentId: "b", Content: "x", Metadata: MustStruct(t, map[string]any{"x": strings.Repeat("y", 4096)})}},
		"task_id":         {Message: &loombridgev1.DirectMessage{TargetAgentId: "b", Content: "x", TaskId: strings.Repeat("y", 129)}},
		"source_agent_id": {Message: &loombridgev1.DirectMessage{TargetAgentId: "b", Content: "x", SourceAgentId: "c"}},
		"create_time":     {Message: &loombridgev1.DirectMessage{TargetAgentId: "b", Content: "x", CreateTime: timestamppb.Now()}},
	} {
		r.AgentId = "a"
		_, err := s.Events.SendMessage(t.Context(), r)
		MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	_, err := s.Events.SendMessage(t.Context(), &loombridgev1.SendMessageRequest{AgentId: "a", Message: &loombridgev1.DirectMessage{TargetAgentId: "b", Content: "x", Priority: &none}})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	for _, limit := range []int32{-1, 1001} {
		_, err := s.Events.ListMessages(t.Context(), &loombridgev1.ListMessagesRequest{AgentId: "b", PageSize: limit})
		MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	}
	_, err = s.Events.DeleteMessages(t.Context(), &loombridgev1.DeleteMessagesRequest{AgentId: "b"})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	if sent := MustMessage(t, s, &loombridgev1.SendMessageRequest{Message: &loombridgev1.DirectMessage{Content: strings.Repeat("ä", 1001)}}); !strings.Contains(sent.GetWarning(), "1000") {
		t.Errorf("warning %q", sent.GetWarning())
	}
	if all := mustMessages(t, s, &loombridgev1.ListMessagesRequest{AgentId: "b"}); len(all) != 1 {
		t.Errorf("kept: %v", all)
	}
}

// An attached target hears of a message once, nobody else does, whichever verb
// sent it; and nobody speaks in the server's place.
//
// C07, C09
func TestDirectMessagesAreTold(t *testing.T) {
	s := servertest.Start(t, nil)
	stream, _ := MustSubscribe(t, convert.AskText(t.Context()), s.Events, &loombridgev1.SubscribeRequest{
		AgentId: "b",
		Topics:  []*loombridgev1.TopicPosition{{Topic: "agent.b.messages"}, {Topic: "node.*"}},
	})
	for range 2 {
		MustMessage(t, s, &loombridgev1.SendMessageRequest{Message: &loombridgev1.DirectMessage{Content: "first", TaskId: "t1", SessionId: "s"}})
		MustEmit(t, s, &loombridgev1.EmitRequest{AgentId: "a", Topic: "node.message", PayloadForm: &loombridgev1.EmitRequest_PayloadJson{
			PayloadJson: `{"task_id":"t2","target_agent":"b","parameters":{"content":"second","priority":0.9,"ttl_seconds":60,"metadata":{"k":"v"}}}`,
		}})
	}
	MustMessage(t, s, &loombridgev1.SendMessageRequest{Message: &loombridgev1.DirectMessage{Content: "third", TaskId: "t3"}})
	for i, want := range []string{"first", "second", "third"} {
		event := MustNext(t, stream).GetEvent()
		var told struct {
			TaskID      string `json:"task_id"`
			Action      string
			SourceAgent string `json:"source_agent"`
			TargetAgent string `json:"target_agent"`
			Parameters  struct{ Content string }
		}
		must(t, json.Unmarshal([]byte(event.GetPayloadJson()), &told))
		if told.Parameters.Content != want || told.TaskID != fmt.Sprint("t", i+1) || told.Action != "node.message" || told.SourceAgent != "a" ||
			told.TargetAgent != "b" || event.GetSource() != "a" || event.GetTopic() != "agent.b.messages" || event.GetType() != "node.message" {
			t.Errorf("event %d: %v", i, event)
		}
	}
	all := mustMessages(t, s, &loombridgev1.ListMessagesRequest{AgentId: "b"})
	if len(all) != 3 || all[0].GetContent() != "second" || all[0].GetPriority() != 0.9 || all[0].GetTtl().AsDuration() != time.Minute {
		t.Errorf("kept: %v", all)
	}
	for topic, payload := range map[string]string{
		"agent.b.messages": `{}`,
	} {
		_, err := s.Bridge.Emit(t.Context(), &loombridgev1.EmitRequest{AgentId: "x", Topic: topic, PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: payload}})
		MustFail(t, err, codes.InvalidArgument, "RESERVED_TOPIC")
	}
	for _, payload := range []string{
		`{}`, `{"target_agent":"b"}`, `{"target_agent":"b","parameters":{"content":""}}`, `{"parameters":{"content":"x"}}`,
		`{"target_agent":"b","source_agent":"c","parameters":{"content":"x"}}`, `{"target_agent":"b","parameters":{"content":"x","steps":[1]}}`,
		`{"target_agent":"b","parameters":{"content":"x","priority":2}}`, `{"target_agent":"b","parameters":{"content":"x","ttl_seconds":0}}`,
		`{"target_agent":"b","content":"x","result":"y"}`,
		`{"target_agent":"b","parent_task_id":"p","parameters":{"content":"x","parent_task_id":"q"}}`,
	} {
		_, err := s.Bridge.Emit(t.Context(), &loombridgev1.EmitRequest{AgentId: "a", Topic: "node.message", PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: payload}})
		MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	}
	if left := mustMessages(t, s, &loombridgev1.ListMessagesRequest{AgentId: "b"}); len(left) != 3 {
		t.Errorf("kept of bad ones: %v", left)
	}
}

// An id names one message for as long as that stands, long after its answer was forgotten.
//
// C16
func TestMessageIDsAreKeptAfterADay(t *testing.T) {
	s := servertest.Start(t, nil)
	sent := MustMessage(t, s, &loombridgev1.SendMessageRequest{Message: &loombridgev1.DirectMessage{Content: "the same", TaskId: "t1"}})
	for _, later := range []time.Duration{time.Minute, 25 * time.Hour, 40 * 24 * time.Hour} {
		s.Clock.Advance(later)
		MustMessage(t, s, &loombridgev1.SendMessageRequest{Message: &loombridgev1.DirectMessage{Content: "what clears old answers", TaskId: later.String()}})
		again := MustMessage(t, s, &loombridgev1.SendMessageRequest{Message: &loombridgev1.DirectMessage{Content: "the same", TaskId: "t1"}})
		if again.GetTaskId() != sent.GetTaskId() {
			t.Errorf("after %v it was sent anew", later)
		}
		_, err := s.Events.SendMessage(t.Context(), &loombridgev1.SendMessageRequest{AgentId: "a", Message: &loombridgev1.DirectMessage{TargetAgentId: "b", Content: "other", TaskId: "t1"}})
		MustFail(t, err, codes.AlreadyExists, "RECORD_EXISTS")
	}
	if all := mustMessages(t, s, &loombridgev1.ListMessagesRequest{AgentId: "b"}); len(all) != 4 {
		t.Errorf("%d messages: %v", len(all), all)
	}
}

// The task that a message belongs to stands in the task or in its parameters, natively and
// from loom.v1.
//
// C14
func TestParentTaskOfAMessage(t *testing.T) {
	s := servertest.Start(t, nil)
	payloads := map[string]string{
		"in the task":        `{"task_id":"%s","target_agent":"b","parent_task_id":"job","parameters":{"content":"x"}}`,
		"in its parameters":  `{"task_id":"%s","target_agent":"b","parameters":{"content":"x","parent_task_id":"job"}}`,
		"in both":            `{"task_id":"%s","target_agent":"b","parent_task_id":"job","parameters":{"content":"x","parent_task_id":"job"}}`,
		"beside the content": `{"task_id":"%s","action":"node.message","source_agent":"a","target_agent":"b","content":"x","priority":0.8,"ttl_seconds":60,"parent_task_id":"job"}`,
	}
	for name, payload := range payloads {
		for face, emit := range map[string]emitter{"native": native(t, s), "loom.v1": loom(t, s)} {
			if refused := emit("a", "node.message", fmt.Sprintf(payload, name+" "+face)); refused != "" {
				t.Errorf("%s, %s: %s", name, face, refused)
			}
		}
	}
	got := mustMessages(t, s, &loombridgev1.ListMessagesRequest{AgentId: "b", ParentTaskId: "job"})
	if len(got) != 2*len(payloads) {
		t.Errorf("%d of %d messages belong to the task: %v", len(got), 2*len(payloads), got)
	}
}

// Direct messages of the session come first among the tasks of a prompt, as
// far as their share of the cap goes, one of them at least.
//
// C19, C21, G11, K42
func TestDirectMessagesInPrompts(t *testing.T) {
	s := servertest.Start(t, nil)
	high := 0.9
	MustMessage(t, s, &loombridgev1.SendMessageRequest{Message: &loombridgev1.DirectMessage{Content: "the key is under the mat", SessionId: "s1", TaskId: "m1"}})
	MustMessage(t, s, &loombridgev1.SendMessageRequest{Message: &loombridgev1.DirectMessage{Content: "call before noon", SessionId: "s1", TaskId: "m2", Priority: &high, ContextRole: "user"}})
	MustMessage(t, s, &loombridgev1.SendMessageRequest{Message: &loombridgev1.DirectMessage{Content: "of another session", SessionId: "s2", TaskId: "m3"}})
	MustEmit(t, s, &loombridgev1.EmitRequest{AgentId: "b", Topic: "execute", SessionId: "s1", PayloadForm: &loombridgev1.EmitRequest_PayloadJson{
		PayloadJson: `{"task_id":"job","parameters":{"content":"sort the letters"}}`,
	}})
	prompt := func(session string, from *loombridgev1.SourceSettings, caps map[string]int32) string {
		t.Helper()
		got, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
			AgentId: "b", SessionId: session, Goal: "go home", Settings: &loombridgev1.PromptSettings{Sources: from, Limits: &loombridgev1.InjectionLimits{Sections: caps}},
		})
		must(t, err)
		var all []string
		for _, m := range got.GetMessages() {
			all = append(all, m.GetRole().String()+" "+m.GetContent())
		}
		return strings.Join(all, "\n")
	}
	inOrder := func(text string, parts ...string) {
		t.Helper()
		rest := text
		for _, part := range parts {
			_, after, ok := strings.Cut(rest, part)
			if !ok {
				t.Errorf("%q is not where it should be in:\n%s", part, text)
			}
			rest = after
		}
	}
	text := prompt("s1", nil, nil)
	inOrder(text, "call before noon", "ROLE_ASSISTANT [Direct message from a] the key is under the mat", "sort the letters")
	if strings.Contains(text, "another session") || !strings.Contains(text, "ROLE_ASSISTANT [Direct message from a] call") {
		t.Errorf("s1:\n%s", text)
	}
	if told := prompt("s1", &loombridgev1.SourceSettings{Instructors: []string{"c", "a"}}, nil); !strings.Contains(told, "ROLE_USER [Direct message from a] call") {
		t.Errorf("of an instructor:\n%s", told)
	}
	if told := prompt("s1", &loombridgev1.SourceSettings{Instructors: []string{"c"}}, nil); strings.Contains(told, "ROLE_USER [Direct message") {
		t.Errorf("of somebody who is none:\n%s", told)
	}
	if other := prompt("s2", nil, nil); !strings.Contains(other, "[Direct message from a] of another session") || strings.Contains(other, "mat") {
		t.Errorf("s2:\n%s", other)
	}
	inOrder(prompt("", nil, nil), "call before noon", "the mat", "of another session")
	// The cap holds both messages, or one of them and the task.
	if one := prompt("s1", nil, map[string]int32{"tasks": 22}); !strings.Contains(one, "noon") || strings.Contains(one, "mat") || !strings.Contains(one, "letters") {
		t.Errorf("a small cap:\n%s", one)
	}
	if none := prompt("s1", &loombridgev1.SourceSettings{Exclude: []string{"tasks"}}, nil); strings.Contains(none, "noon") {
		t.Errorf("without tasks:\n%s", none)
	}
}
