package main

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// eachList calls do with every method of the API that lists something.
func eachList(do func(method string, m protoreflect.MethodDescriptor)) {
	protoregistry.GlobalFiles.RangeFilesByPackage("loombridge.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			s := file.Services().Get(i)
			for j := range s.Methods().Len() {
				if m := s.Methods().Get(j); strings.HasPrefix(string(m.Name()), "List") {
					do("/"+string(s.FullName())+"/"+string(m.Name()), m)
				}
			}
		}
		return true
	})
}

// pageOf is one page of a list: its items and the token of the next.
func (p *process) pageOf(tb testing.TB, method string, m protoreflect.MethodDescriptor, ask proto.Message, size int32, token string) (items []string, next string, err error) {
	tb.Helper()
	in, out := ask.ProtoReflect(), dynamicpb.NewMessage(m.Output())
	in.Set(m.Input().Fields().ByName("page_size"), protoreflect.ValueOfInt32(size))
	in.Set(m.Input().Fields().ByName("page_token"), protoreflect.ValueOfString(token))
	if err := p.conn.Invoke(tb.Context(), method, ask, out); err != nil {
		return nil, "", err
	}
	for i := range m.Output().Fields().Len() {
		field := m.Output().Fields().Get(i)
		if !field.IsList() {
			continue
		}
		for j := range out.Get(field).List().Len() {
			item := out.Get(field).List().Get(j).Message()
			if m.Name() == "ListMcpServers" { // how a server is changes meanwhile
				item = item.Get(item.Descriptor().Fields().ByName("definition")).Message()
			}
			text, err := proto.MarshalOptions{Deterministic: true}.Marshal(item.Interface())
			must(tb, err)
			items = append(items, string(text))
		}
	}
	return items, out.Get(m.Output().Fields().ByName("next_page_token")).String(), nil
}

// Every list is read in pages of one as it is read at once, and none takes a token that is not
// its own.
//
// Y51
func TestEveryListIsReadInPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRunBound(t, dir, "--backup-dir", t.TempDir(), "--backup-interval", "0")
	ctx := t.Context()
	const a = "boss"
	save := func(text, key string) string {
		saved, err := p.bridge().MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: a, Text: text, Key: key, Replace: key != ""})
		must(t, err)
		return saved.GetId()
	}
	one, two := save("first", ""), save("second", "")
	for i := range 3 {
		save(fmt.Sprint("version ", i), "k")
	}
	_, err := p.memory().RelateRecords(ctx, &loombridgev1.RelateRecordsRequest{AgentId: a, Relations: []*loombridgev1.Relation{
		{FromId: one, Name: "b", ToId: two}, {FromId: one, Name: "a", ToId: two}, {FromId: two, Name: "a", ToId: one}, {FromId: two, Name: "c", ToId: one},
	}})
	must(t, err)
	for i := range 3 {
		name := fmt.Sprint("n", 2-i)
		sharing := loombridgev1.NewSharingServiceClient(p.conn)
		_, err := sharing.CreateSpace(ctx, &loombridgev1.CreateSpaceRequest{AgentId: a, SpaceId: name})
		must(t, err)
		_, err = sharing.GrantAccess(ctx, &loombridgev1.GrantAccessRequest{
			AgentId: a, Owner: &loombridgev1.GrantAccessRequest_SpaceId{SpaceId: "n2"}, Grantee: name + "*", Access: loombridgev1.Access_ACCESS_READ,
		})
		must(t, err)
		half := float64(i%2) / 2
		_, err = p.events().SendMessage(ctx, &loombridgev1.SendMessageRequest{AgentId: name, Message: &loombridgev1.DirectMessage{TargetAgentId: a, Content: name, Priority: &half}})
		must(t, err)
		_, err = p.tools().ConnectMcpServer(ctx, &loombridgev1.ConnectMcpServerRequest{Definition: &loombridgev1.McpServerDefinition{Name: name, Command: "/bin/true"}})
		must(t, err)
		for _, session := range []string{name, "steps", "renewed"} {
			_, err = p.context().RecordStep(ctx, &loombridgev1.RecordStepRequest{
				AgentId: a, SessionId: session, ToolName: "my.tool", Success: true,
				OutputForm: &loombridgev1.RecordStepRequest_OutputText{OutputText: strings.Repeat("a line of text\n", 4000)},
			})
			must(t, err)
		}
		_, err = p.context().Renew(ctx, &loombridgev1.RenewRequest{AgentId: a, SessionId: "renewed", Goal: name})
		must(t, err)
		_, err = p.bridge().MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: name, Text: "whose memory it is"})
		must(t, err)
		stream, err := p.admin().CreateBackup(ctx, &loombridgev1.CreateBackupRequest{})
		must(t, err)
		for err == nil {
			_, err = stream.Recv()
		}
	}
	watch := MustWatch(t, p)
	for i := range 3 {
		waits := stat(t, p, "other", fmt.Sprint("s", i))
		must(t, p.answer(t, MustPending(t, watch).GetId(), saySession))
		<-waits
	}
	asks := map[protoreflect.Name]proto.Message{
		"ListApprovals":    &loombridgev1.ListApprovalsRequest{AgentId: a},
		"ListAudit":        &loombridgev1.ListAuditRequest{AgentId: a},
		"ListBackups":      &loombridgev1.ListBackupsRequest{},
		"ListBlobs":        &loombridgev1.ListBlobsRequest{AgentId: a},
		"ListConversation": &loombridgev1.ListConversationRequest{AgentId: a, SessionId: "steps"},
		"ListGrants":       &loombridgev1.ListGrantsRequest{AgentId: a, Owner: &loombridgev1.ListGrantsRequest_SpaceId{SpaceId: "n2"}},
		"ListMcpServers":   &loombridgev1.ListMcpServersRequest{},
		"ListMessages":     &loombridgev1.ListMessagesRequest{AgentId: a},
		"ListRecords":      &loombridgev1.ListRecordsRequest{AgentId: a, Peek: true},
		"ListRelations":    &loombridgev1.ListRelationsRequest{AgentId: a, Name: &loombridgev1.ListRelationsRequest_Id{Id: one}},
		"ListScopes":       &loombridgev1.ListScopesRequest{},
		"ListSessions":     &loombridgev1.ListSessionsRequest{AgentId: a},
		"ListSnapshots":    &loombridgev1.ListSnapshotsRequest{AgentId: a, SessionId: "renewed"},
		"ListSpaces":       &loombridgev1.ListSpacesRequest{AgentId: a},
		"ListSteps":        &loombridgev1.ListStepsRequest{AgentId: a, SessionId: "steps"},
		"ListTools":        &loombridgev1.ListToolsRequest{AgentId: a},
	}
	tokens := make(map[protoreflect.Name]string)
	eachList(func(method string, m protoreflect.MethodDescriptor) {
		ask := asks[m.Name()]
		if ask == nil {
			t.Errorf("%s has no row here", method)
			return
		}
		want, next, err := p.pageOf(t, method, m, ask, 100, "")
		if err != nil || next != "" || len(want) < 3 {
			t.Errorf("%s: %d items, the next page %q: %v", method, len(want), next, err)
		}
		var got []string
		for token := ""; ; token = next {
			var items []string
			if items, next, err = p.pageOf(t, method, m, ask, 1, token); err != nil || len(items) > 1 {
				t.Errorf("%s behind %q: %d items, %v", method, token, len(items), err)
				return
			}
			if got = append(got, items...); next == "" {
				break
			}
			tokens[m.Name()] = next
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%s: %d items in pages of one, %d at once, or others", method, len(got), len(want))
		}
	})
	shares := map[protoreflect.Name]bool{"ListSteps": true, "ListSnapshots": true} // numbers, all of one kind
	eachList(func(method string, m protoreflect.MethodDescriptor) {
		ask := asks[m.Name()]
		bad := []string{"7", "p1.", "~", strings.Repeat("p", 4000)}
		for of, token := range tokens {
			if of != m.Name() && !(shares[of] && shares[m.Name()]) {
				bad = append(bad, token)
			}
		}
		for _, token := range bad {
			if _, _, err := p.pageOf(t, method, m, ask, 1, token); status.Code(err) != codes.InvalidArgument || reasonOf(err) != "INVALID_REQUEST" {
				t.Errorf("%s with the token %.40q: %v", method, token, err)
			}
		}
		for _, size := range []int32{-1, 1001} {
			if _, _, err := p.pageOf(t, method, m, ask, size, ""); status.Code(err) != codes.InvalidArgument || reasonOf(err) != "INVALID_REQUEST" {
				t.Errorf("%s with pages of %d: %v", method, size, err)
			}
		}
	})
}
