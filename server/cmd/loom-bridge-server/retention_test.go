package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// retention is what a server says about it.
func (p *process) retention(tb testing.TB) *loombridgev1.RetentionStatus {
	tb.Helper()
	got, err := loombridgev1.NewAdminServiceClient(p.conn).GetStatus(tb.Context(), &loombridgev1.GetStatusRequest{})
	must(tb, err)
	return got.GetRetention()
}

// line is a record as it is exported, of an age.
func line(id string, age time.Duration, more string) string {
	at := time.Now().Add(-age).UTC().Truncate(time.Microsecond).Format("2006-01-02T15:04:05.000000Z")
	return fmt.Sprintf(`{"id":%q,"text":%q,"version":1,"create_time":%q,"update_time":%q,"kind":"note","tier":4,"importance":0.5,"origin":"user"%s}`+"\n", id, "the lamp number "+id, at, at, more)
}

// MustAge gives an agent, a person or a space some records of different ages.
func (p *process) MustAge(tb testing.TB, owner []string, lines ...string) {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "aged.jsonl")
	must(tb, os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600))
	_, err := p.records(tb, append([]string{"import", file}, owner...)...)
	must(tb, err)
}

// ids are those of a memory's records.
func (p *process) ids(tb testing.TB, agent, user string) string {
	tb.Helper()
	all, err := p.memory().ListRecords(tb.Context(), &loombridgev1.ListRecordsRequest{AgentId: agent, UserId: user, Peek: true})
	must(tb, err)
	var ids []string
	for _, r := range all.GetRecords() {
		ids = append(ids, r.GetId())
	}
	return strings.Join(ids, " ")
}

const day = 24 * time.Hour

// Records older than the age go, of all owners, with what they are found by; those that are
// pinned, were changed since or wait for review stay. Watchers hear of it, chains heal.
//
// Y13
func TestRetainRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before := MustRun(t, dir, "--hold-origins", "web")
	aged := []string{
		line("old", 40*day, ""), line("pinned", 40*day, `,"pinned":true`), line("young", 10*day, ""), line("changed", 40*day, ""),
		line("held", 40*day, `,"review":"held"`), line("archived", 40*day, `,"archived":true`), line("replaced", 40*day, `,"supersedes":"first","superseded_by":"by"`), line("first", 10*day, `,"superseded_by":"replaced"`),
		line("by", 20*day, `,"supersedes":"replaced"`),
	}
	before.MustAge(t, []string{"--agent", "a"}, aged...)
	before.MustAge(t, []string{"--agent", "a", "--user", "ann"}, aged...)
	for _, user := range []string{"", "ann"} {
		_, err := before.memory().UpdateRecord(t.Context(), &loombridgev1.UpdateRecordRequest{
			AgentId: "a", UserId: user, Name: &loombridgev1.UpdateRecordRequest_Id{Id: "changed"},
			Record: &loombridgev1.MemorySaveRequest{Tags: []string{"seen"}}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"tags"}},
		})
		must(t, err)
	}
	if got := before.retention(t); got.GetDeletedRecords() != 0 || got.GetSweepTime() != nil {
		t.Errorf("without the setting: %v", got)
	}
	must(t, before.Stop())

	p := MustRun(t, dir, "--retain-records", (30 * day).String(), "--metrics-addr", "127.0.0.1:0")
	const stay = "pinned young changed held first by"
	for _, user := range []string{"", "ann"} {
		waitUntil(t, "old records go", func() bool { return p.ids(t, "a", user) == stay })
		found, err := p.bridge().MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "a", UserId: user, Query: "lamp number", Limit: 20, IncludeArchived: true})
		if must(t, err); len(found.GetHits()) != 4 {
			t.Errorf("%d are found, want those that stay but for the one held", len(found.GetHits()))
		}
		by, err := p.memory().GetRecord(t.Context(), &loombridgev1.GetRecordRequest{AgentId: "a", UserId: user, Name: &loombridgev1.GetRecordRequest_Id{Id: "by"}})
		if must(t, err); by.GetSupersedes() != "first" {
			t.Errorf("the chain is not linked over what went: %v", by)
		}
		_, err = p.memory().GetRecord(t.Context(), &loombridgev1.GetRecordRequest{AgentId: "a", UserId: user, Name: &loombridgev1.GetRecordRequest_Id{Id: "old"}})
		if status.Code(err) != codes.NotFound {
			t.Errorf("an old record: %v", err)
		}
	}
	waitUntil(t, "the look ends", func() bool { return p.retention(t).GetSweepTime() != nil })
	got := p.retention(t)
	if got.GetDeletedRecords() != 6 || got.GetFailing() {
		t.Errorf("status: %v", got)
	}
	if n := scrape(t, p.metrics(t))[`loom_bridge_retention_deleted_total{what="records"}`]; n != 6 {
		t.Errorf("/metrics counts %v", n)
	}
	must(t, p.Stop())
	if said, err := checkOf(t, filepath.Join(dir, "store")); err != nil {
		t.Errorf("check: %v\n%s", err, said)
	}
}

// Of two servers on one store one deletes what is too old, and each record goes once.
//
// Y13
func TestRetainRecordsOnce(t *testing.T) {
	t.Parallel()
	store := postgresPlace(t, pgtest.Address(t))
	const records = 300
	first := MustBridge(t, store, "first")
	var lines []string
	for i := range records {
		lines = append(lines, line(fmt.Sprint("r", i), 40*day, ""))
	}
	first.MustAge(t, []string{"--agent", "a"}, append(lines, line("young", day, ""))...)
	must(t, first.Stop())
	age := []string{"--retain-records", (30 * day).String()}
	servers := []*process{MustBridge(t, store, "a", age...), MustBridge(t, store, "b", age...)}
	waitUntil(t, "all old records go", func() bool { return servers[0].ids(t, "a", "") == "young" })
	waitUntil(t, "both have looked", func() bool {
		return servers[0].retention(t).GetSweepTime() != nil && servers[1].retention(t).GetSweepTime() != nil
	})
	counts := []int64{servers[0].retention(t).GetDeletedRecords(), servers[1].retention(t).GetDeletedRecords()}
	if max(counts[0], counts[1]) != records || min(counts[0], counts[1]) != 0 {
		t.Errorf("the servers deleted %d, want one all %d", counts, records)
	}
}

// say adds a message to a session.
func (p *process) say(tb testing.TB, session, text string) *loombridgev1.AppendMessagesResponse {
	tb.Helper()
	got, err := p.context().AppendMessages(tb.Context(), &loombridgev1.AppendMessagesRequest{
		AgentId: "a", SessionId: session, Messages: []*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_USER, Content: text}},
	})
	must(tb, err)
	return got
}

// heard are the messages of a session.
func (p *process) heard(tb testing.TB, session string) (texts []string) {
	tb.Helper()
	got, err := p.context().ListConversation(tb.Context(), &loombridgev1.ListConversationRequest{AgentId: "a", SessionId: session})
	must(tb, err)
	for _, m := range got.GetEntries() {
		texts = append(texts, m.GetMessage().GetContent())
	}
	return texts
}

// A session in which nothing was recorded for longer than the age goes, with its steps,
// results, tasks, folds, prompts and settings; one that is used stays, and so does one whose
// call or child is at work. What comes later under its id goes on behind it.
//
// Y13
func TestRetainSessions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before := MustRun(t, dir)
	c := plant(t, before, "a", "s", "b", 1)
	before.say(t, "parent", "wait for the child")
	_, err := before.context().SpawnAgent(t.Context(), &loombridgev1.SpawnAgentRequest{AgentId: "a", SessionId: "parent", ChildId: "slow", Goal: "take long", Limits: unhurried})
	must(t, err)
	_, err = before.context().CompleteTask(t.Context(), &loombridgev1.CompleteTaskRequest{AgentId: "aschild", TaskId: "aschild", Conclusion: "the sea is calm"})
	must(t, err)
	steps, err := before.context().ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: "a", SessionId: "s"})
	must(t, err)
	_, err = before.context().ConfigureSession(t.Context(), &loombridgev1.ConfigureSessionRequest{AgentId: "a", SessionId: "configured", Model: "o3"})
	must(t, err)
	_, err = before.context().UpdateWorking(t.Context(), &loombridgev1.UpdateWorkingRequest{AgentId: "a", SessionId: "planned", Goal: proto.String("be done")})
	must(t, err)
	must(t, before.Stop())

	const age = 5 * time.Second // longer than any of these calls takes on a busy machine
	p := MustRun(t, dir, "--retain-sessions", age.String(), "--shell-allow", "echo,cat,sleep", "--metrics-addr", "127.0.0.1:0")
	call := until("go")
	call.AgentId, call.SessionId = "a", "running"
	answered := MustBegin(t, p, call)
	p.say(t, "running", "look for the file")
	spoken := 0
	young := func() {
		p.say(t, "young", fmt.Sprint("still here ", spoken))
		spoken++
	}
	waitUntil(t, "the old session goes", func() bool {
		young()
		return len(p.heard(t, "s")) == 0
	})
	first := p.retention(t).GetSweepTime()
	waitUntil(t, "another look ends, when what was said in the others is old", func() bool {
		young()
		return p.retention(t).GetSweepTime().AsTime().Sub(first.AsTime()) > age
	})
	for session, n := range map[string]int{"young": min(spoken, 100), "running": 1, "s": 0} {
		if got := p.heard(t, session); len(got) != n {
			t.Errorf("session %s has messages %q, want %d", session, got, n)
		}
	}
	bare, err := p.context().ConfigureSession(t.Context(), &loombridgev1.ConfigureSessionRequest{AgentId: "a", SessionId: "configured"})
	if must(t, err); bare.GetModel() != "" {
		t.Errorf("a session that is only configured keeps %v", bare)
	}
	planned, err := p.context().UpdateWorking(t.Context(), &loombridgev1.UpdateWorkingRequest{AgentId: "a", SessionId: "planned"})
	if must(t, err); planned.GetGoal() != "" {
		t.Errorf("a session with a goal alone keeps %v", planned)
	}
	if got := p.heard(t, "parent"); len(got) == 0 {
		t.Error("a session went whose child is at work")
	}
	for _, s := range steps.GetSteps() {
		_, err := p.context().GetStep(t.Context(), &loombridgev1.GetStepRequest{AgentId: "a", StepId: s.GetId()})
		if status.Code(err) != codes.NotFound {
			t.Errorf("step %s: %v", s.GetId(), err)
		}
	}
	must(t, os.WriteFile(filepath.Join(p.Workspace, "go"), []byte("go"), 0o600))
	if got := <-answered; !got.GetSuccess() {
		t.Errorf("the call that ran: %v", got)
	}
	last := p.say(t, "s", "back again")
	if got := p.heard(t, "s"); len(got) != 1 || got[0] != "back again" {
		t.Errorf("a session that came back has %q", got)
	}
	prompt, err := p.context().Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "a", SessionId: "s", Goal: "go on", MaxTokens: 100_000})
	if must(t, err); !strings.Contains(fmt.Sprint(prompt), "back again") || strings.Contains(fmt.Sprint(prompt), "canary") {
		t.Errorf("its prompt: %v", prompt)
	}
	if got := last.GetPositions(); len(got) != 1 || got[0] < 10 {
		t.Errorf("it begins again at %v", got)
	}
	status := p.retention(t)
	if status.GetDeletedSessions() < 1 {
		t.Errorf("status: %v", status)
	}
	if n := scrape(t, p.metrics(t))[`loom_bridge_retention_deleted_total{what="sessions"}`]; n < 1 {
		t.Errorf("/metrics counts %v sessions", n)
	}
	must(t, p.Stop())
	if said, err := checkOf(t, filepath.Join(dir, "store")); err != nil {
		t.Errorf("check: %v\n%s", err, said)
	}
	// What a fork begins with is the child's, and an answer is kept as long as answers are.
	engine, err := rockskv.OpenReadOnly(filepath.Join(dir, "store"), nil)
	must(t, err)
	planted, left := c.where(), map[string]int{}
	must(t, engine.Each(t.Context(), func(ks kv.Keyspace, pair kv.Pair) error {
		if _, rest, err := kv.SplitKey(pair.Key); err != nil || rest[0] == 'q' || ks != kv.Log && ks != kv.Blobs && ks != kv.Records {
			return err
		}
		for name, where := range c {
			if strings.Contains(string(pair.Key)+string(pair.Value), name) {
				left[where]++
			}
		}
		return nil
	}))
	must(t, engine.Close())
	for _, where := range []string{"sessions", "blobs", "prompts", "thoughts", "results", "tasks", "compressed results", "renewals", "settings", "working states"} {
		if planted[where] == 0 || left[where] > 0 {
			t.Errorf("%d of %d canaries of %s are left", left[where], planted[where], where)
		}
	}
	if left["texts"] == 0 {
		t.Error("records that were saved in the session are gone")
	}
}
