package server_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// forking is a parent with a past, of which it has sent prompts.
type forking struct {
	worker
	format loombridgev1.PromptFormat
}

func (f *forking) say(text string) {
	f.Helper()
	_, err := f.s.Context.AppendMessages(f.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: "s1", Messages: []*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_USER, Content: text}}})
	must(f, err)
}

// ask is a prompt of an agent's session, and its bytes.
func (f *forking) ask(id, session string) (*loombridgev1.AssembleResponse, []byte) {
	f.Helper()
	r := &loombridgev1.AssembleRequest{AgentId: id, SessionId: session, Format: f.format, MaxTokens: 100_000}
	if id == agent {
		r.System, r.Goal = "You are the parent.", "a goal of the parent's"
		r.Tools = []*loombridgev1.ToolDescriptor{{Name: "own:tool", Description: "a tool of the parent's caller"}}
	}
	got, err := f.s.Context.Assemble(f.Context(), r)
	must(f, err)
	var all bytes.Buffer
	all.WriteString(got.GetPromptJson() + got.GetToolsJson())
	for _, m := range got.GetMessages() {
		fmt.Fprintf(&all, "%v\n", m)
	}
	// Where the cache is to keep a prompt is no part of what it keeps.
	return got, cacheMark.ReplaceAll(all.Bytes(), nil)
}

// cacheMark is a mark in a prompt for Anthropic.
var cacheMark = regexp.MustCompile(`,?"cache_control":\{[^}]*\}`)

func (f *forking) fork(child, prompt string) *loombridgev1.ChildAgent {
	f.Helper()
	got, err := f.s.Context.SpawnAgent(f.Context(), &loombridgev1.SpawnAgentRequest{
		AgentId: agent, SessionId: "s1", ChildId: child, Goal: "goal of " + child, ForkFrom: new(prompt),
	})
	must(f, err)
	return got
}

// A fork's first prompt begins, byte for byte, as its parent's did, and shares at least .95
// of its tokens with that; what the parent does later is not in it.
//
// C01, C03
func TestForksBeginAsTheirParent(t *testing.T) {
	for name, number := range loombridgev1.PromptFormat_value {
		format := loombridgev1.PromptFormat(number)
		t.Run(name, func(t *testing.T) {
			f := &forking{worker: worker{T: t, s: servertest.Start(t, nil)}, format: format}
			f.say("Sort the letters, please.")
			f.work(12)
			sent, parent := f.ask(agent, "s1")
			f.say("LATER: a secret of the parent's")
			f.work(1)
			f.ask(agent, "s1")

			c := f.fork("c1", sent.GetReceipt().GetPromptId())
			first, child := f.ask(c.GetChildId(), c.GetSessionId())
			shared := 0
			for shared < min(len(parent), len(child)) && parent[shared] == child[shared] {
				shared++
			}
			if 100*shared < 95*len(child) {
				t.Errorf("%d of %d bytes are shared: the parent's\n%s\nthe fork's\n%s", shared, len(child), parent, child[shared:])
			}
			fork := 0
			for _, section := range first.GetReceipt().GetSections() {
				if section.GetName() == "fork" || section.GetName() == "tools" {
					fork += int(section.GetTokens())
				}
			}
			if all := int(first.GetTokens().GetTokens()); 100*fork < 95*all {
				t.Errorf("%d of %d tokens are the parent's: %v", fork, all, first.GetReceipt().GetSections())
			}
			for _, foreign := range []string{"LATER", "word013", "a goal of the parent's"} {
				if bytes.Contains(child, []byte(foreign)) {
					t.Errorf("the fork knows %q", foreign)
				}
			}
			if !bytes.Contains(child, []byte("goal of c1")) || !bytes.Contains(child, []byte("own:tool")) && !bytes.Contains(child, []byte("own_tool")) {
				t.Errorf("the fork has no goal, or not the tools: %s", child[shared:])
			}

			// What it does itself comes behind that, and the prefix stays.
			_, err := f.s.Context.RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
				AgentId: c.GetChildId(), SessionId: c.GetSessionId(), ToolName: "my.tool", Success: true,
				OutputForm: &loombridgev1.RecordStepRequest_OutputText{OutputText: "a step of the fork's"},
			})
			must(t, err)
			_, next := f.ask(c.GetChildId(), c.GetSessionId())
			if !bytes.HasPrefix(next, parent[:shared]) || !bytes.Contains(next, []byte("a step of the fork's")) {
				t.Errorf("the fork's next prompt does not go on:\n%s", next)
			}
			if _, other := f.ask(c.GetChildId(), "another"); bytes.Contains(other, []byte("word001")) {
				t.Errorf("another session of the fork's has what the fork has:\n%s", other)
			}
		})
	}
}

// What a fork may read of its parent is its prompt and nothing else; what is wrong with a
// fork point is told, and makes no child.
//
// C01, P21
func TestForksReadNothingElse(t *testing.T) {
	f := &forking{worker: worker{T: t, s: servertest.Start(t, nil)}}
	f.work(2)
	spawn := func(r *loombridgev1.SpawnAgentRequest) error {
		r.AgentId, r.SessionId, r.Goal = agent, "s1", "look"
		_, err := f.s.Context.SpawnAgent(t.Context(), r)
		return err
	}
	MustFail(t, spawn(&loombridgev1.SpawnAgentRequest{ChildId: "early", ForkFrom: new("")}), codes.NotFound, "PROMPT_GONE")
	sent, _ := f.ask(agent, "s1")
	MustFail(t, spawn(&loombridgev1.SpawnAgentRequest{ChildId: "none", ForkFrom: new("nothing")}), codes.NotFound, "PROMPT_GONE")
	MustFail(t, spawn(&loombridgev1.SpawnAgentRequest{ChildId: "tools", Tools: []string{"fs:read_file"}, ForkFrom: new("")}), codes.InvalidArgument, "INVALID_REQUEST")
	MustFail(t, spawn(&loombridgev1.SpawnAgentRequest{ChildId: "long", ForkFrom: new(strings.Repeat("x", 129))}), codes.InvalidArgument, "INVALID_REQUEST")
	got, err := f.s.Context.WaitAgents(t.Context(), &loombridgev1.WaitAgentsRequest{AgentId: agent})
	must(t, err)
	if n := len(got.GetChildren()); n > 0 {
		t.Fatalf("%d children were made", n)
	}

	c := f.fork("c1", "")
	again, err := f.s.Context.SpawnAgent(t.Context(), &loombridgev1.SpawnAgentRequest{
		AgentId: agent, SessionId: "s1", ChildId: "c2", Goal: "twice", RequestId: "r", ForkFrom: new(""),
	})
	must(t, err)
	f.work(1)
	f.ask(agent, "s1")
	same, err := f.s.Context.SpawnAgent(t.Context(), &loombridgev1.SpawnAgentRequest{
		AgentId: agent, SessionId: "s1", ChildId: "c2", Goal: "twice", RequestId: "r", ForkFrom: new(""),
	})
	must(t, err)
	if diff := cmp.Diff(again, same, protocmp.Transform()); diff != "" {
		t.Errorf("the same request again (-want +got):\n%s", diff)
	}
	for _, name := range []string{"step_001", "workspace/outputs/read_001.txt"} {
		read, err := f.s.Bridge.Tool(convert.AskText(t.Context()), &loombridgev1.ToolRequest{
			AgentId: c.GetChildId(), SessionId: c.GetSessionId(), Name: "fs:read_file",
			ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: fmt.Sprintf(`{"path":%q}`, name)},
		})
		if err != nil || read.GetSuccess() {
			t.Errorf("the fork reads %s: %v %v", name, read, err)
		}
	}
	said, err := f.s.Context.ListConversation(t.Context(), &loombridgev1.ListConversationRequest{AgentId: c.GetChildId(), SessionId: c.GetSessionId()})
	must(t, err)
	var own []string
	for _, e := range said.GetEntries() {
		if m := e.GetMessage(); m != nil {
			own = append(own, m.GetRole().String()+" "+m.GetContent())
		}
	}
	if diff := cmp.Diff([]string{"ROLE_USER Goal: goal of c1"}, own); diff != "" {
		t.Errorf("the fork's own conversation (-want +got):\n%s", diff)
	}
	if got, err := f.s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: c.GetChildId(), SessionId: "s1", AsOf: &loombridgev1.AssembleRequest_AsOfPromptId{AsOfPromptId: sent.GetReceipt().GetPromptId()}}); err == nil {
		t.Errorf("the fork gets a prompt of its parent's: %v", got)
	}
}
