package peers

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/mesh"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/internal/testkit/meshtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const tenant = "acme"

// bridge is a server with what of it is joined with the others.
type bridge struct {
	*Peers
	transport *meshtest.HubTransport
	agents    *agents.Directory
	events    *events.Bus
	returned  chan [2]kv.Scope
}

// MustJoin joins n bridges on one store.
func MustJoin(tb testing.TB, n int) []bridge {
	tb.Helper()
	hub := &meshtest.Hub{}
	var all []bridge
	for i, engine := range kvtest.Peers(n) {
		transport := hub.Join()
		m, err := mesh.New(mesh.Peer{ID: fmt.Sprint("bridge-", i), Epoch: 1}, transport, &mesh.Options{Beat: 20 * time.Millisecond, Silence: time.Second})
		if err != nil {
			tb.Fatal(err)
		}
		b := bridge{Peers: New(m, nil), transport: transport, returned: make(chan [2]kv.Scope, 1)}
		writer := kv.NewWriter(engine, nil)
		b.events = events.New(engine, writer, &events.Options{Elsewhere: b.Peers})
		b.agents = agents.New(engine, writer, &agents.Options{Elsewhere: b.Peers, Holder: m.Self().String})
		err = b.Open(Parts{Events: b.events, Agents: b.agents, Returned: func(child, parent kv.Scope) { b.returned <- [2]kv.Scope{child, parent} }})
		tb.Cleanup(func() {
			if err := errors.Join(err, b.Peers.Close(), b.agents.Close(), b.events.Close(), writer.Close(), engine.Close()); err != nil {
				tb.Error(err)
			}
		})
		all = append(all, b)
	}
	for _, b := range all {
		meshtest.Eventually(tb, "all see each other", func() bool { return len(b.mesh.Peers()) == n-1 })
	}
	return all
}

// MustAttach registers an agent with a tool and opens its stream.
func (b bridge) MustAttach(tb testing.TB, id, tool string) *agents.Link {
	tb.Helper()
	r := agents.Registration{
		Topics: []string{"a.*", ""}, Tools: []agents.ProvidedTool{{Name: tool, Schema: `{"type":"object"}`, Metadata: map[string]string{"k": "\xff"}}},
		Metadata: map[string]string{"m": "v"}, Capabilities: []string{"sums"}, Kind: "worker", Exclusive: true,
	}
	_, err := b.agents.Register(tenant, id, r)
	if err != nil {
		tb.Fatal(err)
	}
	link, err := b.agents.Open(tenant, id, agents.OpenOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return link
}

func (b bridge) knows(id string, streams int) func() bool {
	return func() bool {
		a, _ := b.agents.Get(tenant, id)
		return a.Streams == streams
	}
}

// What one bridge says of an agent another one shows letter for letter, a call goes there and
// its result comes back with all that it has.
func TestCallElsewhere(t *testing.T) {
	all := MustJoin(t, 2)
	a, b := all[0], all[1]
	link := a.MustAttach(t, "x", "sum")
	meshtest.Eventually(t, "b knows it", b.knows("x", 1))
	here, _ := a.agents.Get(tenant, "x")
	there, _ := b.agents.Get(tenant, "x")
	if diff := cmp.Diff(here, there); diff != "" {
		t.Errorf("another bridge shows it otherwise:\n%s", diff)
	}
	asked := agents.ToolCall{
		Name: "sum", Arguments: "{\"a\":\"\xff\"}", CallerID: "y", CorrelationID: "c", Headers: map[string]string{"h": "v"}, TimeoutMillis: 1 << 40, QoS: -2, SessionID: "s",
	}
	want := agents.ToolResult{
		Status: agents.ResultError, Output: strings.Repeat("o", 3<<20) + "\x00\xff", Form: step.FormBytes, MediaType: "image/png",
		HasError: true, ErrorCode: "code", ErrorMessage: "message", Details: map[string]string{"d": ""},
	}
	go func() {
		for c := range link.Calls() {
			if got := c.ToolCall; got.Arguments != asked.Arguments || got.CallerID != asked.CallerID || got.CorrelationID != asked.CorrelationID ||
				!reflect.DeepEqual(got.Headers, asked.Headers) || got.TimeoutMillis != asked.TimeoutMillis || got.QoS != asked.QoS || got.SessionID != asked.SessionID {
				t.Errorf("the call came as %+v", got)
			}
			link.Complete(c.ID, want)
		}
	}()
	got, err := b.agents.Call(t.Context(), tenant, asked)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := b.agents.Send(ctx, tenant, "x", events.Event{ID: "e", Topic: "t"}); err != nil {
		t.Error(err)
	}
	link.Close()
	meshtest.Eventually(t, "b knows that its stream has ended", b.knows("x", 0))
	if _, err = b.agents.Call(t.Context(), tenant, asked); err == nil {
		t.Error("an agent without a stream was called")
	}
	if found, err := b.agents.Delete(t.Context(), tenant, "x"); !found || err != nil {
		t.Errorf("delete elsewhere: %v, %v", found, err)
	}
	if _, known := a.agents.Get(tenant, "x"); known {
		t.Error("its own bridge has it still")
	}
}

// Why an agent's own bridge has no result is the same error at the caller's.
func TestFailuresTravel(t *testing.T) {
	var gone *agents.NotConnectedError
	for name, c := range map[string]struct {
		err  error
		same func(error) bool
	}{
		"nothing was sent": {&agents.NotConnectedError{Agent: "x"}, func(err error) bool { return errors.As(err, &gone) && !gone.Sent }},
		"it was sent":      {&agents.NotConnectedError{Agent: "x", Sent: true}, func(err error) bool { return errors.As(err, &gone) && gone.Sent }},
		"the bridge stops": {context.Canceled, func(err error) bool { return errors.As(err, &gone) && gone.Sent }},
		"closed":           {agents.ErrClosed, func(err error) bool { return errors.As(err, &gone) && !gone.Sent }},
		"busy":             {agents.ErrBusy, func(err error) bool { return errors.Is(err, agents.ErrBusy) }},
		"late":             {context.DeadlineExceeded, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
		"other":            {errors.New("a fault"), func(err error) bool { return err.Error() == "a fault" }},
		"none":             {nil, func(err error) bool { return err == nil }},
	} {
		a, err := mesh.Decode[callAnswer](mesh.Encode(answerOf(agents.ToolResult{}, c.err)))
		if err != nil || !c.same(a.error("x")) {
			t.Errorf("%s: %v, %v", name, a.error("x"), err)
		}
	}
}

// A bridge that misses announcements while it is cut off asks for them when it is back.
func TestMissedAnnouncements(t *testing.T) {
	all := MustJoin(t, 2)
	a, b := all[0], all[1]
	a.MustAttach(t, "before", "one")
	meshtest.Eventually(t, "b knows it", b.knows("before", 1))
	b.transport.Cut(true)
	meshtest.Eventually(t, "b forgets it with its bridge", b.knows("before", 0))
	a.MustAttach(t, "meanwhile", "two")
	b.transport.Cut(false)
	meshtest.Eventually(t, "b knows both", func() bool { return b.knows("before", 1)() && b.knows("meanwhile", 1)() })
	if known := len(b.agents.Tools(tenant)); known != 2 {
		t.Errorf("b knows the tools of %d", known)
	}
}

// What an agent was sent at one bridge is taken over once at another.
func TestGapElsewhere(t *testing.T) {
	all := MustJoin(t, 2)
	a, b := all[0], all[1]
	link := a.MustAttach(t, "x", "sum")
	a.agents.MarkGap(link, agents.Gap{Since: time.UnixMicro(7).UTC(), Delivered: map[string]uint64{"t": 3}, RecentIDs: []string{"e"}})
	meshtest.Eventually(t, "b knows it", b.knows("x", 1))
	g, found, err := b.agents.TakeGap(t.Context(), tenant, "x")
	if !found || err != nil || g.Delivered["t"] != 3 || len(g.RecentIDs) != 1 || !g.Since.Equal(time.UnixMicro(7)) {
		t.Errorf("%+v, %v, %v", g, found, err)
	}
}

// Volatile events and results of children reach the others, and what can't be read reaches
// nobody and hurts nothing.
func TestNews(t *testing.T) {
	all := MustJoin(t, 2)
	a, b := all[0], all[1]
	sub, err := b.events.Subscribe(t.Context(), tenant, []events.Subscribed{{Pattern: pattern.Legacy("news")}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	for _, topic := range []string{topicEvents, topicStored, topicResults, topicAgents} {
		if err := a.mesh.Publish(topic, []byte{0xff, 1, 2}); err != nil {
			t.Fatal(err)
		}
	}
	for _, topic := range []string{topicAll, topicCall, topicDirect, topicGap, topicDelete} {
		if _, err := a.mesh.Request(t.Context(), b.mesh.Self(), topic, []byte{0xff, 1, 2}); err == nil {
			t.Errorf("%s: a request that can't be read is answered", topic)
		}
	}
	if _, err := a.events.Emit(t.Context(), tenant, events.Event{Topic: "news", Payload: []byte(`"x"`)}, events.EmitOptions{Volatile: true}); err != nil {
		t.Fatal(err)
	}
	child, parent := kv.AgentScope(tenant, "child"), kv.AgentScope(tenant, "parent")
	a.Result(child, parent)
	if got := <-b.returned; got != [2]kv.Scope{child, parent} {
		t.Errorf("returned %v", got)
	}
	got, err := sub.Next(t.Context())
	if err != nil || string(got.Event.Payload) != `"x"` {
		t.Errorf("heard %+v, %v", got, err)
	}
}
