package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// emitter publishes on a topic as an agent, and returns why it was refused, or nothing.
type emitter func(agent, topic, payload string) string

// native is an emitter of the native API.
func native(t *testing.T, s *servertest.Server) emitter {
	return func(agent, topic, payload string) string {
		_, err := s.Bridge.Emit(t.Context(), &loombridgev1.EmitRequest{
			AgentId: agent, Topic: topic, PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: payload},
		})
		return infoOf(err).GetReason()
	}
}

// loom is an emitter of loom.v1, with a stream for each event.
func loom(t *testing.T, s *servertest.Server) emitter {
	return func(agent, topic, payload string) string {
		t.Helper()
		stream, err := s.LoomBridge.EventStream(t.Context())
		must(t, err)
		must(t, stream.Send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Ack{Ack: &loomv1pb.Ack{MessageId: agent}}}))
		must(t, stream.Send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Publish{Publish: &loomv1pb.Publish{
			Topic: topic, Event: &loomv1pb.Event{Id: fmt.Sprint(topic, len(payload), agent), Source: "python", Payload: []byte(payload)},
		}}}))
		// The answer to the ping comes behind that to the publish, or the publish is refused.
		must(t, stream.CloseSend())
		refused := ""
		for {
			m, err := stream.Recv()
			if err != nil {
				return refused
			}
			if m.GetErr() != nil {
				refused = m.GetErr().GetCode()
			}
		}
	}
}

// An event on agent.spawn makes a child, and one on agent.result completes the emitter,
// from both APIs alike: child and parent are told on topics of their own, who reads
// agent.spawn hears of that, and the parent alone of agent.result.
//
// C05, C06, P19, P21
func TestSpawnByEvents(t *testing.T) {
	for name, emitting := range map[string]func(*testing.T, *servertest.Server) emitter{"native": native, "loom.v1": loom} {
		t.Run(name, func(t *testing.T) {
			s := servertest.Start(t, nil)
			emit := emitting(t, s)
			listen := func(agent string, topics ...string) subscription {
				all := make([]*loombridgev1.TopicPosition, len(topics))
				for i, topic := range topics {
					all[i] = &loombridgev1.TopicPosition{Topic: topic}
				}
				stream, _ := MustSubscribe(t, convert.AskText(t.Context()), s.Events, &loombridgev1.SubscribeRequest{
					AgentId: agent, Topics: all,
				})
				return stream
			}
			child, parent := listen("c", "agent.c.spawn"), listen("p", "agent.p.results")
			others := listen("x", "agent.*", "node.*", "end")
			results := listen("p", "agent.result", "end")
			loomAgent := openLoom(t, s, "p", "agent.spawn", "agent.result")
			loomOther := openLoom(t, s, "z", "agent.result", "end")
			if reason := emit("p", "agent.spawn", `{"child_id":"c","goal":"count to ten","tools":["fs:read_file"],"timeout_ms":5000,"session_id":"mine"}`); reason != "" {
				t.Fatalf("spawn: %s", reason)
			}
			told := MustNext(t, child).GetEvent()
			var asked map[string]any
			must(t, json.Unmarshal([]byte(told.GetPayloadJson()), &asked))
			want := map[string]any{
				"parent_id": "p", "child_id": "c", "goal": "count to ten", "tools": []any{"fs:read_file"}, "timeout_ms": 5000.0, "session_id": "mine",
			}
			if fmt.Sprint(asked) != fmt.Sprint(want) || told.GetType() != "agent.spawn" || told.GetSource() != "p" {
				t.Errorf("the child was told %v", told)
			}
			got := mustWait(t, s, 0, "c").GetChildren()[0]
			if got.GetStatus() != childRunning || got.GetSessionId() != "mine" || got.GetLimits().GetTimeout().AsDuration() != 5*time.Second ||
				fmt.Sprint(got.GetTools()) != "[fs:read_file]" {
				t.Errorf("child %v", got)
			}
			if reason := emit("c", "agent.result", `{"parent_id":"p","result":"ten"}`); reason != "" {
				t.Fatalf("result: %s", reason)
			}
			told = MustNext(t, parent).GetEvent()
			var said map[string]any
			must(t, json.Unmarshal([]byte(told.GetPayloadJson()), &said))
			want = map[string]any{"parent_id": "p", "child_id": "c", "success": true, "result": "ten", "error": ""}
			if fmt.Sprint(said) != fmt.Sprint(want) || told.GetType() != "agent.result" || told.GetSource() != "c" {
				t.Errorf("the parent was told %v", told)
			}
			if got := mustWait(t, s, 0, "c"); got.GetOutcome() != "[c] ten" {
				t.Errorf("outcome %v", got)
			}
			steps := stepsOf(t, s, "p")
			if len(steps) != 2 || steps[0].GetObservation() != "Spawned sub-agent c" || steps[1].GetObservation() != "Received sub result from c" {
				t.Errorf("steps of the parent: %v", steps)
			}
			MustEmit(t, s, &loombridgev1.EmitRequest{AgentId: "y", Topic: "end"})
			if got := topicsUntilEnd(t, others); !slices.Equal(got, []string{"agent.spawn"}) {
				t.Errorf("somebody else heard %v", got)
			}
			if got := topicsUntilEnd(t, results); !slices.Equal(got, []string{"agent.result"}) {
				t.Errorf("the parent heard %v", got)
			}
			for _, topic := range []string{"agent.spawn", "agent.result"} {
				if got := nextLoom(t, loomAgent); got.GetTopic() != topic || !strings.Contains(string(got.GetEvent().GetPayload()), "ten") {
					t.Errorf("the parent heard %v by loom.v1, want %s", got, topic)
				}
			}
			if got := nextLoom(t, loomOther); got.GetTopic() != "end" {
				t.Errorf("somebody else heard %v by loom.v1", got)
			}
		})
	}
}

// topicsUntilEnd are the topics of what comes before an event on "end", but for the status
// of agents.
func topicsUntilEnd(t *testing.T, from subscription) (heard []string) {
	t.Helper()
	for {
		switch topic := MustNext(t, from).GetEvent().GetTopic(); topic {
		case "end":
			return heard
		case "agent.status":
		default:
			heard = append(heard, topic)
		}
	}
}

// openLoom is the stream of an agent of loom.v1 that is registered for some topics.
func openLoom(t *testing.T, s *servertest.Server, agent string, topics ...string) loomv1pb.Bridge_EventStreamClient {
	t.Helper()
	_, err := s.LoomBridge.RegisterAgent(t.Context(), &loomv1pb.AgentRegisterRequest{AgentId: agent, SubscribedTopics: topics})
	must(t, err)
	stream, err := s.LoomBridge.EventStream(t.Context())
	must(t, err)
	must(t, stream.Send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Ack{Ack: &loomv1pb.Ack{MessageId: agent}}}))
	_, err = stream.Header()
	must(t, err)
	return stream
}

// nextLoom is the next delivery on a stream of loom.v1.
func nextLoom(t *testing.T, stream loomv1pb.Bridge_EventStreamClient) *loomv1pb.Delivery {
	t.Helper()
	for {
		m, err := stream.Recv()
		must(t, err)
		if d := m.GetDelivery(); d != nil {
			return d
		}
	}
}

// Bad events on the reserved topics are refused from both APIs, and change nothing.
//
// C05, C06, P19
func TestBadFamilyEvents(t *testing.T) {
	for name, emitting := range map[string]func(*testing.T, *servertest.Server) emitter{"native": native, "loom.v1": loom} {
		t.Run(name, func(t *testing.T) {
			s := servertest.Start(t, nil)
			emit := emitting(t, s)
			MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: "c"})
			for i, tt := range []struct{ agent, topic, payload string }{
				{"p", "agent.spawn", `{"child_id":"x","goal":"g","steps":[1]}`},
				{"p", "agent.spawn", `{"child_id":"x","goal":"g","context":"all I know"}`},
				{"p", "agent.spawn", `{"child_id":"x","goal":"g","history":[]}`},
				{"p", "agent.spawn", `{"child_id":"x"}`},
				{"p", "agent.spawn", `{"goal":"g"}`},
				{"p", "agent.spawn", `{"child_id":"x","goal":" "}`},
				{"p", "agent.spawn", `{"child_id":"a/b","goal":"g"}`},
				{"p", "agent.spawn", `{"child_id":"x","goal":"g","parent_id":"q"}`},
				{"p", "agent.spawn", `{"child_id":"x","goal":"g","timeout_ms":-1}`},
				{"p", "agent.spawn", `{"child_id":"x","goal":"g","tools":["no:tool"]}`},
				{"p", "agent.spawn", `[]`},
				{"p", "agent.spawn", `nothing`},
				{"c", "agent.result", `{"result":"r"}`},
				{"c", "agent.result", `{"parent_id":"p"}`},
				{"c", "agent.result", `{"parent_id":"q","result":"r"}`},
				{"c", "agent.result", `{"parent_id":"p","result":"r","child_id":"d"}`},
				{"c", "agent.result", `{"parent_id":"p","result":"r","history":[]}`},
			} {
				want := "INVALID_REQUEST"
				if name != "native" {
					want = "INVALID_ARGUMENT"
				}
				if asks := strings.Contains(tt.payload, "child_id") || strings.Contains(tt.payload, "parent_id"); !asks && name != "native" {
					want = "" // what asks for nothing has always passed there
				}
				if got := emit(tt.agent, tt.topic, tt.payload); got != want {
					t.Errorf("%d: %s: refused with %q", i, tt.payload, got)
				}
			}
			if got := emit("q", "agent.result", `{"parent_id":"p","result":"r"}`); !strings.Contains(got, "NOT_FOUND") {
				t.Errorf("a result of nobody's child: %q", got)
			}
			for _, topic := range []string{"agent.c.spawn", "agent.p.results"} {
				if got := emit("x", topic, `{}`); got == "" {
					t.Errorf("%s was taken", topic)
				}
			}
			if got := mustWait(t, s, 0); len(got.GetChildren()) != 1 || len(got.GetPending()) == 0 || len(stepsOf(t, s, "p")) != 1 {
				t.Errorf("left: %v", got)
			}
		})
	}
}

// A child whose stream ended and that does not come back within the grace has the result
// that says so; one that comes back goes on.
//
// P19
func TestLostChild(t *testing.T) {
	s := servertest.Start(t, nil)
	attach := func(id string) (*attachment, func()) {
		ctx, cancel := context.WithCancel(t.Context())
		return MustAttach(t, ctx, s.Bridge, &loombridgev1.AttachHello{AgentId: id}), cancel
	}
	gone := func(id string) {
		MustBecome(t, id+" is away", func() bool {
			a, ok := s.Domain.Agents.Get("default", id)
			return !ok || a.Status == agents.Disconnected
		})
	}
	MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: "lost"})
	MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: "back"})
	MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: "never"})
	_, leave := attach("lost")
	leave()
	gone("lost")
	_, leave = attach("back")
	leave()
	gone("back")
	s.Clock.Advance(9 * time.Second)
	_, leave = attach("back")
	defer leave()
	got := mustWait(t, s, 0, "lost")
	// When it is heard that a stream has ended is another moment than when it ends.
	for range 40 {
		if len(got.GetPending()) == 0 {
			break
		}
		s.Clock.Advance(time.Second)
		got = mustWait(t, s, 250*time.Millisecond, "lost")
	}
	if len(got.GetPending()) > 0 || got.GetOutcome() != "[lost] ✗ disconnected" {
		t.Errorf("lost: %v", got)
	}
	if got := mustWait(t, s, 0); len(got.GetPending()) != 2 {
		t.Errorf("pending: %v", got.GetPending())
	}
}

// What a child has is closed to every other agent, and what the parent has is to it; only
// blobs that were granted are read, by their refs, and nothing else of them is told.
//
// C02, C08, P21
func TestWhatDoesNotCross(t *testing.T) {
	s := servertest.Start(t, nil)
	const canary = "the canary sings"
	long := strings.Repeat(canary+"\n", 200)
	record := func(agent, text string) *loombridgev1.Step {
		t.Helper()
		_, err := s.Context.RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
			AgentId: agent, ToolName: "x:y", Success: true, OutputForm: &loombridgev1.RecordStepRequest_OutputText{OutputText: text},
		})
		must(t, err)
		steps := stepsOf(t, s, agent)
		return steps[len(steps)-1]
	}
	read := func(agent, name string) (string, error) {
		stream, err := s.Context.ReadBlob(t.Context(), &loombridgev1.ReadBlobRequest{AgentId: agent, Name: name})
		must(t, err)
		m, err := stream.Recv()
		return string(m.GetData()), err
	}
	open, secret := record("p", long), "of the parent"
	must(t, write(t, s, "p", "secret.txt", secret))
	MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: "c", Grants: []string{open.GetOutcomeRef()}})
	MustSpawn(t, s, &loombridgev1.SpawnAgentRequest{ChildId: "d"})
	must(t, write(t, s, "c", "mine.txt", canary))

	tool := func(agent, name, args string) string {
		t.Helper()
		got, err := s.Bridge.Tool(convert.AskText(t.Context()), &loombridgev1.ToolRequest{
			AgentId: agent, Name: name, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: args},
		})
		must(t, err)
		return got.GetOutputJson() + got.GetErrorMessage()
	}
	for _, agent := range []string{"p", "d", "q"} {
		for name, args := range map[string]string{
			"fs:read_file": `{"path":"c/mine.txt"}`, "fs:list_dir": `{"path":"."}`, "fs:search": `{"query":"canary","path":"."}`,
			"fs:stat": `{"path":"c/mine.txt"}`, "fs:delete": `{"path":"c/mine.txt"}`, "fs:write_file": `{"path":"c/mine.txt","content":"gone"}`,
		} {
			if agent == "d" && name == "fs:write_file" {
				continue // d has a folder of its own
			}
			if got := tool(agent, name, args); strings.Contains(got, canary) || strings.Contains(got, `"c"`) || strings.Contains(got, "bytes_written") {
				t.Errorf("%s, %s %s: %s", agent, name, args, got)
			}
		}
	}
	if got := tool("c", "fs:read_file", `{"path":"mine.txt"}`); !strings.Contains(got, canary) {
		t.Errorf("the child reads %s", got)
	}
	for _, path := range []string{"secret.txt", "../secret.txt", s.Workspace + "/secret.txt"} {
		if got := tool("c", "fs:read_file", fmt.Sprintf(`{"path":%q}`, path)); strings.Contains(got, secret) {
			t.Errorf("the child read %s", path)
		}
	}
	ref := open.GetOutcomeRef()
	for _, name := range []string{ref, ref[:12], ref[:13], "granted/p/" + ref} {
		if got, err := read("c", name); err != nil || got != long {
			t.Errorf("granted %s: %d bytes, %v", name, len(got), err)
		}
	}
	if got := tool("c", "fs:read_file", fmt.Sprintf(`{"path":%q}`, ref)); !strings.Contains(got, canary) {
		t.Errorf("the child reads what was granted: %s", got)
	}
	for _, agent := range []string{"d", "q"} {
		for _, name := range []string{ref, "granted/p/" + ref} {
			_, err := read(agent, name)
			MustFail(t, err, codes.NotFound, "BLOB_NOT_FOUND")
		}
		// An agent may have a blob of its own under the path.
		if got, err := read(agent, open.GetOutcomePath()); err == nil && strings.Contains(got, canary) {
			t.Errorf("%s read the parent's %s: %d bytes", agent, open.GetOutcomePath(), len(got))
		}
	}
	// The child has a blob of that path, too.
	if got, err := read("c", open.GetOutcomePath()); err == nil && got == long {
		t.Errorf("the child read the parent's %s: %d bytes", open.GetOutcomePath(), len(got))
	}

	found := long + "of the child"
	own := record("c", found)
	mustReturn(t, s, "c", "see there", own.GetOutcomeRef())
	if got, err := read("p", own.GetOutcomeRef()); err != nil || got != found {
		t.Errorf("granted with the result: %d bytes, %v", len(got), err)
	}
	_, err := read("q", own.GetOutcomeRef())
	MustFail(t, err, codes.NotFound, "BLOB_NOT_FOUND")
}

// Listeners of a session hear of its events alone, whichever API they listen by and
// whichever the event came from; a direct message belongs to a session, too.
//
// C21
func TestEventsOfASession(t *testing.T) {
	s := servertest.Start(t, nil)
	topics := func(session string) []*loombridgev1.TopicPosition {
		return []*loombridgev1.TopicPosition{{Topic: "work.*", SessionId: session}, {Topic: "agent.b.messages", SessionId: session}}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	heard := map[string]func() string{}
	for name, session := range map[string]string{"s1": "s1", "all": ""} {
		stream, _ := MustSubscribe(t, convert.AskText(ctx), s.Events, &loombridgev1.SubscribeRequest{AgentId: "b", Topics: topics(session)})
		heard[name] = func() string { return MustNext(t, stream).GetEvent().GetType() }
	}
	attached := MustAttach(t, ctx, s.Bridge, &loombridgev1.AttachHello{AgentId: "b", Topics: topics("s1")})
	heard["attached"] = func() string { return attached.event().GetType() }
	bus, err := s.LoomEvents.Subscribe(ctx, &loomv1pb.SubscribeRequest{Topic: "work.*", Qos: loomv1pb.QoSLevel_QOS_BATCHED, Filters: map[string]string{"session_id": "s1"}})
	must(t, err)
	_, err = bus.Header() // it listens
	must(t, err)
	heard["loom.v1"] = func() string {
		e, err := bus.Recv()
		must(t, err)
		if e.GetMetadata()["session_id"] != "s1" {
			t.Errorf("loom.v1 is told of the session %q", e.GetMetadata()["session_id"])
		}
		return e.GetType()
	}
	emit := func(kind, session string) {
		MustEmit(t, s, &loombridgev1.EmitRequest{AgentId: "a", Topic: "work.new", Type: kind, SessionId: session})
	}
	publish := func(kind string, metadata map[string]string) {
		_, err := s.LoomEvents.Publish(t.Context(), &loomv1pb.PublishRequest{Topic: "work.new", Event: &loomv1pb.Event{Id: kind, Type: kind, Metadata: metadata}})
		must(t, err)
	}
	message := func(session string) {
		_, err := s.Events.SendMessage(t.Context(), &loombridgev1.SendMessageRequest{AgentId: "a", Message: &loombridgev1.DirectMessage{TargetAgentId: "b", Content: "x", SessionId: session}})
		must(t, err)
	}
	emit("of s1", "s1")
	emit("of s2", "s2")
	emit("of none", "")
	publish("loom of s1", map[string]string{"session_id": "s1"})
	publish("loom of s2", map[string]string{"session_id": "s2"})
	publish("loom of none", nil)
	message("s2")
	message("s1")
	emit("last of s1", "s1")
	for name, want := range map[string][]string{
		"s1":       {"of s1", "loom of s1", "node.message", "last of s1"},
		"attached": {"of s1", "loom of s1", "node.message", "last of s1"},
		"loom.v1":  {"of s1", "loom of s1", "last of s1"},
		"all":      {"of s1", "of s2", "of none", "loom of s1", "loom of s2", "loom of none", "node.message", "node.message", "last of s1"},
	} {
		var got []string
		for range want {
			got = append(got, heard[name]())
		}
		slices.Sort(want) // two topics have no common order
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	_, err = s.Bridge.Emit(t.Context(), &loombridgev1.EmitRequest{AgentId: "a", Topic: "work.new", SessionId: strings.Repeat("s", 257)})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	refused, err := s.Events.Subscribe(ctx, &loombridgev1.SubscribeRequest{AgentId: "b", Topics: topics(strings.Repeat("s", 257))})
	must(t, err)
	_, err = refused.Recv()
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
}

// An event of a task makes the same task from both APIs, which is shown in prompts and gets
// its result. What is no task, or another one, is refused by the native API; agents of
// loom.v1 have always sent such events, so that there it passes as an event alone.
//
// C05, G25
func TestTasksOfBothAPIs(t *testing.T) {
	const task = `{"task_id":"t1","parameters":{"content":"sort the letters","n":[1,2.50]},"target_agent":"b","tags":["x"],"importance":0.25,"session_id":"s1"`
	told := map[string]string{}
	for name, emitting := range map[string]func(*testing.T, *servertest.Server) emitter{"native": native, "loom.v1": loom} {
		s := servertest.Start(t, nil)
		emit := emitting(t, s)
		for _, e := range []struct{ topic, payload string }{
			{"execute", task + `}`},
			{"node.thinking", `{"task_id":"t2","parameters":{"content":"by hand"},"parent_task_id":"t1","session_id":"s1"}`},
			{"node.error", `{"task_id":"t3","result":"no stamp","session_id":"s1","created_at":"2026-01-02T03:04:05Z"}`},
			{"execute", task + `,"result":"sorted"}`},
		} {
			if refused := emit(agent, e.topic, e.payload); refused != "" {
				t.Errorf("%s: %s %s: %s", name, e.topic, e.payload, refused)
			}
		}
		for _, e := range []struct{ topic, payload, native string }{
			{"execute", `{"task_id":"t1","session_id":"s1"}`, "RECORD_EXISTS"},
			{"execute", `[1]`, "INVALID_REQUEST"},
			{"execute", `{"task_id":"t4","importance":"high","session_id":"s1"}`, "INVALID_REQUEST"},
			{"node.error", `{"task_id":"t5","action":"execute","session_id":"s1"}`, "INVALID_REQUEST"},
		} {
			want := e.native
			if name == "loom.v1" {
				want = ""
			}
			if refused := emit(agent, e.topic, e.payload); refused != want {
				t.Errorf("%s: %s %s: %q, want %q", name, e.topic, e.payload, refused, want)
			}
		}
		var all []string
		for _, item := range MustAsk(t, s, "s1", "query_l1_memory", `{}`).Items {
			delete(item, "created_at")
			text, err := json.Marshal(item)
			must(t, err)
			all = append(all, string(text))
		}
		got, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s1", Goal: "go home", WithoutTools: true})
		must(t, err)
		for _, m := range got.GetMessages() {
			all = append(all, m.GetRole().String()+" "+m.GetContent())
		}
		told[name] = strings.Join(all, "\n")
	}
	if diff := cmp.Diff(told["native"], told["loom.v1"]); diff != "" {
		t.Errorf("loom.v1 does otherwise (-native +loom.v1):\n%s", diff)
	}
	if text := told["native"]; !strings.Contains(text, `"result":"sorted"`) || !strings.Contains(text, "ROLE_USER sort the letters\nROLE_ASSISTANT by hand") {
		t.Errorf("what both did:\n%s", text)
	}
}
