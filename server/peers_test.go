package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/mesh"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/internal/testkit/meshtest"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/compose"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// joined is a server whose connection to the others can be cut.
type joined struct {
	*servertest.Server
	*meshtest.HubTransport
	*mesh.Mesh
}

// Close is ambiguous: the server closes all of it.
func (joined) Close() {}

// MustJoin starts servers on one store that know each other.
func MustJoin(tb testing.TB, n int) []joined {
	tb.Helper()
	hub := &meshtest.Hub{}
	var all []joined
	for i, engine := range kvtest.Peers(n) {
		tb.Cleanup(func() { must(tb, engine.Close()) })
		transport := hub.Join()
		m, err := mesh.New(mesh.Peer{ID: fmt.Sprint("bridge-", i), Epoch: 1}, transport, &mesh.Options{Beat: 50 * time.Millisecond, Silence: time.Second})
		must(tb, err)
		s := servertest.Start(tb, &servertest.Options{Engine: engine, Domain: compose.Options{Mesh: m}})
		all = append(all, joined{s, transport, m})
	}
	for _, s := range all {
		MustBecome(tb, "all see each other", func() bool { return len(s.Peers()) == n-1 })
	}
	return all
}

// offers reports whether a server lists a tool.
func (s joined) offers(tb testing.TB, name string) bool {
	tb.Helper()
	got, err := s.Tools.ListTools(tb.Context(), &loombridgev1.ListToolsRequest{AgentId: agent, PageSize: 1000})
	must(tb, err)
	return slices.ContainsFunc(got.GetTools(), func(t *loombridgev1.ToolDescriptor) bool { return t.GetName() == name })
}

type called struct {
	*loombridgev1.ToolResponse
	err error
}

// use calls a tool, and does not wait for its answer.
func (s joined) use(ctx context.Context, name string) <-chan called {
	done := make(chan called, 1)
	go func() {
		answer, err := s.Bridge.Tool(ctx, &loombridgev1.ToolRequest{
			AgentId: agent, Name: name, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"a":1}`},
		})
		done <- called{answer, err}
	}()
	return done
}

func (a *attachment) reply(call *loombridgev1.AttachToolCall, output string) {
	a.tb.Helper()
	a.send(resultMessage(&loombridgev1.AttachToolResult{
		CallId: call.GetCallId(), Success: true, OutputForm: &loombridgev1.AttachToolResult_OutputJson{OutputJson: output},
	}))
}

// The tools of an agent that is attached to one bridge are listed at another and called
// there, as at its own: with the caller's name, with results of any size, until the caller
// gives up, or the agent leaves. Its names are taken everywhere.
//
// Z10
func TestToolOfAnotherBridge(t *testing.T) {
	bridges := MustJoin(t, 2)
	a, b := bridges[0], bridges[1]
	ctx, cancel := context.WithCancel(t.Context())
	provider := MustAttach(t, ctx, a.Bridge, providing("provider", "sum"))
	MustBecome(t, "b lists it", func() bool { return b.offers(t, "sum") })

	done := b.use(t.Context(), "sum")
	call := provider.call()
	if call.GetCallerId() != agent || call.GetArgumentsJson() != `{"a":1}` {
		t.Errorf("call %v", call)
	}
	provider.reply(call, `{"sum":3}`)
	got := <-done
	must(t, got.err)
	if !got.GetSuccess() || !got.GetRecorded() || got.GetOutput().GetStructValue().GetFields()["sum"].GetNumberValue() != 3 {
		t.Errorf("answer %v", got)
	}

	// As it was written, for who asks so.
	done = b.use(convert.AskText(t.Context()), "sum")
	provider.reply(provider.call(), `{"sum": 3.0, "of": 12345678901234567890}`)
	if got = <-done; got.err != nil || got.GetOutputJson() != `{"sum": 3.0, "of": 12345678901234567890}` {
		t.Errorf("as text: %q, %v", got.GetOutputJson(), got.err)
	}

	// One that is larger than a frame.
	done = b.use(t.Context(), "sum")
	provider.reply(provider.call(), fmt.Sprintf(`{"text":"%02000000d"}`, 7))
	if got = <-done; got.err != nil || !got.GetSuccess() {
		t.Errorf("a large result: %v, %v", got.GetErrorMessage(), got.err)
	}

	// Its name is nobody else's.
	refused := MustOpen(t, t.Context(), b.Bridge, helloMessage(providing("thief", "sum")))
	if reason := infoOf(refused.end()).GetReason(); reason != "TOOL_NAME_TAKEN" {
		t.Errorf("the name of another bridge's tool: %s", reason)
	}

	// loom.v1 relays it, too.
	forwarded := make(chan *loomv1pb.ToolResult, 1)
	go func() {
		answer, err := b.LoomBridge.ForwardToolCall(t.Context(), &loomv1pb.ToolCall{Id: "1", Name: "sum", Arguments: `{"a":1}`, TimeoutMs: 10_000})
		if err != nil {
			t.Error(err)
		}
		forwarded <- answer
	}()
	provider.reply(provider.call(), `{"sum":4}`)
	if answer := <-forwarded; answer.GetStatus() != loomv1pb.ToolStatus_TOOL_OK || answer.GetOutput() != `{"sum":4}` {
		t.Errorf("relayed %v", answer)
	}

	// The caller gives up, and the provider is told.
	calling, giveUp := context.WithCancel(t.Context())
	done = b.use(calling, "sum")
	late := provider.call()
	giveUp()
	if got = <-done; got.err == nil {
		t.Error("a call that was given up has an answer")
	}
	MustBecome(t, "nobody waits at its bridge", func() bool { return a.waiting() == 0 })
	provider.reply(late, `{}`)

	// The provider leaves under a call: what it did is not known.
	done = b.use(t.Context(), "sum")
	provider.call()
	cancel()
	if got = <-done; got.err != nil || got.GetErrorCode() != loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_OUTCOME_UNKNOWN {
		t.Errorf("its provider left: %v, %v", got.GetErrorMessage(), got.err)
	}
	MustBecome(t, "b lists it no more", func() bool { return !b.offers(t, "sum") })
	if got = <-b.use(t.Context(), "sum"); got.err != nil || got.GetErrorCode() != loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_PROVIDER_AWAY {
		t.Errorf("its provider is away: %v, %v", got.GetErrorMessage(), got.err)
	}
}

// waiting is how many calls of other bridges wait for this bridge's agents.
func (s joined) waiting() int { return s.Stats().Serving }

// Volatile events, statuses and wake-ups reach those who listen at another bridge, once and
// in order, and never come back to the bridge that they were emitted at.
//
// Z11
func TestEventsOfAnotherBridge(t *testing.T) {
	bridges := MustJoin(t, 3)
	const count = 200
	var listeners []*attachment
	for i, s := range bridges {
		listeners = append(listeners, MustAttach(t, t.Context(), s.Bridge, helloOf(fmt.Sprint("listener-", i), "news.*", "agent.status")))
	}
	for i := range count {
		_, err := bridges[0].Bridge.Emit(t.Context(), &loombridgev1.EmitRequest{
			AgentId: agent, Topic: "news.volatile", Delivery: volatileDelivery,
			PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: fmt.Sprint(i)},
		})
		must(t, err)
	}
	_, err := bridges[1].Bridge.Emit(t.Context(), &loombridgev1.EmitRequest{
		AgentId: agent, Topic: "news.last", PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: `"last"`},
	})
	must(t, err)
	newcomer := MustAttach(t, t.Context(), bridges[2].Bridge, helloOf("newcomer"))
	for i, l := range listeners {
		var got []string
		statuses, last := 0, false
		for len(got) < count || !last || statuses == 0 {
			switch e := l.event(); {
			case e.GetTopic() == "news.volatile":
				got = append(got, e.GetPayloadJson())
			case e.GetTopic() == "news.last":
				last = true
			case e.GetSource() == "newcomer":
				statuses++
			}
		}
		for n, text := range got {
			if text != fmt.Sprint(n) {
				t.Fatalf("bridge %d: event %d is %s", i, n, text)
			}
		}
	}
	newcomer.leave()
	for i, l := range listeners { // whatever came twice came before this
		for {
			e := l.event()
			if e.GetTopic() == "news.volatile" {
				t.Fatalf("bridge %d: %v twice", i, e)
			}
			if e.GetSource() == "newcomer" {
				break
			}
		}
	}
	for i, s := range bridges {
		if n := s.Stats().Dropped; n > 0 {
			t.Errorf("bridge %d dropped %d", i, n)
		}
	}
}

// Of several streams of one agent at several bridges the newest gets the calls, and when it
// ends the one before. The agent is listed once.
//
// Z14
func TestAgentAtTwoBridges(t *testing.T) {
	bridges := MustJoin(t, 3)
	a, b, c := bridges[0], bridges[1], bridges[2]
	old := MustAttach(t, t.Context(), a.Bridge, providing("provider", "sum"))
	MustBecome(t, "b and c list it", func() bool { return b.offers(t, "sum") && c.offers(t, "sum") })
	ctx, cancel := context.WithCancel(t.Context())
	young := MustAttach(t, ctx, b.Bridge, providing("provider", "sum"))
	moved := func(s joined, streams int) bool {
		found, _ := s.Domain.Agents.Get("default", "provider")
		return found.Streams == streams
	}
	for _, s := range bridges {
		MustBecome(t, "all know of both streams", func() bool { return moved(s, 2) })
	}
	for _, s := range bridges {
		done := s.use(t.Context(), "sum")
		young.reply(young.call(), `{"by":"young"}`)
		if got := <-done; got.err != nil || !got.GetSuccess() {
			t.Errorf("%v, %v", got.ToolResponse, got.err)
		}
	}
	cancel()
	for _, s := range bridges {
		MustBecome(t, "all know that one has ended", func() bool { return moved(s, 1) })
	}
	for _, s := range bridges {
		done := s.use(t.Context(), "sum")
		old.reply(old.call(), `{"by":"old"}`)
		if got := <-done; got.err != nil || !got.GetSuccess() {
			t.Errorf("%v, %v", got.ToolResponse, got.err)
		}
	}
}

// An agent whose bridge is gone is gone from the lists of the others, which say so to those
// who listen; what it ran has an unknown outcome. When the bridge is back, so is the agent.
//
// Z12
func TestBridgeIsLost(t *testing.T) {
	bridges := MustJoin(t, 2)
	a, b := bridges[0], bridges[1]
	provider := MustAttach(t, t.Context(), a.Bridge, providing("provider", "sum"))
	listener := MustAttach(t, t.Context(), b.Bridge, helloOf("listener", "agent.status"))
	MustBecome(t, "b lists it", func() bool { return b.offers(t, "sum") })
	done := b.use(t.Context(), "sum")
	provider.call()
	a.Cut(true)
	if got := <-done; got.err != nil || got.GetErrorCode() != loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_OUTCOME_UNKNOWN {
		t.Errorf("its bridge was lost: %v, %v", got.GetErrorMessage(), got.err)
	}
	MustBecome(t, "b lists it no more", func() bool { return !b.offers(t, "sum") })
	for e := listener.event(); e.GetSource() != "provider" || statusIn(e) != "disconnected"; e = listener.event() {
	}
	a.Cut(false)
	MustBecome(t, "it is back", func() bool { return b.offers(t, "sum") })
	done = b.use(t.Context(), "sum")
	provider.reply(provider.call(), `{}`)
	if got := <-done; got.err != nil || !got.GetSuccess() {
		t.Errorf("it is back: %v, %v", got.ToolResponse, got.err)
	}
}

// A parent waits at one bridge for a child that returns at another.
//
// Z16
func TestChildReturnsAtAnotherBridge(t *testing.T) {
	bridges := MustJoin(t, 2)
	a, b := bridges[0], bridges[1]
	MustSpawn(t, a.Server, &loombridgev1.SpawnAgentRequest{ChildId: "c"})
	waited := make(chan *loombridgev1.WaitAgentsResponse, 1)
	began := time.Now()
	go func() {
		got, _ := a.Context.WaitAgents(t.Context(), &loombridgev1.WaitAgentsRequest{AgentId: "p", Timeout: durationpb.New(time.Minute)})
		waited <- got
	}()
	mustReturn(t, b.Server, "c", "42")
	if got := <-waited; len(got.GetPending()) > 0 {
		t.Errorf("after %v: %v", time.Since(began), got)
	}
}

// What a loom.v1 agent had not been sent when its stream broke at one bridge it is sent at
// another, and what it was sent is not sent again.
//
// Z15
func TestGapAtAnotherBridge(t *testing.T) {
	bridges := MustJoin(t, 2)
	a, b := bridges[0], bridges[1]
	open := func(ctx context.Context, s joined) loomv1pb.Bridge_EventStreamClient {
		_, err := s.LoomBridge.RegisterAgent(ctx, &loomv1pb.AgentRegisterRequest{AgentId: "reader", SubscribedTopics: []string{"news"}})
		must(t, err)
		stream, err := s.LoomBridge.EventStream(ctx)
		must(t, err)
		must(t, stream.Send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Ack{Ack: &loomv1pb.Ack{MessageId: "reader"}}}))
		_, err = stream.Header() // comes when the subscription stands
		must(t, err)
		return stream
	}
	attached := func(s joined, want int) {
		MustBecome(t, "its streams are known", func() bool {
			found, _ := s.Domain.Agents.Get("default", "reader")
			return found.Streams == want
		})
	}
	emit := func(s joined, text string) {
		_, err := s.Bridge.Emit(t.Context(), &loombridgev1.EmitRequest{
			AgentId: agent, Topic: "news", PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: text},
		})
		must(t, err)
	}
	next := func(stream loomv1pb.Bridge_EventStreamClient, want string) {
		t.Helper()
		for {
			m, err := stream.Recv()
			must(t, err)
			if e := m.GetDelivery().GetEvent(); e != nil {
				if string(e.GetPayload()) != want {
					t.Errorf("sent %s, want %s", e.GetPayload(), want)
				}
				return
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := open(ctx, a)
	attached(b, 1)
	emit(b, "1")
	next(first, "1")
	cancel()
	attached(b, 0)
	emit(a, "2")
	second := open(t.Context(), b)
	attached(a, 1)
	next(second, "2")
	emit(a, "3")
	next(second, "3")
}

// statusIn is the status that an event tells of.
func statusIn(e *loombridgev1.Event) string {
	var told struct{ Status string }
	_ = json.Unmarshal([]byte(e.GetPayloadJson()), &told) // an event of another form tells of none
	return told.Status
}
