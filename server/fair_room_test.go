package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/grants"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/compose"
)

const fairCredentials = `
[[credential]]
token = "victim"
tenant = "acme"
agents = ["victim"]

[[credential]]
token = "flood"
tenant = "acme"
agents = ["flood-*"]

[[credential]]
token = "late"
tenant = "acme"
agents = ["late"]

[[credential]]
token = "operator"
tenant = "acme"
agents = ["operator"]
operates = true
`

func bearer(t *testing.T, token string) context.Context {
	return withToken(t.Context(), "Bearer "+token)
}

// shared starts a server with limits, on which victim shares the space team with flood-*.
func shared(t *testing.T, o *servertest.Options) *servertest.Server {
	o.Server = server.Options{Credentials: MustCredentials(t, fairCredentials)}
	o.Domain = compose.Options{Memory: memory.Options{MaxRecords: 20, MaxArchived: 10}}
	s := servertest.Start(t, o)
	_, err := s.Sharing.CreateSpace(bearer(t, "victim"), &loombridgev1.CreateSpaceRequest{AgentId: "victim", SpaceId: "team"})
	if err != nil {
		MustFail(t, err, codes.AlreadyExists, "SPACE_EXISTS")
	}
	MustGrant(bearer(t, "victim"), t, s, "victim", team, "flood-*", loombridgev1.Access_ACCESS_WRITE)
	return s
}

// foundBy are the texts that a query of the space finds for the victim.
func foundBy(t *testing.T, s *servertest.Server, query string) (all []string) {
	got, err := s.Bridge.MemoryQuery(bearer(t, "victim"), &loombridgev1.MemoryQueryRequest{
		AgentId: "victim", Query: query, Limit: 50, Owners: []*loombridgev1.MemoryOwner{{Owner: &loombridgev1.MemoryOwner_SpaceId{SpaceId: "team"}}},
	})
	must(t, err)
	for _, hit := range got.GetHits() {
		all = append(all, hit.GetRecord().GetText())
	}
	return all
}

// In a memory that several write to, who floods it loses its own: what others saved within
// their share stays findable, whatever names the flood has and however it weighs its
// records, saved, in batches or imported, before a restart and after. The archive's
// deletions are the flood's own, too.
//
// Y11
func TestFloodLosesItsOwn(t *testing.T) {
	engine := MustEngine(t)
	s := shared(t, &servertest.Options{Engine: engine})
	heavy := 1.0
	for i := range 5 {
		light := 0.0
		_, err := s.Bridge.MemorySave(bearer(t, "victim"), &loombridgev1.MemorySaveRequest{AgentId: "victim", SpaceId: "team", Text: fmt.Sprint("precious matter ", i), Importance: &light})
		must(t, err)
	}
	flood := func(s *servertest.Server, round int) {
		t.Helper()
		for i := range 40 {
			_, err := s.Bridge.MemorySave(bearer(t, "flood"), &loombridgev1.MemorySaveRequest{
				AgentId: fmt.Sprint("flood-", strings.Repeat("x", i%3*60), i), SpaceId: "team", Text: fmt.Sprintf("junk %d of %d", i, round), Importance: &heavy,
			})
			must(t, err)
		}
		batch := &loombridgev1.BatchSaveRequest{AgentId: "flood-batch", SpaceId: "team"}
		for i := range 60 {
			batch.Records = append(batch.Records, &loombridgev1.MemorySaveRequest{Text: fmt.Sprintf("lot %d of %d", i, round), Importance: &heavy})
		}
		answer, err := s.Memory.BatchSave(bearer(t, "flood"), batch)
		must(t, err)
		if n := len(answer.GetArchivedIds()); n > 10 || answer.GetDeletedCount() < 50 {
			t.Errorf("the batch told %d archived and %d deleted", n, answer.GetDeletedCount())
		}
		for _, id := range answer.GetArchivedIds() { // none that is gone
			got, err := s.Memory.GetRecord(bearer(t, "victim"), &loombridgev1.GetRecordRequest{AgentId: "victim", SpaceId: "team", Name: &loombridgev1.GetRecordRequest_Id{Id: id}})
			must(t, err)
			if !got.GetArchived() || got.GetAgentId() == "victim" {
				t.Errorf("told as archived: %v", got)
			}
		}
		if got := foundBy(t, s, "precious matter"); len(got) < 5 || strings.Count(fmt.Sprint(got), "precious") != 5 {
			t.Errorf("after flood %d the victim finds %q", round, got)
		}
		stats, err := s.Memory.ListRecords(bearer(t, "victim"), &loombridgev1.ListRecordsRequest{AgentId: "victim", SpaceId: "team", StatsOnly: true})
		must(t, err)
		if live := stats.GetStats().GetRecords() - stats.GetStats().GetArchived(); live > 20 || stats.GetStats().GetArchived() > 10 {
			t.Errorf("after flood %d there are %d records and %d archived", round, live, stats.GetStats().GetArchived())
		}
	}
	flood(s, 1)
	archived, err := s.Memory.UpdateRecord(bearer(t, "victim"), &loombridgev1.UpdateRecordRequest{AgentId: "victim", SpaceId: "team", Name: &loombridgev1.UpdateRecordRequest_Id{Id: idOf(t, s, "precious matter 0")}, Archived: proto.Bool(true)})
	must(t, err)
	s = shared(t, &servertest.Options{Engine: engine})
	must(t, importInto(bearer(t, "flood"), s, "flood-import", 50))
	got, err := s.Memory.GetRecord(bearer(t, "victim"), &loombridgev1.GetRecordRequest{AgentId: "victim", SpaceId: "team", Name: &loombridgev1.GetRecordRequest_Id{Id: archived.GetId()}})
	must(t, err)
	if !got.GetArchived() {
		t.Errorf("the victim's archived record is %v", got)
	}
	_, err = s.Memory.UpdateRecord(bearer(t, "victim"), &loombridgev1.UpdateRecordRequest{AgentId: "victim", SpaceId: "team", Name: &loombridgev1.UpdateRecordRequest_Id{Id: archived.GetId()}, Archived: proto.Bool(false)})
	must(t, err)
	flood(s, 2)
}

func idOf(t *testing.T, s *servertest.Server, text string) string {
	t.Helper()
	page, err := s.Memory.ListRecords(bearer(t, "victim"), &loombridgev1.ListRecordsRequest{AgentId: "victim", SpaceId: "team", PageSize: 100})
	must(t, err)
	at := slices.IndexFunc(page.GetRecords(), func(r *loombridgev1.Record) bool { return r.GetText() == text })
	if at < 0 {
		t.Fatalf("no record %q", text)
	}
	return page.GetRecords()[at].GetId()
}

// importInto imports records into the space.
func importInto(ctx context.Context, s *servertest.Server, agent string, n int) error {
	stream, err := s.Transfer.Import(ctx)
	if err != nil {
		return err
	}
	m := &loombridgev1.ImportRequest{AgentId: agent, SpaceId: "team"}
	for i := range n {
		m.Lines = append(m.Lines, fmt.Sprintf(`{"id":"imported-%d","version":1,"kind":"fact","text":"imported junk %d","importance":1,"create_time":"2026-01-01T00:00:00Z","origin":"agent","tier":4}`, i, i))
	}
	if err := stream.Send(m); err != nil {
		return err
	}
	answer, err := stream.CloseAndRecv()
	if err == nil && (answer.GetSaved() != int64(n) || answer.GetArchivedCount()+answer.GetDeletedCount() < 30) {
		err = fmt.Errorf("the import told %v", answer)
	}
	return err
}

// The limits of a memory hold as soon as an import has ended, which says what left for it;
// the same import again finds what it brought, in the archive, too.
//
// Y11
func TestImportKeepsToTheLimit(t *testing.T) {
	s := limited(t, 20, 0)
	for round, want := range []string{"60 saved 0 unchanged 41 archived", "0 saved 60 unchanged 0 archived"} {
		stream, err := s.Transfer.Import(t.Context())
		must(t, err)
		m := &loombridgev1.ImportRequest{AgentId: agent}
		for i := range 60 {
			m.Lines = append(m.Lines, fmt.Sprintf(`{"id":"r%d","version":1,"kind":"fact","text":"thing %d","importance":0.5,"create_time":"2026-01-01T00:00:00Z","origin":"agent","tier":4}`, i, i))
		}
		must(t, stream.Send(m))
		answer, err := stream.CloseAndRecv()
		must(t, err)
		got := fmt.Sprintf("%d saved %d unchanged %d archived", answer.GetSaved(), answer.GetUnchanged(), answer.GetArchivedCount())
		stats, err := s.Memory.ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: agent, StatsOnly: true})
		must(t, err)
		if live := stats.GetStats().GetRecords() - stats.GetStats().GetArchived(); live > 20 || live < 19 || got != want && got != strings.Replace(want, "41", "40", 1) {
			t.Errorf("round %d: %s, then %d records outside of the archive; want %s", round, got, live, want)
		}
	}
}

// The agents of one credential can't take all spaces of a tenant, whatever their names; an
// agent with another one still makes some.
//
// Y35
func TestSpacesAreSharedByCredentials(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Credentials: MustCredentials(t, fairCredentials)}})
	create := func(token, agent, space string) error {
		_, err := s.Sharing.CreateSpace(bearer(t, token), &loombridgev1.CreateSpaceRequest{AgentId: agent, SpaceId: space})
		return err
	}
	for i := range grants.MaxSpaces / 2 {
		must(t, create("flood", fmt.Sprint("flood-", i), fmt.Sprint("taken", i)))
	}
	err := create("flood", "flood-more", "one more")
	MustFail(t, err, codes.ResourceExhausted, "QUOTA_EXCEEDED")
	for i := range 20 {
		must(t, create("late", "late", fmt.Sprint("mine", i)))
	}
	_, err = s.Sharing.DeleteSpace(bearer(t, "late"), &loombridgev1.DeleteSpaceRequest{AgentId: "late", SpaceId: "taken1"})
	MustFail(t, err, codes.PermissionDenied, "ACCESS_DENIED")
	_, err = s.Sharing.DeleteSpace(bearer(t, "operator"), &loombridgev1.DeleteSpaceRequest{AgentId: "operator", SpaceId: "nowhere"})
	MustFail(t, err, codes.PermissionDenied, "ACCESS_DENIED")
	_, err = s.Sharing.DeleteSpace(bearer(t, "operator"), &loombridgev1.DeleteSpaceRequest{AgentId: "operator", SpaceId: "taken1"})
	must(t, err)
	must(t, create("late", "late", "taken1"))
}

// The space of a child is its parent's, too: it may delete it when the child has ended.
//
// Y35
func TestParentHasTheSpacesOfItsChild(t *testing.T) {
	s := servertest.Start(t, nil)
	child := MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{AgentId: "p", ChildId: "c", Goal: "share"})
	mustCreate(t, s, child.GetChildId(), "nest")
	_, err := saveTo(t.Context(), s, "c", memoryOf{space: "nest"}, "an egg")
	must(t, err)
	mustReturn(t, s, "c", "done")
	_, err = s.Sharing.DeleteSpace(t.Context(), &loombridgev1.DeleteSpaceRequest{AgentId: "c", SpaceId: "nest"})
	if err == nil {
		t.Error("a child that has ended still deletes")
	}
	_, err = s.Sharing.DeleteSpace(t.Context(), &loombridgev1.DeleteSpaceRequest{AgentId: "stranger", SpaceId: "nest"})
	MustFail(t, err, codes.PermissionDenied, "ACCESS_DENIED")
	_, err = s.Sharing.DeleteSpace(t.Context(), &loombridgev1.DeleteSpaceRequest{AgentId: "p", SpaceId: "nest"})
	must(t, err)
}
