package loomv1_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/memory/plans"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	"github.com/loom-bridge/loom-bridge/server/loomv1"
)

// tenantHeader is how a test's client says whose data it means.
const tenantHeader = "test-tenant"

// memoryNow is the time of every test of the memory.
var memoryNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// errNoTenant is what a call for the tenant "nobody" gets.
var errNoTenant = status.Error(codes.Unauthenticated, "nobody")

// memoryClient is a client of a MemoryService on an engine of the test's choice.
type memoryClient struct {
	loomv1pb.MemoryServiceClient
	log *bytes.Buffer
}

// MustMemory serves loom.v1 on a fresh engine in memory for the length of a test.
func MustMemory(tb testing.TB) memoryClient {
	tb.Helper()
	return MustMemoryOn(tb, memkv.New(nil))
}

// MustMemoryOn serves loom.v1 on engine, which stays the caller's.
func MustMemoryOn(tb testing.TB, engine kv.Engine) memoryClient {
	tb.Helper()
	writer := kv.NewWriter(engine, nil)
	tb.Cleanup(func() { _ = writer.Close() })
	log := &bytes.Buffer{}
	server := grpc.NewServer()
	loomv1.Register(server, loomv1.Deps{
		Plans:   plans.New(engine, writer, &plans.Options{Now: func() time.Time { return memoryNow }}),
		Tenant:  memoryTenant,
		Options: loomv1.Options{Logger: slog.New(slog.NewTextHandler(log, nil))},
	})
	listener := bufconn.Listen(1 << 20)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///in-memory",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	memoryMust(tb, err)
	tb.Cleanup(func() {
		memoryMust(tb, conn.Close())
		server.Stop()
		memoryMust(tb, <-ended)
	})
	return memoryClient{loomv1pb.NewMemoryServiceClient(conn), log}
}

func memoryTenant(ctx context.Context) (string, error) {
	switch given := metadata.ValueFromIncomingContext(ctx, tenantHeader); {
	case len(given) == 0:
		return "default", nil
	case given[0] == "nobody":
		return "", errNoTenant
	default:
		return given[0], nil
	}
}

// asTenant returns a context whose calls work on the data of a tenant.
func asTenant(tb testing.TB, tenant string) context.Context {
	tb.Helper()
	return metadata.AppendToOutgoingContext(tb.Context(), tenantHeader, tenant)
}

func (c memoryClient) MustSave(tb testing.TB, session string, plans ...*loomv1pb.PlanRecord) {
	tb.Helper()
	for _, p := range plans {
		saved, err := c.SavePlan(tb.Context(), &loomv1pb.SavePlanRequest{SessionId: session, Plan: p})
		memoryMust(tb, err)
		memoryMatch(tb, "SavePlan", &loomv1pb.SavePlanResponse{Success: true, PlanHash: p.GetPlanHash()}, saved)
	}
}

func (c memoryClient) MustMark(tb testing.TB, session, hash string, e *loomv1pb.ExecutionRecord) {
	tb.Helper()
	marked, err := c.MarkExecuted(tb.Context(), &loomv1pb.MarkExecutedRequest{SessionId: session, PlanHash: hash, Execution: e})
	memoryMust(tb, err)
	memoryMatch(tb, "MarkExecuted", &loomv1pb.MarkExecutedResponse{Success: true}, marked)
}

func (c memoryClient) MustAppend(tb testing.TB, session string, kinds ...string) {
	tb.Helper()
	for i, kind := range kinds {
		appended, err := c.AppendEvent(tb.Context(), &loomv1pb.MemoryWriteRequest{SessionId: session, Event: &loomv1pb.Event{
			Id: "id", Type: kind, TimestampMs: int64(i + 1), Source: "python", Payload: []byte("payload"), Metadata: map[string]string{"k": "meta"},
		}, Metadata: map[string]string{"k": "meta"}})
		memoryMust(tb, err)
		memoryMatch(tb, "AppendEvent", &loomv1pb.MemoryWriteResponse{Success: true}, appended)
	}
}

func (c memoryClient) MustRecent(tb testing.TB, session, symbol string, limit int32) []*loomv1pb.PlanRecord {
	tb.Helper()
	recent, err := c.GetRecentPlans(tb.Context(), &loomv1pb.GetRecentPlansRequest{SessionId: session, Symbol: symbol, Limit: limit})
	memoryMust(tb, err)
	if !recent.GetSuccess() || recent.GetErrorMessage() != "" {
		tb.Errorf("GetRecentPlans: success %v, %q", recent.GetSuccess(), recent.GetErrorMessage())
	}
	return recent.GetPlans()
}

func (c memoryClient) MustRetrieve(tb testing.TB, session, query string, k int32) []string {
	tb.Helper()
	found, err := c.Retrieve(tb.Context(), &loomv1pb.MemoryRetrieveRequest{SessionId: session, Query: query, K: k, Filters: map[string]string{"any": "thing"}})
	memoryMust(tb, err)
	if !found.GetSuccess() || found.GetErrorMessage() != "" {
		tb.Errorf("Retrieve: success %v, %q", found.GetSuccess(), found.GetErrorMessage())
	}
	return found.GetResults()
}

func memoryMust(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func memoryMatch(tb testing.TB, what string, want, got any) {
	tb.Helper()
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func memoryFails(tb testing.TB, err error, code codes.Code, text string) {
	tb.Helper()
	if s, ok := status.FromError(err); !ok || s.Code() != code || s.Message() != text {
		tb.Errorf("got %v, want %s: %s", err, code, text)
	}
}

// Save a plan, get one: confidence ≈ 0.85, hash echoed.
func TestConformance72SavePlanGetOne(t *testing.T) {
	c := MustMemory(t)
	plan := &loomv1pb.PlanRecord{
		TimestampMs: 1000, Symbol: "BTC", Action: "BUY", Confidence: 0.85, Reasoning: "up", PlanHash: "5eb63bbb", Method: "llm",
		Metadata: map[string]string{"k": "v"},
	}
	c.MustSave(t, "trader-1", plan)
	memoryMatch(t, "plans", []*loomv1pb.PlanRecord{plan}, c.MustRecent(t, "trader-1", "BTC", 1))

	// Neither is a hash made up nor a plan kept once only.
	c.MustSave(t, "trader-1", &loomv1pb.PlanRecord{}, &loomv1pb.PlanRecord{})
	memoryMatch(t, "empty plans", []*loomv1pb.PlanRecord{{}, {}}, c.MustRecent(t, "trader-1", "", 5))
}

// Plan at t=1000, check at t=2000, window 300 → duplicate, 1000 ms.
func TestConformance72PlanDuplicate(t *testing.T) {
	c := MustMemory(t)
	first := &loomv1pb.PlanRecord{TimestampMs: 1000, Symbol: "BTC", Action: "BUY", PlanHash: "a", Confidence: 0.85}
	c.MustSave(t, "trader-1", first)
	check := func(plan *loomv1pb.PlanRecord, window int32) *loomv1pb.CheckDuplicateResponse {
		t.Helper()
		got, err := c.CheckDuplicate(t.Context(), &loomv1pb.CheckDuplicateRequest{SessionId: "trader-1", Plan: plan, TimeWindowSec: window})
		memoryMust(t, err)
		return got
	}
	at := func(ms int64) *loomv1pb.PlanRecord {
		return &loomv1pb.PlanRecord{TimestampMs: ms, Symbol: "BTC", Action: "BUY", PlanHash: "b"}
	}
	found := func(ms int64) *loomv1pb.CheckDuplicateResponse {
		return &loomv1pb.CheckDuplicateResponse{IsDuplicate: true, DuplicatePlan: first, TimeSinceDuplicateMs: ms}
	}
	none := &loomv1pb.CheckDuplicateResponse{}
	memoryMatch(t, "within 300 s", found(1000), check(at(2000), 300))
	memoryMatch(t, "before it", found(2000), check(at(-1000), 300))
	memoryMatch(t, "window 0 is a minute", found(59_999), check(at(60_999), 0))
	memoryMatch(t, "and its end is open", none, check(at(61_000), 0))
	memoryMatch(t, "no plan", none, check(nil, 300))
	memoryMatch(t, "other action", none, check(&loomv1pb.PlanRecord{TimestampMs: 1000, Symbol: "BTC", Action: "SELL", PlanHash: "a"}, 300))
	memoryMatch(t, "plans", []*loomv1pb.PlanRecord{first}, c.MustRecent(t, "trader-1", "BTC", 100))
}

// Check → mark → check: executed, order_id kept.
func TestConformance72CheckMarkCheck(t *testing.T) {
	c := MustMemory(t)
	check := func(hash string) *loomv1pb.CheckExecutedResponse {
		t.Helper()
		got, err := c.CheckExecuted(t.Context(), &loomv1pb.CheckExecutedRequest{SessionId: "trader-1", PlanHash: hash})
		memoryMust(t, err)
		return got
	}
	memoryMatch(t, "before", &loomv1pb.CheckExecutedResponse{}, check("h"))
	first := &loomv1pb.ExecutionRecord{
		TimestampMs: 5, PlanHash: "h", Symbol: "BTC", Action: "BUY", Confidence: 0.85, Status: "error", OrderId: "o-1", OrderSizeUsdt: 12.5, ErrorMessage: "no funds",
	}
	c.MustMark(t, "trader-1", "not this one", first)
	c.MustMark(t, "trader-1", "h", &loomv1pb.ExecutionRecord{PlanHash: "h", Executed: true, OrderId: "o-2", Status: "success"})
	c.MustMark(t, "trader-1", "bare", nil)
	memoryMatch(t, "the oldest, whatever its status", &loomv1pb.CheckExecutedResponse{IsExecuted: true, Execution: first}, check("h"))
	memoryMatch(t, "hash beside an execution", &loomv1pb.CheckExecutedResponse{}, check("not this one"))
	memoryMatch(t, "made up", &loomv1pb.CheckExecutedResponse{IsExecuted: true, Execution: &loomv1pb.ExecutionRecord{
		TimestampMs: memoryNow.UnixMilli(), PlanHash: "bare", Status: "executed", Executed: true,
	}}, check("bare"))
}

// Five executions, three `success` → total 5, win_rate 0.6, 5 recent.
func TestConformance72FiveExecutions(t *testing.T) {
	c := MustMemory(t)
	want := &loomv1pb.GetExecutionStatsResponse{TotalExecutions: 5, SuccessfulExecutions: 3, FailedExecutions: 1, WinRate: 0.6}
	for i, name := range []string{"success", "error", "success", "skipped", "success"} {
		e := &loomv1pb.ExecutionRecord{TimestampMs: int64(-i), Symbol: "BTC", Status: name, OrderId: fmt.Sprint(i)}
		c.MustMark(t, "trader-1", "", e)
		want.RecentExecutions = append([]*loomv1pb.ExecutionRecord{e}, want.GetRecentExecutions()...)
	}
	stats := func(symbol string) *loomv1pb.GetExecutionStatsResponse {
		t.Helper()
		got, err := c.GetExecutionStats(t.Context(), &loomv1pb.GetExecutionStatsRequest{SessionId: "trader-1", Symbol: symbol})
		memoryMust(t, err)
		return got
	}
	memoryMatch(t, "all", want, stats(""))
	memoryMatch(t, "BTC", want, stats("BTC"))
	memoryMatch(t, "ETH", &loomv1pb.GetExecutionStatsResponse{}, stats("ETH"))
}

// Two sessions do not see each other's plans, nor two tenants.
func TestConformance72SessionsApart(t *testing.T) {
	c := MustMemory(t)
	c.MustSave(t, "a", &loomv1pb.PlanRecord{Symbol: "BTC", Action: "BUY", PlanHash: "of a"})
	c.MustSave(t, "b", &loomv1pb.PlanRecord{Symbol: "BTC", Action: "BUY", PlanHash: "of b"})
	c.MustMark(t, "a", "of a", nil)
	for _, session := range []string{"a", "b"} {
		plans := c.MustRecent(t, session, "BTC", 100)
		if len(plans) != 1 || plans[0].GetPlanHash() != "of "+session {
			t.Errorf("%s sees %v", session, plans)
		}
	}
	executed, err := c.CheckExecuted(t.Context(), &loomv1pb.CheckExecutedRequest{SessionId: "b", PlanHash: "of a"})
	memoryMust(t, err)
	memoryMatch(t, "execution of the other", &loomv1pb.CheckExecutedResponse{}, executed)
	other, err := c.GetRecentPlans(asTenant(t, "other"), &loomv1pb.GetRecentPlansRequest{SessionId: "a", Symbol: "BTC", Limit: 100})
	memoryMust(t, err)
	memoryMatch(t, "plans of another tenant", &loomv1pb.GetRecentPlansResponse{Success: true}, other)
}

// Limit 0 → 1, and more than 100 counts as 100; the last saved comes first.
func TestConformance74LimitZeroIsOne(t *testing.T) {
	c := MustMemory(t)
	for i := range 120 {
		c.MustSave(t, "s", &loomv1pb.PlanRecord{TimestampMs: int64(-i), PlanHash: fmt.Sprint(i)})
	}
	for limit, want := range map[int32]int{0: 1, -1: 1, 1: 1, 7: 7, 100: 100, 101: 100, 5000: 100} {
		plans := c.MustRecent(t, "s", "", limit)
		if len(plans) != want || plans[0].GetPlanHash() != "119" {
			t.Errorf("limit %d: %d plans, the first is %q", limit, len(plans), plans[0].GetPlanHash())
		}
	}
}

// Retrieve keeps to its session; without one it goes through all of the tenant's.
func TestConformance74RetrieveKeepsToItsSession(t *testing.T) {
	c := MustMemory(t)
	c.MustAppend(t, "b", "Price.up", "order")
	c.MustAppend(t, "a", "price.down")
	_, err := c.AppendEvent(asTenant(t, "other"), &loomv1pb.MemoryWriteRequest{SessionId: "a", Event: &loomv1pb.Event{Type: "price.other"}})
	memoryMust(t, err)
	up, order, down := "[1] Price.up from python", "[2] order from python", "[1] price.down from python"
	for _, tt := range []struct {
		session, query string
		k              int32
		want           []string
	}{
		{"a", "", -1, []string{down}},
		{"b", "", -1, []string{up, order}},
		{"b", "PRICE", 10, []string{up}},
		{"b", "", 0, []string{up}},
		{"b", "meta", -1, nil},
		{"b", "payload", -1, nil},
		{"c", "", -1, nil},
		{"", "", -1, []string{down, up, order}},
		{"", "price", 10, []string{down, up}},
		{"", "", 2, []string{down, up}},
	} {
		memoryMatch(t, fmt.Sprintf("%+v", tt), tt.want, c.MustRetrieve(t, tt.session, tt.query, tt.k))
	}
}

// event_count is the real number, whatever max_events asks for.
func TestConformance74EventCountIsTheRealNumber(t *testing.T) {
	c := MustMemory(t)
	summarize := func(maxEvents int32) *loomv1pb.MemorySummarizeResponse {
		t.Helper()
		got, err := c.SummarizeEpisode(t.Context(), &loomv1pb.MemorySummarizeRequest{SessionId: "s", MaxEvents: maxEvents})
		memoryMust(t, err)
		return got
	}
	memoryMatch(t, "unknown session", &loomv1pb.MemorySummarizeResponse{Success: true}, summarize(7))
	c.MustAppend(t, "s", "a", "b")
	two := &loomv1pb.MemorySummarizeResponse{Summary: "[1] a from python\n[2] b from python", EventCount: 2, Success: true}
	memoryMatch(t, "max_events 7", two, summarize(7))
	memoryMatch(t, "max_events 1", two, summarize(1))
	for range 60 {
		c.MustAppend(t, "s", "c")
	}
	if got := summarize(0); got.GetEventCount() != 50 || strings.Count(got.GetSummary(), "\n") != 49 || !strings.HasPrefix(got.GetSummary(), "[1] a ") {
		t.Errorf("%d events in %q", got.GetEventCount(), got.GetSummary())
	}
}

// Plans, executions and lines survive SIGTERM and kill: they are in the files of
// the store when the answer comes. The files that are copied while the store is
// open are those that a kill leaves.
func TestConformance74MemorySurvives(t *testing.T) {
	dir := t.TempDir()
	closed, killed := filepath.Join(dir, "closed"), filepath.Join(dir, "killed")
	plan := &loomv1pb.PlanRecord{TimestampMs: 1000, Symbol: "BTC", Action: "BUY", Confidence: 0.85, PlanHash: "h", Metadata: map[string]string{"k": "v"}}
	execution := &loomv1pb.ExecutionRecord{PlanHash: "h", Status: "success", Executed: true, OrderId: "o-1"}
	t.Run("write", func(t *testing.T) {
		c := MustMemoryOn(t, MustMemoryStore(t, closed))
		c.MustSave(t, "s", plan)
		c.MustMark(t, "s", "h", execution)
		c.MustAppend(t, "s", "a", "b")
		memoryMust(t, os.CopyFS(killed, os.DirFS(closed)))
	})
	for _, dir := range []string{closed, killed} {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			c := MustMemoryOn(t, MustMemoryStore(t, dir))
			memoryMatch(t, "plans", []*loomv1pb.PlanRecord{plan}, c.MustRecent(t, "s", "BTC", 100))
			executed, err := c.CheckExecuted(t.Context(), &loomv1pb.CheckExecutedRequest{SessionId: "s", PlanHash: "h"})
			memoryMust(t, err)
			memoryMatch(t, "execution", &loomv1pb.CheckExecutedResponse{IsExecuted: true, Execution: execution}, executed)
			memoryMatch(t, "lines", []string{"[1] a from python", "[2] b from python"}, c.MustRetrieve(t, "s", "", -1))
		})
	}
}

// MustMemoryStore opens a RocksDB store for the length of a test.
func MustMemoryStore(tb testing.TB, dir string) kv.Engine {
	tb.Helper()
	db, err := rockskv.Open(dir, nil)
	memoryMust(tb, err)
	tb.Cleanup(func() { memoryMust(tb, db.Close()) })
	return db
}

// What is missing has the codes and texts that agents know.
func TestMemoryRefusals(t *testing.T) {
	c := MustMemory(t)
	_, err := c.SavePlan(t.Context(), &loomv1pb.SavePlanRequest{SessionId: "s"})
	memoryFails(t, err, codes.Internal, "Failed to save plan: Plan is required")
	_, err = c.AppendEvent(t.Context(), &loomv1pb.MemoryWriteRequest{SessionId: "s"})
	memoryFails(t, err, codes.InvalidArgument, "Event is required")

	// Limits of ours are said with their size.
	_, err = c.SavePlan(t.Context(), &loomv1pb.SavePlanRequest{Plan: &loomv1pb.PlanRecord{Reasoning: strings.Repeat("x", 1<<20)}})
	memoryFails(t, err, codes.ResourceExhausted, "Failed to save plan: plan of 1048580 bytes exceeds the limit of 1048576")
	for range 5 {
		c.MustSave(t, "large", &loomv1pb.PlanRecord{Reasoning: strings.Repeat("x", 1_000_000)})
	}
	_, err = c.GetRecentPlans(t.Context(), &loomv1pb.GetRecentPlansRequest{SessionId: "large", Limit: 5})
	memoryFails(t, err, codes.ResourceExhausted, "Failed to get recent plans: answer of 5000020 bytes exceeds the limit of 4128768")
	if plans := c.MustRecent(t, "large", "", 4); len(plans) != 4 {
		t.Errorf("%d plans, want 4", len(plans))
	}
	if c.log.Len() > 0 {
		t.Errorf("what callers did wrong was logged: %s", c.log)
	}
}

// calls are all calls of the service, each with what it must have.
func (c memoryClient) calls(ctx context.Context) map[string]func() (proto.Message, error) {
	return map[string]func() (proto.Message, error){
		"save plan": func() (proto.Message, error) {
			return c.SavePlan(ctx, &loomv1pb.SavePlanRequest{SessionId: "s", Plan: &loomv1pb.PlanRecord{}})
		},
		"get recent plans": func() (proto.Message, error) {
			return c.GetRecentPlans(ctx, &loomv1pb.GetRecentPlansRequest{SessionId: "s"})
		},
		"check duplicate": func() (proto.Message, error) {
			return c.CheckDuplicate(ctx, &loomv1pb.CheckDuplicateRequest{SessionId: "s", Plan: &loomv1pb.PlanRecord{}})
		},
		"mark executed": func() (proto.Message, error) {
			return c.MarkExecuted(ctx, &loomv1pb.MarkExecutedRequest{SessionId: "s"})
		},
		"check executed": func() (proto.Message, error) {
			return c.CheckExecuted(ctx, &loomv1pb.CheckExecutedRequest{SessionId: "s"})
		},
		"get execution stats": func() (proto.Message, error) {
			return c.GetExecutionStats(ctx, &loomv1pb.GetExecutionStatsRequest{SessionId: "s"})
		},
		"append event": func() (proto.Message, error) {
			return c.AppendEvent(ctx, &loomv1pb.MemoryWriteRequest{SessionId: "s", Event: &loomv1pb.Event{}})
		},
		"retrieve": func() (proto.Message, error) {
			return c.Retrieve(ctx, &loomv1pb.MemoryRetrieveRequest{SessionId: "s"})
		},
		"summarize episode": func() (proto.Message, error) {
			return c.SummarizeEpisode(ctx, &loomv1pb.MemorySummarizeRequest{SessionId: "s"})
		},
	}
}

// A store that fails is INTERNAL with "Failed to", which tells nothing of the
// store; its log does. Who has no tenant is told so.
func TestMemoryFaults(t *testing.T) {
	cause := errors.New("no such file: /var/secret")
	c := MustMemoryOn(t, kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{Read: 1, Repeat: true, Err: cause}))
	for operation, call := range c.calls(t.Context()) {
		c.log.Reset()
		_, err := call()
		if text := status.Convert(err).Message(); status.Code(err) != codes.Internal || !strings.HasPrefix(text, "Failed to "+operation+": ") || strings.Contains(text, "secret") {
			t.Errorf("%s: got %v", operation, err)
		}
		if !strings.Contains(c.log.String(), "/var/secret") {
			t.Errorf("%s: the log has no cause: %s", operation, c.log)
		}
	}
	for operation, call := range c.calls(asTenant(t, "nobody")) {
		if _, err := call(); !errors.Is(err, errNoTenant) {
			t.Errorf("%s for nobody: got %v", operation, err)
		}
	}
}

// A store that is closing is UNAVAILABLE: the agent may try the next process.
func TestMemoryStopping(t *testing.T) {
	engine := memkv.New(nil)
	c := MustMemoryOn(t, engine)
	memoryMust(t, engine.Close())
	for operation, call := range c.calls(t.Context()) {
		if _, err := call(); status.Code(err) != codes.Unavailable {
			t.Errorf("%s: got %v", operation, err)
		}
	}
}
