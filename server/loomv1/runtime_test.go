package loomv1_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	"github.com/loom-bridge/loom-bridge/server/loomv1"
)

func wantCode(tb testing.TB, what string, err error, want codes.Code, words ...string) {
	tb.Helper()
	if status.Code(err) != want {
		tb.Errorf("%s: %v, want %v", what, err, want)
	}
	for _, word := range words {
		if !strings.Contains(status.Convert(err).Message(), word) {
			tb.Errorf("%s: %v does not say %q", what, err, word)
		}
	}
}

func TestCreateAgent(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{})
	w.register("known", "work:do")
	for _, id := range []string{"new", "known"} {
		res, err := w.runtime.CreateAgent(t.Context(), &loomv1pb.AgentConfig{
			AgentId: id, AgentType: "planner", SubscribedTopics: []string{"a.*", "b", "b"},
			Capabilities: []string{"planning"}, Parameters: map[string]string{"model": "small"},
		})
		if err != nil || !res.GetSuccess() || res.GetErrorMessage() != "" {
			t.Errorf("%s: %v %v", id, res, err)
		}
		got, ok := w.Agents.Get("default", id)
		status := map[string]agents.Status{"new": agents.Idle, "known": agents.Active}[id]
		if !ok || got.Status != status || got.Kind != "planner" || got.Metadata["model"] != "small" {
			t.Errorf("%s: %+v", id, got)
		}
		if diff := cmp.Diff([]string{"a.*", "b"}, got.Topics); diff != "" {
			t.Errorf("%s, topics: %s", id, diff)
		}
		if !slices.Contains(got.Capabilities, "planning") {
			t.Errorf("%s has not its capability: %+v", id, got)
		}
	}
	if _, ok := w.Agents.Lookup("default", "work:do"); !ok {
		t.Error("the tools of the agent that had registered are gone")
	}
	res, err := w.runtime.CreateAgent(t.Context(), &loomv1pb.AgentConfig{})
	if err != nil || res.GetSuccess() || !strings.Contains(res.GetErrorMessage(), "agent_id") {
		t.Errorf("no id: %v %v", res, err)
	}
}

func TestDeleteAgent(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{})
	remove := func(id string) bool {
		res, err := w.runtime.DeleteAgent(t.Context(), &loomv1pb.DeleteAgentRequest{AgentId: id})
		if err != nil {
			t.Fatalf("delete %q: %v", id, err)
		}
		return res.GetSuccess()
	}
	w.register("entry")
	w.register("both")
	for _, id := range []string{"state", "both"} {
		_, err := w.runtime.UpdateAgentState(t.Context(), &loomv1pb.AgentState{AgentId: id, PersistentState: []byte("kept")})
		w.must(err)
	}
	for _, id := range []string{"entry", "state", "both"} {
		if !remove(id) {
			t.Errorf("%s was not known", id)
		}
		if remove(id) {
			t.Errorf("%s is still there", id)
		}
		_, err := w.runtime.GetAgentState(t.Context(), &loomv1pb.GetAgentStateRequest{AgentId: id})
		wantCode(t, "state of "+id, err, codes.NotFound)
	}
	for _, id := range []string{"", "nobody", "a\x00b"} {
		if remove(id) {
			t.Errorf("%q was known", id)
		}
	}
}

func TestAgentState(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_123)
	w := MustToolWorld(t, loomv1.Options{})
	read := func(id string) (*loomv1pb.AgentState, error) {
		return w.runtime.GetAgentState(t.Context(), &loomv1pb.GetAgentStateRequest{AgentId: id})
	}
	for _, id := range []string{"nobody", "", "a\x00b"} {
		_, err := read(id)
		wantCode(t, "unknown id", err, codes.NotFound)
	}
	want := &loomv1pb.AgentState{
		AgentId: "a", PersistentState: []byte{0, 0xff}, EphemeralContext: []byte("half-way"),
		LastUpdateMs: now.UnixMilli(), Metadata: map[string]string{"k": "v"},
	}
	res, err := w.runtime.UpdateAgentState(t.Context(), want)
	if err != nil || !res.GetSuccess() {
		t.Fatal(res, err)
	}
	got, err := read("a")
	if diff := cmp.Diff(want, got, protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	before := time.Now().UnixMilli()
	_, err = w.runtime.UpdateAgentState(t.Context(), &loomv1pb.AgentState{AgentId: "a"})
	w.must(err)
	if got, err := read("a"); err != nil || got.GetLastUpdateMs() < before || len(got.GetPersistentState()) > 0 {
		t.Errorf("%v %v", got, err)
	}
	w.register("b")
	if got, err := read("b"); err != nil || !cmp.Equal(got, &loomv1pb.AgentState{AgentId: "b"}, protocmp.Transform()) {
		t.Errorf("an agent without a state: %v %v", got, err)
	}
}

func TestAgentStateRefused(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{MaxSendBytes: 10_000})
	for name, tt := range map[string]struct {
		state *loomv1pb.AgentState
		code  codes.Code
		words []string
	}{
		"no id": {&loomv1pb.AgentState{}, codes.InvalidArgument, []string{"agent_id"}},
		"too large to be read": {
			&loomv1pb.AgentState{AgentId: "a", PersistentState: make([]byte, 10_000)}, codes.ResourceExhausted, []string{"limit of 10000"},
		},
	} {
		_, err := w.runtime.UpdateAgentState(t.Context(), tt.state)
		wantCode(t, name, err, tt.code, tt.words...)
	}
	_, err := w.runtime.GetAgentState(t.Context(), &loomv1pb.GetAgentStateRequest{AgentId: "a"})
	wantCode(t, "nothing was stored", err, codes.NotFound)
}

// An event for one agent comes under its mailbox, to the newest stream alone.
func TestSendEvent(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{})
	send := func(id string, e *loomv1pb.Event) (*loomv1pb.AgentResponse, error) {
		return w.runtime.SendEvent(t.Context(), &loomv1pb.SendEventRequest{AgentId: id, Event: e})
	}
	_, err := w.runtime.UpdateAgentState(t.Context(), &loomv1pb.AgentState{AgentId: "a", PersistentState: []byte("kept"), LastUpdateMs: 7})
	w.must(err)
	_, err = send("a", &loomv1pb.Event{Id: "e-0"})
	wantCode(t, "no stream", err, codes.Unavailable, "agent a is not connected")

	agent, other := w.agent("a"), w.agent("b")
	res, err := send("a", &loomv1pb.Event{Id: "e-1", Type: "note", Payload: []byte("hello"), Metadata: map[string]string{"own": "pair"}})
	want := &loomv1pb.AgentResponse{AgentId: "a", UpdatedState: &loomv1pb.AgentState{AgentId: "a", PersistentState: []byte("kept"), LastUpdateMs: 7}}
	if diff := cmp.Diff(want, res, protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	delivery := await(t, agent.events).GetDelivery()
	event := delivery.GetEvent()
	if delivery.GetTopic() != "agent.a.replies" || event.GetId() != "e-1" || string(event.GetPayload()) != "hello" ||
		event.GetMetadata()["own"] != "pair" || event.GetMetadata()["loom.topic"] != "agent.a.replies" {
		t.Errorf("%v", delivery)
	}
	res, err = send("b", &loomv1pb.Event{Id: "e-2"})
	if diff := cmp.Diff(&loomv1pb.AgentState{AgentId: "b"}, res.GetUpdatedState(), protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("no state: %v %s", err, diff)
	}
	if got := await(t, other.events).GetDelivery().GetEvent().GetId(); got != "e-2" {
		t.Errorf("agent b got %q", got)
	}
	_, err = send("a", nil)
	wantCode(t, "no event", err, codes.InvalidArgument, "Event is required")
	w.gone(agent)
	_, err = send("a", &loomv1pb.Event{})
	wantCode(t, "stream ended", err, codes.Unavailable, "agent a is not connected")
}

func TestSendEventTooLarge(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{MaxSendBytes: 10_000})
	agent := w.agent("a")
	_, err := w.runtime.SendEvent(t.Context(), &loomv1pb.SendEventRequest{AgentId: "a", Event: &loomv1pb.Event{Payload: make([]byte, 10_000)}})
	wantCode(t, "too large", err, codes.ResourceExhausted, "exceeds the limit of 10000")
	_, err = w.runtime.SendEvent(t.Context(), &loomv1pb.SendEventRequest{AgentId: "a", Event: &loomv1pb.Event{Id: "small"}})
	w.must(err)
	if got := await(t, agent.events).GetDelivery().GetEvent().GetId(); got != "small" {
		t.Errorf("got %q first", got)
	}
}

// An agent that opened its stream without registering can be reached, too.
func TestSendEventToUnregistered(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{})
	agent := w.open("stranger")
	if _, err := w.runtime.SendEvent(t.Context(), &loomv1pb.SendEventRequest{AgentId: "stranger", Event: &loomv1pb.Event{Id: "e"}}); err != nil {
		t.Fatal(err)
	}
	if got := await(t, agent.events).GetDelivery().GetEvent().GetId(); got != "e" {
		t.Errorf("got %q", got)
	}
}

// A response that clients would refuse is said so instead.
func TestResponsesAreSized(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{MaxSendBytes: 1000})
	_, err := w.tools.ListTools(t.Context(), &loomv1pb.ListToolsRequest{})
	wantCode(t, "ListTools", err, codes.ResourceExhausted, "bytes exceeds the limit of 1000")
	_, err = w.bridge.ForwardToolCall(t.Context(), &loomv1pb.ToolCall{Id: strings.Repeat("x", 1001), Name: "no:such"})
	wantCode(t, "an id that is too long", err, codes.ResourceExhausted, "bytes exceeds the limit of 1000")
}

// A fault of the store ends the call. The log has the cause, the caller does not.
func TestRuntimeStoreFaults(t *testing.T) {
	var log logText
	w := MustToolWorld(t, loomv1.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	ctx := t.Context()
	agent := w.agent("a")
	_, err := w.runtime.UpdateAgentState(ctx, &loomv1pb.AgentState{AgentId: "a"})
	w.must(err)
	calls := map[string]func() error{
		"store the state": func() error {
			_, err := w.runtime.UpdateAgentState(ctx, &loomv1pb.AgentState{AgentId: "a"})
			return err
		},
		"delete the agent": func() error {
			_, err := w.runtime.DeleteAgent(ctx, &loomv1pb.DeleteAgentRequest{AgentId: "a"})
			return err
		},
		"read the state": func() error {
			_, err := w.runtime.GetAgentState(ctx, &loomv1pb.GetAgentStateRequest{AgentId: "a"})
			return err
		},
		"read the state, ": func() error {
			_, err := w.runtime.SendEvent(ctx, &loomv1pb.SendEventRequest{AgentId: "a", Event: &loomv1pb.Event{}})
			return err
		},
	}
	for name, tt := range map[string]struct {
		fault error
		code  codes.Code
		words string
	}{
		"unknown": {errors.New("open /srv/secret: damaged"), codes.Internal, "internal server fault; the server's log has the cause"},
		"full":    {fmt.Errorf("write /srv/secret: %w", kv.ErrFull), codes.Internal, "the server's data directory has no room"},
		"closed":  {fmt.Errorf("/srv/secret: %w", kv.ErrClosed), codes.Unavailable, "the server is stopping"},
	} {
		w.engine.fault.Store(&tt.fault)
		for operation, call := range calls {
			err := call()
			wantCode(t, name+", "+operation, err, tt.code, tt.words)
			operation, _, _ = strings.Cut(operation, ", ")
			if text := status.Convert(err).Message(); tt.code == codes.Internal && !strings.HasPrefix(text, "Failed to "+operation+": ") {
				t.Errorf("%s: %s", operation, text)
			}
		}
	}
	w.engine.fault.Store(nil)
	if !strings.Contains(log.String(), "/srv/secret: damaged") {
		t.Errorf("the log has only %q", log.String())
	}
	if _, ok := w.Agents.Get("default", "a"); !ok {
		t.Error("the agent is gone though its state could not be deleted")
	}
	select {
	case event := <-agent.events:
		t.Errorf("an event came though its sender was told that it failed: %v", event)
	default:
	}
}

// An agent that takes nothing does not fill the server's memory: what finds no
// room is refused.
func TestSendEventToBusyAgent(t *testing.T) {
	w := MustToolWorld(t, loomv1.Options{})
	w.agent("a")
	event := &loomv1pb.Event{Payload: make([]byte, 64<<10)}
	for range 2000 {
		_, err := w.runtime.SendEvent(t.Context(), &loomv1pb.SendEventRequest{AgentId: "a", Event: event})
		if err != nil {
			wantCode(t, "no room", err, codes.ResourceExhausted, "too many events wait for agent a")
			return
		}
	}
	t.Error("everything found room")
}
