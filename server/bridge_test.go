package server_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

const agent = "researcher-1"

// MustFail checks how a call ended and returns the details.
func MustFail(tb testing.TB, err error, code codes.Code, reason string) *errdetails.ErrorInfo {
	tb.Helper()
	info := infoOf(err)
	if status.Code(err) != code || info.GetReason() != reason {
		tb.Fatalf("call ended with %v %q (%v), want %v %q", status.Code(err), info.GetReason(), err, code, reason)
	}
	if info != nil && info.GetDomain() != "loombridge.v1" {
		tb.Errorf("ErrorInfo.domain = %q", info.GetDomain())
	}
	return info
}

func infoOf(err error) *errdetails.ErrorInfo {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info
		}
	}
	return nil
}

// fieldsOf are the fields that a bad request names.
func fieldsOf(err error) []string {
	var fields []string
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				fields = append(fields, v.GetField())
			}
		}
	}
	return fields
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// MustWrite puts a file into the workspace.
func MustWrite(tb testing.TB, s *servertest.Server, name, content string) {
	tb.Helper()
	must(tb, os.WriteFile(filepath.Join(s.Workspace, name), []byte(content), 0o600))
}

func MustStruct(tb testing.TB, members map[string]any) *structpb.Struct {
	tb.Helper()
	s, err := structpb.NewStruct(members)
	must(tb, err)
	return s
}

func MustSave(tb testing.TB, s *servertest.Server, r *loombridgev1.MemorySaveRequest) *loombridgev1.MemorySaveResponse {
	tb.Helper()
	saved, err := s.Bridge.MemorySave(tb.Context(), r)
	must(tb, err)
	return saved
}

// F05: everything a record can carry comes back as it was given.
func TestMemorySaveKeepsEveryField(t *testing.T) {
	s := servertest.Start(t, nil)
	now := s.Clock.Now()
	first := MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "Bitcoin closed at 44,000"})
	saved := MustSave(t, s, &loombridgev1.MemorySaveRequest{
		AgentId: agent, Text: "Bitcoin closed at 45,000", Id: "btc-2", Key: "btc.close", Kind: "state",
		SessionId: "s1", Author: "desk", EventTime: timestamppb.New(now.Add(-time.Hour)),
		MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: `{"source":"desk","id":9007199254740993}`},
		Tags:         []string{"market", "crypto"}, Importance: new(0.0),
		Expiry:    &loombridgev1.MemorySaveRequest_Ttl{Ttl: durationpb.New(time.Hour)},
		Embedding: []float32{0.5, -0.25}, EmbeddingSpace: "test-2d", Supersedes: first.GetId(), DerivedFrom: []string{first.GetId()},
		Origin: loombridgev1.Origin_ORIGIN_TOOL,
	})
	got, err := s.Memory.GetRecord(convert.AskText(t.Context()), &loombridgev1.GetRecordRequest{
		AgentId: agent, Name: &loombridgev1.GetRecordRequest_Key{Key: "btc.close"},
		IncludeEmbeddings: true,
	})
	must(t, err)
	want := &loombridgev1.Record{
		Id: "btc-2", Text: "Bitcoin closed at 45,000", Key: "btc.close", Kind: "state", SessionId: "s1", Author: "desk",
		EventTime: timestamppb.New(now.Add(-time.Hour)), CreateTime: saved.GetCreateTime(), ExpireTime: timestamppb.New(now.Add(time.Hour)),
		MetadataForm: &loombridgev1.Record_MetadataJson{MetadataJson: `{"source":"desk","id":9007199254740993}`},
		Tags:         []string{"crypto", "market"}, Supersedes: first.GetId(), DerivedFrom: []string{first.GetId()},
		Origin: loombridgev1.Origin_ORIGIN_TOOL, Tier: 4, Embedding: []float32{0.5, -0.25}, EmbeddingSpace: "test-2d", Version: 1,
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if !saved.GetCreateTime().AsTime().Equal(now) || !saved.GetExpireTime().AsTime().Equal(now.Add(time.Hour)) {
		t.Errorf("answer = %v", saved)
	}
}

// A query without a limit gives the best five.
func TestMemoryQueryDefaultsToFive(t *testing.T) {
	s := servertest.Start(t, nil)
	for range 7 {
		MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "Bitcoin price analysis"})
	}
	found, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "bitcoin price"})
	must(t, err)
	if len(found.GetHits()) != 5 || found.GetReceipt().GetRecords() != 7 {
		t.Errorf("%d hits, receipt %v", len(found.GetHits()), found.GetReceipt())
	}
	for _, hit := range found.GetHits() {
		if hit.GetScore() <= 0 || hit.GetScore() > 1 {
			t.Errorf("score %v", hit.GetScore())
		}
	}
}

func TestMemoryQueryFiltersAndForms(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, source := range []string{"desk", "wire"} {
		MustSave(t, s, &loombridgev1.MemorySaveRequest{
			AgentId: agent, Text: "Bitcoin from " + source, Tags: []string{source},
			MetadataForm: &loombridgev1.MemorySaveRequest_Metadata{Metadata: MustStruct(t, map[string]any{"source": source, "n": 5})},
		})
	}
	found, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{
		AgentId: agent, Query: "bitcoin", Filter: `tags:"desk" AND metadata.source = "desk"`,
	})
	must(t, err)
	if len(found.GetHits()) != 1 || found.GetReceipt().GetLeftOut()["filtered"] != 1 {
		t.Fatalf("hits %v", found)
	}
	metadata := found.GetHits()[0].GetRecord().GetMetadata()
	if diff := cmp.Diff(MustStruct(t, map[string]any{"source": "desk", "n": 5}), metadata, protocmp.Transform()); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

// A person's memory is shared by the agents of a tenant and apart from theirs.
func TestUserMemoryIsSharedByAgents(t *testing.T) {
	s := servertest.Start(t, nil)
	MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: "a", UserId: "ada", Text: "Ada prefers metric units"})
	for _, test := range []struct {
		agent, user string
		hits        int
	}{{"b", "ada", 1}, {"a", "", 0}, {"a", "bob", 0}, {"ada", "", 0}} {
		found, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: test.agent, UserId: test.user, Query: "metric units"})
		must(t, err)
		if len(found.GetHits()) != test.hits {
			t.Errorf("agent %q user %q: %d hits, want %d", test.agent, test.user, len(found.GetHits()), test.hits)
		}
	}
}

func TestToolRunsAndRecords(t *testing.T) {
	s := servertest.Start(t, nil)
	MustWrite(t, s, "notes.md", "# Notes\nhello\n")
	for _, name := range []string{"fs:read_file", "fs_read_file", "read_file"} {
		got, err := s.Bridge.Tool(t.Context(), &loombridgev1.ToolRequest{
			AgentId: agent, Name: name, SessionId: "s1", Thought: "look", TurnId: "t1", CallId: "c1",
			ArgumentsForm: &loombridgev1.ToolRequest_Arguments{Arguments: MustStruct(t, map[string]any{"path": "notes.md"})},
		})
		must(t, err)
		content := got.GetOutput().GetStructValue().GetFields()["content"].GetStringValue()
		if !got.GetSuccess() || content != "# Notes\nhello\n" || !got.GetRecorded() {
			t.Errorf("%s: %v", name, got)
		}
		recorded := got.GetStep()
		if recorded.GetToolName() != "fs:read_file" || recorded.GetThought() != "look" || recorded.GetTurnId() != "t1" ||
			recorded.GetCallId() != "c1" || recorded.GetSessionId() != "s1" || recorded.GetPosition() == 0 ||
			!recorded.GetSuccess() || recorded.GetOutcome() != loombridgev1.StepOutcome_STEP_OUTCOME_SUCCEEDED {
			t.Errorf("%s: step %v", name, recorded)
		}
		if recorded.GetObservation() != "Read notes.md (14 bytes, text)" || got.GetObservation() == "" {
			t.Errorf("%s: observation %q, for the model %q", name, recorded.GetObservation(), got.GetObservation())
		}
	}
}

func TestToolJSONForms(t *testing.T) {
	s := servertest.Start(t, nil)
	MustWrite(t, s, "a.txt", "one\ntwo\nthree\n")
	got, err := s.Bridge.Tool(convert.AskText(t.Context()), &loombridgev1.ToolRequest{
		AgentId: agent, Name: "fs:read_file",
		ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"path":"a.txt","offset":2,"limit":1}`},
	})
	must(t, err)
	if !strings.Contains(got.GetOutputJson(), `"content":"two\n"`) || got.GetStep().GetMinimalArgsJson() == "" {
		t.Errorf("answer = %v", got)
	}
	// A whole number in a Struct reaches the tool as one.
	got, err = s.Bridge.Tool(t.Context(), &loombridgev1.ToolRequest{
		AgentId: agent, Name: "fs:read_file",
		ArgumentsForm: &loombridgev1.ToolRequest_Arguments{Arguments: MustStruct(t, map[string]any{"path": "a.txt", "offset": 3, "limit": 1})},
	})
	must(t, err)
	if content := got.GetOutput().GetStructValue().GetFields()["content"].GetStringValue(); content != "three\n" {
		t.Errorf("content = %q", content)
	}
}

// A tool that fails is an answer, not an error.
func TestToolFailureIsAnAnswer(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, test := range []struct {
		path string
		code loombridgev1.ToolErrorCode
	}{
		{"missing.txt", loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_NOT_FOUND},
		{"../outside.txt", loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_PERMISSION_DENIED},
		{"/etc/passwd", loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_PERMISSION_DENIED},
	} {
		got, err := s.Bridge.Tool(t.Context(), &loombridgev1.ToolRequest{
			AgentId: agent, Name: "fs:read_file",
			ArgumentsForm: &loombridgev1.ToolRequest_Arguments{Arguments: MustStruct(t, map[string]any{"path": test.path})},
		})
		must(t, err)
		if got.GetSuccess() || got.GetErrorCode() != test.code || got.GetErrorMessage() == "" || got.GetOutputForm() != nil {
			t.Errorf("%s: %v", test.path, got)
		}
		if got.GetStep().GetOutcome() != loombridgev1.StepOutcome_STEP_OUTCOME_FAILED || got.GetStep().GetError() == "" {
			t.Errorf("%s: step %v", test.path, got.GetStep())
		}
	}
}

func TestToolRefusals(t *testing.T) {
	s := servertest.Start(t, nil)
	call := func(name, args string) error {
		_, err := s.Bridge.Tool(t.Context(), &loombridgev1.ToolRequest{
			AgentId: agent, Name: name, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: args},
		})
		return err
	}
	info := MustFail(t, call("fs:read", `{}`), codes.NotFound, "TOOL_NOT_FOUND")
	if info.GetMetadata()["nearest"] != "fs:read_file" {
		t.Errorf("metadata = %v", info.GetMetadata())
	}
	MustFail(t, call("fs:read_file", `{"path":`), codes.InvalidArgument, "INVALID_ARGUMENTS")
	MustFail(t, call("fs:read_file", `[1]`), codes.InvalidArgument, "INVALID_ARGUMENTS")
	err := call("fs:read_file", `{"path":7}`)
	info = MustFail(t, err, codes.InvalidArgument, "INVALID_ARGUMENTS")
	if diff := cmp.Diff([]string{"arguments.path"}, fieldsOf(err)); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if !strings.Contains(info.GetMetadata()["schema"], `"required"`) {
		t.Errorf("metadata = %v", info.GetMetadata())
	}
	// A refused call leaves no step behind.
	steps, err := s.Context.ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: agent})
	must(t, err)
	if len(steps.GetSteps()) != 0 {
		t.Errorf("steps = %v", steps.GetSteps())
	}
}

func TestRequestIDs(t *testing.T) {
	s := servertest.Start(t, nil)
	save := &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "once", RequestId: "r1"}
	emit := &loombridgev1.EmitRequest{AgentId: agent, Topic: "news", RequestId: "r1"}
	call := &loombridgev1.ToolRequest{
		AgentId: agent, Name: "fs:write_file", RequestId: "r1",
		ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"path":"log.txt","content":"x","append":true}`},
	}
	first := MustSave(t, s, save)
	if again := MustSave(t, s, save); again.GetId() != first.GetId() {
		t.Errorf("save again = %v, first %v", again, first)
	}
	for range 2 {
		emitted, err := s.Bridge.Emit(t.Context(), emit)
		must(t, err)
		called, err := s.Bridge.Tool(t.Context(), call)
		must(t, err)
		if emitted.GetSequence() != 1 || called.GetStep().GetId() != "step_001" {
			t.Errorf("emitted %v, called %v", emitted, called)
		}
	}
	content, err := os.ReadFile(filepath.Join(s.Workspace, "log.txt"))
	must(t, err)
	if string(content) != "x" {
		t.Errorf("the tool ran twice: %q", content)
	}
	_, err = s.Bridge.MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "other", RequestId: "r1"})
	MustFail(t, err, codes.AlreadyExists, "REQUEST_ID_REUSED")
}

func TestDomainErrorsReachTheClient(t *testing.T) {
	s := servertest.Start(t, nil)
	MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "x", Key: "k", Id: "id-1"})
	save := func(r *loombridgev1.MemorySaveRequest) error {
		r.AgentId = agent
		_, err := s.Bridge.MemorySave(t.Context(), r)
		return err
	}
	query := func(r *loombridgev1.MemoryQueryRequest) error {
		r.AgentId, r.Query = agent, "x"
		_, err := s.Bridge.MemoryQuery(t.Context(), r)
		return err
	}
	emit := func(topic string) error {
		_, err := s.Bridge.Emit(t.Context(), &loombridgev1.EmitRequest{AgentId: agent, Topic: topic})
		return err
	}
	get := func(id string) error {
		_, err := s.Memory.GetRecord(t.Context(), &loombridgev1.GetRecordRequest{AgentId: agent, Name: &loombridgev1.GetRecordRequest_Id{Id: id}})
		return err
	}
	step := func(id string) error {
		_, err := s.Context.GetStep(t.Context(), &loombridgev1.GetStepRequest{AgentId: agent, StepId: id})
		return err
	}
	assemble := func(system string) error {
		_, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, System: system, MaxTokens: 50})
		return err
	}
	for _, test := range []struct {
		name   string
		err    error
		code   codes.Code
		reason string
		detail string
	}{
		{"key taken", save(&loombridgev1.MemorySaveRequest{Text: "y", Key: "k"}), codes.AlreadyExists, "RECORD_EXISTS", "field"},
		{"expiry past", save(&loombridgev1.MemorySaveRequest{Text: "y", Expiry: &loombridgev1.MemorySaveRequest_ExpireTime{ExpireTime: timestamppb.New(time.Unix(0, 0))}}), codes.InvalidArgument, "INVALID_REQUEST", ""},
		{"metadata no object", save(&loombridgev1.MemorySaveRequest{Text: "y", MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: `[1]`}}), codes.InvalidArgument, "INVALID_REQUEST", ""},
		{"unknown filter field", query(&loombridgev1.MemoryQueryRequest{Filter: `colour = "red"`}), codes.InvalidArgument, "INVALID_FILTER", "offset"},
		{"filter syntax", query(&loombridgev1.MemoryQueryRequest{Filter: `kind = `}), codes.InvalidArgument, "INVALID_FILTER", ""},
		{"no embedder", query(&loombridgev1.MemoryQueryRequest{Mode: loombridgev1.QueryMode_QUERY_MODE_VECTOR}), codes.FailedPrecondition, "NO_EMBEDDER", ""},
		{"no record", get("nope"), codes.NotFound, "RECORD_NOT_FOUND", ""},
		{"no step", step("step_999"), codes.NotFound, "STEP_NOT_FOUND", ""},
		{"reserved topic", emit("agent.status"), codes.InvalidArgument, "RESERVED_TOPIC", ""},
		{"bad topic", emit("a..b"), codes.InvalidArgument, "INVALID_REQUEST", ""},
		{"overflow", assemble(strings.Repeat("word ", 500)), codes.FailedPrecondition, "CONTEXT_OVERFLOW", "part_tokens"},
	} {
		t.Run(test.name, func(t *testing.T) {
			info := MustFail(t, test.err, test.code, test.reason)
			if said := status.Convert(test.err).Message(); test.name == "unknown filter field" && !strings.Contains(said, `field "colour" is unknown; served are id, key, kind,`) {
				t.Errorf("said %q", said)
			}
			if _, ok := info.GetMetadata()[test.detail]; test.detail != "" && !ok {
				t.Errorf("metadata = %v, want %q", info.GetMetadata(), test.detail)
			}
		})
	}
}

func TestExpiredRecordsAreGone(t *testing.T) {
	s := servertest.Start(t, nil)
	saved := MustSave(t, s, &loombridgev1.MemorySaveRequest{
		AgentId: agent, Text: "short lived", Expiry: &loombridgev1.MemorySaveRequest_Ttl{Ttl: durationpb.New(time.Minute)},
	})
	s.Clock.Advance(2 * time.Minute)
	_, err := s.Memory.GetRecord(t.Context(), &loombridgev1.GetRecordRequest{AgentId: agent, Name: &loombridgev1.GetRecordRequest_Id{Id: saved.GetId()}})
	MustFail(t, err, codes.NotFound, "RECORD_NOT_FOUND")
}

func TestDeadlines(t *testing.T) {
	s := servertest.Start(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	_, err := s.Bridge.MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "late"})
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("err = %v", err)
	}
	found, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "late"})
	must(t, err)
	if len(found.GetHits()) != 0 {
		t.Error("a call that was late saved its record")
	}
}
