package server_test

import (
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

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
)

// idle is longer than a session may be idle, and than any result stays.
const idle = 8 * 24 * time.Hour

// MustOffload records a step whose result is long, and returns its blob.
func MustOffload(tb testing.TB, s *servertest.Server, session, text string) *loombridgev1.BlobInfo {
	tb.Helper()
	got, err := s.Context.RecordStep(tb.Context(), &loombridgev1.RecordStepRequest{
		AgentId: agent, SessionId: session, ToolName: "my.tool", Success: true,
		OutputForm: &loombridgev1.RecordStepRequest_OutputText{OutputText: text},
	})
	must(tb, err)
	if got.GetOutputBlob() == nil {
		tb.Fatalf("%d bytes were not offloaded", len(text))
	}
	return got.GetOutputBlob()
}

// textAbout is long enough to be offloaded.
func textAbout(what string) string {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, "line %d about %s\n", i, what)
	}
	return b.String()
}

func MustList(tb testing.TB, s *servertest.Server, r *loombridgev1.ListBlobsRequest) []*loombridgev1.BlobInfo {
	tb.Helper()
	var all []*loombridgev1.BlobInfo
	r.AgentId = agent
	for {
		got, err := s.Context.ListBlobs(tb.Context(), r)
		must(tb, err)
		all = append(all, got.GetBlobs()...)
		if r.PageToken = got.GetNextPageToken(); r.PageToken == "" {
			return all
		}
	}
}

func MustCollect(tb testing.TB, s *servertest.Server, dryRun bool) *loombridgev1.CollectGarbageResponse {
	tb.Helper()
	got, err := s.Context.CollectGarbage(tb.Context(), &loombridgev1.CollectGarbageRequest{AgentId: agent, DryRun: dryRun})
	must(tb, err)
	return got
}

// readError is how reading a blob ends.
func readError(tb testing.TB, s *servertest.Server, name string) error {
	tb.Helper()
	stream, err := s.Context.ReadBlob(tb.Context(), &loombridgev1.ReadBlobRequest{AgentId: agent, Name: name})
	must(tb, err)
	for err == nil {
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// P11: what is known of a blob is listed.
func TestListBlobs(t *testing.T) {
	s := servertest.Start(t, nil)
	now := s.Clock.Now()
	var made []*loombridgev1.BlobInfo
	for i := range 5 {
		made = append(made, MustOffload(t, s, fmt.Sprint("s", i%2), textAbout(fmt.Sprint("subject ", i))))
	}
	want := &loombridgev1.BlobInfo{
		Ref: made[0].GetRef(), Path: "workspace/outputs/tool_001.txt", Size: int64(len(textAbout("subject 0"))), Kind: "text",
		StepId: "step_001", SessionId: "s0", CreateTime: timestamppb.New(now), AgentId: agent, Category: "tool",
		Ttl: durationpb.New(24 * time.Hour), ExpireTime: timestamppb.New(now.Add(24 * time.Hour)),
		Tier: loombridgev1.BlobTier_BLOB_TIER_WORKING,
	}
	if diff := cmp.Diff(want, made[0], protocmp.Transform()); diff != "" {
		t.Errorf("blob (-want +got):\n%s", diff)
	}
	for _, size := range []int32{0, 1, 2, 5} {
		if diff := cmp.Diff(made, MustList(t, s, &loombridgev1.ListBlobsRequest{PageSize: size}), protocmp.Transform()); diff != "" {
			t.Errorf("pages of %d (-want +got):\n%s", size, diff)
		}
	}
	if got := MustList(t, s, &loombridgev1.ListBlobsRequest{SessionId: "s1", PageSize: 1}); len(got) != 2 {
		t.Errorf("%d blobs of a session", len(got))
	}
	got, err := s.Context.ListBlobs(t.Context(), &loombridgev1.ListBlobsRequest{AgentId: agent})
	must(t, err)
	if u := got.GetUsage(); u.GetCount() != 5 || u.GetBytes() != 5*want.GetSize() || u.GetMaxBytes() != blob.DefaultMaxOwnerBytes {
		t.Errorf("usage = %v", u)
	}
	s.Clock.Advance(24 * time.Hour)
	if first := MustList(t, s, &loombridgev1.ListBlobsRequest{IncludeClosed: true})[0]; s.Clock.Now().Before(first.GetExpireTime().AsTime()) {
		t.Errorf("after its time: %v", first)
	}
	must(t, readError(t, s, made[0].GetPath()))
	other, err := s.Context.ListBlobs(t.Context(), &loombridgev1.ListBlobsRequest{AgentId: "other"})
	must(t, err)
	if len(other.GetBlobs()) != 0 || other.GetUsage().GetBytes() != 0 {
		t.Errorf("another agent sees %v", other)
	}
}

// A page is cut before it gets too large to send, and the token leads on.
func TestListBlobsFitsTheMessage(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Limits: server.Limits{MaxSendBytes: 20 << 10}}})
	var want []string
	for i := range 30 {
		b := MustOffload(t, s, "", textAbout(fmt.Sprint(i)))
		_, err := s.Context.UpdateBlob(t.Context(), &loombridgev1.UpdateBlobRequest{
			Archive: true,
			AgentId: agent, Name: b.GetRef(), Tags: []string{strings.Repeat("t", 128), strings.Repeat("u", 128), strings.Repeat("v", 128), strings.Repeat("w", 128)},
		})
		must(t, err)
		want = append(want, b.GetRef())
	}
	page, err := s.Context.ListBlobs(t.Context(), &loombridgev1.ListBlobsRequest{AgentId: agent})
	must(t, err)
	if n := len(page.GetBlobs()); n == 0 || n == 30 || page.GetNextPageToken() == "" {
		t.Errorf("%d blobs, token %q", n, page.GetNextPageToken())
	}
	var got []string
	for _, b := range MustList(t, s, &loombridgev1.ListBlobsRequest{}) {
		got = append(got, b.GetRef())
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("refs (-want +got):\n%s", diff)
	}
}

// P14: promotion over the wire; tools find the blob under every path.
func TestPromoteBlob(t *testing.T) {
	s := servertest.Start(t, nil)
	text := textAbout("the result")
	made := MustOffload(t, s, "", text)
	request := &loombridgev1.UpdateBlobRequest{
		AgentId: agent, Name: "step_001", Tier: loombridgev1.BlobTier_BLOB_TIER_LONG_TERM,
		Category: "reports", NewName: "result.txt", Important: true, RequestId: "r1",
	}
	got, err := s.Context.UpdateBlob(t.Context(), request)
	must(t, err)
	b := got
	if b.GetPath() != "persistent/researcher-1/reports/result.txt" || !slices.Equal(b.GetAliases(), []string{made.GetPath()}) ||
		b.GetTier() != request.GetTier() || !b.GetImportant() || b.GetExpireTime() != nil || b.GetTtl() != nil {
		t.Errorf("blob = %v", b)
	}
	again, err := s.Context.UpdateBlob(t.Context(), request)
	must(t, err)
	if diff := cmp.Diff(got, again, protocmp.Transform()); diff != "" {
		t.Errorf("the same request again:\n%s", diff)
	}
	s.Clock.Advance(idle)
	MustCollect(t, s, false)
	for _, name := range []string{b.GetPath(), made.GetPath(), "outputs/tool_001.txt", made.GetRef()} {
		if answer := MustRead(t, s, agent, name); !answer.GetSuccess() || !strings.Contains(answer.GetOutputJson(), "line 7 about the result") {
			t.Errorf("%s: %v", name, answer)
		}
	}
	_, err = s.Context.UpdateBlob(t.Context(), &loombridgev1.UpdateBlobRequest{AgentId: "other", Name: made.GetRef(), Tier: request.GetTier()})
	MustFail(t, err, codes.NotFound, "BLOB_NOT_FOUND")
	request.Name = "step_999"
	_, err = s.Context.UpdateBlob(t.Context(), request)
	MustFail(t, err, codes.AlreadyExists, "REQUEST_ID_REUSED")
}

// MustSearch collects what a search finds.
func MustSearch(tb testing.TB, s *servertest.Server, r *loombridgev1.SearchBlobsRequest) []*loombridgev1.SearchBlobsResponse {
	tb.Helper()
	r.AgentId = agent
	stream, err := s.Context.SearchBlobs(tb.Context(), r)
	must(tb, err)
	var all []*loombridgev1.SearchBlobsResponse
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all
		}
		must(tb, err)
		all = append(all, message)
	}
}

// What a prompt left out of the log is searched by the names that the prompt
// shows, page by page, as blobs are: a message of the session given, and a step
// that was not offloaded.
func TestSearchOfTheLog(t *testing.T) {
	s := servertest.Start(t, nil)
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	_, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{
		AgentId: agent, SessionId: "s1", Messages: []*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_USER, Content: text.String()}},
	})
	must(t, err)
	_, err = s.Context.RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
		AgentId: agent, SessionId: "s1", ToolName: "my:tool", Success: true,
		OutputForm: &loombridgev1.RecordStepRequest_OutputJson{OutputJson: `"a line 7 of few"`},
	})
	must(t, err)
	request := &loombridgev1.SearchBlobsRequest{
		Name: "message_001", SessionId: "s1", MaxMatches: 4,
		Pattern: &loombridgev1.SearchBlobsRequest_Regexp{Regexp: `line \d?7$`},
	}
	var lines []int64
	for request.PageToken = ""; ; {
		all := MustSearch(t, s, request)
		for _, message := range all {
			for _, m := range message.GetMatches() {
				lines = append(lines, m.GetLine())
			}
		}
		if request.PageToken = all[len(all)-1].GetNextPageToken(); request.PageToken == "" {
			break
		}
	}
	if want := []int64{8, 18, 28, 38, 48, 58, 68, 78, 88, 98}; !slices.Equal(lines, want) {
		t.Errorf("lines %v, want %v", lines, want)
	}
	request = &loombridgev1.SearchBlobsRequest{Name: "step_001", Pattern: &loombridgev1.SearchBlobsRequest_Literal{Literal: "line 7"}}
	if all := MustSearch(t, s, request); len(all) != 1 || len(all[0].GetMatches()) != 1 {
		t.Errorf("the step: %v", all)
	}
	request = &loombridgev1.SearchBlobsRequest{AgentId: agent, Name: "message_001", Pattern: request.Pattern}
	stream, err := s.Context.SearchBlobs(t.Context(), request)
	must(t, err)
	_, err = stream.Recv()
	MustFail(t, err, codes.NotFound, "BLOB_NOT_FOUND")
}

// Archived blobs stay, and are found by words, category and all tags.
//
// P17
func TestArchiveAndSearch(t *testing.T) {
	s := servertest.Start(t, nil)
	for i, subject := range []string{"migrating databases", "the weather", "database backups", "birds"} {
		b := MustOffload(t, s, "", textAbout(subject))
		_, err := s.Context.UpdateBlob(t.Context(), &loombridgev1.UpdateBlobRequest{
			Archive: true,
			AgentId: agent, Name: b.GetPath(), Category: []string{"reports", "general"}[i%2], Tags: []string{"all", fmt.Sprint("n", i)},
		})
		must(t, err)
		s.Clock.Advance(time.Second)
	}
	MustOffload(t, s, "", textAbout("a database that is not archived"))
	s.Clock.Advance(idle)
	MustCollect(t, s, false)
	steps := func(r *loombridgev1.SearchBlobsRequest) (ids []string) {
		for _, found := range MustSearch(t, s, r) {
			ids = append(ids, found.GetBlob().GetStepId())
		}
		return ids
	}
	words := func(w string) *loombridgev1.SearchBlobsRequest_Words {
		return &loombridgev1.SearchBlobsRequest_Words{Words: w}
	}
	for name, test := range map[string]struct {
		request *loombridgev1.SearchBlobsRequest
		want    []string
	}{
		"words in any form": {&loombridgev1.SearchBlobsRequest{Pattern: words("database migration")}, []string{"step_001", "step_003"}},
		"category":          {&loombridgev1.SearchBlobsRequest{Pattern: words("weather"), Category: "reports"}, nil},
		"tags":              {&loombridgev1.SearchBlobsRequest{Tags: []string{"n3", "all"}}, []string{"step_004"}},
		"the newest":        {&loombridgev1.SearchBlobsRequest{Limit: 2}, []string{"step_004", "step_003"}},
		"literal": {&loombridgev1.SearchBlobsRequest{
			Pattern: &loombridgev1.SearchBlobsRequest_Literal{Literal: "ABOUT BIRDS"}, IgnoreCase: true,
		}, []string{"step_004"}},
	} {
		if diff := cmp.Diff(test.want, steps(test.request)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	found := MustSearch(t, s, &loombridgev1.SearchBlobsRequest{Pattern: words("weather")})[0]
	if found.GetBlob().GetPath() != "archive/general/tool_002.txt" || found.GetBlob().GetArchive().GetCategory() != "general" ||
		len(found.GetMatches()) != 3 || !found.GetMore() || found.GetMatches()[0].GetText() != "line 0 about the weather" {
		t.Errorf("found = %v", found)
	}
	must(t, readError(t, s, "outputs/tool_002.txt"))
}

// Lines of one blob come with their numbers and places, in pages.
func TestSearchOneBlob(t *testing.T) {
	s := servertest.Start(t, nil)
	text := textAbout("anything")
	b := MustOffload(t, s, "", text)
	request := &loombridgev1.SearchBlobsRequest{Name: b.GetRef()[:12], Pattern: &loombridgev1.SearchBlobsRequest_Regexp{Regexp: `^line \d*7 `}, MaxMatches: 8}
	var lines []int64
	for pages := 1; ; pages++ {
		messages := MustSearch(t, s, request)
		if messages[0].GetBlob().GetPath() != b.GetPath() {
			t.Errorf("blob = %v", messages[0].GetBlob())
		}
		for _, message := range messages {
			for _, m := range message.GetMatches() {
				lines = append(lines, m.GetLine())
				if shown := text[m.GetOffset() : m.GetOffset()+m.GetLength()]; !strings.HasPrefix(m.GetText(), shown) {
					t.Errorf("match %v, text there is %q", m, shown)
				}
			}
		}
		if request.PageToken = messages[len(messages)-1].GetNextPageToken(); request.PageToken == "" {
			if pages != 3 {
				t.Errorf("%d pages", pages)
			}
			break
		}
	}
	var want []int64
	for i := 7; i < 200; i += 10 {
		want = append(want, int64(i+1))
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	all := MustSearch(t, s, &loombridgev1.SearchBlobsRequest{Name: "step_001", Pattern: &loombridgev1.SearchBlobsRequest_Literal{Literal: "line"}, MaxMatches: 1000})
	if len(all) != 4 || all[3].GetNextPageToken() != "" || len(all[0].GetMatches()) != 64 || all[1].GetBlob() != nil {
		t.Errorf("200 lines came in %d messages", len(all))
	}
	none := MustSearch(t, s, &loombridgev1.SearchBlobsRequest{Name: "step_001", Pattern: &loombridgev1.SearchBlobsRequest_Literal{Literal: "absent"}})
	if len(none) != 1 || none[0].GetBlob() == nil || len(none[0].GetMatches()) != 0 {
		t.Errorf("no match: %v", none)
	}
	for name, r := range map[string]*loombridgev1.SearchBlobsRequest{
		"regexp":  {Name: "step_001", Pattern: &loombridgev1.SearchBlobsRequest_Regexp{Regexp: "("}},
		"literal": {Name: "step_001", Pattern: &loombridgev1.SearchBlobsRequest_Literal{Literal: "a\nb"}},
	} {
		r.AgentId = agent
		stream, err := s.Context.SearchBlobs(t.Context(), r)
		must(t, err)
		_, err = stream.Recv()
		MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
		if fields := fieldsOf(err); !slices.Equal(fields, []string{name}) {
			t.Errorf("fields %v", fields)
		}
	}
}

// Only what has expired and what nobody refers to is deleted, and reading
// it later says so.
func TestCollectGarbage(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{Blobs: blob.Options{CollectEvery: -1}})
	garbage := MustOffload(t, s, "old", textAbout("garbage"))
	read := MustOffload(t, s, "old", textAbout("what is read again"))
	told := MustOffload(t, s, "old", textAbout("what a message names"))
	remembered := MustOffload(t, s, "old", textAbout("what a record names"))
	shared := MustOffload(t, s, "old", textAbout("what a user's record names"))
	if got := MustCollect(t, s, false); got.GetDeletedCount() != 0 || got.GetKept()["not_expired"] != 5 {
		t.Errorf("at once: %v", got)
	}
	s.Clock.Advance(6 * 24 * time.Hour)
	if got := MustCollect(t, s, false); got.GetDeletedCount() != 0 || got.GetKept()["referenced"] != 5 {
		t.Errorf("while the session goes on: %v", got)
	}
	s.Clock.Advance(2 * 24 * time.Hour)
	if answer := MustRead(t, s, agent, read.GetPath()); !answer.GetSuccess() { // its step refers to it now
		t.Fatalf("read: %v", answer)
	}
	_, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: "new", Messages: []*loombridgev1.Message{
		{Role: loombridgev1.Role_ROLE_USER, Content: "look at " + told.GetRef()[:12]},
	}})
	must(t, err)
	MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "the figures are in " + remembered.GetPath()})
	MustSave(t, s, &loombridgev1.MemorySaveRequest{AgentId: agent, UserId: "ada", Text: "see " + shared.GetRef()})
	// Reading holds the blob for a moment after the call.
	want := &loombridgev1.CollectGarbageResponse{
		DeletedCount: 1, FreedBytes: garbage.GetSize(), DeletedRefs: []string{garbage.GetRef()},
		Kept: map[string]int64{"referenced": 4},
	}
	got := MustCollect(t, s, true)
	got.Kept["referenced"] += got.GetKept()["in_use"]
	delete(got.Kept, "in_use")
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("dry run (-want +got):\n%s", diff)
	}
	must(t, readError(t, s, garbage.GetPath()))
	got = MustCollect(t, s, false)
	got.Kept["referenced"] += got.GetKept()["in_use"]
	delete(got.Kept, "in_use")
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, name := range []string{garbage.GetPath(), garbage.GetRef(), garbage.GetRef()[:12], "step_001"} {
		MustFail(t, readError(t, s, name), codes.NotFound, "BLOB_COLLECTED")
	}
	MustFail(t, readError(t, s, "step_099"), codes.NotFound, "BLOB_NOT_FOUND")
	for _, b := range []*loombridgev1.BlobInfo{read, told, remembered, shared} {
		must(t, readError(t, s, b.GetRef()))
	}
	if answer := MustRead(t, s, agent, garbage.GetPath()); answer.GetSuccess() {
		t.Errorf("a tool reads what is gone: %v", answer)
	}
}

// Garbage goes when a session begins, with a message or with a call.
func TestGarbageGoesWhenASessionBegins(t *testing.T) {
	for name, begin := range map[string]func(s *servertest.Server){
		"message": func(s *servertest.Server) {
			_, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: "new", Messages: conversation()})
			must(t, err)
		},
		"step": func(s *servertest.Server) { MustOffload(t, s, "new", textAbout("something new")) },
		"call": func(s *servertest.Server) {
			_, err := s.Bridge.Tool(t.Context(), &loombridgev1.ToolRequest{
				AgentId: agent, SessionId: "new", Name: "fs:list_dir",
				ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"path":"."}`},
			})
			must(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := servertest.Start(t, nil)
			garbage := MustOffload(t, s, "old", textAbout("garbage"))
			s.Clock.Advance(idle)
			begin(s)
			err := error(nil)
			for deadline := time.Now().Add(5 * time.Minute); err == nil && time.Now().Before(deadline); {
				err = readError(t, s, garbage.GetPath()) // the background is at work
			}
			MustFail(t, err, codes.NotFound, "BLOB_COLLECTED")
		})
	}
}

// An agent without room gets its results all the same, and is told why they are
// not kept; its garbage makes room first.
func TestBlobQuota(t *testing.T) {
	text := textAbout("something")
	s := servertest.Start(t, &servertest.Options{Blobs: blob.Options{MaxOwnerBytes: int64(len(text)) + 10, CollectEvery: -1}})
	first := MustOffload(t, s, "old", text)
	MustOffload(t, s, "old", text) // nothing new
	request := &loombridgev1.RecordStepRequest{
		AgentId: agent, ToolName: "my.tool", Success: true,
		OutputForm: &loombridgev1.RecordStepRequest_OutputText{OutputText: textAbout("more")},
	}
	_, err := s.Context.RecordStep(t.Context(), request)
	info := MustFail(t, err, codes.ResourceExhausted, "BLOB_QUOTA_EXCEEDED")
	if info.GetMetadata()["max_bytes"] != fmt.Sprint(len(text)+10) || info.GetMetadata()["used_bytes"] != fmt.Sprint(len(text)) {
		t.Errorf("metadata = %v", info.GetMetadata())
	}
	MustWrite(t, s, "a.txt", textAbout("a file"))
	if answer := MustRead(t, s, agent, "a.txt"); !answer.GetSuccess() || answer.GetRecorded() || !strings.Contains(answer.GetRecordError(), "quota") {
		t.Errorf("answer = success %v, recorded %v, %q", answer.GetSuccess(), answer.GetRecorded(), answer.GetRecordError())
	}
	steps, err := s.Context.ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: agent, SessionId: "default", PageSize: 10})
	must(t, err)
	if len(steps.GetSteps()) != 0 {
		t.Errorf("%d steps were recorded", len(steps.GetSteps()))
	}
	s.Clock.Advance(idle)
	_, err = s.Context.RecordStep(t.Context(), request)
	must(t, err)
	MustFail(t, readError(t, s, first.GetPath()), codes.NotFound, "BLOB_COLLECTED")
}

// Pictures are known for what they are, and come back byte for byte.
func TestImageBlobs(t *testing.T) {
	s := servertest.Start(t, nil)
	picture := "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00\xff\x10", 2000)
	MustWrite(t, s, "p.png", picture)
	b := MustRead(t, s, agent, "p.png").GetOutputBlob()
	if b.GetKind() != "image" || b.GetMediaType() != "image/png" {
		t.Errorf("blob = %v", b)
	}
	if _, content := MustReadBlob(t, s, &loombridgev1.ReadBlobRequest{AgentId: agent, Name: b.GetRef()}); string(content) != picture {
		t.Errorf("%d bytes came back", len(content))
	}
}
