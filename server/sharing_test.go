package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory/grants"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/observe"
)

var team = memoryOf{space: "team"}

func mustCreate(tb testing.TB, s *servertest.Server, agent, space string) {
	tb.Helper()
	_, err := s.Sharing.CreateSpace(tb.Context(), &loombridgev1.CreateSpaceRequest{AgentId: agent, SpaceId: space})
	must(tb, err)
}

func saveTo(ctx context.Context, s *servertest.Server, agent string, m memoryOf, text string) (*loombridgev1.MemorySaveResponse, error) {
	return s.Bridge.MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: agent, UserId: m.user, SpaceId: m.space, Text: text})
}

// textsOf are the records of a memory as an agent lists them.
func textsOf(ctx context.Context, s *servertest.Server, agent string, m memoryOf) ([]string, error) {
	page, err := s.Memory.ListRecords(ctx, &loombridgev1.ListRecordsRequest{AgentId: agent, UserId: m.user, SpaceId: m.space})
	var all []string
	for _, r := range page.GetRecords() {
		all = append(all, r.GetText())
	}
	return all, err
}

func spacesOf(tb testing.TB, s *servertest.Server, agent string) []string {
	tb.Helper()
	got, err := s.Sharing.ListSpaces(tb.Context(), &loombridgev1.ListSpacesRequest{AgentId: agent})
	must(tb, err)
	var all []string
	for _, space := range got.GetSpaces() {
		if space.GetCreateTime() == nil {
			tb.Errorf("%v has no time", space)
		}
		all = append(all, fmt.Sprint(space.GetSpaceId(), " ", space.GetAccess()))
	}
	return all
}

// A space is a memory that its maker shares, by its ids and by patterns, with authentication
// and without. Records keep the agent that saved them; who administers the space may change
// all of them.
//
// Y35
func TestSpaces(t *testing.T) {
	s := servertest.Start(t, nil)
	ctx := t.Context()
	mustCreate(t, s, "maker", "team")
	mustCreate(t, s, "maker", "a b/ü")
	_, err := s.Sharing.CreateSpace(ctx, &loombridgev1.CreateSpaceRequest{AgentId: "maker", SpaceId: "team"})
	MustFail(t, err, codes.AlreadyExists, "SPACE_EXISTS")
	MustGrant(ctx, t, s, "maker", team, "w-*", loombridgev1.Access_ACCESS_WRITE)
	MustGrant(ctx, t, s, "maker", team, "w-1", loombridgev1.Access_ACCESS_READ) // the higher one counts
	MustGrant(ctx, t, s, "maker", team, "r", loombridgev1.Access_ACCESS_READ)
	for agent, want := range map[string][]string{
		"maker": {"a b/ü ACCESS_ADMIN", "team ACCESS_ADMIN"}, "w-1": {"team ACCESS_WRITE"}, "r": {"team ACCESS_READ"}, "w": nil, "stranger": nil,
	} {
		if got := spacesOf(t, s, agent); !slices.Equal(got, want) {
			t.Errorf("%s has access to %v, want %v", agent, got, want)
		}
	}
	saved, err := saveTo(ctx, s, "w-1", team, "The release is on Friday")
	must(t, err)
	_, err = saveTo(ctx, s, "r", team, "The release is on Monday")
	if info := MustFail(t, err, codes.PermissionDenied, "ACCESS_DENIED"); info.GetMetadata()["needed"] != "write" || info.GetMetadata()["space_id"] != "team" {
		t.Errorf("the refusal says %v", info.GetMetadata())
	}
	found, err := s.Bridge.MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{AgentId: "r", Query: "when is the release", Owners: []*loombridgev1.MemoryOwner{
		{Owner: &loombridgev1.MemoryOwner_AgentId{AgentId: "r"}}, team.owner(),
	}})
	must(t, err)
	if len(found.GetHits()) != 1 || found.GetHits()[0].GetOwner().GetSpaceId() != "team" || found.GetHits()[0].GetRecord().GetAgentId() != "w-1" {
		t.Errorf("found %v", found.GetHits())
	}
	for _, both := range []*loombridgev1.MemorySaveRequest{{AgentId: "maker", UserId: "ann", SpaceId: "team", Text: "x"}, {AgentId: "maker", SpaceId: strings.Repeat("x", 257), Text: "x"}, {AgentId: "maker", SpaceId: "a\x00b", Text: "x"}} {
		_, err = s.Bridge.MemorySave(ctx, both)
		MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	}
	_, err = s.Memory.UpdateRecord(ctx, &loombridgev1.UpdateRecordRequest{
		AgentId: "maker", SpaceId: "team", Name: &loombridgev1.UpdateRecordRequest_Id{Id: saved.GetId()}, Record: &loombridgev1.MemorySaveRequest{Text: "The release is on Thursday"},
	})
	must(t, err)
	if got, err := textsOf(ctx, s, "r", team); err != nil || !slices.Equal(got, []string{"The release is on Thursday"}) {
		t.Errorf("the space has %q, %v", got, err)
	}
	if own, err := textsOf(ctx, s, "w-1", memoryOf{}); err != nil || own != nil {
		t.Errorf("the agent's own memory has %q, %v", own, err)
	}
}

// A grant that is taken back is gone for the next call, and ends watches; a repeated request
// of who has lost access is refused, too. The last administrator stays.
//
// Y36
func TestRevokedAccess(t *testing.T) {
	s := servertest.Start(t, nil)
	ctx := t.Context()
	mustCreate(t, s, "maker", "team")
	MustGrant(ctx, t, s, "maker", team, "friend", loombridgev1.Access_ACCESS_WRITE)
	save := &loombridgev1.MemorySaveRequest{AgentId: "friend", SpaceId: "team", Text: "kept", RequestId: "1"}
	_, err := s.Bridge.MemorySave(ctx, save)
	must(t, err)
	watch, err := s.Memory.WatchRecords(ctx, &loombridgev1.WatchRecordsRequest{AgentId: "friend", SpaceId: "team"})
	must(t, err)
	text, err := drained(watch, nil, func(m *loombridgev1.WatchRecordsResponse) bool { return m.GetCaughtUp() })
	if must(t, err); !strings.Contains(text, "kept") {
		t.Errorf("the watch told %s", text)
	}
	MustGrant(ctx, t, s, "maker", team, "friend", loombridgev1.Access_ACCESS_READ) // enough to go on watching
	_, err = saveTo(ctx, s, "maker", team, "second")
	must(t, err)
	text, err = drained(watch, nil, func(m *loombridgev1.WatchRecordsResponse) bool { return m.GetCaughtUp() })
	if must(t, err); !strings.Contains(text, "second") {
		t.Errorf("the watch told %s", text)
	}
	_, err = s.Bridge.MemorySave(ctx, save)
	MustFail(t, err, codes.PermissionDenied, "ACCESS_DENIED")
	must(t, revoke(ctx, s, "maker", team, "friend"))
	_, err = textsOf(ctx, s, "friend", team)
	MustFail(t, err, codes.PermissionDenied, "ACCESS_DENIED")
	_, err = saveTo(ctx, s, "maker", team, "third")
	must(t, err)
	text, err = drained(watch, nil, func(*loombridgev1.WatchRecordsResponse) bool { return false })
	if MustFail(t, err, codes.PermissionDenied, "ACCESS_DENIED"); strings.Contains(text, "third") {
		t.Errorf("the watch of who has no access told %s", text)
	}

	MustFail(t, revoke(ctx, s, "maker", team, "friend"), codes.NotFound, "GRANT_NOT_FOUND")
	MustFail(t, revoke(ctx, s, "maker", team, "maker"), codes.FailedPrecondition, "LAST_ADMIN")
	_, err = grant(ctx, s, "maker", team, "maker", loombridgev1.Access_ACCESS_WRITE)
	MustFail(t, err, codes.FailedPrecondition, "LAST_ADMIN")
	MustGrant(ctx, t, s, "maker", team, "heir", loombridgev1.Access_ACCESS_ADMIN)
	must(t, revoke(ctx, s, "heir", team, "maker"))
	MustFail(t, revoke(ctx, s, "maker", team, "heir"), codes.PermissionDenied, "ACCESS_DENIED")
}

// The names of spaces, the patterns and their numbers have limits.
//
// Y35
func TestSpaceNames(t *testing.T) {
	s := servertest.Start(t, nil)
	ctx := t.Context()
	mustCreate(t, s, "maker", "team")
	_, err := s.Sharing.CreateSpace(ctx, &loombridgev1.CreateSpaceRequest{AgentId: "stranger", SpaceId: "team"})
	MustFail(t, err, codes.PermissionDenied, "ACCESS_DENIED")
	for _, r := range []*loombridgev1.CreateSpaceRequest{
		{AgentId: "maker"}, {AgentId: "maker", SpaceId: "a\x00"}, {AgentId: "maker", SpaceId: strings.Repeat("x", 257)}, {AgentId: "all*", SpaceId: "x"}, {SpaceId: "x"},
	} {
		_, err := s.Sharing.CreateSpace(ctx, r)
		MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	}
	for _, pattern := range []string{"", "a*b", "**", "a*b*", strings.Repeat("x", 257)} {
		_, err := grant(ctx, s, "maker", team, pattern, loombridgev1.Access_ACCESS_READ)
		MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	}
	for _, access := range []loombridgev1.Access{0, 4} {
		_, err := grant(ctx, s, "maker", team, "x", access)
		MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	}
	for i := range grants.MaxGrants - 1 { // its maker has the first
		MustGrant(ctx, t, s, "maker", team, fmt.Sprint("a", i), loombridgev1.Access_ACCESS_READ)
	}
	_, err = grant(ctx, s, "maker", team, "one more", loombridgev1.Access_ACCESS_READ)
	MustFail(t, err, codes.ResourceExhausted, "QUOTA_EXCEEDED")
	MustGrant(ctx, t, s, "maker", team, "a7", loombridgev1.Access_ACCESS_WRITE) // another access is no other grant
	all, err := s.Sharing.ListGrants(ctx, &loombridgev1.ListGrantsRequest{AgentId: "maker", PageSize: grants.MaxGrants, Owner: &loombridgev1.ListGrantsRequest_SpaceId{SpaceId: "team"}})
	must(t, err)
	if len(all.GetGrants()) != grants.MaxGrants || all.GetGrants()[0].GetGrantedBy() != "maker" || all.GetGrants()[0].GetGrantTime() == nil {
		t.Errorf("%d grants, first %v", len(all.GetGrants()), all.GetGrants()[0])
	}
	for i := range grants.MaxSpacesMade - 1 {
		mustCreate(t, s, "maker", fmt.Sprint("space", i))
	}
	_, err = s.Sharing.CreateSpace(ctx, &loombridgev1.CreateSpaceRequest{AgentId: "maker", SpaceId: "one more"})
	MustFail(t, err, codes.ResourceExhausted, "QUOTA_EXCEEDED")
	for i := grants.MaxSpacesMade; i < grants.MaxSpaces; i++ {
		mustCreate(t, s, fmt.Sprint("maker", i%20), fmt.Sprint("space", i))
	}
	_, err = s.Sharing.CreateSpace(ctx, &loombridgev1.CreateSpaceRequest{AgentId: "other", SpaceId: "one more"})
	MustFail(t, err, codes.ResourceExhausted, "QUOTA_EXCEEDED")
}

// stored is how many keys or values hold a text.
func stored(tb testing.TB, engine kv.Reader, text string) (n int) {
	tb.Helper()
	for _, ks := range kv.Keyspaces() {
		for pair, err := range engine.Scan(tb.Context(), ks, kv.Range{}) {
			must(tb, err)
			if strings.Contains(string(pair.Key)+string(pair.Value), text) {
				n++
			}
		}
	}
	return n
}

// A space is deleted with all its records, those of all versions, tiers and reviews, and its
// name can be used again; nothing of before comes back.
//
// Y37
func TestDeletedSpace(t *testing.T) {
	engine := memkv.New(nil)
	defer func() { must(t, engine.Close()) }()
	s := servertest.Start(t, &servertest.Options{Engine: engine})
	ctx := t.Context()
	mustCreate(t, s, "maker", "team")
	MustGrant(ctx, t, s, "maker", team, "friend", loombridgev1.Access_ACCESS_WRITE)
	drafts := make([]*loombridgev1.MemorySaveRequest, 1000)
	for i := range drafts {
		drafts[i] = &loombridgev1.MemorySaveRequest{Text: fmt.Sprint(canary, " number ", i), Key: fmt.Sprint("k", i)}
	}
	_, err := s.Memory.BatchSave(ctx, &loombridgev1.BatchSaveRequest{AgentId: "friend", SpaceId: "team", Records: drafts})
	must(t, err)
	if stored(t, engine, canary) < len(drafts) {
		t.Fatal("the texts are not where the test looks for them")
	}
	watch, err := s.Memory.WatchRecords(ctx, &loombridgev1.WatchRecordsRequest{AgentId: "friend", SpaceId: "team"})
	must(t, err)
	_, err = drained(watch, nil, func(m *loombridgev1.WatchRecordsResponse) bool { return m.GetCaughtUp() })
	must(t, err)
	_, err = s.Sharing.DeleteSpace(ctx, &loombridgev1.DeleteSpaceRequest{AgentId: "friend", SpaceId: "team"})
	MustFail(t, err, codes.PermissionDenied, "ACCESS_DENIED")
	_, err = s.Sharing.DeleteSpace(ctx, &loombridgev1.DeleteSpaceRequest{AgentId: "maker", SpaceId: "team"})
	must(t, err)
	text, err := drained(watch, nil, func(*loombridgev1.WatchRecordsResponse) bool { return false })
	if MustFail(t, err, codes.PermissionDenied, "ACCESS_DENIED"); strings.Contains(text, "saved:") {
		t.Errorf("the watch told %s", text)
	}
	for _, agent := range []string{"maker", "friend"} {
		_, err = textsOf(ctx, s, agent, team)
		MustFail(t, err, codes.PermissionDenied, "ACCESS_DENIED")
		if left := spacesOf(t, s, agent); left != nil {
			t.Errorf("%s has access to %v", agent, left)
		}
	}
	mustCreate(t, s, "friend", "team")
	if got, err := textsOf(ctx, s, "friend", team); err != nil || got != nil {
		t.Errorf("a space of the same name has %q, %v", got, err)
	}
	if n := stored(t, engine, canary); n != 0 {
		t.Errorf("%d values have text of the deleted space", n)
	}
}

// What a stranger can't read comes to it by no other way: no event, no figure, no log line
// that a memory causes has its text.
//
// Y38
func TestNothingTellsOfSharedMemories(t *testing.T) {
	registry, log := prometheus.NewRegistry(), &lockedBuffer{}
	s := servertest.Start(t, &servertest.Options{
		Logger: slog.New(slog.NewTextHandler(log, nil)), Server: server.Options{Credentials: MustCredentials(t, tableCredentials), Metrics: observe.NewMetrics(registry)},
	})
	stranger := withToken(t.Context(), "Bearer stranger")
	events, _ := MustSubscribe(t, stranger, s.Events, &loombridgev1.SubscribeRequest{AgentId: "stranger", Topics: []*loombridgev1.TopicPosition{{Topic: "*"}}})
	spawnAll(t, s)
	for _, m := range []memoryOf{team, {user: "ann-1"}} {
		prepare(t, s, m)
		for name, row := range sharingTable() {
			if row.only == "" || (row.only == "user") == (m.user != "") {
				got, err := row.call(stranger, s, "stranger", m)
				if strings.Contains(got+fmt.Sprint(err), canary) {
					t.Errorf("%s tells a stranger: %s %v", name, got, err)
				}
			}
		}
	}
	_, err := s.Bridge.Emit(withToken(t.Context(), "Bearer maker"), &loombridgev1.EmitRequest{AgentId: "maker", Topic: "end"})
	must(t, err)
	text, err := drained(events, nil, func(m *loombridgev1.SubscribeResponse) bool { return strings.Contains(m.String(), `topic:"end"`) })
	must(t, err)
	families, err := registry.Gather()
	must(t, err)
	for what, text := range map[string]string{"events": text, "figures": fmt.Sprint(families), "the log": log.String()} {
		if strings.Contains(text, canary) {
			t.Errorf("%s have the text of a memory", what)
		}
	}
	if !strings.Contains(fmt.Sprint(families), "PermissionDenied") {
		t.Error("the figures know of no refusals")
	}
}

// What is being saved to a space while it is deleted goes, or is refused: it does not stand
// in the next space of that name.
//
// Y37
func TestDeletedSpaceWhileOthersWrite(t *testing.T) {
	s := servertest.Start(t, nil)
	ctx := t.Context()
	const writers = 8
	for range 20 {
		mustCreate(t, s, "maker", "team")
		MustGrant(ctx, t, s, "maker", team, "w*", loombridgev1.Access_ACCESS_WRITE)
		begun, ended := make(chan struct{}, writers), make(chan error, writers)
		for i := range writers {
			go func() {
				_, err := saveTo(ctx, s, fmt.Sprint("w", i), team, canary)
				begun <- struct{}{}
				for err == nil {
					_, err = saveTo(ctx, s, fmt.Sprint("w", i), team, canary)
				}
				ended <- err
			}()
		}
		for range writers {
			<-begun
		}
		_, err := s.Sharing.DeleteSpace(ctx, &loombridgev1.DeleteSpaceRequest{AgentId: "maker", SpaceId: "team"})
		must(t, err)
		mustCreate(t, s, "maker", "team")
		for range writers {
			MustFail(t, <-ended, codes.PermissionDenied, "ACCESS_DENIED")
		}
		if got, err := textsOf(ctx, s, "maker", team); err != nil || got != nil {
			t.Fatalf("the next space of that name has %d records, %v", len(got), err)
		}
		_, err = s.Sharing.DeleteSpace(ctx, &loombridgev1.DeleteSpaceRequest{AgentId: "maker", SpaceId: "team"})
		must(t, err)
	}
}

// usersCredentials are callers of one tenant that say something of persons, or nothing.
const usersCredentials = `
[[credential]]
token = "plain"
tenant = "acme"
agents = ["plain"]

[[credential]]
token = "app"
tenant = "acme"
agents = ["*"]

[[credential]]
token = "narrow"
tenant = "acme"
agents = ["*"]
reads_users = ["bob"]

[[credential]]
token = "desk"
tenant = "acme"
agents = ["desk"]
reads_users = ["ann"]
administers_users = ["team-*"]
`

// With authentication on, a person's memory is for agents that are granted it, or whose
// credential says so; a credential for all agents that says nothing of persons has all.
// Without authentication it is for all agents.
//
// Y39
func TestPersonsMemoryNeedsAccess(t *testing.T) {
	file := t.TempDir() + "/callers.toml"
	must(t, os.WriteFile(file, []byte(usersCredentials), 0o600))
	credentials, err := auth.LoadCredentials(file)
	must(t, err)
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Credentials: credentials}})
	as := func(token string) context.Context { return withToken(t.Context(), "Bearer "+token) }
	levels := func(token, user string) string {
		agent := map[string]string{"plain": "plain", "desk": "desk"}[token]
		if agent == "" {
			agent = "any"
		}
		m := memoryOf{user: user}
		_, read := textsOf(as(token), s, agent, m)
		_, write := saveTo(as(token), s, agent, m, canary)
		_, admin := grant(as(token), s, agent, m, "nobody", loombridgev1.Access_ACCESS_READ)
		return strings.Join([]string{outcomeOf(read), outcomeOf(write), outcomeOf(admin)}, " ")
	}
	const none, all = "ACCESS_DENIED ACCESS_DENIED ACCESS_DENIED", "OK OK OK"
	for _, test := range [][3]string{
		{"app", "ann", all},
		{"app", "team-1", all},
		{"plain", "ann", none},
		{"plain", "team-1", none},
		{"narrow", "ann", none},
		{"narrow", "bob", "OK ACCESS_DENIED ACCESS_DENIED"},
		{"desk", "ann", "OK ACCESS_DENIED ACCESS_DENIED"},
		{"desk", "team-1", all},
		{"desk", "team", none},
		{"desk", "bob", none},
	} {
		if got := levels(test[0], test[1]); got != test[2] {
			t.Errorf("%s and the memory of %s: %s, want %s", test[0], test[1], got, test[2])
		}
	}
	MustGrant(as("desk"), t, s, "desk", memoryOf{user: "team-1"}, "pl*", loombridgev1.Access_ACCESS_WRITE)
	if got, want := levels("plain", "team-1"), "OK OK ACCESS_DENIED"; got != want {
		t.Errorf("plain was granted write: %s, want %s", got, want)
	}

	watch, err := s.Memory.WatchRecords(as("desk"), &loombridgev1.WatchRecordsRequest{AgentId: "desk", UserId: "ann"})
	must(t, err)
	_, err = drained(watch, nil, func(m *loombridgev1.WatchRecordsResponse) bool { return m.GetCaughtUp() })
	must(t, err)
	must(t, os.WriteFile(file, []byte(strings.Replace(usersCredentials, `reads_users = ["ann"]`, "", 1)), 0o600))
	must(t, credentials.Reload())
	_, err = drained(watch, nil, func(*loombridgev1.WatchRecordsResponse) bool { return false })
	MustFail(t, err, codes.Unauthenticated, "UNAUTHENTICATED")
	if got := levels("desk", "ann"); got != none {
		t.Errorf("what the file gave no more: %s", got)
	}
}

// A prompt shows a person's memory to agents that may read it, and from the next prompt on
// not to those that may no more, in no section, though it stood there.
//
// Y39
func TestPromptsOfPersonsNeedAccess(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Credentials: MustCredentials(t, usersCredentials)}})
	app, plain := withToken(t.Context(), "Bearer app"), withToken(t.Context(), "Bearer plain")
	ann := memoryOf{user: "ann"}
	for _, kind := range []string{"fact", "note", "knowledge"} {
		_, err := s.Bridge.MemorySave(app, &loombridgev1.MemorySaveRequest{AgentId: "app", UserId: "ann", Kind: kind, Text: "Ann drinks tea at five, says " + canary + " " + kind})
		must(t, err)
	}
	_, err := s.Context.ConfigureSession(plain, &loombridgev1.ConfigureSessionRequest{AgentId: "plain", Prompt: &loombridgev1.PromptSettings{UserId: "ann"}})
	must(t, err)
	prompt := func() (string, *loombridgev1.Receipt) {
		made, err := s.Context.Assemble(plain, &loombridgev1.AssembleRequest{AgentId: "plain", Goal: "What does Ann drink at five?", WithoutTools: true})
		must(t, err)
		return fmt.Sprint(made.GetMessages(), made.GetReceipt()), made.GetReceipt()
	}
	refused := func(r *loombridgev1.Receipt) bool {
		return slices.ContainsFunc(r.GetSections(), func(s *loombridgev1.SectionInfo) bool {
			return s.GetName() == "user_memory" && strings.Contains(s.GetReason(), "ACCESS_DENIED")
		})
	}
	for range 3 { // the second prompt has what stands since the first
		if text, r := prompt(); strings.Contains(text, canary) || !refused(r) {
			t.Errorf("an agent without access: %s", text)
		}
		MustGrant(app, t, s, "app", ann, "plain", loombridgev1.Access_ACCESS_READ)
		for range 2 {
			text, r := prompt()
			for _, kind := range []string{"fact", "note", "knowledge"} {
				if !strings.Contains(text, canary+" "+kind) || refused(r) {
					t.Errorf("an agent with access is not shown the %s: %s", kind, text)
				}
			}
		}
		must(t, revoke(app, s, "app", ann, "plain"))
	}
}

// A deletion that a dying server leaves half done is gone on with by the next one.
//
// Y37
func TestDeletedSpaceAcrossServers(t *testing.T) {
	engine := memkv.New(nil)
	defer func() { must(t, engine.Close()) }()
	ctx := t.Context()
	t.Run("the first server", func(t *testing.T) {
		s := servertest.Start(t, &servertest.Options{Engine: engine})
		mustCreate(t, s, "maker", "team")
		drafts := make([]*loombridgev1.MemorySaveRequest, 500)
		for i := range drafts {
			drafts[i] = &loombridgev1.MemorySaveRequest{Text: fmt.Sprint(canary, " number ", i)}
		}
		_, err := s.Memory.BatchSave(ctx, &loombridgev1.BatchSaveRequest{AgentId: "maker", SpaceId: "team", Records: drafts})
		must(t, err)
	})
	// A process that dies at its first record, as far as others can see.
	writer := kv.NewWriter(engine, nil)
	defer func() { must(t, writer.Close()) }()
	began := make(chan struct{})
	dying := grants.New(engine, writer, &grants.Options{Clear: func(ctx context.Context, _ kv.Scope) error {
		close(began)
		<-ctx.Done()
		return ctx.Err()
	}})
	ended := make(chan error, 1)
	go func() { ended <- dying.Delete(ctx, auth.DefaultTenant, "team", "maker") }()
	<-began
	must(t, dying.Close())
	if err := <-ended; !errors.Is(err, grants.ErrClosed) {
		t.Fatalf("the deletion ended with %v", err)
	}
	if n := stored(t, engine, canary); n < 500 {
		t.Fatalf("%d of 500 records are left", n)
	}

	s := servertest.Start(t, &servertest.Options{Engine: engine})
	_, err := textsOf(ctx, s, "maker", team)
	MustFail(t, err, codes.PermissionDenied, "ACCESS_DENIED")
	// The name is free once all is gone.
	for err = errLeftOut; err != nil; {
		if _, err = s.Sharing.CreateSpace(ctx, &loombridgev1.CreateSpaceRequest{AgentId: "maker", SpaceId: "team"}); err != nil {
			MustFail(t, err, codes.PermissionDenied, "ACCESS_DENIED")
		}
	}
	if got, err := textsOf(ctx, s, "maker", team); err != nil || got != nil || stored(t, engine, canary) != 0 {
		t.Errorf("the space has %d records, %v; %d values have their texts", len(got), err, stored(t, engine, canary))
	}
}
