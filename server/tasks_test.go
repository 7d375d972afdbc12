package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/bridge/tiers"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/compose"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// layer is what a memory tool answers.
type layer struct {
	Layer       string
	Description string
	Count       int
	Items       []map[string]any
}

func (l layer) values(key string) []string {
	all := make([]string, len(l.Items))
	for i, item := range l.Items {
		all[i] = fmt.Sprint(item[key])
	}
	return all
}

// MustAsk calls a memory tool in a session.
func MustAsk(t *testing.T, s *servertest.Server, sessionID, tool, args string) layer {
	t.Helper()
	got, err := s.Bridge.Tool(convert.AskText(t.Context()), &loombridgev1.ToolRequest{
		AgentId: agent, SessionId: sessionID, Name: tool, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: args},
	})
	must(t, err)
	if !got.GetSuccess() {
		t.Fatalf("%s: %s", tool, got.GetErrorMessage())
	}
	var answer layer
	must(t, json.Unmarshal([]byte(got.GetOutputJson()), &answer))
	if answer.Count != len(answer.Items) || answer.Description == "" {
		t.Errorf("%s: %+v", tool, answer)
	}
	return answer
}

func taskEvent(sessionID, topic, payload string) *loombridgev1.EmitRequest {
	return &loombridgev1.EmitRequest{
		AgentId: agent, SessionId: sessionID, Topic: topic, PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: payload},
	}
}

func withTask(sessionID string, task *loombridgev1.Task) *loombridgev1.RecordStepRequest {
	return &loombridgev1.RecordStepRequest{AgentId: agent, SessionId: sessionID, ToolName: "shell:run", Success: true, Task: task}
}

// engines runs a test on both engines, with tiers of a size.
func engines(t *testing.T, size tiers.Options, test func(t *testing.T, s *servertest.Server)) {
	for name, open := range map[string]func() (kv.Engine, error){
		"memory":  func() (kv.Engine, error) { return memkv.New(nil), nil },
		"rocksdb": func() (kv.Engine, error) { return rockskv.Open(filepath.Join(t.TempDir(), "db"), nil) },
	} {
		t.Run(name, func(t *testing.T) {
			engine, err := open()
			must(t, err)
			t.Cleanup(func() { must(t, engine.Close()) })
			test(t, servertest.Start(t, &servertest.Options{Engine: engine, Domain: compose.Options{Tiers: size}}))
		})
	}
}

// G25: a step brings its task along, in the same commit.
func TestRecordStepWithTask(t *testing.T) {
	engines(t, tiers.Options{}, func(t *testing.T, s *servertest.Server) {
		parameters, err := structpb.NewStruct(map[string]any{"q": "btc"})
		must(t, err)
		task := &loombridgev1.Task{
			TaskId: "t-1", Action: "node.tool_call", ParametersForm: &loombridgev1.Task_Parameters{Parameters: parameters}, SourceAgent: "boss",
			TargetAgent: "bob", ParentTaskId: "t-0", Result: "45,000", Tags: []string{"x"}, CreateTime: timestamppb.New(s.Clock.Now().Add(-time.Hour)),
		}
		request := withTask("s1", task)
		request.RequestId = "r1"
		for range 2 { // the second time from the request id
			got, err := s.Context.RecordStep(t.Context(), request)
			must(t, err)
			if got.GetTaskId() != "t-1" || got.GetStep().GetId() != "step_001" {
				t.Errorf("answer %v", got)
			}
		}
		l1 := MustAsk(t, s, "s1", "query_l1_memory", `{}`)
		want := []map[string]any{{
			"task_id": "t-1", "action": "node.tool_call", "parameters": map[string]any{"q": "btc"}, "source_agent": "boss", "target_agent": "bob",
			"parent_task_id": "t-0", "result": "45,000", "status": "completed", "tags": []any{"x"}, "importance": 0.7, "session_id": "s1",
			"created_at": task.GetCreateTime().AsTime().Format(time.RFC3339Nano),
		}}
		if diff := cmp.Diff(want, l1.Items); diff != "" || l1.Layer != "L1" {
			t.Errorf("L1 (-want +got):\n%s", diff)
		}
		l2 := MustAsk(t, s, "s1", "query_l2_memory", `{}`)
		if diff := cmp.Diff([]string{`node.tool_call: {"q":"btc"} → 45,000`}, l2.values("statement")); diff != "" || l2.Items[0]["importance"] != 0.7 {
			t.Errorf("L2 (-want +got):\n%s", diff)
		}
		made, err := s.Context.RecordStep(t.Context(), withTask("s1", &loombridgev1.Task{Action: "x"}))
		must(t, err)
		if !strings.HasPrefix(made.GetTaskId(), "task-") || made.GetStep().GetId() != "step_004" {
			t.Errorf("made: %v", made)
		}
	})
}

// G25: a task that is another one refuses its step, and changes nothing.
func TestTaskExists(t *testing.T) {
	s := servertest.Start(t, nil)
	_, err := s.Context.RecordStep(t.Context(), withTask("s1", &loombridgev1.Task{TaskId: "t", Action: "execute"}))
	must(t, err)
	_, err = s.Context.RecordStep(t.Context(), withTask("s1", &loombridgev1.Task{TaskId: "t", Action: "node.error"}))
	MustFail(t, err, codes.AlreadyExists, "RECORD_EXISTS")
	_, err = s.Bridge.Emit(t.Context(), taskEvent("s1", "node.error", `{"task_id":"t"}`))
	MustFail(t, err, codes.AlreadyExists, "RECORD_EXISTS")
	steps, err := s.Context.ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: agent, SessionId: "s1"})
	must(t, err)
	if len(steps.GetSteps()) != 1 {
		t.Errorf("steps %v", steps)
	}
	// The same with a result is the first one, completed.
	_, err = s.Bridge.Emit(t.Context(), taskEvent("s1", "execute", `{"task_id":"t","result":{"n":1}}`))
	must(t, err)
	got := MustAsk(t, s, "s1", "query_l1_memory", `{}`)
	if diff := cmp.Diff([]string{`{"n":1}`}, got.values("result")); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	record, err := s.Memory.GetRecord(t.Context(), &loombridgev1.GetRecordRequest{AgentId: agent, Name: &loombridgev1.GetRecordRequest_Key{Key: "task/t"}})
	must(t, err)
	if r := record; r.GetTier() != 2 || r.GetText() != `execute: {} -> {"n":1}` {
		t.Errorf("record %v", r)
	}
}

// G25: an event on a task's topic is a task, and goes out as every event does.
func TestEmitTask(t *testing.T) {
	engines(t, tiers.Options{}, func(t *testing.T, s *servertest.Server) {
		emit := func(r *loombridgev1.EmitRequest) *loombridgev1.EmitResponse {
			t.Helper()
			got, err := s.Bridge.Emit(t.Context(), r)
			must(t, err)
			return got
		}
		full := `{"task_id":"t-1","action":"execute","parameters":{"n":9007199254740993},"source_agent":"boss","target_agent":"bob",
			"session_id":"s1","parent_task_id":"t-0","result":"done","tags":["a"],"importance":0.25,"created_at":"2026-01-02T03:04:05Z","more":true}`
		if first := emit(taskEvent("", "execute", full)); first.GetSequence() != 1 {
			t.Errorf("first: %v", first)
		}
		if again := emit(taskEvent("s1", "execute", full)); again.GetSequence() != 2 { // another event of the same task
			t.Errorf("again: %v", again)
		}
		emit(taskEvent("s1", "node.thinking", `null`))
		once := taskEvent("s1", "node.error", `{"result":"no luck"}`)
		once.RequestId = "r1"
		if one, two := emit(once), emit(once); one.GetEventId() != two.GetEventId() {
			t.Errorf("a request made twice: %v, %v", one, two)
		}
		fleeting := taskEvent("s1", "node.planning", `{}`)
		fleeting.Delivery = volatileDelivery
		emit(fleeting)
		got := MustAsk(t, s, "s1", "query_l1_memory", `{}`)
		if diff := cmp.Diff([]string{"execute", "node.thinking", "node.error"}, got.values("action")); diff != "" {
			t.Errorf("actions (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"0.25", "0.55", "0.9"}, got.values("importance")); diff != "" {
			t.Errorf("importances (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"boss", agent, agent}, got.values("source_agent")); diff != "" {
			t.Errorf("sources (-want +got):\n%s", diff)
		}
		if parameters, ok := got.Items[0]["parameters"].(map[string]any); !ok || len(parameters) != 2 || parameters["more"] != true {
			t.Errorf("parameters %v", got.Items[0]["parameters"])
		}
		if item := got.Items[0]; item["created_at"] != "2026-01-02T03:04:05Z" || item["target_agent"] != "bob" || item["parent_task_id"] != "t-0" {
			t.Errorf("item %v", item)
		}
		once.PayloadForm = &loombridgev1.EmitRequest_PayloadJson{PayloadJson: `{"result":"luck"}`}
		_, err := s.Bridge.Emit(t.Context(), once)
		MustFail(t, err, codes.AlreadyExists, "REQUEST_ID_REUSED")
	})
}

// G25: what a payload says beside a task's own fields is a parameter of the task.
func TestEmitTaskKeepsEveryField(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, c := range []struct{ payload, want string }{
		{`{"content":"a thought"}`, `{"content":"a thought"}`},
		{`{"content":"a","parameters":{"b":1.0}}`, `{"b":1.0,"content":"a"}`},
		{`{"content":"a","parameters_json":"{\"b\":1e5}"}`, `{"b":1e5,"content":"a"}`},
		{`{"parameters":{"z":1,"a":2}}`, `{"z":1,"a":2}`},
	} {
		task := taskEvent("s", "node.thinking", c.payload)
		_, err := s.Bridge.Emit(t.Context(), task)
		must(t, err)
		items := MustAsk(t, s, "s", "query_l1_memory", `{}`).Items
		var got, want any
		must(t, json.Unmarshal([]byte(c.want), &want))
		got = items[len(items)-1]["parameters"]
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.payload, diff)
		}
	}
	for payload, field := range map[string]string{
		`{"content":"a","parameters":{"content":"b"}}`:                "payload.content",
		`{"content":"` + strings.Repeat("x", 64<<10) + `"}`:           "payload.parameters",
		`{"content":"a","parameters":{"b":1},"parameters_json":"{}"}`: "payload.parameters_json",
		`{"content":"a","parameters":[1]}`:                            "payload.parameters",
		`{"content":"a","parameters_json":"{"}`:                       "payload.parameters",
	} {
		_, err := s.Bridge.Emit(t.Context(), taskEvent("s", "execute", payload))
		if got := fieldsOf(err); !slices.Equal(got, []string{field}) {
			t.Errorf("%.80s: %v, %v", payload, got, err)
		}
	}
}

// G25: what is wrong with a task is told by its field, and neither task nor event is
// taken.
func TestBadTasks(t *testing.T) {
	s := servertest.Start(t, nil)
	long := strings.Repeat("x", 300)
	for field, payload := range map[string]string{
		"payload":                `[1]`,
		"payload.importance":     `{"importance":"high"}`,
		"payload.action":         `{"action":"node.error"}`,
		"payload.session_id":     `{"session_id":"s2"}`,
		"payload.parameters":     `{"parameters":[1]}`,
		"payload.task_id":        `{"task_id":"` + long + `"}`,
		"payload.source_agent":   `{"source_agent":"` + long + `"}`,
		"payload.target_agent":   `{"target_agent":"` + long + `"}`,
		"payload.parent_task_id": `{"parent_task_id":"` + long + `"}`,
		"payload.tags":           `{"tags":[""]}`,
	} {
		_, err := s.Bridge.Emit(t.Context(), taskEvent("s1", "execute", payload))
		if got := fieldsOf(err); !slices.Equal(got, []string{field}) {
			t.Errorf("%s: %v, %v", payload, got, err)
		}
	}
	for name, r := range map[string]*loombridgev1.EmitRequest{
		"bytes": {AgentId: agent, Topic: "execute", PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: []byte("x")}},
		"topic": taskEvent("s1", "node."+long[:64], `{}`),
		"words": taskEvent("s1", "node..x", `{}`),
		"json":  taskEvent("s1", "node.x", `{`),
	} {
		_, err := s.Bridge.Emit(t.Context(), r)
		if MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST"); len(fieldsOf(err)) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	importance := 1.5
	_, err := s.Context.RecordStep(t.Context(), withTask("s1", &loombridgev1.Task{
		TaskId: long, SourceAgent: long, TargetAgent: long, ParentTaskId: long, Tags: []string{""}, Importance: &importance,
		Result: strings.Repeat("x", 64<<10+1), CreateTime: &timestamppb.Timestamp{Nanos: -1},
	}))
	want := []string{
		"task.action", "task.create_time", "task.importance", "task.parent_task_id", "task.result", "task.source_agent", "task.tags[0]", "task.target_agent", "task.task_id",
	}
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(fieldsOf(err)))); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
	if got := MustAsk(t, s, "s1", "query_l1_memory", `{}`); got.Count != 0 {
		t.Errorf("tasks %v", got)
	}
}

// F01, F12, F13, F22, P27: a task comes up all the way; each tier has its tool; no
// session sees another's tasks unless it names it, but for those in L4.
func TestMemoryTools(t *testing.T) {
	engines(t, tiers.Options{L1: 4, L2: 4, L3: 4}, func(t *testing.T, s *servertest.Server) {
		for n := range 12 {
			for _, id := range []string{"s1", "s2"} {
				payload := fmt.Sprintf(`{"task_id":"%s-%d","parameters":{"text":%q},"result":%q,"importance":0.%d,"tags":["a","b","c","d"]}`,
					id, n, strings.Repeat("p", 60), fmt.Sprintf("zebra %s ", id)+strings.Repeat("r", 120), 70+n)
				_, err := s.Bridge.Emit(t.Context(), taskEvent(id, "execute", payload))
				must(t, err)
			}
		}
		l1 := MustAsk(t, s, "s1", "query_l1_memory", `{"limit":3}`)
		if diff := cmp.Diff([]string{"s1-9", "s1-10", "s1-11"}, l1.values("task_id")); diff != "" {
			t.Errorf("L1 (-want +got):\n%s", diff)
		}
		l2 := MustAsk(t, s, "s1", "query_l2_memory", `{}`)
		if diff := cmp.Diff([]string{"s1-11", "s1-10", "s1-9"}, l2.values("task_id")); diff != "" {
			t.Errorf("L2 (-want +got):\n%s", diff)
		}
		statement := `execute: {"text":"` + strings.Repeat("p", 41) + "... → zebra s1 " + strings.Repeat("r", 91) + "..."
		if got := l2.values("statement")[0]; got != statement {
			t.Errorf("L2 says %s, want %s", got, statement)
		}
		l3 := MustAsk(t, s, "s1", "query_l3_memory", `{}`)
		if diff := cmp.Diff([]string{"s1-8", "s1-7", "s1-6"}, l3.values("task_id")); diff != "" {
			t.Errorf("L3 (-want +got):\n%s", diff)
		}
		if got, want := l3.Items[0]["statement"], "execute: zebra s1 "+strings.Repeat("r", 41)+"..."; got != want || fmt.Sprint(l3.Items[0]["tags"]) != "[a b c]" {
			t.Errorf("L3 says %v, want %v", l3.Items[0], want)
		}
		if other := MustAsk(t, s, "s1", "query_l3_memory", `{"session_id":"s2"}`); other.values("task_id")[0] != "s2-8" {
			t.Errorf("L3 of the other: %v", other.Items)
		}
		if none := MustAsk(t, s, "s3", "query_l1_memory", `{}`); none.Count != 0 {
			t.Errorf("a third session sees %v", none.Items)
		}
		l4 := MustAsk(t, s, "s1", "memory:query", `{"query":"zebra","limit":50}`)
		if len(l4.Items) != 12 || !slices.Contains(l4.values("task_id"), "s2-0") || !slices.Contains(l4.values("task_id"), "s1-5") || l4.Layer != "L4" {
			t.Errorf("L4: %v", l4.values("task_id"))
		}
		if own := MustAsk(t, s, "s1", "memory_query", `{"query":"zebra","session_id":"s2"}`); own.Count != 5 || own.values("session_id")[0] != "s2" {
			t.Errorf("L4 of the other: %v", own.values("task_id"))
		}
		if whole := MustAsk(t, s, "s1", "query_l1_memory", `{"task_id":"s1-0"}`); whole.Count != 1 || whole.Items[0]["action"] != "execute" {
			t.Errorf("a task of long ago: %v", whole.Items)
		}
		testTiersOfQueries(t, s)
	})
}

// testTiersOfQueries: queries find tier 4 unless others are asked for.
func testTiersOfQueries(t *testing.T, s *servertest.Server) {
	for tier, want := range map[int32]int{0: 12, 2: 6, 3: 6, 4: 12} {
		r := &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "zebra", Limit: 50}
		if tier > 0 {
			r.Tiers = []int32{tier}
		}
		found, err := s.Bridge.MemoryQuery(t.Context(), r)
		must(t, err)
		if len(found.GetHits()) != want {
			t.Errorf("tier %d: %d hits, want %d", tier, len(found.GetHits()), want)
		}
	}
}

// F14, F15, P27: how many items there are when nobody says.
func TestMemoryToolDefaults(t *testing.T) {
	s := servertest.Start(t, nil)
	for n := range 110 {
		_, err := s.Bridge.Emit(t.Context(), taskEvent("s1", "execute", fmt.Sprintf(`{"task_id":"t-%d"}`, n)))
		must(t, err)
	}
	for n := range 6 {
		_, err := s.Bridge.MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: agent, Text: fmt.Sprintf("zebra %d", n)})
		must(t, err)
	}
	for tool, want := range map[string]int{"query_l1_memory": 10, "query_l2_memory": 10, "query_l3_memory": 20, "query_l4_memory": 5} {
		arguments := `{}`
		if tool == "query_l4_memory" {
			arguments = `{"query":"zebra"}`
		}
		if got := MustAsk(t, s, "s1", tool, arguments); got.Count != want {
			t.Errorf("%s: %d items, want %d", tool, got.Count, want)
		}
	}
}

// A task of importance 0.6 stays in the first tier; the next number above moves up
// to the second as well.
//
// F10
func TestImportantTasks(t *testing.T) {
	s := servertest.Start(t, nil)
	for i, importance := range []float64{0.5, 0.6, math.Nextafter(0.6, 1), 0.61, 1} {
		_, err := s.Context.RecordStep(t.Context(), withTask("s1", &loombridgev1.Task{
			TaskId: fmt.Sprint("t", i), Action: "execute", Importance: &importance,
		}))
		must(t, err)
	}
	if diff := cmp.Diff([]string{"t4", "t3", "t2"}, MustAsk(t, s, "s1", "query_l2_memory", `{}`).values("task_id")); diff != "" {
		t.Errorf("in the second tier (-want +got):\n%s", diff)
	}
	if got := MustAsk(t, s, "s1", "query_l1_memory", `{}`); got.Count != 5 {
		t.Errorf("%d tasks in the first tier", got.Count)
	}
}

// P27: a model saves by a tool, and fails with words that help.
func TestMemorySaveTool(t *testing.T) {
	s := servertest.Start(t, nil)
	call := func(tool, args string) (*loombridgev1.ToolResponse, error) {
		return s.Bridge.Tool(t.Context(), &loombridgev1.ToolRequest{
			AgentId: agent, SessionId: "s1", Name: tool, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: args},
		})
	}
	got, err := call("memory_save", `{"text":"the key is under the mat","kind":"note","key":"k","tags":["b","a"],"importance":0.9,"metadata":{"n":9007199254740993}}`)
	must(t, err)
	id := got.GetOutput().GetStructValue().GetFields()["id"].GetStringValue()
	if !got.GetSuccess() || id == "" {
		t.Fatalf("answer %v", got)
	}
	saved, err := s.Memory.GetRecord(convert.AskText(t.Context()), &loombridgev1.GetRecordRequest{
		AgentId: agent, Name: &loombridgev1.GetRecordRequest_Id{Id: id},
	})
	must(t, err)
	if r := saved; r.GetSessionId() != "s1" || r.GetKind() != "note" || r.GetImportance() != .9 || r.GetTier() != 4 ||
		r.GetMetadataJson() != `{"n":9007199254740993}` || !slices.Equal(r.GetTags(), []string{"a", "b"}) {
		t.Errorf("record %v", r)
	}
	if found := MustAsk(t, s, "s2", "query_l4_memory", `{"query":"mat"}`); found.Count != 1 || found.values("id")[0] != id {
		t.Errorf("found %v", found)
	}
	for args, want := range map[string]string{
		`{"text":"another","key":"k"}`:              "The key is taken by record " + id,
		`{"text":"another","supersedes":"nothing"}`: "Record not found: nothing",
	} {
		if got, err := call("memory:save", args); err != nil || got.GetSuccess() || !strings.Contains(got.GetErrorMessage(), want) {
			t.Errorf("%s: %v, %v", args, got.GetErrorMessage(), err)
		}
	}
	for _, args := range []string{`{}`, `{"text":"x","kind":"` + strings.Repeat("k", 65) + `"}`} {
		_, err := call("memory:save", args)
		MustFail(t, err, codes.InvalidArgument, "INVALID_ARGUMENTS")
	}
	if got, err := call("query_l1_memory", `{"task_id":"nope"}`); err != nil || got.GetErrorCode() != loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_NOT_FOUND {
		t.Errorf("no task: %v, %v", got, err)
	}
}

// G25: an attached agent's tasks come by its stream.
func TestAttachedTask(t *testing.T) {
	s, _ := MustStartAttached(t, servertest.Options{})
	a := MustAttach(t, t.Context(), s.Bridge, helloOf(agent))
	a.publish(1, &loombridgev1.EmitRequest{Topic: "execute", SessionId: "s1", PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: `{"task_id":"t"}`}})
	a.publish(2, &loombridgev1.EmitRequest{Topic: "node.error", SessionId: "s1", PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: `{"task_id":"t"}`}})
	answers := a.leave()
	if len(answers) != 2 || answers[0].GetAnswer().GetEmitted().GetSequence() != 1 ||
		answers[1].GetAnswer().GetError().GetReason() != loombridgev1.ErrorReason_ERROR_REASON_RECORD_EXISTS {
		t.Errorf("answers %v", answers)
	}
	if got := MustAsk(t, s, "s1", "query_l1_memory", `{}`); got.Count != 1 {
		t.Errorf("tasks %v", got)
	}
}

// F16: no prompt shows tasks, of whatever tier; tools do.
func TestTasksLeavePromptsAlone(t *testing.T) {
	prompt := func(with *loombridgev1.Task) *loombridgev1.AssembleResponse {
		s := servertest.Start(t, nil)
		for range 3 {
			_, err := s.Context.RecordStep(context.WithoutCancel(t.Context()), withTask("s1", with))
			must(t, err)
		}
		got, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s1", Goal: "go"})
		must(t, err)
		return got
	}
	with, without := prompt(&loombridgev1.Task{Action: "execute", Result: "r"}), prompt(nil)
	if diff := cmp.Diff(without.GetPrefixSha256(), with.GetPrefixSha256()); diff != "" || len(with.GetMessages()) != len(without.GetMessages()) {
		t.Errorf("prompts (-without +with):\n%s", diff)
	}
}
