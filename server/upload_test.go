package server_test

import (
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/compose"
)

// uploadOf is a step whose result follows in a form.
func uploadOf(form loombridgev1.ResultForm) *loombridgev1.RecordStepRequest {
	return &loombridgev1.RecordStepRequest{
		AgentId: agent, ToolName: "my.tool", Success: true,
		OutputForm: &loombridgev1.RecordStepRequest_OutputUpload{OutputUpload: &loombridgev1.ResultUpload{Form: form}},
	}
}

// upload streams a step and the parts of its result.
func upload(tb testing.TB, s *servertest.Server, step *loombridgev1.RecordStepRequest, parts ...string) (*loombridgev1.RecordStepResponse, error) {
	tb.Helper()
	stream, err := s.Context.UploadStep(tb.Context())
	must(tb, err)
	messages := []*loombridgev1.UploadStepRequest{{Item: &loombridgev1.UploadStepRequest_Step{Step: step}}}
	for _, part := range parts {
		messages = append(messages, &loombridgev1.UploadStepRequest{Item: &loombridgev1.UploadStepRequest_Data{Data: []byte(part)}})
	}
	for _, m := range messages {
		if err := stream.Send(m); errors.Is(err, io.EOF) {
			break // the server has answered
		}
	}
	got, err := stream.CloseAndRecv()
	return got, err
}

func mustRandom(tb testing.TB, n int) string {
	tb.Helper()
	data := make([]byte, n)
	_, err := rand.Read(data)
	must(tb, err)
	return string(data)
}

// A21: a result that is too long for one message comes back byte for byte.
func TestUploadedResultsComeBack(t *testing.T) {
	s := servertest.Start(t, nil)
	long := mustRandom(t, 3<<20+17)
	text := strings.Repeat("a line of ümläuts\n", 100_000)
	for name, test := range map[string]struct {
		form  loombridgev1.ResultForm
		parts []string
		kind  string
	}{
		"bytes":        {loombridgev1.ResultForm_RESULT_FORM_BYTES, []string{long[:1<<20], long[1<<20 : 1<<20+1], "", long[1<<20+1:]}, "binary"},
		"text":         {loombridgev1.ResultForm_RESULT_FORM_TEXT, []string{text[:1000], text[1000:]}, "text"},
		"JSON":         {loombridgev1.ResultForm_RESULT_FORM_JSON, []string{`[1e5, "`, strings.Repeat("x", 2<<20), `"]`}, "json"},
		"one chunk":    {loombridgev1.ResultForm_RESULT_FORM_BYTES, []string{long[:1<<20]}, "binary"},
		"little":       {loombridgev1.ResultForm_RESULT_FORM_BYTES, []string{"ab\x00c"}, ""},
		"text and NUL": {loombridgev1.ResultForm_RESULT_FORM_TEXT, []string{"ab\x00c", strings.Repeat("y", 2<<20)}, "binary"},
		"nothing":      {loombridgev1.ResultForm_RESULT_FORM_TEXT, nil, ""},
	} {
		got, err := upload(t, s, uploadOf(test.form), test.parts...)
		must(t, err)
		want := strings.Join(test.parts, "")
		if got.GetOutputBlob().GetKind() != test.kind || got.GetStep().GetResultForm() != test.form {
			t.Errorf("%s: %v as %v", name, got.GetOutputBlob(), got.GetStep().GetResultForm())
		}
		for _, name := range []string{got.GetStep().GetId(), got.GetOutputBlob().GetPath(), got.GetOutputBlob().GetRef()} {
			if name != "" && readName(t, s, name) != want {
				t.Errorf("%s did not come back by %s", test.kind, name)
			}
		}
	}
}

// An upload that breaks the rules, or breaks off, leaves no step and no blob.
func TestUploadsThatRecordNothing(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{
		Domain: compose.Options{Hand: hand.Options{MaxResultBytes: 2 << 20}}, Server: server.Options{Limits: server.Limits{StallTimeout: 200 * time.Millisecond}},
		Blobs: blob.Options{MaxOwnerBytes: 3 << 20},
	})
	odd := uploadOf(loombridgev1.ResultForm_RESULT_FORM_NONE)
	inline := &loombridgev1.RecordStepRequest{AgentId: agent, ToolName: "my.tool", OutputForm: &loombridgev1.RecordStepRequest_OutputText{OutputText: "x"}}
	for name, bad := range map[string]*loombridgev1.RecordStepRequest{"no form": odd, "a result of its own": inline, "no step": nil} {
		_, err := upload(t, s, bad, "data")
		MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
		t.Log(name, err)
	}
	good := uploadOf(loombridgev1.ResultForm_RESULT_FORM_TEXT)
	_, err := upload(t, s, good, strings.Repeat("x", 1<<20), strings.Repeat("x", 1<<20), "x")
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	_, err = upload(t, s, good, strings.Repeat("x", 1<<20), "\xff")
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	_, err = s.Context.RecordStep(t.Context(), good)
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")

	twice, err := s.Context.UploadStep(t.Context())
	must(t, err)
	for range 2 {
		must(t, twice.Send(&loombridgev1.UploadStepRequest{Item: &loombridgev1.UploadStepRequest_Step{Step: good}}))
	}
	_, err = twice.CloseAndRecv()
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")

	silent, err := s.Context.UploadStep(t.Context())
	must(t, err)
	must(t, silent.Send(&loombridgev1.UploadStepRequest{Item: &loombridgev1.UploadStepRequest_Step{Step: good}}))
	MustFail(t, silent.RecvMsg(&loombridgev1.RecordStepResponse{}), codes.InvalidArgument, "INVALID_REQUEST")

	if steps := MustListSteps(t, s); len(steps) != 0 {
		t.Errorf("%d steps were recorded", len(steps))
	}
	s.Clock.Advance(25 * time.Hour)
	_, err = s.Context.CollectGarbage(t.Context(), &loombridgev1.CollectGarbageRequest{AgentId: agent})
	must(t, err)
	if blobs := MustList(t, s, &loombridgev1.ListBlobsRequest{}); len(blobs) != 0 {
		t.Errorf("%d blobs were kept", len(blobs))
	}
}

func MustListSteps(tb testing.TB, s *servertest.Server) []*loombridgev1.Step {
	tb.Helper()
	got, err := s.Context.ListSteps(tb.Context(), &loombridgev1.ListStepsRequest{AgentId: agent, PageSize: 1000})
	must(tb, err)
	return got.GetSteps()
}

// The same upload under the same request id is one step; another is refused.
func TestUploadOnce(t *testing.T) {
	s := servertest.Start(t, nil)
	r := uploadOf(loombridgev1.ResultForm_RESULT_FORM_BYTES)
	r.RequestId = "once"
	long := mustRandom(t, 2<<20)
	first, err := upload(t, s, r, long[:1<<20], long[1<<20:])
	must(t, err)
	again, err := upload(t, s, r, long)
	must(t, err)
	if first.GetReplayed() || !again.GetReplayed() || again.GetStep().GetId() != first.GetStep().GetId() || again.GetOutputBlob().GetPath() != first.GetOutputBlob().GetPath() {
		t.Errorf("first %v, again %v", first, again)
	}
	_, err = upload(t, s, r, long, "more")
	MustFail(t, err, codes.AlreadyExists, "REQUEST_ID_REUSED")
	if steps := MustListSteps(t, s); len(steps) != 1 {
		t.Errorf("%d steps", len(steps))
	}
}

// A request whose blob was collected since stays answered, and says so.
func TestReplayOfACollectedResult(t *testing.T) {
	s := servertest.Start(t, nil)
	MustWrite(t, s, "a.txt", textAbout("a file"))
	call := &loombridgev1.ToolRequest{
		AgentId: agent, SessionId: "old", Name: "fs:read_file", RequestId: "one",
		ArgumentsForm: &loombridgev1.ToolRequest_Arguments{Arguments: MustStruct(t, map[string]any{"path": "a.txt"})},
	}
	report := &loombridgev1.RecordStepRequest{
		AgentId: agent, SessionId: "old", ToolName: "my.tool", Success: true, RequestId: "two",
		OutputForm: &loombridgev1.RecordStepRequest_OutputText{OutputText: textAbout("a report")},
	}
	ran, err := s.Bridge.Tool(t.Context(), call)
	must(t, err)
	told, err := s.Context.RecordStep(t.Context(), report)
	must(t, err)
	if ran.GetReplayed() || told.GetReplayed() || ran.GetOutputBlob() == nil || told.GetOutputBlob() == nil {
		t.Fatalf("%v\n%v", ran, told)
	}
	s.Clock.Advance(idle)
	_, err = s.Context.CollectGarbage(t.Context(), &loombridgev1.CollectGarbageRequest{AgentId: agent})
	must(t, err)
	MustFail(t, readError(t, s, told.GetOutputBlob().GetPath()), codes.NotFound, "BLOB_COLLECTED")
	again, err := s.Bridge.Tool(t.Context(), call)
	must(t, err)
	if !again.GetReplayed() || !again.GetOutputCollected() || again.GetOutputBlob() != nil || !again.GetSuccess() ||
		again.GetStep().GetId() != ran.GetStep().GetId() || again.GetObservation() != ran.GetObservation() {
		t.Errorf("the call again: %v", again)
	}
	retold, err := s.Context.RecordStep(t.Context(), report)
	must(t, err)
	if !retold.GetReplayed() || !retold.GetOutputCollected() || retold.GetOutputBlob() != nil || retold.GetStep().GetId() != told.GetStep().GetId() {
		t.Errorf("the report again: %v", retold)
	}
}

// A21: content blocks are kept as the JSON that MCP has for them.
func TestContentBlocks(t *testing.T) {
	s := servertest.Start(t, nil)
	r := &loombridgev1.RecordStepRequest{AgentId: agent, ToolName: "my.tool", Success: true}
	want := `{"content":[{"text":"one\n","type":"text"},{"data":"iVBORw0KGgo=","mimeType":"image/png","type":"image"},` +
		`{"data":"SUQz","mimeType":"audio/mpeg","type":"audio"},{"resource":{"text":"two","uri":"file:///a"},"type":"resource"},` +
		`{"resource":{"blob":"AAE=","mimeType":"x/y","uri":"file:///b"},"type":"resource"}]}`
	r.OutputForm = &loombridgev1.RecordStepRequest_OutputJson{OutputJson: want}
	got, err := s.Context.RecordStep(t.Context(), r)
	must(t, err)
	if read := readName(t, s, got.GetStep().GetId()); read != want {
		t.Errorf("got  %s\nwant %s", read, want)
	}
	if want := "one\n\n[image image/png 8 bytes, step_001]\n[audio audio/mpeg 3 bytes, step_001]\ntwo\n[binary x/y 2 bytes, step_001]"; got.GetStep().GetInline() != want {
		t.Errorf("inline %q", got.GetStep().GetInline())
	}
	if _, data := MustReadBlob(t, s, &loombridgev1.ReadBlobRequest{AgentId: agent, Name: "step_001", Form: loombridgev1.BlobForm_BLOB_FORM_MEDIA, MediaIndex: 2}); string(data) != "\x00\x01" {
		t.Errorf("the third is %q", data)
	}
}

// A step that wrote a file leads to what was written, and its result is the
// original.
//
// A11
func TestWrittenContentAndResult(t *testing.T) {
	s := servertest.Start(t, nil)
	got, err := s.Bridge.Tool(t.Context(), &loombridgev1.ToolRequest{
		AgentId: agent, Name: "fs:write_file",
		ArgumentsForm: &loombridgev1.ToolRequest_Arguments{Arguments: MustStruct(t, map[string]any{"path": "a.txt", "content": "text"})},
	})
	must(t, err)
	if read := readName(t, s, got.GetStep().GetId()); read != "text" {
		t.Errorf("the step leads to %q", read)
	}
	_, data := MustReadBlob(t, s, &loombridgev1.ReadBlobRequest{AgentId: agent, Name: got.GetStep().GetId(), Form: loombridgev1.BlobForm_BLOB_FORM_ORIGINAL})
	if want := `{"bytes_written":4,"path":"a.txt","success":true}`; string(data) != want {
		t.Errorf("the original is %s", data)
	}
}
