package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/registry"
	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	"github.com/loom-bridge/loom-bridge/internal/testkit/natstest"
	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// attach attaches an agent, and returns its stream when it is attached.
func (p *process) attach(ctx context.Context, tb testing.TB, id string, topics []string, tools ...string) loombridgev1.BridgeService_AttachClient {
	tb.Helper()
	hello := &loombridgev1.AttachHello{AgentId: id}
	for _, topic := range topics {
		hello.Topics = append(hello.Topics, &loombridgev1.TopicPosition{Topic: topic})
	}
	for _, name := range tools {
		hello.Tools = append(hello.Tools, &loombridgev1.ToolDescriptor{Name: name, Description: "does " + name})
	}
	// What never comes fails this test, not all of them.
	ctx, cancel := context.WithTimeout(convert.AskText(ctx), time.Minute)
	tb.Cleanup(cancel)
	stream, err := p.bridge().Attach(ctx)
	must(tb, err)
	must(tb, stream.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_Hello{Hello: hello}}))
	first, err := stream.Recv()
	must(tb, err)
	if first.GetReady() == nil {
		tb.Fatalf("attach: %v", first)
	}
	return stream
}

// lists reports whether a server lists a tool.
func (p *process) lists(tb testing.TB, name string) bool {
	tb.Helper()
	got, err := p.toolService().ListTools(tb.Context(), &loombridgev1.ListToolsRequest{AgentId: "a", PageSize: 1000})
	must(tb, err)
	return slices.ContainsFunc(got.GetTools(), func(t *loombridgev1.ToolDescriptor) bool { return t.GetName() == name })
}

// nextEvent is the next event of a topic on a stream.
func nextEvent(tb testing.TB, stream loombridgev1.BridgeService_AttachClient, topic string) *loombridgev1.Event {
	tb.Helper()
	for {
		m, err := stream.Recv()
		must(tb, err)
		if e := m.GetEvent(); e.GetTopic() == topic {
			return e
		}
	}
}

// emitUntil emits a volatile event until the function that it returns is called: it reaches the
// listeners that its server has heard of by then.
func emitUntil(t *testing.T, p *process, payload string) (heard func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			_, err := p.bridge().Emit(ctx, &loombridgev1.EmitRequest{
				AgentId: "a", Topic: "news", Delivery: loombridgev1.Delivery_DELIVERY_VOLATILE,
				PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: payload},
			})
			if err != nil && ctx.Err() == nil {
				t.Errorf("emit: %v", err)
				return
			}
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
	return func() {
		stop()
		<-ended
	}
}

// nextCall is the next call of a tool on a stream.
func nextCall(tb testing.TB, stream loombridgev1.BridgeService_AttachClient) *loombridgev1.AttachToolCall {
	tb.Helper()
	for {
		m, err := stream.Recv()
		must(tb, err)
		if call := m.GetToolCall(); call != nil {
			return call
		}
	}
}

// Servers on one store with a mesh find each other by it. A tool of an agent at one is
// listed and called at another, and a volatile event emitted at one is heard at another, also
// by a server that comes later. One that is killed is gone with its agents within a lease,
// those who listen hear so, and what its agents ran has an unknown outcome.
//
// Z10, Z11, Z12
func TestMesh(t *testing.T) {
	t.Parallel()
	store := postgresPlace(t, pgtest.Address(t))
	a := MustBridge(t, store, "a", "--mesh", "embedded")
	c := MustBridgeApart(t, store, "c", "--mesh", "embedded")
	provider := c.attach(t.Context(), t, "provider", nil, "sum")
	listener := a.attach(t.Context(), t, "listener", []string{"news", "agent.status"})
	waitUntil(t, "a lists the tool of c", func() bool { return a.lists(t, "sum") })
	b := MustBridge(t, store, "b", "--mesh", "embedded", "--mesh-listen", "localhost:0")
	waitUntil(t, "b lists the tool of c", func() bool { return b.lists(t, "sum") })

	answers := make(chan *loombridgev1.ToolResponse, 1)
	use := func(p *process) {
		answer, err := p.bridge().Tool(t.Context(), &loombridgev1.ToolRequest{AgentId: "a", Name: "sum"})
		if err != nil {
			t.Errorf("call: %v", err)
		}
		answers <- answer
	}
	for _, p := range []*process{a, b, &c.process} {
		go use(p)
		must(t, provider.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_ToolResult{ToolResult: &loombridgev1.AttachToolResult{
			CallId: nextCall(t, provider).GetCallId(), Success: true, OutputForm: &loombridgev1.AttachToolResult_OutputJson{OutputJson: `{"sum":3}`},
		}}}))
		if got := <-answers; !got.GetSuccess() || !got.GetRecorded() {
			t.Errorf("answer %v", got)
		}
	}

	for i, p := range []*process{&c.process, b, a} {
		heard := emitUntil(t, p, fmt.Sprint(i))
		for nextEvent(t, listener, "news").GetPayloadJson() != fmt.Sprint(i) { // one of before is told again
		}
		heard()
	}

	go use(b)
	nextCall(t, provider)
	began := time.Now()
	c.Kill(t)
	if got := <-answers; got.GetErrorCode() != loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_OUTCOME_UNKNOWN {
		t.Errorf("its server was killed: %v", got)
	}
	waitUntil(t, "its tool is listed no more", func() bool { return !a.lists(t, "sum") && !b.lists(t, "sum") })
	if passed := time.Since(began); passed > registry.Term {
		t.Errorf("the agents of one that was killed were gone after %v", passed)
	}
	for e := nextEvent(t, listener, "agent.status"); e.GetSource() != "provider" || !strings.Contains(e.GetPayloadJson(), "disconnected"); e = nextEvent(t, listener, "agent.status") {
	}
}

// Nothing waits for the lease of a server that was killed but what only its end can tell: by
// another server everything else goes on while the dead one still counts as there, its agents
// come back, and calls of tools that they did not finish end.
//
// Z10, Z12
func TestKilledServerKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	store := postgresPlace(t, pgtest.Address(t))
	dead := MustBridgeApart(t, store, "dead", "--mesh", "embedded")
	p := MustBridge(t, store, "lives", "--mesh", "embedded")
	provider := dead.attach(t.Context(), t, "provider", nil, "sum")
	waitUntil(t, "the tool is listed", func() bool { return p.lists(t, "sum") })
	contexts := contexts.New(p.conn)
	asked := make(chan error, 1)
	go func() {
		_, err := p.bridge().Tool(t.Context(), &loombridgev1.ToolRequest{AgentId: "a", Name: "sum"})
		asked <- err
	}()
	nextCall(t, provider)
	for range 8 { // some of this is under way when the server dies
		go func() {
			for saveAs(&dead.process, "a")(t.Context()) == nil {
				continue
			}
		}()
	}
	dead.listed(t, "dead", "lives")
	dead.Kill(t)
	killed := time.Now()
	var left sync.WaitGroup
	for what, call := range map[string]func() error{
		"the call of its agent's tool": func() error { return <-asked },
		"save":                         func() error { return saveAs(p, "a")(t.Context()) },
		"query": func() error {
			_, err := p.bridge().MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: "counted"})
			return err
		},
		"record": func() error {
			_, err := contexts.RecordStep(t.Context(), recordOf("a", "s", "my:tool", "{}", "1"))
			return err
		},
		"assemble": func() error {
			_, err := contexts.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "a", SessionId: "s"})
			return err
		},
		"emit": func() error {
			_, err := p.bridge().Emit(t.Context(), &loombridgev1.EmitRequest{AgentId: "a", Topic: "news"})
			return err
		},
		"spawn": func() error {
			_, err := contexts.SpawnAgent(t.Context(), &loombridgev1.SpawnAgentRequest{AgentId: "a", ChildId: "child", Goal: "g", Limits: unhurried})
			return err
		},
		"tool": func() error {
			_, err := callTool(t, p, "memory:query", `{"query":"counted"}`)
			return err
		},
		"attach": func() error {
			p.attach(t.Context(), t, "provider", nil, "sum")
			return nil
		},
	} {
		left.Go(func() {
			if err := call(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if took := time.Since(killed); took > registry.Term-registry.RenewEvery { // when the lease ends at the earliest
				t.Errorf("%s took %v", what, took)
			}
		})
	}
	left.Wait()
	p.listed(t, "dead", "lives") // its lease still runs
}

// mustNATS starts a server of NATS that no bridge carries, and returns its URL.
func mustNATS(tb testing.TB) string {
	tb.Helper()
	url, stop, err := natstest.Start()
	must(tb, err)
	tb.Cleanup(stop)
	return url
}

// Servers reach each other over a server of NATS that runs elsewhere as they do over their
// own: a tool is called, a message of many frames included, an interrupt is heard by its
// agent, and a fold by whoever listens, whichever servers they are at. /metrics tells what
// went over the mesh.
//
// Z19, Z27, Z29
func TestMeshElsewhereSoak(t *testing.T) {
	t.Parallel()
	store := postgresPlace(t, pgtest.Address(t))
	for _, way := range []string{mustNATS(t), "embedded"} {
		name, _, _ := strings.Cut(way, ":")
		t.Run(name, func(t *testing.T) { testMeshAcross(t, store, name, way) })
	}
}

func testMeshAcross(t *testing.T, store, session, way string) {
	a := MustBridge(t, store, "a", "--mesh", way, "--metrics-addr", "127.0.0.1:0")
	b := MustBridge(t, store, "b", "--mesh", way, "--metrics-addr", "127.0.0.1:0")
	measured := func(p *process, name string) (sum float64) {
		for series, value := range scrape(t, p.metrics(t)) {
			if got, _, _ := strings.Cut(series, "{"); got == "loom_bridge_mesh_"+name {
				sum += value
			}
		}
		return sum
	}
	for _, p := range []*process{a, b} {
		waitUntil(t, "each is there for the other", func() bool { return measured(p, "peers") == 1 && measured(p, "links") == 1 })
	}
	worker := a.attach(t.Context(), t, "worker", []string{"agent.worker.interrupts", "context.folded"}, "sum")
	waitUntil(t, "b lists the tool of a", func() bool { return b.lists(t, "sum") })

	before := measured(a, "received_from_total")
	large := strings.Repeat("x", 900_000)
	answers := make(chan error, 1)
	go func() {
		answer, err := b.bridge().Tool(t.Context(), &loombridgev1.ToolRequest{
			AgentId: "a", Name: "sum", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"text":"` + large + `"}`},
		})
		if err == nil && !answer.GetSuccess() {
			err = fmt.Errorf("answer %v", answer)
		}
		answers <- err
	}()
	call := nextCall(t, worker)
	if len(call.GetArgumentsJson()) < len(large) {
		t.Errorf("arguments of %d bytes", len(call.GetArgumentsJson()))
	}
	must(t, worker.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_ToolResult{ToolResult: &loombridgev1.AttachToolResult{
		CallId: call.GetCallId(), Success: true, OutputForm: &loombridgev1.AttachToolResult_OutputJson{OutputJson: `{"sum":3}`},
	}}}))
	must(t, <-answers)
	if now := measured(a, "received_from_total"); now <= before || measured(a, "received_total") < now || measured(b, "sent_total") < 1 {
		t.Errorf("a has %v messages of b, and had %v; all in all %v; b sent %v", now, before, measured(a, "received_total"), measured(b, "sent_total"))
	}

	_, err := b.context().UpdateWorking(t.Context(), &loombridgev1.UpdateWorkingRequest{
		AgentId: "worker", SessionId: session, Signals: []*loombridgev1.Signal{{EventId: "fire", Summary: "it burns", DeltaH: new(0.81)}},
	})
	must(t, err)
	if e := nextEvent(t, worker, "agent.worker.interrupts"); !strings.Contains(e.GetPayloadJson(), `"summary":"it burns"`) {
		t.Errorf("the agent hears %v", e)
	}

	for i := range 12 {
		_, err := b.context().RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
			AgentId: "other", SessionId: session, ToolName: "system:shell", Success: true,
			ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: fmt.Sprintf(`{"command":"make %d"}`, i)},
			OutputForm:    &loombridgev1.RecordStepRequest_OutputText{OutputText: strings.Repeat(fmt.Sprintf("line %d of a long output\n", i), 40)},
		})
		must(t, err)
	}
	folded, err := b.context().CompactHistory(t.Context(), &loombridgev1.CompactHistoryRequest{AgentId: "other", SessionId: session})
	must(t, err)
	if e := nextEvent(t, worker, "context.folded"); folded.GetBatch() == nil || e.GetSource() != "other" || !strings.Contains(e.GetPayloadJson(), `"session_id":"`+session+`"`) {
		t.Errorf("%v was folded; it hears %v", folded.GetBatch(), e)
	}
	for _, counted := range []string{"dropped_total", "unsent_total"} {
		if n := measured(a, counted) + measured(b, counted); n != 0 {
			t.Errorf("%s: %v", counted, n)
		}
	}
}
