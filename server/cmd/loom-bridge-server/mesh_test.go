package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv/bridges"
	"github.com/loom-bridge/loom-bridge/memory/kv/pgkv/pgtest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// attach attaches an agent, and returns its stream when it is attached.
func (p *process) attach(ctx context.Context, tb testing.TB, id string, topics []string, tools ...string) loombridgev1.BridgeService_AttachClient {
	tb.Helper()
	hello := &loombridgev1.AttachHello{AgentId: id, JsonForm: loombridgev1.JsonForm_JSON_FORM_TEXT}
	for _, topic := range topics {
		hello.Topics = append(hello.Topics, &loombridgev1.TopicPosition{Topic: topic})
	}
	for _, name := range tools {
		hello.Tools = append(hello.Tools, &loombridgev1.ProvidedTool{Name: name, Description: "does " + name})
	}
	// What never comes fails this test, not all of them.
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
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

// lists tells whether a server lists a tool.
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
		if e := m.GetEvent().GetEvent(); e.GetTopic() == topic {
			return e
		}
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
		_, err := p.bridge().Emit(t.Context(), &loombridgev1.EmitRequest{
			AgentId: "a", Topic: "news", Delivery: loombridgev1.Delivery_DELIVERY_VOLATILE,
			PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: fmt.Sprint(i)},
		})
		must(t, err)
		if e := nextEvent(t, listener, "news"); e.GetPayloadJson() != fmt.Sprint(i) {
			t.Errorf("heard %v, want %d", e, i)
		}
	}

	go use(b)
	nextCall(t, provider)
	began := time.Now()
	c.Kill(t)
	if got := <-answers; got.GetErrorCode() != loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_OUTCOME_UNKNOWN {
		t.Errorf("its server was killed: %v", got)
	}
	waitUntil(t, "its tool is listed no more", func() bool { return !a.lists(t, "sum") && !b.lists(t, "sum") })
	if passed := time.Since(began); passed > bridges.Term {
		t.Errorf("the agents of one that was killed were gone after %v", passed)
	}
	for e := nextEvent(t, listener, "agent.status"); e.GetSource() != "provider" || !strings.Contains(e.GetPayloadJson(), "disconnected"); e = nextEvent(t, listener, "agent.status") {
	}
}
