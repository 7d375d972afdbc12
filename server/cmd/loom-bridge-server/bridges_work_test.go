package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// What is saved or changed at one server is found at another by the next call.
//
// Z03
func TestBridgesReadEachOthersWritesSoak(t *testing.T) {
	t.Parallel()
	store := postgresPlace(t, pgtest.Address(t))
	both := []*process{MustBridge(t, store, "a"), MustBridge(t, store, "b")}
	finds := func(p *process, id, word string) bool {
		found, err := p.bridge().MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: word, Limit: 1})
		must(t, err)
		return len(found.GetHits()) == 1 && found.GetHits()[0].GetRecord().GetId() == id && strings.Contains(found.GetHits()[0].GetRecord().GetText(), word)
	}
	const saves, updates = 300, 100
	missed := 0
	var id string
	for i := range saves {
		at, other := both[i%2], both[1-i%2]
		saved, err := at.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", Text: fmt.Sprintf("word%d", i)})
		must(t, err)
		if id = saved.GetId(); !finds(other, id, fmt.Sprintf("word%d", i)) {
			missed++
		}
	}
	stale := 0
	for i := range updates {
		at, other := both[i%2], both[1-i%2]
		text := fmt.Sprintf("changed%d", i)
		_, err := loombridgev1.NewMemoryServiceClient(at.conn).UpdateRecord(t.Context(), &loombridgev1.UpdateRecordRequest{
			AgentId: "a", Name: &loombridgev1.UpdateRecordRequest_Id{Id: id}, Record: &loombridgev1.MemorySaveRequest{Text: text}, ExpectedVersion: new(int64(i + 1)),
		})
		must(t, err)
		if !finds(other, id, text) {
			stale++
		}
	}
	if missed > 0 || stale > 0 {
		t.Errorf("%d of %d saves were not found at the other server, %d of %d updates", missed, saves, stale, updates)
	}
}

// Steps that two servers record at once in one session have places without a gap, each once.
func TestBridgesRecordOneSession(t *testing.T) {
	t.Parallel()
	store := postgresPlace(t, pgtest.Address(t))
	both := []*process{MustBridge(t, store, "a"), MustBridge(t, store, "b")}
	const each, hands = 50, 4
	var all sync.WaitGroup
	for n, p := range both {
		for h := range hands {
			all.Go(func() {
				for i := range each {
					p.MustRecord(t, "s", "web:search", fmt.Sprintf(`{"query":"%d of %d at %d"}`, i, h, n), "found")
				}
			})
		}
	}
	all.Wait()
	got, err := both[0].context().ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: "a", SessionId: "s", PageSize: 1000})
	must(t, err)
	seen := make(map[string]bool)
	for i, step := range got.GetSteps() {
		seen[fmt.Sprint(step.GetMinimalArgs())] = true
		if want := fmt.Sprintf("step_%03d", i+1); step.GetId() != want {
			t.Fatalf("the step at %d is %s", i+1, step.GetId())
		}
	}
	if want := 2 * hands * each; len(got.GetSteps()) != want || len(seen) != want {
		t.Errorf("%d steps, %d of them different, want %d", len(got.GetSteps()), len(seen), want)
	}
}

// A request with an id, or a model's call, runs once, whichever servers it reaches at once;
// all others get its answer.
//
// Z04
func TestBridgesRunRequestsOnceSoak(t *testing.T) {
	t.Parallel()
	store, workspace := postgresPlace(t, pgtest.Address(t)), t.TempDir()
	var both []*process
	for _, name := range []string{"a", "b"} {
		both = append(both, MustRunIn(t, noEnvironment, "--addr", "127.0.0.1:0", "--data-dir", filepath.Join(t.TempDir(), "local"), "--workspace", workspace,
			"--store", store, "--bridge-name", name, "--workspace-shared", "--shell-allow", "echo,sleep"))
	}
	for what, c := range map[string]struct {
		ids, calls int
		request    func(i int) *loombridgev1.ToolRequest
	}{
		"request ids": {50, 4, func(i int) *loombridgev1.ToolRequest {
			r := noted("sleep 0.05")
			r.RequestId, r.CallId, r.TurnId = fmt.Sprint("request", i), "", ""
			return r
		}},
		"call ids": {20, 2, func(i int) *loombridgev1.ToolRequest {
			r := noted("sleep 0.05")
			r.CallId = fmt.Sprint("call", i)
			return r
		}},
	} {
		before := runsIn(workspace)
		for i := range c.ids {
			answers := make([]*loombridgev1.ToolResponse, c.calls)
			var all sync.WaitGroup
			for n := range c.calls {
				all.Go(func() {
					got, err := both[n%2].bridge().Tool(t.Context(), c.request(i))
					if err != nil {
						t.Errorf("%s: %v", what, err)
					}
					answers[n] = got
				})
			}
			all.Wait()
			first := 0
			for _, a := range answers {
				if !a.GetReplayed() {
					first++
				}
				if !a.GetSuccess() || a.GetStep().GetId() != answers[0].GetStep().GetId() {
					t.Errorf("%s: %v, the first answer is %v", what, a, answers[0])
				}
			}
			if first != 1 {
				t.Errorf("%s: %d of %d answers are the first", what, first, c.calls)
			}
		}
		if ran := runsIn(workspace) - before; ran != c.ids {
			t.Errorf("%s: %d ran %d times", what, c.ids, ran)
		}
	}
}

// until is a call that runs until there is a file in the workspace.
func until(file string) *loombridgev1.ToolRequest {
	r := noted(fmt.Sprintf("while ! cat %s; do sleep 0.02; done", file))
	r.Timeout = durationpb.New(time.Minute)
	return r
}

// MustBegin starts a call, and returns its answer when it has come. It waits until the
// program runs.
func MustBegin(tb testing.TB, p *process, r *loombridgev1.ToolRequest) <-chan *loombridgev1.ToolResponse {
	tb.Helper()
	before, answered := runsIn(p.Workspace), make(chan *loombridgev1.ToolResponse, 1)
	go func() {
		got, err := p.bridge().Tool(context.WithoutCancel(tb.Context()), r)
		if err != nil {
			got = &loombridgev1.ToolResponse{ErrorMessage: err.Error()}
		}
		answered <- got
	}()
	waitUntil(tb, "the program runs", func() bool { return runsIn(p.Workspace) > before })
	return answered
}

// Who asks a server for what runs at another one, and waits no longer than the call may take,
// is told so. Nothing runs twice: the same call later gets the answer of the first.
//
// Z04
func TestBridgesTellWhatRunsElsewhere(t *testing.T) {
	t.Parallel()
	store, workspace := postgresPlace(t, pgtest.Address(t)), t.TempDir()
	var both []*process
	for _, name := range []string{"a", "b"} {
		both = append(both, MustRunIn(t, noEnvironment, "--addr", "127.0.0.1:0", "--data-dir", filepath.Join(t.TempDir(), "local"), "--workspace", workspace,
			"--store", store, "--bridge-name", name, "--shell-allow", "echo,cat,sleep"))
		both[len(both)-1].Workspace = workspace
	}
	request := until("go")
	request.RequestId, request.CallId, request.TurnId = "once", "", ""
	answered := MustBegin(t, both[0], request)
	again := proto.CloneOf(request)
	again.Timeout = durationpb.New(200 * time.Millisecond)
	_, err := both[1].bridge().Tool(t.Context(), again)
	if status.Code(err) != codes.Aborted || reasonOf(err) != "REQUEST_ELSEWHERE" {
		t.Errorf("asked meanwhile: %v, want REQUEST_ELSEWHERE", err)
	}
	must(t, os.WriteFile(filepath.Join(workspace, "go"), []byte("go"), 0o600))
	first := <-answered
	second, err := both[1].bridge().Tool(t.Context(), again)
	if must(t, err); second.GetStep().GetId() == "" || second.GetStep().GetId() != first.GetStep().GetId() || runsIn(workspace) != 1 {
		t.Errorf("asked later: %v, want the answer %v; it ran %d times", second, first, runsIn(workspace))
	}
}

// A server that starts leaves alone what runs at another one. What ran at one that was killed
// is settled by the others when its lease has run out: its outcome is unknown, and so it is
// answered from then on.
//
// Z05
func TestBridgesSettleOnlyTheDeadSoak(t *testing.T) {
	t.Parallel()
	store := postgresPlace(t, pgtest.Address(t))
	a := MustBridge(t, store, "a", "--workspace-shared", "--shell-allow", "echo,cat,sleep", "--data-dir", filepath.Join(t.TempDir(), "local"))
	dead := MustBridgeApart(t, store, "dead", "--workspace-shared", "--shell-allow", "echo,cat,sleep")
	mine, its := until("go"), until("never")
	its.CallId, its.RequestId = "", "its"
	living := MustBegin(t, a, mine)
	_ = MustBegin(t, &dead.process, its)
	dead.Kill(t)
	c := MustBridge(t, store, "c", "--workspace-shared")

	var settled *loombridgev1.ToolResponse
	waitUntil(t, "the call of the dead server is settled", func() bool {
		steps, err := c.context().ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: "a", SessionId: "s"})
		must(t, err)
		return len(steps.GetSteps()) > 0
	})
	settled, err := c.bridge().Tool(t.Context(), its)
	must(t, err)
	if settled.GetErrorCode() != loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_OUTCOME_UNKNOWN || !settled.GetReplayed() {
		t.Errorf("the call of the dead server: %v", settled)
	}
	select {
	case answer := <-living:
		t.Fatalf("the call of a living server ended: %v", answer)
	default:
	}
	must(t, os.WriteFile(filepath.Join(a.Workspace, "go"), nil, 0o600))
	if answer := <-living; !answer.GetSuccess() {
		t.Errorf("the call of a living server: %v", answer)
	}
	steps, err := a.context().ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: "a", SessionId: "s"})
	must(t, err)
	if len(steps.GetSteps()) != 2 {
		t.Errorf("%d steps of two calls", len(steps.GetSteps()))
	}
}

// Durable events of two servers reach a subscriber of either once each and in the order of
// their numbers, also when PostgreSQL notifies nobody any more.
//
// Z06
func TestBridgesDeliverEventsSoak(t *testing.T) {
	t.Parallel()
	postgres := mustStartPostgres(t)
	store := postgresPlace(t, postgres.Address)
	both := []*process{MustBridge(t, store, "a"), MustBridge(t, store, "b")}
	subscribe := func(p *process, agent string) grpc.ServerStreamingClient[loombridgev1.SubscribeResponse] {
		stream, err := loombridgev1.NewEventServiceClient(p.conn).Subscribe(t.Context(), &loombridgev1.SubscribeRequest{
			AgentId: agent, Topics: []*loombridgev1.TopicPosition{{Topic: "news"}},
		})
		must(t, err)
		_, err = stream.Recv() // ready
		must(t, err)
		return stream
	}
	const half = 200
	streams := []grpc.ServerStreamingClient[loombridgev1.SubscribeResponse]{subscribe(both[0], "x"), subscribe(both[1], "y")}
	emit := func(from int) {
		var all sync.WaitGroup
		for n, p := range both {
			all.Go(func() {
				for i := range half / 2 {
					_, err := p.bridge().Emit(t.Context(), &loombridgev1.EmitRequest{
						AgentId: "a", Topic: "news", PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: fmt.Appendf(nil, "%d", from+2*i+n)},
					})
					if err != nil {
						t.Errorf("emit: %v", err)
					}
				}
			})
		}
		all.Wait()
	}
	receive := func(from int) {
		for n, stream := range streams {
			seen := make(map[string]bool)
			for i := range half {
				got, err := stream.Recv()
				must(t, err)
				if at := got.GetEvent().GetSequence(); at != int64(from+i+1) {
					t.Fatalf("subscriber %d got event %d, want %d", n, at, from+i+1)
				}
				seen[string(got.GetEvent().GetPayloadBytes())] = true
			}
			if len(seen) != half {
				t.Errorf("subscriber %d got %d of %d", n, len(seen), half)
			}
		}
	}
	emit(0)
	receive(0)
	admin, err := pgx.Connect(t.Context(), postgres.Address)
	must(t, err)
	defer admin.Close(context.Background())
	_, err = admin.Exec(t.Context(), `REVOKE EXECUTE ON FUNCTION pg_notify(text, text) FROM PUBLIC`)
	must(t, err)
	emit(half)
	receive(half)
	both[0].told(t, "were not notified of changes")
}

// Each record is embedded by one server.
//
// Z07
func TestBridgesEmbedOnce(t *testing.T) {
	t.Parallel()
	store, model := postgresPlace(t, pgtest.Address(t)), MustModel(t)
	embedder := []string{"--embedder-url", model.URL + "/v1", "--embedder-model", "m"}
	var all []*process
	for _, name := range []string{"a", "b", "c"} {
		all = append(all, MustRunWith(t, t.TempDir(), func(c *Config) { c.Embedder.Batch = 4 }, append([]string{"--store", store, "--bridge-name", name}, embedder...)...))
	}
	const records = 120
	var saving sync.WaitGroup
	for n, p := range all {
		saving.Go(func() {
			for i := range records / len(all) {
				_, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: fmt.Sprint("agent", i%4), Text: fmt.Sprintf("text %d of %d", i, n)})
				if err != nil {
					t.Errorf("save: %v", err)
				}
			}
		})
	}
	saving.Wait()
	for agent := range 4 {
		waitUntil(t, "all records have vectors", func() bool {
			stats, err := loombridgev1.NewMemoryServiceClient(all[0].conn).ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: fmt.Sprint("agent", agent), StatsOnly: true})
			must(t, err)
			return stats.GetStats().GetPending() == 0
		})
	}
	asked := make(map[string]int)
	for _, q := range model.questions() {
		for _, text := range q.Input {
			asked[text]++
		}
	}
	again := 0
	for _, times := range asked {
		again += times - 1
	}
	if len(asked) != records || again > 0 {
		t.Errorf("%d texts were embedded, %d of them again, want %d once", len(asked), again, records)
	}
}

// The audits of servers that work side by side, one of which is killed, hold every call and
// are whole; a record that is taken away is found.
//
// Z09
func TestBridgesAuditSideBySideSoak(t *testing.T) {
	t.Parallel()
	address := pgtest.Address(t)
	store, local := postgresPlace(t, address), t.TempDir()
	const shared = "--workspace-shared" // each runs its own calls
	a, b, c := MustBridge(t, store, "a", shared), MustBridge(t, store, "b", shared), MustBridgeApart(t, store, "c", shared)
	calls := 0
	verify := func() (said string, err error) {
		return loomCommand(t, "audit", "verify", "--store", store, "--data-dir", local)
	}
	// sealed waits until so many records are sealed, while all goes on.
	sealed := func(all ...*process) {
		t.Helper()
		for _, p := range all {
			if _, err := p.bridge().Tool(t.Context(), &loombridgev1.ToolRequest{AgentId: "a", Name: "fs:list_dir"}); err != nil {
				t.Fatal(err)
			}
			calls++
		}
		waitUntil(t, "all is sealed", func() bool {
			said, err := verify()
			if err != nil {
				t.Fatalf("verify: %v: %s", err, said)
			}
			return strings.Contains(said, fmt.Sprintf("%d records verified, 0 deleted, 0 not sealed", calls))
		})
	}
	for range 2 {
		sealed(a, b, &c.process)
	}
	c.Kill(t)
	sealed(a, b)
	sealed(MustBridge(t, store, "d", shared), a, b)

	schema, err := url.Parse(store)
	must(t, err)
	admin, err := pgx.Connect(t.Context(), address)
	must(t, err)
	defer admin.Close(context.Background())
	_, err = admin.Exec(t.Context(), `DELETE FROM `+schema.Query().Get("schema")+`.system WHERE key = (SELECT min(key) FROM `+
		schema.Query().Get("schema")+`.system WHERE position('audit\000r'::bytea IN key) > 0)`)
	must(t, err)
	if said, err := verify(); err == nil || !strings.Contains(said, "record 1 of epoch 1 is missing") {
		t.Errorf("a record that was taken away: %v: %s", err, said)
	}
}
