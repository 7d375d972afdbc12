package hooks

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// server answers calls as the native API does, from memory. It is away for the first calls.
type server struct {
	mu       sync.Mutex
	away     int
	requests map[string]bool
	entries  []*loombridgev1.ConversationEntry // the oldest first
	steps    []*loombridgev1.RecordStepRequest
	uploaded []byte
	records  map[string]*loombridgev1.Record // by key
	sessions []*loombridgev1.SessionInfo
}

func newServer() *server {
	return &server{requests: map[string]bool{}, records: map[string]*loombridgev1.Record{}}
}

func (s *server) Invoke(_ context.Context, _ string, request, answer any, _ ...grpc.CallOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away > 0 {
		s.away--
		return status.Error(codes.Unavailable, "away")
	}
	switch ask := request.(type) {
	case *loombridgev1.ListConversationRequest:
		if n := len(s.entries); n > 0 {
			answer.(*loombridgev1.ListConversationResponse).Entries = s.entries[n-1:]
		}
	case *loombridgev1.AppendMessagesRequest:
		if !s.requests[ask.GetRequestId()] {
			s.requests[ask.GetRequestId()] = true
			s.entries = append(s.entries, &loombridgev1.ConversationEntry{
				Position: int64(len(s.entries) + 1), CreateTime: timestamppb.Now(), Entry: &loombridgev1.ConversationEntry_Message{Message: ask.GetMessages()[0]},
			})
		}
	case *loombridgev1.RecordStepRequest:
		if !s.requests[ask.GetRequestId()] {
			s.requests[ask.GetRequestId()] = true
			s.steps = append(s.steps, ask)
			s.entries = append(s.entries, &loombridgev1.ConversationEntry{Position: int64(len(s.entries) + 1), CreateTime: timestamppb.Now()})
		}
	case *loombridgev1.GetRecordRequest:
		r := s.records[ask.GetKey()]
		if r == nil {
			return status.Error(codes.NotFound, "none")
		}
		proto.Merge(answer.(*loombridgev1.Record), r)
	case *loombridgev1.DeleteRecordsRequest:
		if s.records[ask.GetKey()] == nil {
			return status.Error(codes.NotFound, "none")
		}
		delete(s.records, ask.GetKey())
	case *loombridgev1.ListRecordsRequest:
		for _, r := range s.records {
			list := answer.(*loombridgev1.ListRecordsResponse)
			list.Records = append(list.Records, r)
		}
	case *loombridgev1.ListSessionsRequest:
		answer.(*loombridgev1.ListSessionsResponse).Sessions = s.sessions
	default:
		return status.Errorf(codes.Unimplemented, "%T", request)
	}
	return nil
}

// upload is the stream of one long result.
type upload struct {
	grpc.ClientStream
	server *server
}

func (s *server) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return &upload{server: s}, nil
}

func (u *upload) SendMsg(message any) error {
	ask := message.(*loombridgev1.UploadStepRequest)
	if step := ask.GetStep(); step != nil {
		u.server.steps = append(u.server.steps, step)
	}
	u.server.uploaded = append(u.server.uploaded, ask.GetData()...)
	return nil
}

func (u *upload) CloseSend() error  { return nil }
func (u *upload) RecvMsg(any) error { return nil }

func handled(t *testing.T, s *server, e Event) string {
	t.Helper()
	text, err := NewHandler(s, "a").Handle(t.Context(), e)
	if err != nil {
		t.Fatalf("%+v: %v", e, err)
	}
	return text
}

// TestSaidOnce: a message that a second registration of the hook reports is said once; the
// same words later are said again.
func TestSaidOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		say := Event{host: "cursor", kind: prompted, Session: "s", said: "yes"}
		for range 3 {
			handled(t, s, say)
		}
		time.Sleep(sameFor)
		handled(t, s, say)
		reply := say
		reply.kind = replied
		handled(t, s, reply)
		handled(t, s, say)
		named := say
		named.turn = "turn"
		for range 3 {
			handled(t, s, named)
		}
		named.kind, named.said = stopped, " \n"
		handled(t, s, named)
		if len(s.entries) != 5 {
			t.Errorf("%d messages, want 5: %v", len(s.entries), s.entries)
		}
	})
}

// TestRecorded: what a tool gave becomes a step in the form that it has, once, and what this
// server's own tools gave none.
func TestRecorded(t *testing.T) {
	t.Parallel()
	s := newServer()
	for _, text := range []string{
		`{"session_id":"s","tool_name":"Bash","tool_input":{"a":1},"tool_response":{"stdout":"out"},"tool_use_id":"1"}`,
		`{"session_id":"s","tool_name":"Bash","tool_input":{"a":1},"tool_response":{"stdout":"out"},"tool_use_id":"1"}`,
		`{"session_id":"s","tool_name":"Read","tool_response":{"lines":[1]},"tool_use_id":"2"}`,
		`{"session_id":"s","tool_name":"mcp__loom-bridge__blob_read","tool_response":{"x":1},"tool_use_id":"3"}`,
		`{"session_id":"s","tool_name":"None","tool_use_id":"4"}`,
	} {
		handled(t, s, parse(t, "claude-code", "PostToolUse", text))
	}
	handled(t, s, parse(t, "claude-code", "PostToolUseFailure", `{"session_id":"s","tool_name":"Bash","error":"`+strings.Repeat("ü", maxErrorBytes)+`","tool_use_id":"5"}`))
	if len(s.steps) != 4 {
		t.Fatalf("%d steps: %v", len(s.steps), s.steps)
	}
	if shell := s.steps[0]; shell.GetOutputText() != "out" || shell.GetArgumentsJson() != `{"a":1}` || !shell.GetSuccess() || shell.GetCallId() != "1" {
		t.Errorf("%v", shell)
	}
	if s.steps[1].GetOutputJson() != `{"lines":[1]}` || s.steps[2].GetOutputForm() != nil {
		t.Errorf("%v, %v", s.steps[1], s.steps[2])
	}
	if problem := s.steps[3].GetErrorMessage(); s.steps[3].GetSuccess() || len(problem) > maxErrorBytes || !strings.HasPrefix(problem, "üü") {
		t.Errorf("%d bytes of an error", len(problem))
	}
	long := strings.Repeat("x", maxInlineBytes+partBytes/2)
	handled(t, s, parse(t, "claude-code", "PostToolUse", `{"session_id":"s","tool_name":"Bash","tool_response":"`+long+`","tool_use_id":"6"}`))
	if string(s.uploaded) != long || s.steps[4].GetOutputUpload().GetForm() != loombridgev1.ResultForm_RESULT_FORM_TEXT {
		t.Errorf("%d of %d bytes are uploaded", len(s.uploaded), len(long))
	}
}

// TestGivenBackOnce: what was saved before a compaction comes back with the next answer that
// can hold it, to one of several hooks at once.
func TestGivenBackOnce(t *testing.T) {
	t.Parallel()
	s := newServer()
	e := Event{host: "claude-code", kind: prompted, Session: "s", said: "go on", turn: "1"}
	s.records[e.savedKey()] = &loombridgev1.Record{Id: "r", Text: "what was saved"}
	silent := e
	silent.host = "cursor" // its answer to a prompt holds no text
	if got := handled(t, s, silent); got != "" {
		t.Error(got)
	}
	var group sync.WaitGroup
	texts := make([]string, 8)
	for i := range texts {
		group.Go(func() { texts[i], _ = NewHandler(s, "a").Handle(context.Background(), e) })
	}
	group.Wait()
	given := 0
	for _, text := range texts {
		if strings.Contains(text, "what was saved") {
			given++
		}
	}
	if given != 1 {
		t.Errorf("it is given back %d times", given)
	}
}

// TestStart: a new session begins with what memory holds; one that the host resumes with
// nothing.
func TestStart(t *testing.T) {
	t.Parallel()
	s := newServer()
	if got := handled(t, s, Event{kind: started, Session: "s"}); got != "" {
		t.Errorf("nothing is known: %q", got)
	}
	for key, r := range map[string]*loombridgev1.Record{
		"a": {Id: "a", Text: "first\n line"}, "b": {Id: "b", Text: "replaced", SupersededBy: "a"},
		"c": {Id: "c", Text: "of the web", Origin: loombridgev1.Origin_ORIGIN_WEB}, "d": {Id: "d", Text: strings.Repeat("long ", 1000)},
	} {
		s.records[key] = r
	}
	got := handled(t, s, Event{kind: started, Session: "s"})
	for text, want := range map[string]int{"- first line (": 1, "replaced": 0, ", web)": 1, "memory_get d has it all": 1} {
		if strings.Count(got, text) != want {
			t.Errorf("%q stands %d times in %s", text, strings.Count(got, text), got)
		}
	}
	if got := handled(t, s, Event{kind: started, Session: "s", source: "resume"}); got != "" {
		t.Errorf("a session that goes on gets %q", got)
	}
}

// TestServerComesBack: a server that is being taken over is asked again until the time is over.
func TestServerComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.away = 7
		e := Event{host: "cursor", kind: prompted, Session: "s", said: "hi", turn: "1"}
		began := time.Now()
		handled(t, s, e)
		if took := time.Since(began); len(s.entries) != 1 || took != 7*againAfter {
			t.Errorf("%d messages after %v", len(s.entries), took)
		}
		s.away = 1 << 30
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		e.turn = "2"
		_, err := NewHandler(s, "a").Handle(ctx, e)
		if status.Code(err) != codes.Unavailable || ctx.Err() == nil {
			t.Error(err)
		}
	})
	refused := errors.New("refused")
	calls := 0
	if err := again(t.Context(), func() error { calls++; return refused }); !errors.Is(err, refused) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}
