package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
)

// access is what a caller of the table may do, in the order of the levels.
type access int

const (
	noAccess access = iota
	mayRead
	mayWrite
	mayAdminister
)

// tableCredentials are the callers of the table: each token is the name of an agent, but for
// those of tenant other, whose agents have the same names.
const tableCredentials = `
[[credential]]
token = "maker"
tenant = "acme"
agents = ["maker", "child-of-maker"]
administers_users = ["ann-*"]

[[credential]]
token = "reader"
tenant = "acme"
agents = ["reader", "child-of-reader"]

[[credential]]
token = "writer"
tenant = "acme"
agents = ["writer"]

[[credential]]
token = "admin"
tenant = "acme"
agents = ["admin"]

[[credential]]
token = "crew"
tenant = "acme"
agents = ["crew-*"]

[[credential]]
token = "stranger"
tenant = "acme"
agents = ["stranger", "crew-7"]

[[credential]]
token = "revoked"
tenant = "acme"
agents = ["revoked"]

[[credential]]
token = "by-file"
tenant = "acme"
agents = ["by-file"]
writes_users = ["a*"]

[[credential]]
token = "other"
tenant = "other"
agents = ["maker", "reader"]
`

// tableCaller is who calls, and what it may do with the space and the person's memory.
type tableCaller struct {
	name, token, agent string
	space, user        access
	// refused is the reason where it is not the access.
	refused string
}

func tableCallers() []tableCaller {
	return []tableCaller{
		{"maker", "maker", "maker", mayAdminister, mayAdminister, ""},
		{"granted read", "reader", "reader", mayRead, mayRead, ""},
		{"granted write", "writer", "writer", mayWrite, mayWrite, ""},
		{"granted admin", "admin", "admin", mayAdminister, mayAdminister, ""},
		{"granted by pattern", "crew", "crew-1", mayRead, mayRead, ""},
		{"not granted", "stranger", "stranger", noAccess, noAccess, ""},
		{"revoked", "revoked", "revoked", noAccess, noAccess, ""},
		{"granted in the credentials file", "by-file", "by-file", noAccess, mayWrite, ""},
		// A child has what it is granted itself, and never more than who spawned it: the
		// reader's child is granted write, the stranger's child fits a pattern.
		{"child without a grant", "maker", "child-of-maker", noAccess, mayAdminister, ""},
		{"child of a reader", "reader", "child-of-reader", mayRead, mayRead, ""},
		{"child of a stranger", "stranger", "crew-7", noAccess, noAccess, ""},
		{"same agent of another tenant", "other", "reader", noAccess, noAccess, ""},
		{"maker's name in another tenant", "other", "maker", noAccess, noAccess, ""},
		{"agent of somebody else", "stranger", "maker", noAccess, noAccess, "AGENT_NOT_OWNED"},
		{"nobody", "", "reader", noAccess, noAccess, "UNAUTHENTICATED"},
	}
}

// memoryOf is the memory that a row of the table is about.
type memoryOf struct{ user, space string }

func (m memoryOf) String() string { return m.user + m.space }

func (m memoryOf) owner() *loombridgev1.MemoryOwner {
	if m.user != "" {
		return &loombridgev1.MemoryOwner{Owner: &loombridgev1.MemoryOwner_UserId{UserId: m.user}}
	}
	return &loombridgev1.MemoryOwner{Owner: &loombridgev1.MemoryOwner_SpaceId{SpaceId: m.space}}
}

const canary = "canary-4f1d9b"

// tableRow is a method, what it needs, and a call of it, whose answer is returned as text.
type tableRow struct {
	need access
	call func(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error)
	// others: the record that it changes was saved by somebody else, which takes an
	// administrator.
	others bool
	// only is whose memories it is about; empty for both.
	only string
	// counts: its answer has no text of records.
	counts bool
}

// told is an answer as text.
func told[M fmt.Stringer](m M, err error) (string, error) { return m.String(), err }

// drained are all messages of a stream as text, up to one that until accepts.
func drained[M fmt.Stringer](stream interface{ Recv() (M, error) }, err error, until func(M) bool) (string, error) {
	var b strings.Builder
	for err == nil {
		var m M
		if m, err = stream.Recv(); err == nil {
			b.WriteString(m.String())
			if until(m) {
				return b.String(), nil
			}
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b.String(), err
}

// sharingTable has a row for each method that can name a person's memory or a space.
func sharingTable() map[string]tableRow {
	return map[string]tableRow{
		"BridgeService/MemorySave": {need: mayWrite, call: func(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error) {
			return told(s.Bridge.MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: agent, UserId: m.user, SpaceId: m.space, Text: "x"}))
		}},
		"BridgeService/MemoryQuery": {need: mayRead, call: func(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error) {
			found, err := told(s.Bridge.MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{AgentId: agent, UserId: m.user, SpaceId: m.space, Query: canary}))
			owned, ownedErr := told(s.Bridge.MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: canary, Owners: []*loombridgev1.MemoryOwner{
				{Owner: &loombridgev1.MemoryOwner_AgentId{AgentId: agent}}, m.owner(),
			}}))
			if fmt.Sprint(err) != fmt.Sprint(ownedErr) || strings.Contains(found, canary) != strings.Contains(owned, canary) {
				return found + owned, fmt.Errorf("user_id or space_id: %w, owners: %w", err, ownedErr)
			}
			return found + owned, err
		}},
		"MemoryService/GetRecord": {need: mayRead, call: func(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error) {
			return told(s.Memory.GetRecord(ctx, &loombridgev1.GetRecordRequest{AgentId: agent, UserId: m.user, SpaceId: m.space, Name: &loombridgev1.GetRecordRequest_Key{Key: "k"}}))
		}},
		"MemoryService/ListRecords versions": {need: mayRead, call: func(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error) {
			return told(s.Memory.ListRecords(ctx, &loombridgev1.ListRecordsRequest{AgentId: agent, UserId: m.user, SpaceId: m.space, Name: &loombridgev1.ListRecordsRequest_Key{Key: "k"}}))
		}},
		"MemoryService/ListRelations": {need: mayRead, counts: true, call: func(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error) {
			return told(s.Memory.ListRelations(ctx, &loombridgev1.ListRelationsRequest{AgentId: agent, UserId: m.user, SpaceId: m.space, Name: &loombridgev1.ListRelationsRequest_Key{Key: "k"}}))
		}},
		"MemoryService/RelateRecords": {need: mayWrite, call: func(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error) {
			var ids []string
			for range 2 {
				saved, err := saveTo(ctx, s, agent, m, "x")
				if err != nil {
					return told(saved, err)
				}
				ids = append(ids, saved.GetId())
			}
			return told(s.Memory.RelateRecords(ctx, &loombridgev1.RelateRecordsRequest{
				AgentId: agent, UserId: m.user, SpaceId: m.space, Relations: []*loombridgev1.Relation{{FromId: ids[0], Name: "n", ToId: ids[1]}},
			}))
		}},
		"MemoryService/UnrelateRecords": {need: mayWrite, call: func(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error) {
			return told(s.Memory.UnrelateRecords(ctx, &loombridgev1.UnrelateRecordsRequest{
				AgentId: agent, UserId: m.user, SpaceId: m.space, Relations: []*loombridgev1.Relation{{FromId: "a", Name: "n", ToId: "b"}},
			}))
		}},
		"MemoryService/ListRecords": {need: mayRead, call: func(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error) {
			return told(s.Memory.ListRecords(ctx, &loombridgev1.ListRecordsRequest{AgentId: agent, UserId: m.user, SpaceId: m.space}))
		}},
		"MemoryService/ListRecords stats": {need: mayRead, counts: true, call: func(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error) {
			return told(s.Memory.ListRecords(ctx, &loombridgev1.ListRecordsRequest{AgentId: agent, UserId: m.user, SpaceId: m.space, StatsOnly: true}))
		}},
		"MemoryService/WatchRecords": {need: mayRead, call: func(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			stream, err := s.Memory.WatchRecords(ctx, &loombridgev1.WatchRecordsRequest{AgentId: agent, UserId: m.user, SpaceId: m.space})
			return drained(stream, err, func(m *loombridgev1.WatchRecordsResponse) bool { return m.GetCaughtUp() })
		}},
		"TransferService/Export": {need: mayRead, call: func(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error) {
			stream, err := s.Transfer.Export(ctx, &loombridgev1.ExportRequest{AgentId: agent, UserId: m.user, SpaceId: m.space})
			return drained(stream, err, func(*loombridgev1.ExportResponse) bool { return false })
		}},
		"TransferService/Import": {need: mayWrite, call: func(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error) {
			stream, err := s.Transfer.Import(ctx)
			if err != nil {
				return "", err
			}
			_ = stream.Send(&loombridgev1.ImportRequest{AgentId: agent, UserId: m.user, SpaceId: m.space})
			return told(stream.CloseAndRecv())
		}},
		"MemoryService/BatchSave": {need: mayWrite, call: func(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error) {
			return told(s.Memory.BatchSave(ctx, &loombridgev1.BatchSaveRequest{AgentId: agent, UserId: m.user, SpaceId: m.space, Records: []*loombridgev1.MemorySaveRequest{{Text: "x"}}}))
		}},
		"MemoryService/UpdateRecord": {need: mayWrite, others: true, call: func(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error) {
			return told(s.Memory.UpdateRecord(ctx, &loombridgev1.UpdateRecordRequest{
				AgentId: agent, UserId: m.user, SpaceId: m.space, Name: &loombridgev1.UpdateRecordRequest_Key{Key: "k"}, Record: &loombridgev1.MemorySaveRequest{Tags: []string{"t"}},
			}))
		}},
		"MemoryService/UpdateRecord into the archive": {need: mayWrite, others: true, call: func(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error) {
			return told(s.Memory.UpdateRecord(ctx, &loombridgev1.UpdateRecordRequest{
				AgentId: agent, UserId: m.user, SpaceId: m.space, Name: &loombridgev1.UpdateRecordRequest_Key{Key: "k"}, Archived: proto.Bool(true),
			}))
		}},
		"MemoryService/UpdateRecord of a review": {need: mayWrite, others: true, call: func(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error) {
			return told(s.Memory.UpdateRecord(ctx, &loombridgev1.UpdateRecordRequest{
				AgentId: agent, UserId: m.user, SpaceId: m.space, Name: &loombridgev1.UpdateRecordRequest_Key{Key: "k"}, Review: loombridgev1.Review_REVIEW_APPROVED,
			}))
		}},
		"MemoryService/DeleteRecords of one": {need: mayWrite, others: true, call: func(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error) {
			return told(s.Memory.DeleteRecords(ctx, &loombridgev1.DeleteRecordsRequest{AgentId: agent, UserId: m.user, SpaceId: m.space, Name: &loombridgev1.DeleteRecordsRequest_Key{Key: "k"}}))
		}},
		"MemoryService/DeleteRecords": {need: mayWrite, call: func(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error) {
			return told(s.Memory.DeleteRecords(ctx, &loombridgev1.DeleteRecordsRequest{AgentId: agent, UserId: m.user, SpaceId: m.space, Filter: "version >= 1"}))
		}},
		"MemoryService/Reembed": {need: mayWrite, call: func(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error) {
			stream, err := s.Memory.Reembed(ctx, &loombridgev1.ReembedRequest{AgentId: agent, UserId: m.user, SpaceId: m.space})
			text, err := drained(stream, err, func(*loombridgev1.ReembedResponse) bool { return false })
			if infoOf(err).GetReason() == "NO_EMBEDDER" { // it may, and can't
				err = nil
			}
			return text, err
		}},
		"SharingService/DeleteSpace": {need: mayAdminister, only: "space", call: func(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error) {
			return told(s.Sharing.DeleteSpace(ctx, &loombridgev1.DeleteSpaceRequest{AgentId: agent, SpaceId: m.space}))
		}},
		"SharingService/GrantAccess": {need: mayAdminister, call: func(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error) {
			return told(grant(ctx, s, agent, m, "friend", loombridgev1.Access_ACCESS_READ))
		}},
		"SharingService/RevokeAccess": {need: mayAdminister, call: func(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error) {
			return "", revoke(ctx, s, agent, m, "crew-*")
		}},
		"SharingService/ListGrants": {need: mayAdminister, call: func(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error) {
			r := &loombridgev1.ListGrantsRequest{AgentId: agent, Owner: &loombridgev1.ListGrantsRequest_SpaceId{SpaceId: m.space}}
			if m.user != "" {
				r.Owner = &loombridgev1.ListGrantsRequest_UserId{UserId: m.user}
			}
			return told(s.Sharing.ListGrants(ctx, r))
		}},
		// A prompt is made in any case; without the access nothing of the person is in it.
		"PromptService/Assemble": {need: mayRead, only: "user", call: promptOf},
	}
}

// promptOf makes the prompt of an agent for a person, which is refused if it says so.
func promptOf(ctx context.Context, s *servertest.Server, agent string, m memoryOf) (string, error) {
	made, err := s.Context.Assemble(ctx, &loombridgev1.AssembleRequest{
		AgentId: agent, Goal: "tell of " + canary[:6], WithoutTools: true, Settings: &loombridgev1.PromptSettings{UserId: m.user},
	})
	if err != nil {
		return "", err
	}
	for _, section := range made.GetReceipt().GetSections() {
		if section.GetName() == "user_memory" && strings.Contains(section.GetReason(), "ACCESS_DENIED") {
			return made.String(), errLeftOut
		}
	}
	return made.String(), nil
}

// errLeftOut: a prompt says that it shows nothing of the person.
var errLeftOut = errors.New("left out")

// unrelated are the methods that name a person and yet read and write nothing of their
// memory, and those in which a space is named that is not there yet.
var unrelated = map[string]string{
	"SessionService/ConfigureSession": "keeps the settings of later prompts, which Assemble makes",
	"MemoryService/EraseScope":        "is for who operates the server, whatever is granted; see TestEraseScopeOfCallers",
	"SharingService/CreateSpace":      "makes the space; see TestSpaceNames",
}

// namesMemory reports whether a message can name a person's memory or a space.
func namesMemory(m protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) bool {
	if seen[m.FullName()] {
		return false
	}
	seen[m.FullName()] = true
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		if f.Name() == "user_id" || f.Name() == "space_id" || f.Message() != nil && namesMemory(f.Message(), seen) {
			return true
		}
	}
	return false
}

// methods are all methods of all services, with whether their requests can name a person's
// memory or a space.
func methods() map[string]bool {
	all := map[string]bool{}
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				method := service.Methods().Get(j)
				name := string(service.FullName()) + "/" + string(method.Name())
				all[strings.TrimPrefix(name, "loombridge.v1.")] = namesMemory(method.Input(), map[protoreflect.FullName]bool{})
			}
		}
		return true
	})
	return all
}

// spawnAll makes the children among the callers.
func spawnAll(t *testing.T, s *servertest.Server) {
	t.Helper()
	for parent, child := range map[string]string{"maker": "child-of-maker", "reader": "child-of-reader", "stranger": "crew-7"} {
		_, err := s.Context.SpawnAgent(withToken(t.Context(), "Bearer "+parent), &loombridgev1.SpawnAgentRequest{AgentId: parent, ChildId: child, Goal: "find it"})
		must(t, err)
	}
}

// prepare makes a memory with a secret, and what is granted of it.
func prepare(t *testing.T, s *servertest.Server, m memoryOf) {
	t.Helper()
	maker := withToken(t.Context(), "Bearer maker")
	if m.space != "" {
		_, err := s.Sharing.CreateSpace(maker, &loombridgev1.CreateSpaceRequest{AgentId: "maker", SpaceId: m.space})
		must(t, err)
	}
	for grantee, access := range map[string]loombridgev1.Access{
		"reader": loombridgev1.Access_ACCESS_READ, "crew-*": loombridgev1.Access_ACCESS_READ, "writer": loombridgev1.Access_ACCESS_WRITE,
		"admin": loombridgev1.Access_ACCESS_ADMIN, "child-of-reader": loombridgev1.Access_ACCESS_WRITE, "revoked": loombridgev1.Access_ACCESS_ADMIN,
	} {
		MustGrant(maker, t, s, "maker", m, grantee, access)
	}
	must(t, revoke(maker, s, "maker", m, "revoked"))
	_, err := s.Bridge.MemorySave(maker, &loombridgev1.MemorySaveRequest{AgentId: "maker", UserId: m.user, SpaceId: m.space, Key: "k", Text: "the secret is " + canary})
	must(t, err)
}

// MustGrant gives agents access to a memory.
func MustGrant(ctx context.Context, t *testing.T, s *servertest.Server, by string, m memoryOf, grantee string, access loombridgev1.Access) {
	t.Helper()
	_, err := grant(ctx, s, by, m, grantee, access)
	must(t, err)
}

func grant(ctx context.Context, s *servertest.Server, by string, m memoryOf, grantee string, access loombridgev1.Access) (*loombridgev1.Grant, error) {
	r := &loombridgev1.GrantAccessRequest{AgentId: by, Grantee: grantee, Access: access, Owner: &loombridgev1.GrantAccessRequest_SpaceId{SpaceId: m.space}}
	if m.user != "" {
		r.Owner = &loombridgev1.GrantAccessRequest_UserId{UserId: m.user}
	}
	return s.Sharing.GrantAccess(ctx, r)
}

func revoke(ctx context.Context, s *servertest.Server, by string, m memoryOf, grantee string) error {
	r := &loombridgev1.RevokeAccessRequest{AgentId: by, Grantee: grantee, Owner: &loombridgev1.RevokeAccessRequest_SpaceId{SpaceId: m.space}}
	if m.user != "" {
		r.Owner = &loombridgev1.RevokeAccessRequest_UserId{UserId: m.user}
	}
	_, err := s.Sharing.RevokeAccess(ctx, r)
	return err
}

// Every method of every service is asked by every caller for a space and for a person's
// memory, and each answer is as its access says. A method that comes later and can name
// either needs a row.
//
// Y34
func TestEveryMethodAsksForAccess(t *testing.T) {
	table := sharingTable()
	asked, answers := 0, 0
	for name, names := range methods() {
		if _, listed := table[name]; names != (listed || unrelated[name] != "") {
			t.Errorf("%s: it can name a person's memory or a space: %t, and has a row: %t", name, names, listed)
		}
	}
	for name, row := range table { // a method that does several things has a row for each
		if method, _, _ := strings.Cut(name, " "); !methods()[method] {
			t.Errorf("%s is a row of no method", name)
			continue
		}
		asked++
		t.Run(name, func(t *testing.T) {
			answers += askAll(t, servertest.Start(t, &servertest.Options{Server: server.Options{Credentials: MustCredentials(t, tableCredentials)}}), row)
		})
	}
	t.Logf("%d methods of %d can name a memory that is shared: %d answers", asked, len(methods()), answers)
}

// askAll has all callers ask one method, each for memories of its own, and counts the
// answers.
func askAll(t *testing.T, s *servertest.Server, row tableRow) (answers int) {
	t.Helper()
	spawnAll(t, s)
	for i, c := range tableCallers() {
		ctx := t.Context()
		if c.token != "" {
			ctx = withToken(ctx, "Bearer "+c.token)
		}
		if row.only != "user" {
			answers++
			askOne(ctx, t, s, row, c, memoryOf{space: fmt.Sprint("team-", i)}, c.space)
		}
		if row.only != "space" {
			answers++
			askOne(ctx, t, s, row, c, memoryOf{user: fmt.Sprint("ann-", i)}, c.user)
		}
	}
	return answers
}

func askOne(ctx context.Context, t *testing.T, s *servertest.Server, row tableRow, c tableCaller, m memoryOf, have access) {
	t.Helper()
	prepare(t, s, m)
	got, err := row.call(ctx, s, c.agent, m)
	if outcome, want := outcomeOf(err), expected(row, c, have); outcome != want {
		t.Errorf("%s of %s: %q (%v), want %q", c.name, m, outcome, err, want)
	}
	if row.need == mayRead && have >= mayRead && !row.counts && !strings.Contains(got, canary) {
		t.Errorf("%s of %s was not told what it may know: %s", c.name, m, got)
	}
	if have == noAccess {
		if strings.Contains(got+fmt.Sprint(err), canary) {
			t.Errorf("%s of %s was told: %s %v", c.name, m, got, err)
		}
		sameElsewhere(ctx, t, s, row, c, m, err)
	}
}

// sameElsewhere asks for a memory that nobody has made: the refusal is the same.
func sameElsewhere(ctx context.Context, t *testing.T, s *servertest.Server, row tableRow, c tableCaller, m memoryOf, refused error) {
	t.Helper()
	none := memoryOf{space: "none"}
	if m.user != "" {
		none = memoryOf{user: "bob"}
	}
	_, err := row.call(ctx, s, c.agent, none)
	if a, b := strings.ReplaceAll(fmt.Sprint(refused), m.String(), "X"), strings.ReplaceAll(fmt.Sprint(err), none.String(), "X"); a != b {
		t.Errorf("%s is told %q, and %q of one that is not there", c.name, a, b)
	}
	if a, b := infoOf(refused), infoOf(err); a.GetReason() != b.GetReason() || a.GetMetadata()["needed"] != b.GetMetadata()["needed"] {
		t.Errorf("%s is told %v, and %v of one that is not there", c.name, a, b)
	}
}

// expected is the outcome of a call.
func expected(row tableRow, c tableCaller, have access) string {
	switch {
	case c.refused != "":
		return c.refused
	case have < row.need:
		return "ACCESS_DENIED"
	case row.others && have < mayAdminister && c.agent != "maker" && c.token != "maker":
		return "AGENT_NOT_OWNED"
	}
	return "OK"
}

func outcomeOf(err error) string {
	switch {
	case errors.Is(err, errLeftOut):
		return "ACCESS_DENIED"
	case codeOf(err) == codes.OK:
		return "OK"
	}
	return infoOf(err).GetReason()
}
