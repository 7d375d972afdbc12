package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// detailOf returns the reason of an error and its metadata.
func detailOf(err error) (string, map[string]string) {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.GetReason(), info.GetMetadata()
		}
	}
	return "", nil
}

// works makes one call of each sort, and fails the test if any is refused.
func works(tb testing.TB, ctx context.Context, conn *grpc.ClientConn, agent string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(ctx, waitTime)
	defer cancel()
	bridge := loombridgev1.NewBridgeServiceClient(conn)
	if _, err := bridge.MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "a note"}); err != nil {
		tb.Errorf("%s can't save: %v", agent, err)
	}
	if _, err := bridge.MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "note"}); err != nil {
		tb.Errorf("%s can't ask: %v", agent, err)
	}
	if r, err := bridge.Tool(ctx, &loombridgev1.ToolRequest{AgentId: agent, Name: "fs:list_dir"}); err != nil || !r.GetSuccess() {
		tb.Errorf("%s can't run a tool: %v, %v", agent, r.GetErrorMessage(), err)
	}
	if _, err := bridge.Emit(ctx, &loombridgev1.EmitRequest{AgentId: agent, Topic: "news"}); err != nil {
		tb.Errorf("%s can't emit: %v", agent, err)
	}
	if err := listens(ctx, conn, agent, "news"); err != nil {
		tb.Errorf("%s can't listen: %v", agent, err)
	}
}

// listens opens a subscription, which ends with ctx.
func listens(ctx context.Context, conn *grpc.ClientConn, agent, topic string) error {
	stream, err := loombridgev1.NewEventServiceClient(conn).Subscribe(ctx, &loombridgev1.SubscribeRequest{
		AgentId: agent, Topics: []*loombridgev1.TopicPosition{{Topic: topic}},
	})
	if err == nil {
		_, err = stream.Recv()
	}
	return err
}

// provide attaches an agent with a tool; each call of it is handed to called.
func provide(tb testing.TB, ctx context.Context, conn *grpc.ClientConn, id, tool string, called func(*peerStream, pushed)) {
	tb.Helper()
	p := &peer{id: id, tool: tool, called: called}
	s, err := p.open(ctx, conn)
	must(tb, err)
	var running sync.WaitGroup
	running.Go(func() { _ = p.run(s) })
	tb.Cleanup(func() {
		s.cancel()
		running.Wait()
	})
}

// An agent whose tool never answers, and that calls it a thousand times, keeps
// nobody else waiting: no other agent, and no other tenant.
func TestHangingToolKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir, "--credentials", MustCallers(t, dir, "acme", "umbrella"), "--log-level", "off")
	acme := as(t.Context(), "acme")
	var waiting atomic.Int64
	provide(t, acme, p.conn, "hanging", "hanging:tool", func(*peerStream, pushed) { waiting.Add(1) })
	calls, cancel := context.WithCancel(acme)
	const hanging = 1024
	var work sync.WaitGroup
	var refused atomic.Int64
	for i := range 8 {
		conn := MustDial(t, p.Address)
		for range hanging / 8 {
			work.Go(func() {
				r, err := loombridgev1.NewBridgeServiceClient(conn).Tool(calls, &loombridgev1.ToolRequest{
					AgentId: "hanging", Name: "hanging:tool", Timeout: durationpb.New(time.Minute),
				})
				if calls.Err() == nil {
					refused.Add(1)
					t.Errorf("connection %d: the hanging call ended: %v, %s", i, err, r.GetErrorMessage())
				}
			})
		}
	}
	for deadline := time.Now().Add(waitTime); waiting.Load() < hanging && refused.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d calls have reached the tool", waiting.Load(), hanging)
		}
	}
	works(t, acme, p.conn, "neighbour")
	works(t, as(t.Context(), "umbrella"), p.conn, "stranger")
	works(t, acme, p.conn, "hanging") // itself too
	cancel()
	work.Wait()
}

// Calls of tools that call tools all succeed, many at once from two agents, in
// both APIs, and a stranger is not kept waiting.
func TestNestedToolCalls(t *testing.T) {
	t.Parallel()
	for name, loom := range map[string]bool{"native": false, "loom.v1": true} {
		t.Run(name, func(t *testing.T) {
			p := MustRun(t, t.TempDir(), "--log-level", "off")
			inner := MustDial(t, p.Address)
			// As an agent does it: the tool asks the server for a tool of its own.
			provide(t, t.Context(), p.conn, "research", "agent:research", func(s *peerStream, call pushed) {
				go func() {
					time.Sleep(20 * time.Millisecond)
					r, err := loombridgev1.NewBridgeServiceClient(inner).Tool(t.Context(), &loombridgev1.ToolRequest{AgentId: "research", Name: "fs:list_dir"})
					if err == nil {
						err = s.reply(call.id, fmt.Sprintf(`{"ok":%v}`, r.GetSuccess()))
					}
					if err != nil && t.Context().Err() == nil {
						t.Errorf("inner call: %v", err)
					}
				}()
			})
			const each = 200 // more than there are slots for tools
			var work sync.WaitGroup
			var ok atomic.Int64
			for _, caller := range []string{"a", "b"} {
				conn := MustDial(t, p.Address)
				for range each {
					work.Go(func() {
						call := toolCall{loom: loom, caller: caller, tool: "agent:research", marker: "ok", timeout: 20 * time.Second}
						end, err := call.make(t.Context(), conn)
						if err != nil || end != endAnswered {
							t.Errorf("%s: %s, %v", caller, end, err)
							return
						}
						ok.Add(1)
					})
				}
			}
			works(t, t.Context(), p.conn, "stranger")
			work.Wait()
			if ok.Load() != 2*each {
				t.Errorf("%d of %d calls succeeded", ok.Load(), 2*each)
			}
		})
	}
}

// One tenant that opens all the streams it can leaves some to other tenants, and
// one agent some to the others of its tenant. What is refused says whose share is
// used up, and what to do.
func TestStreamsAreShared(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir, "--credentials", MustCallers(t, dir, "acme", "umbrella"), "--log-level", "off", "--max-streams", "64")
	acme := as(t.Context(), "acme")
	open := 0
	var err error
	for ; err == nil && open < 100; open++ {
		err = listens(acme, p.conn, "greedy", "news")
	}
	reason, details := detailOf(err)
	if reason != "OVERLOADED" || details["share"] != "open streams" || details["share_of"] != "agent" || !strings.Contains(err.Error(), "--max-streams") {
		t.Errorf("after %d streams: %v %v", open, err, details)
	}
	if open < 50 {
		t.Errorf("one agent alone got %d of 64 streams", open)
	}
	works(t, acme, p.conn, "modest")
	for i := range 2 {
		must(t, listens(acme, p.conn, fmt.Sprint("other", i), "news"))
	}
	works(t, as(t.Context(), "umbrella"), p.conn, "stranger")
}

// together makes n calls at once and returns the first error.
func together(ctx context.Context, n int, call func(ctx context.Context) error) error {
	errs := make(chan error, n)
	for range n {
		go func() { errs <- call(ctx) }()
	}
	var first error
	for range n {
		if err := <-errs; first == nil {
			first = err
		}
	}
	return first
}

func saveAs(p *process, agent string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		_, err := p.bridge().MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "a note"})
		return err
	}
}

// emits emits events with so many bytes, on topics that begin with a name.
func emits(tb testing.TB, ctx context.Context, conn *grpc.ClientConn, name string, n, size, topics int) {
	tb.Helper()
	for i := range n {
		_, err := loombridgev1.NewBridgeServiceClient(conn).Emit(ctx, &loombridgev1.EmitRequest{
			AgentId: "emitter", Topic: fmt.Sprintf("%s.%d", name, i%topics),
			PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: make([]byte, size)},
		})
		must(tb, err)
	}
}

// keptFrom returns the first sequence that is kept of a topic.
func keptFrom(tb testing.TB, ctx context.Context, conn *grpc.ClientConn, topic string) int64 {
	tb.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := loombridgev1.NewEventServiceClient(conn).Subscribe(ctx, &loombridgev1.SubscribeRequest{
		AgentId: "reader", Topics: []*loombridgev1.TopicPosition{{Topic: topic, AfterSequence: new(int64)}},
	})
	must(tb, err)
	ready, err := stream.Recv()
	must(tb, err)
	return ready.GetReady().GetPositions()[0].GetAfterSequence() + 1
}

// A tenant that emits more than all events may take loses its own oldest events,
// and another one none.
func TestEventsOfOthersStay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRunWith(t, dir, func(c *Config) {
		c.Retention.Every, c.Limits.ContendedEventBytes = 50*time.Millisecond, 1e9
	}, "--credentials", MustCallers(t, dir, "acme", "umbrella"), "--log-level", "off", "--events-max-bytes", "2000000")
	acme, umbrella := as(t.Context(), "acme"), as(t.Context(), "umbrella")
	emits(t, umbrella, p.conn, "quiet", 10, 1000, 1)
	emits(t, acme, p.conn, "flood", 100, 60_000, 4)
	kept := func() (n int64) {
		for i := range 4 {
			n += 26 - keptFrom(t, acme, p.conn, fmt.Sprint("flood.", i))
		}
		return n
	}
	for deadline := time.Now().Add(waitTime); kept() > 40; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of the flood's 100 events are kept", kept())
		}
	}
	if first := keptFrom(t, umbrella, p.conn, "quiet.0"); first != 1 {
		t.Errorf("the quiet tenant's events begin with %d", first)
	}
	if kept() < 25 {
		t.Errorf("of the flood %d events are kept, where there is room for 33", kept())
	}
}

// Readers that take nothing can't hold more than the tenant's share: the slowest
// end, those that read go on, and another tenant notices nothing.
func TestSlowReadersAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRunWith(t, dir, func(c *Config) {
		c.Sharing.MaxQueuedEventBytes, c.Limits.ContendedEventBytes, c.Limits.StallTimeout = 4e6, 1e9, time.Hour
	}, "--credentials", MustCallers(t, dir, "acme", "umbrella"), "--log-level", "off")
	acme := as(t.Context(), "acme")
	subscribe := func(ctx context.Context, topic string) grpc.ServerStreamingClient[loombridgev1.SubscribeResponse] {
		t.Helper()
		stream, err := loombridgev1.NewEventServiceClient(MustDial(t, p.Address)).Subscribe(ctx, &loombridgev1.SubscribeRequest{
			AgentId: "reader", Topics: []*loombridgev1.TopicPosition{{Topic: topic}},
		})
		must(t, err)
		_, err = stream.Recv()
		must(t, err)
		return stream
	}
	emit := func(ctx context.Context, topic string) {
		t.Helper()
		_, err := p.bridge().Emit(ctx, &loombridgev1.EmitRequest{
			AgentId: "emitter", Topic: topic, Delivery: loombridgev1.Delivery_DELIVERY_VOLATILE,
			PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: make([]byte, 64_000)},
		})
		must(t, err)
	}
	const slow = 8 // each may have 8 MiB of its own topic waiting
	var slowly []grpc.ServerStreamingClient[loombridgev1.SubscribeResponse]
	for i := range slow {
		slowly = append(slowly, subscribe(acme, fmt.Sprint("slow.", i)))
	}
	healthy, other := subscribe(acme, "healthy"), subscribe(as(t.Context(), "umbrella"), "other")
	for range 40 {
		for i := range slow {
			emit(acme, fmt.Sprint("slow.", i))
		}
		emit(acme, "healthy")
		emit(as(t.Context(), "umbrella"), "other")
		for _, stream := range []grpc.ServerStreamingClient[loombridgev1.SubscribeResponse]{healthy, other} {
			m, err := stream.Recv()
			must(t, err)
			if m.GetDroppedVolatile() != 0 {
				t.Errorf("%d events were dropped for one that reads", m.GetDroppedVolatile())
			}
		}
	}
	ended := 0
	for _, stream := range slowly {
		for n := 0; n < 40; n++ {
			m, err := stream.Recv()
			if err != nil {
				if reason, _ := detailOf(err); reason != "SLOW_CONSUMER" {
					t.Error(err)
				}
				ended++
				break
			}
			n += int(m.GetDroppedVolatile())
		}
	}
	if ended == 0 || ended == slow {
		t.Errorf("%d of %d slow readers were cut off", ended, slow)
	}
}

// After a restart the tool of an agent that is not back yet is told from one that
// nobody has, in both APIs; and it works again as soon as the agent is back.
func TestToolOfAnAgentThatIsNotBackYet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := MustRun(t, dir, "--log-level", "off")
	provide(t, t.Context(), first.conn, "worker", "worker:sum", serveTool)
	must(t, first.Stop())
	p := MustRun(t, dir, "--log-level", "off")
	tool := func(name string) (*loombridgev1.ToolResponse, error) {
		return p.bridge().Tool(t.Context(), &loombridgev1.ToolRequest{AgentId: "a", Name: name})
	}
	r, err := tool("worker:sum")
	must(t, err)
	if r.GetErrorCode() != loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_PROVIDER_AWAY || !strings.Contains(r.GetErrorMessage(), "its provider worker is not attached") {
		t.Errorf("answer %v", r)
	}
	if _, err := tool("worker:sums"); err == nil {
		t.Error("a tool that nobody has was found")
	} else if reason, _ := detailOf(err); reason != "TOOL_NOT_FOUND" {
		t.Error(err)
	}
	loom, err := loomv1pb.NewBridgeClient(p.conn).ForwardToolCall(t.Context(), &loomv1pb.ToolCall{Id: "1", Name: "worker:sum"})
	must(t, err)
	if loom.GetError().GetMessage() != "Execution failed: agent worker is not connected" {
		t.Errorf("loom.v1: %v", loom)
	}
	provide(t, t.Context(), p.conn, "worker", "worker:sum", serveTool)
	if r, err = tool("worker:sum"); err != nil || !r.GetSuccess() {
		t.Errorf("when the agent is back: %v, %v", r, err)
	}
}
