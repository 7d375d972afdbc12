package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/compose"
)

// providing is the hello of an agent with tools.
func providing(id string, names ...string) *loombridgev1.AttachHello {
	hello := helloOf(id)
	for _, name := range names {
		hello.Tools = append(hello.Tools, &loombridgev1.ToolDescriptor{Name: name})
	}
	return hello
}

// attachError is why an agent can't attach; nil when it can. It leaves again.
func attachError(tb testing.TB, ctx context.Context, s *servertest.Server, hello *loombridgev1.AttachHello) error {
	tb.Helper()
	a := MustOpen(tb, ctx, s.Bridge, helloMessage(hello))
	if _, err := a.stream.Recv(); err != nil {
		return err
	}
	a.leave()
	return nil
}

// The name of a tool, as models write it, belongs to the server or to the agent that
// came first, for as long as that one may come back.
func TestNamesOfToolsBelongToAgents(t *testing.T) {
	s, directory := MustStartAttached(t, servertest.Options{})
	ctx, cut := context.WithCancel(t.Context())
	first := MustAttach(t, ctx, s.Bridge, providing("first", "desk:price"))
	for name, hello := range map[string]*loombridgev1.AttachHello{
		"a tool of the server":             providing("second", "fs:read_file"),
		"its name for models":              providing("second", "fs_read_file"),
		"its short name":                   providing("second", "read_file"),
		"what models would call like it":   providing("second", "fs.read_file"),
		"another agent's tool":             providing("second", "ok", "desk:price"),
		"what models would call like that": providing("second", "desk_price"),
		"two of one name for models":       providing("second", "a:b", "a_b"),
	} {
		t.Run(name, func(t *testing.T) {
			MustFail(t, attachError(t, t.Context(), s, hello), codes.AlreadyExists, "TOOL_NAME_TAKEN")
		})
	}
	must(t, attachError(t, t.Context(), s, providing("first", "desk:price", "desk:more"))) // a second stream of its own
	cut()                                                                                  // the stream breaks
	_, _ = first.stream.Recv()
	// One that is noticed only after the goodbye would count as the agent's end.
	MustBecome(t, "the broken stream is noticed", func() bool {
		got, _ := directory.Get(auth.DefaultTenant, "first")
		return got.Streams == 0
	})
	MustFail(t, attachError(t, t.Context(), s, providing("second", "desk:price")), codes.AlreadyExists, "TOOL_NAME_TAKEN")
	back := MustAttach(t, t.Context(), s.Bridge, providing("first", "desk:price"))
	back.leave() // it says that it goes
	MustBecome(t, "the name is free", func() bool {
		return attachError(t, t.Context(), s, providing("second", "desk:price")) == nil
	})
}

// E02: an agent says which of its tools stand in prompts, and which a person must
// agree to.
func TestLevelsOfProvidedTools(t *testing.T) {
	s, _ := MustStartAttached(t, servertest.Options{})
	hello := providing("worker", "disk:show", "disk:quiet", "disk:wipe")
	hello.Tools[1].Level, hello.Tools[2].RequiresApproval = 3, true
	MustAttach(t, t.Context(), s.Bridge, hello)
	for _, test := range []struct {
		levels []int32
		want   string
	}{{nil, "disk:quiet 3, disk:show 1, disk:wipe 1 approved"}, {[]int32{1}, "disk:show 1, disk:wipe 1 approved"}, {[]int32{2, 3}, "disk:quiet 3"}} {
		list, err := s.Tools.ListTools(t.Context(), &loombridgev1.ListToolsRequest{AgentId: agent, Levels: test.levels})
		must(t, err)
		var got []string
		for _, tool := range list.GetTools() {
			if tool.GetAgentId() != "worker" {
				continue
			}
			text := fmt.Sprint(tool.GetName(), " ", tool.GetLevel())
			if tool.GetRequiresApproval() {
				text += " approved"
			}
			got = append(got, text)
		}
		if strings.Join(got, ", ") != test.want {
			t.Errorf("levels %v: %v, want %s", test.levels, got, test.want)
		}
	}
	prompt, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, Settings: &loombridgev1.PromptSettings{Tools: &loombridgev1.ToolSelection{Names: []string{"disk:sh*"}}}})
	must(t, err)
	if text := prompt.GetToolsJson(); !strings.Contains(text, "disk:show") || strings.Contains(text, "disk:quiet") {
		t.Errorf("the prompt offers %s", text)
	}
	answer, err := s.Bridge.Tool(t.Context(), &loombridgev1.ToolRequest{AgentId: agent, Name: "disk:wipe"})
	must(t, err)
	if answer.GetErrorCode() != loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_PERMISSION_DENIED || !answer.GetStep().GetRefused() {
		t.Errorf("a call that nobody agreed to: %v", answer)
	}
}

// Whatever loom.v1 agents register, which is refused nothing, the others' prompts
// stay whole in every format.
func TestPromptsStandWhateverIsRegistered(t *testing.T) {
	s := servertest.Start(t, nil)
	for id, tools := range map[string][]*loomv1pb.ToolDescriptor{
		"copycat": {{Name: "fs_read_file", ParametersSchema: `{}`}, {Name: "fs.read_file", ParametersSchema: `{}`}},
		"twins":   {{Name: "a:b", ParametersSchema: `{}`}, {Name: "a_b", ParametersSchema: `{}`}},
		"broken": {
			{Name: "list", ParametersSchema: `[]`},
			{Name: "text", ParametersSchema: `"x"`},
			{Name: "cut", ParametersSchema: `{"a":`},
			{Name: "twice", ParametersSchema: `{}{}`},
			{Name: strings.Repeat("long", 20), ParametersSchema: `{}`},
		},
		"fine": {{Name: "desk:price", ParametersSchema: `{"type":"object"}`}},
	} {
		answer, err := s.LoomBridge.RegisterAgent(t.Context(), &loomv1pb.AgentRegisterRequest{AgentId: id, Tools: tools})
		must(t, err)
		if !answer.GetSuccess() {
			t.Fatalf("%s: %s", id, answer.GetErrorMessage())
		}
		stream, err := s.LoomBridge.EventStream(t.Context())
		must(t, err)
		must(t, stream.Send(&loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Ack{Ack: &loomv1pb.Ack{MessageId: id}}}))
		_, err = stream.Header()
		must(t, err)
	}
	for _, format := range []loombridgev1.PromptFormat{loombridgev1.PromptFormat_PROMPT_FORMAT_NEUTRAL, loombridgev1.PromptFormat_PROMPT_FORMAT_OPENAI_CHAT} {
		prompt, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "writer", Goal: "write", Format: format, Settings: &loombridgev1.PromptSettings{Tools: &loombridgev1.ToolSelection{Names: []string{"*"}}}})
		if err != nil {
			t.Errorf("%v: %v", format, err)
			continue
		}
		names := map[string]int{}
		for _, name := range offeredNames(t, prompt) {
			names[strings.ReplaceAll(name, ":", "_")]++
		}
		if names["desk_price"] != 1 || names["fs_read_file"] != 1 || names["cut"] != 1 {
			t.Errorf("%v offers %v", format, names)
		}
		if twins := names["a_b"]; format == loombridgev1.PromptFormat_PROMPT_FORMAT_OPENAI_CHAT && twins != 1 {
			t.Errorf("%d tools are called a_b", twins)
		}
	}
}

// offeredNames are the names of the tools in a prompt of any format.
func offeredNames(tb testing.TB, prompt *loombridgev1.AssembleResponse) (names []string) {
	tb.Helper()
	var tools []struct {
		Name     string                `json:"name"`
		Function struct{ Name string } `json:"function"`
	}
	text := prompt.GetToolsJson()
	if text == "" {
		var whole struct {
			Tools json.RawMessage `json:"tools"`
		}
		must(tb, json.Unmarshal([]byte(prompt.GetPromptJson()), &whole))
		text = string(whole.Tools)
	}
	must(tb, json.Unmarshal([]byte(text), &tools))
	for _, tool := range tools {
		names = append(names, tool.Name+tool.Function.Name)
	}
	return names
}

// What agents' tools say of themselves is bounded for each agent and for all of a
// tenant, and one agent does not take it all.
func TestToolsAreBudgeted(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{Domain: compose.Options{Agents: agents.Options{MaxToolBytes: 100_000, MaxTenantToolBytes: 160_000}}})
	large := func(id string, n, size int) *loombridgev1.AttachHello {
		hello := providing(id)
		for i := range n {
			hello.Tools = append(hello.Tools, &loombridgev1.ToolDescriptor{Name: fmt.Sprintf("%s:%d", id, i), Description: strings.Repeat("x", size)})
		}
		return hello
	}
	err := attachError(t, t.Context(), s, large("one", 20, 10_000))
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	if !strings.Contains(err.Error(), "over the limit of 100000") {
		t.Errorf("the error does not say what to do: %v", err)
	}
	MustAttach(t, t.Context(), s.Bridge, large("one", 9, 10_000))
	err = attachError(t, t.Context(), s, large("two", 9, 10_000))
	MustFail(t, err, codes.ResourceExhausted, "QUOTA_EXCEEDED")
	if !strings.Contains(err.Error(), "bytes of agents' tools") {
		t.Errorf("the error does not say what to do: %v", err)
	}
	MustAttach(t, t.Context(), s.Bridge, large("two", 3, 10_000))
	MustAttach(t, t.Context(), s.Bridge, large("three", 1, 10_000))
}

// A list of tools that does not fit in one message comes in pages, each tool once
// and in order; so does one of a stated size.
// E04
func TestListToolsInPages(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Limits: server.Limits{MaxSendBytes: 64 << 10}}})
	hello := providing("one")
	for i := range 100 {
		hello.Tools = append(hello.Tools, &loombridgev1.ToolDescriptor{Name: fmt.Sprintf("one:%03d", i), Description: strings.Repeat("x", 2000)})
	}
	MustAttach(t, t.Context(), s.Bridge, hello)
	for _, size := range []int32{0, 7, 1000} {
		var names []string
		pages, token := 0, ""
		for {
			page, err := s.Tools.ListTools(t.Context(), &loombridgev1.ListToolsRequest{AgentId: "a", PageSize: size, PageToken: token})
			must(t, err)
			if n := len(page.GetTools()); n == 0 || size > 0 && n > int(size) {
				t.Fatalf("a page of %d tools", n)
			}
			for _, tool := range page.GetTools() {
				names = append(names, tool.GetName())
			}
			pages++
			if token = page.GetNextPageToken(); token == "" {
				break
			}
		}
		own := 0
		for i, name := range names {
			if i > 0 && names[i-1] >= name {
				t.Errorf("%q comes after %q", name, names[i-1])
			}
			if strings.HasPrefix(name, "one:") {
				own++
			}
		}
		if own != 100 || pages < 2 {
			t.Errorf("page size %d: %d tools on %d pages", size, own, pages)
		}
	}
	_, err := s.Tools.ListTools(t.Context(), &loombridgev1.ListToolsRequest{AgentId: "a", PageToken: "!"})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
}

// A credential may say which tools its agents provide.
func TestCredentialNamesTools(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{Server: server.Options{Credentials: MustCredentials(t, `
[[credential]]
token = "research"
tenant = "acme"
agents = ["*"]
provides = ["research:*", "plan"]
`)}})
	ctx := withToken(t.Context(), "Bearer research")
	must(t, attachError(t, ctx, s, providing("a", "research:search", "plan")))
	for _, name := range []string{"billing:pay", "planner", "research"} {
		err := attachError(t, ctx, s, providing("a", "research:search", name))
		MustFail(t, err, codes.PermissionDenied, "TOOL_NOT_ALLOWED")
	}
}
