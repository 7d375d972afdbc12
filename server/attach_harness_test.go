package server_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// attachPatience bounds how long a test waits for anything on a stream.
const attachPatience = 2 * time.Minute

// attachment is an attached agent, driven by hand.
type attachment struct {
	tb     testing.TB
	stream loombridgev1.BridgeService_AttachClient
	ready  *loombridgev1.SubscriptionReady
	seen   []*loombridgev1.AttachResponse // received, and not what was waited for
}

// MustStartAttached starts a server and returns its directory of agents.
func MustStartAttached(tb testing.TB, o servertest.Options) (*servertest.Server, *agents.Directory) {
	tb.Helper()
	var directory *agents.Directory
	wrap := o.Wrap
	o.Wrap = func(s server.Services) server.Services {
		directory = s.Agents
		if wrap != nil {
			s = wrap(s)
		}
		return s
	}
	return servertest.Start(tb, &o), directory
}

func topicsOf(names ...string) []*loombridgev1.TopicPosition {
	topics := make([]*loombridgev1.TopicPosition, len(names))
	for i, name := range names {
		topics[i] = &loombridgev1.TopicPosition{Topic: name}
	}
	return topics
}

// helloOf is an agent that takes JSON as text.
func helloOf(agentID string, topics ...string) *loombridgev1.AttachHello {
	return &loombridgev1.AttachHello{
		AgentId: agentID, Topics: topicsOf(topics...),
	}
}

// asStruct returns the context of a stream on which JSON comes as protobuf's own types.
func asStruct(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, convert.JSONKey, "struct")
}

// MustOpen opens a stream on which JSON comes as text, unless ctx says otherwise, and sends
// messages on it.
func MustOpen(tb testing.TB, ctx context.Context, client loombridgev1.BridgeServiceClient, messages ...*loombridgev1.AttachRequest) *attachment {
	tb.Helper()
	// A message that never comes fails one test, not all of them.
	ctx, cancel := context.WithTimeout(convert.AskText(ctx), attachPatience)
	tb.Cleanup(cancel)
	stream, err := client.Attach(ctx)
	must(tb, err)
	a := &attachment{tb: tb, stream: stream}
	for _, m := range messages {
		a.send(m)
	}
	return a
}

// MustAttach returns an agent that is attached.
func MustAttach(tb testing.TB, ctx context.Context, client loombridgev1.BridgeServiceClient, hello *loombridgev1.AttachHello) *attachment {
	tb.Helper()
	a := MustOpen(tb, ctx, client, helloMessage(hello))
	first, err := a.stream.Recv()
	must(tb, err)
	if a.ready = first.GetReady(); a.ready == nil {
		tb.Fatalf("first message = %v", first)
	}
	return a
}

func helloMessage(hello *loombridgev1.AttachHello) *loombridgev1.AttachRequest {
	return &loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_Hello{Hello: hello}}
}

func publishMessage(ref int64, r *loombridgev1.EmitRequest) *loombridgev1.AttachRequest {
	return &loombridgev1.AttachRequest{Ref: ref, Item: &loombridgev1.AttachRequest_Publish{Publish: r}}
}

func heartbeatMessage(ref int64) *loombridgev1.AttachRequest {
	return &loombridgev1.AttachRequest{Ref: ref, Item: &loombridgev1.AttachRequest_Heartbeat{Heartbeat: &loombridgev1.AttachHeartbeat{}}}
}

func resultMessage(r *loombridgev1.AttachToolResult) *loombridgev1.AttachRequest {
	return &loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_ToolResult{ToolResult: r}}
}

func (a *attachment) send(m *loombridgev1.AttachRequest) {
	a.tb.Helper()
	must(a.tb, a.stream.Send(m))
}

func (a *attachment) publish(ref int64, r *loombridgev1.EmitRequest) {
	a.tb.Helper()
	a.send(publishMessage(ref, r))
}

func (a *attachment) subscribe(ref int64, topics ...*loombridgev1.TopicPosition) *loombridgev1.AttachAnswer {
	a.tb.Helper()
	a.send(&loombridgev1.AttachRequest{Ref: ref, Item: &loombridgev1.AttachRequest_Subscribe{Subscribe: &loombridgev1.SubscribeRequest{Topics: topics}}})
	return a.answer(ref)
}

func (a *attachment) unsubscribe(ref int64, topics ...string) *loombridgev1.AttachAnswer {
	a.tb.Helper()
	a.send(&loombridgev1.AttachRequest{Ref: ref, Item: &loombridgev1.AttachRequest_Unsubscribe{Unsubscribe: &loombridgev1.AttachUnsubscribe{Topics: topics}}})
	return a.answer(ref)
}

// next returns the next message of a kind; others wait for their turn.
func (a *attachment) next(kind func(*loombridgev1.AttachResponse) bool) *loombridgev1.AttachResponse {
	a.tb.Helper()
	if i := slices.IndexFunc(a.seen, kind); i >= 0 {
		m := a.seen[i]
		a.seen = slices.Delete(a.seen, i, i+1)
		return m
	}
	for {
		m, err := a.stream.Recv()
		must(a.tb, err)
		if kind(m) {
			return m
		}
		a.seen = append(a.seen, m)
	}
}

func (a *attachment) event() *loombridgev1.Event {
	a.tb.Helper()
	return a.next(func(m *loombridgev1.AttachResponse) bool { return m.GetEvent() != nil }).GetEvent()
}

func (a *attachment) call() *loombridgev1.AttachToolCall {
	a.tb.Helper()
	return a.next(func(m *loombridgev1.AttachResponse) bool { return m.GetToolCall() != nil }).GetToolCall()
}

// answer returns the answer with a ref.
func (a *attachment) answer(ref int64) *loombridgev1.AttachAnswer {
	a.tb.Helper()
	return a.next(func(m *loombridgev1.AttachResponse) bool {
		return m.GetAnswer() != nil && m.GetAnswer().GetRef() == ref
	}).GetAnswer()
}

// leave closes the agent's side and returns what came until the end, which
// must be OK.
func (a *attachment) leave() []*loombridgev1.AttachResponse {
	a.tb.Helper()
	must(a.tb, a.stream.CloseSend())
	rest := a.seen
	for {
		m, err := a.stream.Recv()
		if errors.Is(err, io.EOF) {
			return rest
		}
		must(a.tb, err)
		rest = append(rest, m)
	}
}

// end returns the error that the stream ends with.
func (a *attachment) end() error {
	for {
		if _, err := a.stream.Recv(); err != nil {
			return err
		}
	}
}

// MustBecome returns when something has come about.
func MustBecome(tb testing.TB, what string, is func() bool) {
	tb.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(attachPatience)
	for !is() {
		select {
		case <-tick.C:
		case <-late:
			tb.Fatalf("not in time: %s", what)
		}
	}
}

// MustEngine returns an engine that outlives the servers of the test.
func MustEngine(tb testing.TB) kv.Engine {
	tb.Helper()
	engine := memkv.New(nil)
	tb.Cleanup(func() { must(tb, engine.Close()) })
	return engine
}
