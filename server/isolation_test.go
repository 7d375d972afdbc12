package server_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
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
	secret              *secret
	ref                 string          // of a blob with the secret
	blobs               map[string]bool // refs of others that it was granted
	heard               subscription
	done                bool
}

// secret is a text that some agents may find, by their ids: those that said it, and those
// that it crossed to.
type secret struct {
	text  string
	knows map[string]bool
}

// forest plants trees of agents on one server.
type forest struct {
	*testing.T
	s    *servertest.Server
	dice *rand.Rand
	all  []*planted // of the tree that is being planted
	// secrets are those of this tree, and of the one before it.
	secrets []*secret
}

// secret makes a secret that some agents may know.
func (f *forest) secret(who ...string) *secret {
	s := &secret{fmt.Sprintf("canary%d", f.dice.Uint64()), make(map[string]bool)}
	for _, id := range who {
		s.knows[id] = true
	}
	f.secrets = append(f.secrets, s)
	return s
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
	seed := chance.Seed(t)
	t.Logf("%d trees", trees)
	s := servertest.Start(t, nil)
	var before []*secret
	deepest := 0
	for i := range trees {
		ctx, cancel := context.WithCancel(t.Context())
		f := &forest{T: t, s: s, dice: rand.New(rand.NewPCG(seed, uint64(i)))}
		f.plant(ctx, i)
		own := f.secrets
		f.secrets = append(f.secrets, before...)
		before = own
		deepest = max(deepest, f.all[len(f.all)-1].depth)
		f.cross()
		f.search()
		cancel()
		if t.Failed() {
			t.Fatalf("tree %d of seed %d", i, seed)
		}
	}
	t.Logf("the deepest last agent of a tree has %d above it", deepest)
}

// plant spawns a tree, and puts secrets into each of its agents.
func (f *forest) plant(ctx context.Context, tree int) {
	f.Helper()
	for n := range 2 + f.dice.IntN(isolationAgents-1) {
		a := &planted{id: fmt.Sprintf("t%d-%d", tree, n), session: "default", blobs: make(map[string]bool)}
		a.secret = f.secret(a.id)
		if n > 0 {
			above := f.all[len(f.all)-1] // half of them deep, half of them broad
			for f.dice.IntN(2) == 0 || above.depth >= 5 {
				above = f.all[f.dice.IntN(len(f.all))]
			}
			spawn := &loombridgev1.SpawnAgentRequest{AgentId: above.id, ChildId: a.id, Goal: "goal of " + a.id + " " + f.secret(a.id, above.id).text, ChildSessionId: "default"}
			if f.dice.IntN(3) == 0 {
				spawn.Grants = []string{above.ref}
				a.blobs[above.ref], above.secret.knows[a.id] = true, true
			}
			if f.dice.IntN(4) == 0 { // it is told all that its parent knows
				_, err := f.s.Context.Assemble(f.Context(), &loombridgev1.AssembleRequest{AgentId: above.id})
				must(f, err)
				spawn.ForkFrom = new("")
				for _, s := range f.secrets {
					s.knows[a.id] = s.knows[a.id] || s.knows[above.id]
				}
			}
			MustSpawn(f, f.s, spawn)
			a.parent, a.depth = above.id, above.depth+1
		}
		a.heard, _ = MustSubscribe(f, convert.AskText(ctx), f.s.Events, &loombridgev1.SubscribeRequest{
			AgentId: a.id, Topics: []*loombridgev1.TopicPosition{{Topic: "agent.*"}, {Topic: "end"}},
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
		{Role: loombridgev1.Role_ROLE_SYSTEM, Content: "system " + a.secret.text}, {Role: loombridgev1.Role_ROLE_USER, Content: "user " + a.secret.text},
	}})
	must(t, err)
	step, err := s.Context.RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
		AgentId: a.id, ToolName: "x:y", Success: true,
		OutputForm: &loombridgev1.RecordStepRequest_OutputText{OutputText: strings.Repeat("step "+a.secret.text+"\n", 60)},
	})
	must(t, err)
	a.ref = step.GetStep().GetOutcomeRef()
	_, err = s.Bridge.MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: a.id, Text: "the memory of " + a.secret.text})
	must(t, err)
	goal := "working " + a.secret.text
	_, err = s.Context.UpdateWorking(t.Context(), &loombridgev1.UpdateWorkingRequest{AgentId: a.id, Goal: &goal})
	must(t, err)
	MustEmit(t, s, &loombridgev1.EmitRequest{AgentId: a.id, Topic: "execute", PayloadForm: &loombridgev1.EmitRequest_PayloadJson{
		PayloadJson: fmt.Sprintf(`{"task_id":"task of %s"}`, a.id),
	}})
	if a.depth > 0 { // agents that nobody spawned share a workspace
		must(t, write(t, s, a.id, "notes.txt", "file "+a.secret.text))
	}
}

// cross sends messages, and returns results, some with grants.
func (f *forest) cross() {
	f.Helper()
	for range f.dice.IntN(2 * len(f.all)) {
		from, to := f.all[f.dice.IntN(len(f.all))], f.all[f.dice.IntN(len(f.all))]
		_, err := f.s.Events.SendMessage(f.Context(), &loombridgev1.SendMessageRequest{
			AgentId: from.id, Message: &loombridgev1.DirectMessage{TargetAgentId: to.id, Content: "message from " + from.id + " " + f.secret(from.id, to.id).text},
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
					above.blobs[a.ref], a.secret.knows[above.id] = true, true
				}
			}
		}
		mustReturn(f, f.s, a.id, "result of "+a.id+" "+f.secret(a.id, a.parent).text, grants...)
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
			if !strings.Contains(read[where], a.secret.text) {
				f.Errorf("%s does not find its own secret in its %s: nothing would be found there", a.id, where)
			}
		}
		for where, text := range read {
			for _, s := range f.secrets {
				if !s.knows[a.id] && strings.Contains(text, s.text) {
					f.Errorf("%s finds a secret of %v in its %s", a.id, s.knows, where)
				}
			}
		}
		for _, other := range f.all {
			stream, err := f.s.Context.ReadBlob(f.Context(), &loombridgev1.ReadBlobRequest{AgentId: a.id, Name: other.ref})
			must(f, err)
			got, err := stream.Recv()
			granted := other == a || a.blobs[other.ref]
			if read := err == nil && strings.Contains(string(got.GetData()), other.secret.text); read != granted {
				f.Errorf("%s reads the blob of %s: %v, granted %v (%v)", a.id, other.id, read, granted, err)
			}
		}
	}
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
	found, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: a.id, Query: "the memory of " + f.all[f.dice.IntN(len(f.all))].secret.text, Limit: 100})
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
