package server_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/servertest"
)

const (
	// isolationTrees are planted in the short form; LOOM_SOAK_ROUNDS plants others.
	isolationTrees = 12
	// isolationAgents is the most agents of a tree.
	isolationAgents = 6
)

// planted is an agent of a tree, with a secret wherever an agent can have one.
type planted struct {
	id, parent, session string
	depth               int
	secret              string
	ref                 string   // of a blob with the secret
	may                 []string // secrets of others that crossed to it
	heard               subscription
	done                bool
}

// forest plants trees of agents on one server.
type forest struct {
	*testing.T
	s    *servertest.Server
	dice *rand.Rand
	all  []*planted // of the tree that is being planted
}

// No secret of an agent is found in anything that another agent reads, but what was
// granted: in prompts, conversations, blobs, memory, files, messages, events and errors.
//
// C01, C08, P21, Q07
func TestNothingLeaksBetweenAgents(t *testing.T) {
	trees := isolationTrees
	if text := os.Getenv("LOOM_SOAK_ROUNDS"); text != "" {
		n, err := strconv.Atoi(text)
		must(t, err)
		trees = n
	}
	seed := rand.Uint64()
	t.Logf("seed %d, %d trees", seed, trees)
	s := servertest.Start(t, nil)
	for i := range trees {
		ctx, cancel := context.WithCancel(t.Context())
		f := &forest{T: t, s: s, dice: rand.New(rand.NewPCG(seed, uint64(i)))}
		f.plant(ctx, i)
		f.cross()
		f.search()
		cancel()
		if t.Failed() {
			t.Fatalf("tree %d of seed %d", i, seed)
		}
	}
}

// plant spawns a tree, and puts secrets into each of its agents.
func (f *forest) plant(ctx context.Context, tree int) {
	f.Helper()
	for n := range 2 + f.dice.IntN(isolationAgents-1) {
		a := &planted{id: fmt.Sprintf("t%d-%d", tree, n), session: "default", secret: fmt.Sprintf("canary%d", f.dice.Uint64())}
		if n > 0 {
			var above *planted
			for above == nil || above.depth >= 5 {
				above = f.all[f.dice.IntN(len(f.all))]
			}
			spawn := &loombridgev1.SpawnAgentRequest{AgentId: above.id, ChildId: a.id, Goal: "goal of " + a.id, ChildSessionId: "default"}
			if f.dice.IntN(3) == 0 {
				spawn.Grants = []string{above.ref}
				a.may = append(a.may, above.secret)
			}
			MustSpawn(f, f.s, spawn)
			a.parent, a.depth = above.id, above.depth+1
		}
		a.heard, _ = MustSubscribe(f, ctx, f.s.Events, &loombridgev1.SubscribeRequest{
			AgentId: a.id, Topics: []*loombridgev1.TopicPosition{{Topic: "agent.*"}, {Topic: "end"}}, JsonForm: loombridgev1.JsonForm_JSON_FORM_TEXT,
		})
		f.fill(a)
		f.all = append(f.all, a)
	}
}

// fill puts the secret of an agent wherever it can have one.
func (f *forest) fill(a *planted) {
	f.Helper()
	t, s := f.T, f.s
	_, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: a.id, Messages: []*loombridgev1.Message{
		{Role: loombridgev1.Role_ROLE_SYSTEM, Content: "system " + a.secret}, {Role: loombridgev1.Role_ROLE_USER, Content: "user " + a.secret},
	}})
	must(t, err)
	step, err := s.Context.RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
		AgentId: a.id, ToolName: "x:y", Success: true,
		OutputForm: &loombridgev1.RecordStepRequest_OutputText{OutputText: strings.Repeat("step "+a.secret+"\n", 60)},
	})
	must(t, err)
	a.ref = step.GetStep().GetOutcomeRef()
	_, err = s.Bridge.MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: a.id, Text: "the memory of " + a.secret})
	must(t, err)
	goal := "working " + a.secret
	_, err = s.Context.UpdateWorking(t.Context(), &loombridgev1.UpdateWorkingRequest{AgentId: a.id, Goal: &goal})
	must(t, err)
	MustEmit(t, s, &loombridgev1.EmitRequest{AgentId: a.id, Topic: "execute", PayloadForm: &loombridgev1.EmitRequest_PayloadJson{
		PayloadJson: fmt.Sprintf(`{"task_id":"task of %s"}`, a.id),
	}})
	if a.depth > 0 { // agents that nobody spawned share a workspace
		must(t, write(t, s, a.id, "notes.txt", "file "+a.secret))
	}
}

// cross sends messages, and returns results, some with grants.
func (f *forest) cross() {
	f.Helper()
	for range f.dice.IntN(2 * len(f.all)) {
		from, to := f.all[f.dice.IntN(len(f.all))], f.all[f.dice.IntN(len(f.all))]
		_, err := f.s.Events.SendMessage(f.Context(), &loombridgev1.SendMessageRequest{
			AgentId: from.id, TargetAgentId: to.id, Content: "message from " + from.id,
		})
		must(f, err)
	}
	for _, a := range f.all {
		if a.depth == 0 || f.dice.IntN(2) == 0 {
			continue
		}
		var grants []string
		if f.dice.IntN(2) == 0 {
			grants = []string{a.ref}
			for _, above := range f.all {
				if above.id == a.parent {
					above.may = append(above.may, a.secret)
				}
			}
		}
		mustReturn(f, f.s, a.id, "result of "+a.id, grants...)
		a.done = true
	}
}

// search looks for the secrets of others in all that each agent reads.
func (f *forest) search() {
	f.Helper()
	MustEmit(f, f.s, &loombridgev1.EmitRequest{AgentId: f.all[0].id, Topic: "end"})
	for _, a := range f.all {
		read := f.reads(a)
		for _, where := range []string{"prompt", "conversation"} {
			if !strings.Contains(read[where], a.secret) {
				f.Errorf("%s does not find its own secret in its %s: nothing would be found there", a.id, where)
			}
		}
		for where, text := range read {
			for _, other := range f.all {
				if other != a && strings.Contains(text, other.secret) && !contains(a.may, other.secret) {
					f.Errorf("%s finds the secret of %s in its %s", a.id, other.id, where)
				}
			}
		}
		for _, other := range f.all {
			stream, err := f.s.Context.ReadBlob(f.Context(), &loombridgev1.ReadBlobRequest{AgentId: a.id, Name: other.ref})
			must(f, err)
			got, err := stream.Recv()
			granted := other == a || contains(a.may, other.secret)
			if read := err == nil && strings.Contains(string(got.GetData()), other.secret); read != granted {
				f.Errorf("%s reads the blob of %s: %v, granted %v (%v)", a.id, other.id, read, granted, err)
			}
		}
	}
}

func contains(list []string, text string) bool {
	for _, one := range list {
		if one == text {
			return true
		}
	}
	return false
}

// reads is what an agent reads, by where.
func (f *forest) reads(a *planted) map[string]string {
	f.Helper()
	t, s, out := f.T, f.s, map[string]string{}
	add := func(where string, m fmt.Stringer, err error) {
		out[where] = fmt.Sprint(m, err)
	}
	prompt, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: a.id, Goal: "tell all secrets", DryRun: true}) // some have ended
	add("prompt", prompt, err)
	said, err := s.Context.ListConversation(t.Context(), &loombridgev1.ListConversationRequest{AgentId: a.id})
	add("conversation", said, err)
	blobs, err := s.Context.ListBlobs(t.Context(), &loombridgev1.ListBlobsRequest{AgentId: a.id})
	add("blobs", blobs, err)
	found, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: a.id, Query: "the memory of " + f.all[f.dice.IntN(len(f.all))].secret, Limit: 100})
	add("memory", found, err)
	messages, err := s.Events.ListMessages(t.Context(), &loombridgev1.ListMessagesRequest{AgentId: a.id})
	add("messages", messages, err)
	children, err := s.Context.WaitAgents(t.Context(), &loombridgev1.WaitAgentsRequest{AgentId: a.id})
	add("children", children, err)
	if !a.done {
		for name, args := range map[string]string{
			"fs:search": `{"query":"canary","path":"."}`, "fs:list_dir": `{"path":"."}`,
			"fs:read_file": fmt.Sprintf(`{"path":"../%s/notes.txt"}`, f.all[f.dice.IntN(len(f.all))].id),
		} {
			got, err := s.Bridge.Tool(t.Context(), &loombridgev1.ToolRequest{
				AgentId: a.id, Name: name, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: args},
			})
			add(name, got, err)
		}
	}
	var events strings.Builder
	for {
		e := MustNext(t, a.heard).GetEvent()
		if e.GetTopic() == "end" {
			break
		}
		fmt.Fprintln(&events, e)
	}
	out["events"] = events.String()
	return out
}
