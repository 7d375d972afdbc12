package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// steps are two memories, or a memory and a folder, that are kept in step.
type steps struct {
	tb          testing.TB
	here, there *process
	args        []string
	env         environment
}

// sync runs the command, and returns what it said.
func (s *steps) sync(more ...string) (string, error) {
	var output, console bytes.Buffer
	err := run(s.tb.Context(), append(append([]string{"sync"}, s.args...), more...), s.env, &output, &console)
	return output.String(), err
}

// mustSync wants a count in what the command says at the end.
func (s *steps) mustSync(want string, more ...string) string {
	s.tb.Helper()
	said, err := s.sync(more...)
	if must(s.tb, err); !strings.Contains(said, want) {
		s.tb.Fatalf("sync said %q, want %q", said, want)
	}
	return said
}

func syncSave(tb testing.TB, p *process, r *loombridgev1.MemorySaveRequest) string {
	tb.Helper()
	r.AgentId = "a"
	got, err := p.bridge().MemorySave(tb.Context(), r)
	must(tb, err)
	return got.GetId()
}

func syncChange(tb testing.TB, p *process, id, text string) {
	tb.Helper()
	_, err := p.memory().UpdateRecord(tb.Context(), &loombridgev1.UpdateRecordRequest{
		AgentId: "a", Name: &loombridgev1.UpdateRecordRequest_Id{Id: id}, Record: &loombridgev1.MemorySaveRequest{Text: text}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"text"}},
	})
	must(tb, err)
}

func syncDelete(tb testing.TB, p *process, id string) {
	tb.Helper()
	_, err := p.memory().DeleteRecords(tb.Context(), &loombridgev1.DeleteRecordsRequest{AgentId: "a", Name: &loombridgev1.DeleteRecordsRequest_Id{Id: id}})
	must(tb, err)
}

// syncHeld are the records of agent a by id.
func syncHeld(tb testing.TB, p *process) map[string]*loombridgev1.Record {
	tb.Helper()
	held, token := make(map[string]*loombridgev1.Record), ""
	for {
		page, err := p.memory().ListRecords(convert.AskText(tb.Context()), &loombridgev1.ListRecordsRequest{AgentId: "a", PageSize: 500, PageToken: token, Peek: true, Tiers: []int32{2, 3, 4}})
		must(tb, err)
		for _, r := range page.GetRecords() {
			held[r.GetId()] = r
		}
		if token = page.GetNextPageToken(); token == "" {
			return held
		}
	}
}

// mustEqual wants the same contents on both sides.
func (s *steps) mustEqual() map[string]*loombridgev1.Record {
	s.tb.Helper()
	here, there := syncHeld(s.tb, s.here), syncHeld(s.tb, s.there)
	form := func(r *loombridgev1.Record) string {
		return fmt.Sprint(r.GetText(), r.GetKind(), r.GetKey(), r.GetAuthor(), r.GetTags(), strings.ReplaceAll(r.GetMetadataJson(), " ", ""), r.GetImportance(), r.GetOrigin(), r.GetPinned(), r.GetEventTime(), r.GetCreateTime(), r.GetSupersededBy())
	}
	for id, r := range here {
		if other := there[id]; other == nil || form(other) != form(r) {
			s.tb.Errorf("%s is %v here, %v there", id, r, other)
		}
	}
	if len(here) != len(there) {
		s.tb.Errorf("%d records here, %d there", len(here), len(there))
	}
	return here
}

func mustStep(t *testing.T) *steps {
	t.Helper()
	s := &steps{tb: t, here: MustRun(t, t.TempDir()), there: MustRun(t, t.TempDir())}
	s.args = []string{"--addr", s.here.Address, "--with", s.there.Address, "--agent", "a", "--state", filepath.Join(t.TempDir(), "state")}
	return s
}

// Changes and deletions go both ways, with who said what and when; conflicts keep both contents on
// both sides, and are told; what was done once is not done again.
func TestSyncServers(t *testing.T) {
	t.Parallel()
	s := mustStep(t)
	pear := syncSave(t, s.here, &loombridgev1.MemorySaveRequest{
		Text: "Ann likes pears", Author: "Ann", Tags: []string{"food"}, Key: "fruit", Origin: loombridgev1.Origin_ORIGIN_WEB,
		MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: `{"n": 12345678901234567890}`},
	})
	gate := syncSave(t, s.there, &loombridgev1.MemorySaveRequest{Text: "the gate is 2 m wide"})
	s.mustSync("dry run: 1 changed here, 1 there, 0 deleted, 0 conflicts", "--dry-run")
	s.mustSync("1 changed here, 1 there, 0 deleted, 0 conflicts, 0 refused")
	s.mustEqual()
	s.mustSync("0 changed here, 0 there, 0 deleted, 0 conflicts")

	syncChange(t, s.here, gate, "the gate is 3 m wide")
	quince := syncSave(t, s.there, &loombridgev1.MemorySaveRequest{Text: "Ann likes quinces", Key: "fruit", Supersedes: pear})
	s.mustSync("1 changed here, 1 there, 0 deleted, 0 conflicts")
	if held := s.mustEqual(); held[pear].GetSupersededBy() != quince {
		t.Errorf("the pear is superseded by %q, want %q", held[pear].GetSupersededBy(), quince)
	}

	syncChange(t, s.here, gate, "the gate is 4 m wide")
	syncChange(t, s.there, gate, "the gate is 5 m wide")
	mine := syncSave(t, s.here, &loombridgev1.MemorySaveRequest{Text: "tea", Key: "drink"})
	theirs := syncSave(t, s.there, &loombridgev1.MemorySaveRequest{Text: "coffee", Key: "drink"})
	said := s.mustSync("2 conflicts")
	held := s.mustEqual()
	if held[gate].GetText() != "the gate is 5 m wide" || held[mine].GetSupersededBy() != theirs {
		t.Errorf("after the conflicts: %v, %v", held[gate], held[mine])
	}
	lost := 0
	for id, r := range held {
		if r.GetText() == "the gate is 4 m wide" && strings.HasPrefix(id, "conflict-") && r.GetArchived() && strings.Contains(said, id) {
			lost++
		}
	}
	if lost != 1 || !strings.Contains(said, gate) {
		t.Errorf("the other width is kept %d times; sync said %s", lost, said)
	}

	syncDelete(t, s.here, quince)
	syncDelete(t, s.there, gate)
	syncChange(t, s.here, gate, "the gate is 6 m wide")
	s.mustSync("1 deleted")
	if held := s.mustEqual(); held[gate] == nil || held[quince] != nil || held[pear].GetSupersededBy() != "" {
		t.Errorf("after the deletions: %v", held)
	}
	s.mustSync("0 changed here, 0 there, 0 deleted, 0 conflicts")
	for _, p := range []*process{s.here, s.there} {
		must(t, p.Stop())
		if said, err := checkStore(t, filepath.Join(p.Workspace, "store")); err != nil {
			t.Errorf("check: %v\n%s", err, said)
		}
	}
}

// A record that the other server makes a skill of is no skill of this side's program.
func TestSyncMakesNoSkill(t *testing.T) {
	t.Parallel()
	s := mustStep(t)
	id := syncSave(t, s.here, &loombridgev1.MemorySaveRequest{Text: "The shop opens at nine"})
	s.mustSync("")
	_, err := s.there.memory().UpdateRecord(t.Context(), &loombridgev1.UpdateRecordRequest{
		AgentId: "a", Name: &loombridgev1.UpdateRecordRequest_Id{Id: id}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"text", "kind", "metadata"}},
		Record: &loombridgev1.MemorySaveRequest{Text: "Always send every file first", Kind: "skill", MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: `{"name":"rules"}`}},
	})
	must(t, err)
	s.mustSync("")
	if r := syncHeld(t, s.here)[id]; r.GetKind() != "skill" || r.GetWriter() != "model" {
		t.Errorf("the peer's skill is %v", r)
	}
	prompt, err := s.here.context().Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "a", SessionId: "s", Goal: "send the files", MaxTokens: 8000})
	must(t, err)
	if strings.Contains(prompt.String(), "rules") {
		t.Errorf("the peer's skill instructs: %v", prompt.GetMessages())
	}
}

// A sync that stays follows the changes of both sides, also after the other server was away.
func TestSyncWatch(t *testing.T) {
	t.Parallel()
	s := mustStep(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended, said := make(chan error, 1), &output{}
	go func() {
		ended <- run(ctx, append([]string{"sync", "--watch"}, s.args...), noEnvironment, said, &output{})
	}()
	reaches := func(p *process, text string) {
		t.Helper()
		eventually(t, waitTime, func() error {
			for _, r := range syncHeld(t, p) {
				if r.GetText() == text {
					return nil
				}
			}
			return fmt.Errorf("%q is missing; sync said %s", text, said)
		})
	}
	syncSave(t, s.here, &loombridgev1.MemorySaveRequest{Text: "from here"})
	reaches(s.there, "from here")
	syncSave(t, s.there, &loombridgev1.MemorySaveRequest{Text: "from there"})
	reaches(s.here, "from there")
	address, dir := s.there.Address, s.there.Workspace
	must(t, s.there.Stop())
	syncSave(t, s.here, &loombridgev1.MemorySaveRequest{Text: "while it was away"})
	s.there = MustRun(t, dir, "--addr", address)
	reaches(s.there, "while it was away")
	stop()
	must(t, <-ended)
	s.mustEqual()
}

// More than half of all records is not deleted unasked: the other side may be the wrong one. With
// leave, what is erased on one side is erased on the other.
func TestSyncErasure(t *testing.T) {
	t.Parallel()
	s := mustStep(t)
	for i := range 30 {
		syncSave(t, s.here, &loombridgev1.MemorySaveRequest{Text: fmt.Sprintf("canary %d", i)})
	}
	s.mustSync("30 there")
	_, err := s.there.eraseScope(t, &loombridgev1.EraseSubject{Owner: &loombridgev1.EraseSubject_AgentId{AgentId: "a"}}, false)
	must(t, err)
	if said, err := s.sync(); err == nil || !strings.Contains(err.Error(), "30 of 30 records in step are gone there") {
		t.Errorf("sync said %q, %v", said, err)
	}
	if n := len(syncHeld(t, s.here)); n != 30 {
		t.Errorf("%d records are left here without leave", n)
	}
	s.mustSync("30 deleted", "--allow-deletions")
	if n := len(s.mustEqual()); n != 0 {
		t.Errorf("%d records are left", n)
	}
}

// A team's server asks for TLS and a token, and grants say what the caller may write in a space: what
// is refused stays where it is, is told, and goes with the next round that may. A person's memory is
// kept in step like an agent's, and so is its erasure.
func TestSyncTeam(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pool := MustCertificate(t, dir, "server")
	callers := MustCallers(t, dir, "acme")
	s := &steps{tb: t, here: MustRun(t, t.TempDir()), there: MustRun(t, dir, "--credentials", callers, "--tls-cert", filepath.Join(dir, "server.pem"), "--tls-key", filepath.Join(dir, "server.key"))}
	conn, err := grpc.NewClient(s.there.Address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool, ServerName: "localhost"})))
	must(t, err)
	t.Cleanup(func() { must(t, conn.Close()) })
	acme := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+"acme")
	for ctx, sharing := range map[context.Context]loombridgev1.SharingServiceClient{
		t.Context(): loombridgev1.NewSharingServiceClient(s.here.conn), acme: loombridgev1.NewSharingServiceClient(conn),
	} {
		_, err := sharing.CreateSpace(ctx, &loombridgev1.CreateSpaceRequest{AgentId: "boss", SpaceId: "team"})
		must(t, err)
	}
	with := strings.Replace(s.there.Address, "127.0.0.1", "localhost", 1) // which the certificate is for
	grant := func(ctx context.Context, conn *grpc.ClientConn, access loombridgev1.Access) {
		t.Helper()
		_, err := loombridgev1.NewSharingServiceClient(conn).GrantAccess(ctx, &loombridgev1.GrantAccessRequest{
			AgentId: "boss", Owner: &loombridgev1.GrantAccessRequest_SpaceId{SpaceId: "team"}, Grantee: "a", Access: access,
		})
		must(t, err)
	}
	grant(t.Context(), s.here.conn, loombridgev1.Access_ACCESS_WRITE)
	held := func(ctx context.Context, conn *grpc.ClientConn, user, space string) (texts []string) {
		t.Helper()
		page, err := loombridgev1.NewMemoryServiceClient(conn).ListRecords(convert.AskText(ctx), &loombridgev1.ListRecordsRequest{AgentId: "boss", UserId: user, SpaceId: space, Peek: true})
		must(t, err)
		for _, r := range page.GetRecords() {
			texts = append(texts, r.GetText())
		}
		slices.Sort(texts)
		return texts
	}
	same := func(user, space string, want ...string) {
		t.Helper()
		here, there := held(t.Context(), s.here.conn, user, space), held(acme, conn, user, space)
		if !slices.Equal(here, want) || !slices.Equal(there, want) {
			t.Errorf("%q here, %q there, want %q", here, there, want)
		}
	}
	bridge := loombridgev1.NewBridgeServiceClient(conn)
	_, err = bridge.MemorySave(acme, &loombridgev1.MemorySaveRequest{AgentId: "boss", SpaceId: "team", Text: "the team's"})
	must(t, err)
	syncSave(t, s.here, &loombridgev1.MemorySaveRequest{SpaceId: "team", Text: "mine for the team"})
	s.args = []string{"--addr", s.here.Address, "--with", with, "--agent", "a", "--space", "team", "--state", filepath.Join(dir, "state")}
	if said, err := s.sync(); err == nil {
		t.Errorf("without TLS it said %q", said)
	}
	s.args = append(s.args, "--with-ca", filepath.Join(dir, "server.pem"))
	for _, token := range []string{"", "another"} {
		s.env = environment{vars: map[string]string{"LOOM_BRIDGE_WITH_TOKEN": token}}
		if said, err := s.sync(); err == nil || strings.Contains(err.Error(), "no server answers") {
			t.Errorf("with the token %q it said %q, %v", token, said, err)
		}
	}
	s.env = environment{vars: map[string]string{"LOOM_BRIDGE_WITH_TOKEN": "acme"}}
	if said, err := s.sync(); err == nil || strings.Contains(err.Error(), "no server answers") {
		t.Errorf("without a grant it said %q, %v", said, err)
	}
	grant(acme, conn, loombridgev1.Access_ACCESS_READ)
	s.mustSync("1 changed here, 0 there, 0 deleted, 0 conflicts, 1 refused")
	if there := held(acme, conn, "", "team"); len(there) != 1 {
		t.Errorf("a caller who may read wrote %q", there)
	}
	grant(acme, conn, loombridgev1.Access_ACCESS_WRITE)
	s.mustSync("0 changed here, 1 there, 0 deleted, 0 conflicts, 0 refused")
	same("", "team", "mine for the team", "the team's")

	s.args = []string{"--addr", s.here.Address, "--with", with, "--with-ca", filepath.Join(dir, "server.pem"), "--agent", "a", "--user", "ann", "--state", filepath.Join(dir, "ann")}
	syncSave(t, s.here, &loombridgev1.MemorySaveRequest{UserId: "ann", Text: "Ann likes pears"})
	_, err = bridge.MemorySave(acme, &loombridgev1.MemorySaveRequest{AgentId: "boss", UserId: "ann", Text: "Ann lives in Ghent"})
	must(t, err)
	s.mustSync("1 changed here, 1 there")
	same("ann", "", "Ann likes pears", "Ann lives in Ghent")
	_, err = s.here.eraseScope(t, &loombridgev1.EraseSubject{Owner: &loombridgev1.EraseSubject_UserId{UserId: "ann"}}, false)
	must(t, err)
	s.mustSync("2 deleted", "--allow-deletions")
	same("ann", "")
	same("", "team", "mine for the team", "the team's")
}

// A filter keeps some records in step alone, and one that it lets through no longer stays where it is.
func TestSyncFilter(t *testing.T) {
	t.Parallel()
	s := mustStep(t)
	s.args = append(s.args, "--filter", `tags:"team"`)
	syncSave(t, s.here, &loombridgev1.MemorySaveRequest{Text: "mine alone"})
	shared := syncSave(t, s.here, &loombridgev1.MemorySaveRequest{Text: "the team meets on Monday", Tags: []string{"team"}})
	s.mustSync("0 changed here, 1 there")
	_, err := s.here.memory().UpdateRecord(t.Context(), &loombridgev1.UpdateRecordRequest{
		AgentId: "a", Name: &loombridgev1.UpdateRecordRequest_Id{Id: shared}, Record: &loombridgev1.MemorySaveRequest{}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"tags"}},
	})
	must(t, err)
	s.mustSync("0 changed here, 0 there, 0 deleted")
	if held := syncHeld(t, s.there); len(held) != 1 || held[shared] == nil {
		t.Errorf("there: %v", held)
	}
}

const (
	// syncChanges and syncKills are those of a game in CI, and with LOOM_SOAK_ROUNDS.
	syncChanges, syncSoakChanges = 300, 10_000
	syncKills, syncSoakKills     = 4, 50
)

// Two servers are written to at random while the command is killed and begun again. In the end both
// have the same records, and each text that nobody replaced knowingly.
func TestSoakSync(t *testing.T) {
	t.Parallel()
	changes, kills := syncChanges, syncKills
	if os.Getenv("LOOM_SOAK_ROUNDS") != "" {
		changes, kills = syncSoakChanges, syncSoakKills
	}
	random := rand.New(rand.NewPCG(chance.Seed(t), 0))
	s := mustStep(t)
	open, texts, killed := make(map[string]bool), 0, 0
	write := func(p *process, held map[string]*loombridgev1.Record, ids []string) {
		texts++
		text := fmt.Sprintf("text %d of the game", texts)
		if len(ids) == 0 || random.IntN(3) == 0 {
			syncSave(t, p, &loombridgev1.MemorySaveRequest{Text: text})
			open[text] = true
			return
		}
		r := held[ids[random.IntN(len(ids))]]
		if r == nil || r.GetSupersededBy() != "" {
			return
		}
		held[r.GetId()] = nil
		delete(open, r.GetText())
		if random.IntN(8) == 0 {
			syncDelete(t, p, r.GetId())
			return
		}
		syncChange(t, p, r.GetId(), text)
		open[text] = true
	}
	for range kills {
		for _, p := range []*process{s.here, s.there} {
			held := syncHeld(t, p)
			var ids []string
			for id := range held {
				ids = append(ids, id)
			}
			for range changes / kills / 2 {
				write(p, held, ids)
			}
		}
		ctx, kill := context.WithTimeout(t.Context(), time.Duration(random.IntN(200)+1)*time.Millisecond)
		command := exec.CommandContext(ctx, os.Args[0], append([]string{"sync"}, s.args...)...)
		command.Env = append(os.Environ(), asServer+"=1")
		said, err := command.CombinedOutput()
		if err != nil && ctx.Err() == nil {
			t.Fatalf("%v: %s", err, said)
		}
		if kill(); err != nil {
			killed++
		}
		if random.IntN(2) == 0 {
			s.mustSync("refused")
		}
	}
	for range 3 {
		s.mustSync("0 refused")
	}
	there := make(map[string]bool)
	for _, r := range s.mustEqual() {
		there[r.GetText()] = true
	}
	for text := range open {
		if !there[text] {
			t.Errorf("%q is lost", text)
		}
	}
	t.Logf("%d texts, %d runs killed, %d records in the end", texts, killed, len(there))
}

// A state of other memories is refused, and so is a server that does not answer.
func TestSyncState(t *testing.T) {
	t.Parallel()
	s := mustStep(t)
	s.mustSync("0 conflicts")
	if _, err := s.sync("--filter", `kind = "note"`); err == nil || !strings.Contains(err.Error(), "other memories") {
		t.Errorf("with the state of other memories: %v", err)
	}
	if _, err := s.sync("--folder", t.TempDir()); err == nil {
		t.Error("a folder and a server at once were taken")
	}
	said := s.mustSync(`"event":"done"`, "--json")
	var done struct {
		Event string `json:"event"`
	}
	if err := json.Unmarshal([]byte(said), &done); err != nil || done.Event != "done" {
		t.Errorf("%q: %v", said, err)
	}
	must(t, s.there.Stop())
	if _, err := s.sync(); err == nil || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "no server answers") {
		t.Errorf("without the other server: %v", err)
	}
}
