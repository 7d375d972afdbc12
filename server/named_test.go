package server_test

import (
	"context"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/auth"
)

// saying says in metadata for whom a call is.
func saying(ctx context.Context, agent, session string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "loom-agent-id", agent, "loom-session-id", session)
}

// Whatever request names an agent takes it from the metadata of its call, and a session unless
// it chooses among all of them; what the request says itself stays.
//
// Y52
func TestEveryMethodTakesNamesFromMetadata(t *testing.T) {
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("loom-agent-id", "a", "loom-session-id", "s"))
	choosing := []protoreflect.Name{"ListBlobs", "ListMessages", "ListAudit", "Export", "WaitAgents", "CompleteTask"}
	agents, sessions := 0, 0
	everyMethod(func(method string, d protoreflect.MethodDescriptor) {
		for _, said := range []string{"", "own"} {
			request := dynamicpb.NewMessage(d.Input())
			about := protoreflect.Message(request)
			for _, inner := range []protoreflect.Name{"hello", "step"} {
				if f := d.Input().Fields().ByName(inner); f != nil && d.IsStreamingClient() {
					about = request.Mutable(f).Message()
				}
			}
			agent, session := about.Descriptor().Fields().ByName("agent_id"), about.Descriptor().Fields().ByName("session_id")
			for _, f := range []protoreflect.FieldDescriptor{agent, session} {
				if f != nil && said != "" {
					about.Set(f, protoreflect.ValueOfString(said))
				}
			}
			auth.Name(ctx, request)
			wantAgent := orElse(said, "a")
			if d.Name() == "GetStatus" || d.Name() == "ListScopes" { // whose workspace, and what it was granted, is asked for, too
				wantAgent = said
			}
			if agent != nil && about.Get(agent).String() != wantAgent {
				t.Errorf("%s that says %q is for the agent %q", method, said, about.Get(agent))
			}
			want := orElse(said, "s")
			if slices.Contains(choosing, d.Name()) {
				want = said
			}
			if session != nil && about.Get(session).String() != want {
				t.Errorf("%s that says %q is for the session %q", method, said, about.Get(session))
			}
			if agent != nil {
				agents++
			}
			if session != nil {
				sessions++
			}
		}
	})
	if agents < 100 || sessions < 40 {
		t.Errorf("%d requests name an agent, %d a session", agents, sessions)
	}
}

func orElse(said, other string) string {
	if said != "" {
		return said
	}
	return other
}

// A name in metadata is as good as one in the request, over every kind of call, and gives no
// right that the request would not have. Where there is none, it is the one that the credential
// names in full, of which the header says so.
//
// Y52
func TestNamesFromMetadata(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Credentials: MustCredentials(t, callers())}})
	ctx := withToken(t.Context(), "Bearer acme-token")
	_, err := s.Bridge.MemorySave(saying(ctx, "lead", "s"), &loombridgev1.MemorySaveRequest{Text: "a lamp", Key: "k"})
	must(t, err)
	got, err := s.Memory.GetRecord(ctx, &loombridgev1.GetRecordRequest{AgentId: "lead", Name: &loombridgev1.GetRecordRequest_Key{Key: "k"}})
	must(t, err)
	if r := got; r.GetSessionId() != "s" {
		t.Errorf("saved as %v", r)
	}
	other := &loombridgev1.MemorySaveRequest{AgentId: "billing", Text: "x"}
	_, err = s.Bridge.MemorySave(saying(ctx, "lead", "s"), other) // the field wins
	MustFail(t, err, codes.PermissionDenied, "AGENT_NOT_OWNED")
	_, err = s.Bridge.MemorySave(saying(ctx, "billing", "s"), &loombridgev1.MemorySaveRequest{Text: "x"})
	MustFail(t, err, codes.PermissionDenied, "AGENT_NOT_OWNED")
	var header metadata.MD
	own, err := s.Bridge.MemorySave(ctx, &loombridgev1.MemorySaveRequest{Text: "a hat"}, grpc.Header(&header))
	must(t, err)
	if _, err := s.Memory.GetRecord(saying(ctx, "lead", ""), &loombridgev1.GetRecordRequest{Name: &loombridgev1.GetRecordRequest_Id{Id: own.GetId()}}); err != nil || !slices.Equal(header.Get("loom-agent-id"), []string{"lead"}) {
		t.Errorf("without a name it is saved for %v: %v", header, err)
	}
	pattern := withToken(t.Context(), "Bearer umbrella-token")
	_, err = s.Bridge.MemorySave(pattern, &loombridgev1.MemorySaveRequest{Text: "x"})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	for _, test := range []struct {
		ctx    context.Context
		agent  string
		code   codes.Code
		reason string
	}{
		{ctx, "lead", codes.OK, ""},
		{ctx, "", codes.OK, ""},
		{ctx, "billing", codes.PermissionDenied, "AGENT_NOT_OWNED"},
		{pattern, "", codes.InvalidArgument, "INVALID_REQUEST"},
	} {
		ctx := saying(test.ctx, test.agent, "s")
		check := func(err error) {
			t.Helper()
			if test.code == codes.OK {
				must(t, err)
				return
			}
			MustFail(t, err, test.code, test.reason)
		}
		stream, err := s.Transfer.Export(ctx, &loombridgev1.ExportRequest{})
		must(t, err)
		_, err = stream.Recv()
		check(err)
		up, err := s.Context.UploadStep(ctx)
		must(t, err)
		step := &loombridgev1.RecordStepRequest{ToolName: "my.tool", Success: true, OutputForm: &loombridgev1.RecordStepRequest_OutputUpload{
			OutputUpload: &loombridgev1.ResultUpload{Form: loombridgev1.ResultForm_RESULT_FORM_TEXT},
		}}
		_ = up.Send(&loombridgev1.UploadStepRequest{Item: &loombridgev1.UploadStepRequest_Step{Step: proto.CloneOf(step)}})
		_, err = up.CloseAndRecv()
		check(err)
		on, err := s.Bridge.Attach(ctx)
		must(t, err)
		_ = on.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_Hello{Hello: &loombridgev1.AttachHello{}}})
		_, err = on.Recv()
		check(err)
	}
	listed, err := s.Context.ListSteps(ctx, &loombridgev1.ListStepsRequest{AgentId: "lead", SessionId: "s"})
	must(t, err)
	if len(listed.GetSteps()) != 2 {
		t.Errorf("uploaded into the session: %v", listed)
	}
}
