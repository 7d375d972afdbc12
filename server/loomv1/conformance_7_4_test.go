package loomv1_test

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	"github.com/loom-bridge/loom-bridge/server/loomv1"
)

// answering replies to every request it hears.
func answering(a *sdkAgent, topic string, e *loomv1pb.Event) {
	if topic == "ask" {
		a.reply(e, "answer to "+e.GetId(), "yes")
	}
}

func TestConformance74RequestReply(t *testing.T) {
	for name, topics := range map[string][]string{
		"asker hears only its mailbox":        nil,
		"asker is subscribed to the question": {"ask"},
		"asker hears everything of its own":   {"ask", "agent.asker.*"},
	} {
		t.Run(name, func(t *testing.T) {
			w := MustLoom(t, loomOptions{})
			MustSDK(w, "teller", []string{"ask"}, answering, nil)
			asker := MustSDK(w, "asker", topics, nil, nil)
			for i := range 3 {
				got, err := asker.request("ask", fmt.Sprintf("q%d", i), "?")
				if err != nil || got.GetId() != fmt.Sprintf("answer to q%d", i) || string(got.GetPayload()) != "yes" {
					t.Fatalf("got %v %v", got, err)
				}
			}
			if heard := slices.Contains(asker.heard(), "q0"); heard != slices.Contains(topics, "ask") {
				t.Errorf("asker heard its own question: %v", heard)
			}
		})
	}
}

// An agent answers an event of the native API at its emitter's mailbox.
func TestConformance74ReplyToNativeEvent(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	MustSDK(w, "teller", []string{"ask"}, answering, nil)
	w.register("native")
	native := w.open("native")
	_, err := w.Events.Emit(t.Context(), "default", events.Event{ID: "q1", Topic: "ask", Source: "native"}, events.EmitOptions{})
	mustBe(t, err)
	got := native.delivery()
	if m := got.GetEvent().GetMetadata(); got.GetEvent().GetId() != "answer to q1" || m["correlation_id"] != "q1" {
		t.Errorf("got %v", got)
	}
}

func TestConformance74ShutdownEndsStreams(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	w.register("a", "work.new")
	open, silent := w.open("a"), w.connect()
	go silent.read()
	w.drain()
	open.unavailable("stopping")
	silent.unavailable("stopping")
}

// An agent that takes nothing any more is ended, and holds up nobody.
func TestConformance74StalledAgentIsEnded(t *testing.T) {
	w := MustLoom(t, loomOptions{Loom: loomv1.Options{StallTimeout: 200 * time.Millisecond}})
	w.register("slow", "work.new")
	w.register("quick", "work.new")
	slow, quick := w.openUnread("slow"), w.open("quick")
	const sent = 300
	for i := range sent {
		quick.publish("work.new", &loomv1pb.Event{Id: fmt.Sprint(i), Payload: make([]byte, 4<<10)})
	}
	for i := range sent {
		if got := quick.delivery().GetEvent().GetId(); got != fmt.Sprint(i) {
			t.Fatalf("event %d is %s", i, got)
		}
	}
	w.streams("slow", 0)
	go slow.read()
	slow.unavailable("took nothing")
}

// One that leaves what waits in memory until there is no room is cut off from the
// bus, so that nobody waits for it for ever, and told so when it reads again.
func TestConformance74FullAgentIsEvicted(t *testing.T) {
	w := MustLoom(t, loomOptions{Events: &events.Options{MaxEmitWait: 100 * time.Millisecond}})
	w.register("full", "wait.for.replies")
	w.register("quick", "wait.for.replies")
	full, quick := w.openUnread("full"), w.open("quick")
	// One at a time, so that only the agent that reads nothing ever lags.
	for i := range 4000 {
		quick.publish("wait.for.replies", &loomv1pb.Event{Id: fmt.Sprint(i), Payload: make([]byte, 1<<10)})
		if got := quick.delivery().GetEvent().GetId(); got != fmt.Sprint(i) {
			t.Fatalf("event %d is %s", i, got)
		}
	}
	go full.read()
	full.unavailable("too slowly")
}

// A message that is too large to be read ends the stream with the status that
// gRPC gives it. The agent did not want that: what it misses is replayed.
func TestConformance74MessageTooLargeToRead(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	w.register("a", "work.new")
	a := w.open("a")
	a.publish("work.new", &loomv1pb.Event{Payload: make([]byte, 5<<20)})
	wantCode(t, "stream", await(t, a.end), codes.ResourceExhausted, "larger than max")
	w.streams("a", 0)
	w.publish("work.new", "gap")
	if got := w.open("a").ids(1); got[0] != "gap" {
		t.Errorf("got %v", got)
	}
}

// Nothing stays behind of streams that have ended, however they did.
func TestConformance74StreamsLeaveNothing(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	w.publish("warm.up", "e1")
	before := runtime.NumGoroutine()
	for i := range 12 {
		id := fmt.Sprintf("a%d", i)
		w.register(id, "work.*")
		s := w.open(id)
		w.publish("work.new", "e"+id)
		s.delivery()
		switch i % 3 {
		case 0:
			s.cut()
		case 1:
			mustBe(t, s.CloseSend())
		case 2:
			s.cancel()
		}
		_ = await(t, s.end)
		mustBe(t, s.conn.Close())
		w.streams(id, 0)
	}
	settled(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
}

// Pings and tool results pass publishes that wait for a full subscriber.
func TestConformance74PingsPassWaitingPublishes(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	w.register("full", "wait.for.replies")
	w.register("busy", "other")
	w.openUnread("full")
	busy := w.open("busy")
	// Events of a mailbox are not stored, so they wait in memory, and so does who
	// publishes them.
	for i := range 6000 {
		busy.publish("wait.for.replies", &loomv1pb.Event{Id: fmt.Sprint(i), Payload: make([]byte, 1<<10)})
	}
	busy.send(pingOf())
	pong := busy.next().GetPong() // though the sender waits
	if pong.GetStatus() != "ok" || pong.GetTimestampMs() == 0 {
		t.Errorf("got %v", pong)
	}
}

func TestConformance74HeadersBeforeAnyMessage(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	s := w.connect()
	s.send(ackOf("nobody knows me"))
	came := make(chan error, 1)
	go func() {
		_, err := s.Header()
		came <- err
	}()
	mustBe(t, await(t, came))
}

func TestConformance74BadHandshake(t *testing.T) {
	const noAck = "first stream message must be Ack carrying agent_id"
	for name, tt := range map[string]struct {
		first *loomv1pb.ClientEvent
		want  string
	}{
		"closed before any message": {nil, "no first message"},
		"publish":                   {publishOf("t", &loomv1pb.Event{}), noAck},
		"ping":                      {pingOf(), noAck},
		"empty":                     {&loomv1pb.ClientEvent{}, noAck},
		"tool result":               {&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_ToolResult{ToolResult: &loomv1pb.ToolResult{}}}, noAck},
	} {
		t.Run(name, func(t *testing.T) {
			w := MustLoom(t, loomOptions{})
			s := w.connect()
			if tt.first != nil {
				s.send(tt.first)
			} else {
				mustBe(t, s.CloseSend())
			}
			go s.read()
			wantCode(t, "stream", await(t, s.end), codes.InvalidArgument, tt.want)
		})
	}
}

// A stream on which nothing is ever said does not stay.
func TestConformance74NoHandshakeInTime(t *testing.T) {
	w := MustLoom(t, loomOptions{Loom: loomv1.Options{StallTimeout: 50 * time.Millisecond}})
	s := w.connect()
	go s.read()
	wantCode(t, "stream", await(t, s.end), codes.InvalidArgument, "no first message")
}

// An id that nobody registered, the empty one among them, gets a stream that
// publishes and hears nothing.
func TestConformance74UnregisteredStream(t *testing.T) {
	for _, id := range []string{"nobody", ""} {
		w := MustLoom(t, loomOptions{})
		w.register("a", "work.new")
		a, nobody := w.open("a"), w.open(id)
		nobody.publish("work.new", &loomv1pb.Event{Id: "e1"})
		if got := a.ids(1); got[0] != "e1" {
			t.Errorf("got %v", got)
		}
		nobody.silent()
	}
}

func TestConformance74HalfCloseEndsWithOK(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	w.register("a", "work.new")
	a, b := w.open("a"), w.open("b")
	for i := range 100 {
		b.publish("work.new", &loomv1pb.Event{Id: fmt.Sprint(i)})
	}
	b.send(publishOf("work.new", nil))
	mustBe(t, b.CloseSend())
	endsWithOK(t, b.end)
	for i := range 100 {
		if got := a.delivery().GetEvent().GetId(); got != fmt.Sprint(i) {
			t.Fatalf("event %d is %s", i, got)
		}
	}
	if got := b.next().GetErr(); got.GetCode() != "INVALID_ARGUMENT" {
		t.Errorf("got %v", got)
	}
}

func TestConformance74ReopenThenOldStreamEnds(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	res, err := w.bridge.RegisterAgent(t.Context(), &loomv1pb.AgentRegisterRequest{
		AgentId: "a", SubscribedTopics: []string{"work.new"}, Tools: []*loomv1pb.ToolDescriptor{{Name: "work:do"}},
	})
	if err != nil || !res.GetSuccess() {
		t.Fatal(res, err)
	}
	older := w.open("a")
	newer := w.open("a")
	w.streams("a", 2)
	w.publish("work.new", "both")
	for _, s := range []*rawStream{older, newer} {
		if got := s.delivery().GetEvent().GetId(); got != "both" {
			t.Errorf("got %q", got)
		}
	}
	older.cut()
	w.streams("a", 1)
	if a, ok := w.Agents.Get("default", "a"); !ok || a.Status != agents.Active {
		t.Errorf("directory has %+v", a)
	}
	w.publish("work.new", "after")
	if got := newer.ids(1); got[0] != "after" {
		t.Errorf("got %v", got)
	}
	go func() {
		_, _ = w.bridge.ForwardToolCall(t.Context(), &loomv1pb.ToolCall{Id: "c1", Name: "work:do"})
	}()
	if call := newer.next().GetToolCall(); call.GetName() != "work:do" {
		t.Errorf("got %v", call)
	}
}

// When the newest stream ends, calls go to the one still open.
func TestConformance74NewestEndsOlderGetsCalls(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	res, err := w.bridge.RegisterAgent(t.Context(), &loomv1pb.AgentRegisterRequest{
		AgentId: "a", Tools: []*loomv1pb.ToolDescriptor{{Name: "work:do"}},
	})
	if err != nil || !res.GetSuccess() {
		t.Fatal(res, err)
	}
	older, newer := w.open("a"), w.open("a")
	ask := func(id string) <-chan *loomv1pb.ToolResult {
		answer := make(chan *loomv1pb.ToolResult, 1)
		go func() {
			got, _ := w.bridge.ForwardToolCall(t.Context(), &loomv1pb.ToolCall{Id: id, Name: "work:do", TimeoutMs: 5000})
			answer <- got
		}()
		return answer
	}
	cut := ask("c1")
	newer.next()
	newer.cut()
	want := &loomv1pb.ToolResult{
		Id: "c1", Status: statusError, Error: &loomv1pb.ToolError{Code: "EXECUTION_ERROR", Message: "Execution failed: agent a is not connected"},
	}
	got := await(t, cut)
	if got.GetError().GetMessage() != want.GetError().GetMessage() || got.GetStatus() != statusError {
		t.Errorf("got %v", got)
	}
	answered := ask("c2")
	call := older.next().GetToolCall()
	older.send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_ToolResult{ToolResult: &loomv1pb.ToolResult{Id: call.GetId(), Output: `"late but fine"`}}})
	if got := await(t, answered); got.GetStatus() != statusOK || got.GetId() != "c2" {
		t.Errorf("got %v", got)
	}
}

// A result on another stream than the call's is nobody's.
func TestConformance74ResultOnAnotherStream(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	res, err := w.bridge.RegisterAgent(t.Context(), &loomv1pb.AgentRegisterRequest{
		AgentId: "a", Tools: []*loomv1pb.ToolDescriptor{{Name: "work:do"}},
	})
	if err != nil || !res.GetSuccess() {
		t.Fatal(res, err)
	}
	other, a := w.open("b"), w.open("a")
	answer := make(chan *loomv1pb.ToolResult, 1)
	go func() {
		got, _ := w.bridge.ForwardToolCall(t.Context(), &loomv1pb.ToolCall{Id: "c1", Name: "work:do", TimeoutMs: 200})
		answer <- got
	}()
	call := a.next().GetToolCall()
	other.send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_ToolResult{ToolResult: &loomv1pb.ToolResult{Id: call.GetId()}}})
	if got := await(t, answer); got.GetStatus() != statusTimeout || got.GetError().GetMessage() != "Timeout" {
		t.Errorf("got %v", got)
	}
	a.send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_ToolResult{ToolResult: &loomv1pb.ToolResult{Id: call.GetId()}}})
	a.send(pingOf())
	if a.next().GetPong() == nil {
		t.Error("the stream did not survive a late result")
	}
}

func TestConformance74RegisteringAgainChangesNoOpenStream(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	w.register("a", "old")
	a := w.open("a")
	w.register("a", "new")
	w.publish("new", "unheard")
	w.publish("old", "heard")
	if got := a.ids(1); got[0] != "heard" {
		t.Errorf("got %v", got)
	}
	again := w.open("a")
	w.publish("new", "heard now")
	if got := again.ids(1); got[0] != "heard now" {
		t.Errorf("got %v", got)
	}
}

func TestConformance74DuplicateTopics(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	w.register("a", "work.new", "work.new", "agent.a.replies", "more.*", "more.*")
	a := w.open("a")
	for _, topic := range []string{"work.new", "agent.a.replies", "more.x"} {
		w.publish(topic, "to "+topic)
		if got := a.ids(1); got[0] != "to "+topic {
			t.Errorf("got %v", got)
		}
	}
}

func TestConformance74ConcreteTopicUnderWildcard(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	w.register("a", "work.*")
	a := w.open("a")
	a.publish("work.deep.down", &loomv1pb.Event{Id: "e1", Metadata: map[string]string{"loom.topic": "a lie"}})
	got := a.delivery()
	if got.GetTopic() != "work.*" || got.GetEvent().GetMetadata()["loom.topic"] != "work.deep.down" {
		t.Errorf("got %v", got)
	}
}

func TestConformance74BadTTLDoesNotReachSubscribers(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	w.register("a", "work.new")
	a := w.open("a")
	a.publish("work.new", &loomv1pb.Event{Id: "e1", Metadata: map[string]string{
		"ttl": "forever", "ttl_ms": "soon", "loom.ttl_ms": "never", "own": "kept",
	}})
	m := maps.Clone(a.delivery().GetEvent().GetMetadata())
	delete(m, "ts")
	want := map[string]string{
		"ttl": "16", "hop": "0", "own": "kept", "thread_id": "e1", "correlation_id": "e1", "reply_to": "thread.e1.reply", "sender": "", "loom.topic": "work.new",
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Error(diff)
	}
}

// An event that is too large is refused to the byte, with size and limit, and
// reaches nobody; the stream goes on. The largest that passes arrives.
func TestConformance74EventNearFourMiB(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	w.register("a", "big.*")
	conn, _ := w.dial(grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(4 << 20)))
	stream, err := loomv1pb.NewBridgeClient(conn).EventStream(t.Context())
	mustBe(t, err)
	a := &rawStream{BidiStreamingClient: stream, tb: t, events: make(chan *loomv1pb.ServerEvent, 16), end: make(chan error, 1)}
	a.send(ackOf("a"))
	go a.read()
	for _, size := range []int{4<<20 - 100, loomv1.DefaultMaxSendBytes, loomv1.DefaultMaxSendBytes - 100, loomv1.DefaultMaxSendBytes - 2<<10} {
		a.publish("big.one", &loomv1pb.Event{Id: "big", Payload: make([]byte, size)})
		got := a.next()
		if e := got.GetErr(); e.GetCode() != "RESOURCE_EXHAUSTED" || !strings.Contains(e.GetMessage(), "the limit of") {
			t.Errorf("payload of %d: got %.200v", size, got)
		}
		res, err := w.bus.Publish(t.Context(), &loomv1pb.PublishRequest{Topic: "big.one", Event: &loomv1pb.Event{Payload: make([]byte, size-100)}})
		if err != nil || res.GetSuccess() || !strings.Contains(res.GetErrorMessage(), "the limit of") {
			t.Errorf("payload of %d: got %v %v", size, res, err)
		}
	}
	sent := make([]byte, store.MaxLegacyEventBytes-4<<10)
	a.publish("big.one", &loomv1pb.Event{Id: "fits", Payload: sent})
	got := a.delivery()
	if got.GetEvent().GetId() != "fits" || len(got.GetEvent().GetPayload()) != len(sent) {
		t.Errorf("got %d bytes", proto.Size(got))
	}
	a.silent()
}

// A native event that grows too large by what is added for agents is left out,
// with a line in the log, and breaks no stream.
func TestConformance74NativeEventTooLarge(t *testing.T) {
	w := MustLoom(t, loomOptions{Loom: loomv1.Options{MaxSendBytes: 2 << 10}})
	w.register("a", "work.new")
	a := w.open("a")
	bus := w.subscribe(&loomv1pb.SubscribeRequest{Topic: "work.new", Qos: loomv1pb.QoSLevel_QOS_BATCHED})
	_, err := w.Events.Emit(t.Context(), "default", events.Event{
		ID: "large", Topic: "work.new", Headers: map[string]string{"x": strings.Repeat("y", 3<<10)},
	}, events.EmitOptions{})
	mustBe(t, err)
	w.publish("work.new", "small")
	if got := a.ids(1); got[0] != "small" {
		t.Errorf("got %v", got)
	}
	bus.wantIDs("small")
	if log := w.log.String(); strings.Count(log, "too large") != 2 || !strings.Contains(log, "large") {
		t.Errorf("log: %s", log)
	}
}

func TestConformance74PublishFailures(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	w.register("a", "", "work.new")
	a := w.open("a")
	a.publish("work.new", nil)
	if got := a.next().GetErr(); got.GetCode() != "INVALID_ARGUMENT" || got.GetMessage() != "event is required" {
		t.Errorf("got %v", got)
	}
	// What the old core let through passes still: acks, an empty message, an empty
	// topic, an event of nothing.
	a.send(ackOf("more"))
	a.send(&loomv1pb.ClientEvent{})
	a.publish("", &loomv1pb.Event{Id: "no topic"})
	a.publish("work.new", &loomv1pb.Event{})
	got := a.delivery()
	if got.GetTopic() != "" || got.GetEvent().GetId() != "no topic" {
		t.Errorf("got %v", got)
	}
	if got := a.delivery(); got.GetEvent().GetId() == "" {
		t.Errorf("got %v, want an id", got)
	}
	a.silent()
}

// Topics that the bridge keeps for itself in the native API pass here.
func TestConformance74ReservedTopicsPass(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	topics := []string{"agent.spawn", "agent.result", "execute", "node.x"}
	w.register("a", topics...)
	a := w.open("a")
	for _, topic := range topics {
		a.publish(topic, &loomv1pb.Event{Id: "to " + topic})
		if got := a.ids(1); got[0] != "to "+topic {
			t.Errorf("got %v", got)
		}
	}
}

// What is sent to one agent alone comes as if to its mailbox.
func TestConformance74DirectEvent(t *testing.T) {
	w := MustLoom(t, loomOptions{})
	w.register("a")
	a := w.open("a")
	_, err := w.runtime.SendEvent(t.Context(), &loomv1pb.SendEventRequest{AgentId: "a", Event: &loomv1pb.Event{Id: "e1", Type: "poke"}})
	mustBe(t, err)
	got := a.delivery()
	if e := got.GetEvent(); got.GetTopic() != "agent.a.replies" || e.GetMetadata()["loom.topic"] != "agent.a.replies" || e.GetType() != "poke" {
		t.Errorf("got %v", got)
	}
}

func TestConformance74PingRefreshesTheDirectory(t *testing.T) {
	now := newTestClock()
	w := MustLoom(t, loomOptions{Now: now.Now})
	w.register("a")
	a := w.open("a")
	now.add(time.Minute)
	a.send(pingOf())
	pong := a.next().GetPong()
	if pong.GetStatus() != "ok" || pong.GetTimestampMs() != now.Now().UnixMilli() {
		t.Errorf("got %v", pong)
	}
	known, _ := w.Agents.Get("default", "a")
	if known.Status != agents.Active || !known.LastSeen.Equal(now.Now()) {
		t.Errorf("directory has %+v", known)
	}
}
