package server_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// MustRead runs fs:read_file.
func MustRead(tb testing.TB, s *servertest.Server, agentID, path string) *loombridgev1.ToolResponse {
	tb.Helper()
	args, err := json.Marshal(map[string]string{"path": path})
	must(tb, err)
	got, err := s.Bridge.Tool(convert.AskText(tb.Context()), &loombridgev1.ToolRequest{
		AgentId: agentID, Name: "fs:read_file",
		ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: string(args)},
	})
	must(tb, err)
	return got
}

// F07, K03
//
// Without a page size the last five steps, oldest first.
func TestListStepsDefaultsToLastFive(t *testing.T) {
	s := servertest.Start(t, nil)
	MustWrite(t, s, "a.txt", "a")
	for range 7 {
		MustRead(t, s, agent, "a.txt")
	}
	got, err := s.Context.ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: agent})
	must(t, err)
	if diff := cmp.Diff([]string{"step_003", "step_004", "step_005", "step_006", "step_007"}, stepIDs(got)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if got.GetNextPageToken() != "" {
		t.Errorf("next_page_token = %q", got.GetNextPageToken())
	}
}

func stepIDs(r *loombridgev1.ListStepsResponse) []string {
	var ids []string
	for _, s := range r.GetSteps() {
		ids = append(ids, s.GetId())
	}
	return ids
}

func TestListStepsPages(t *testing.T) {
	s := servertest.Start(t, nil)
	MustWrite(t, s, "a.txt", "a")
	for range 7 {
		MustRead(t, s, agent, "a.txt")
	}
	var all []string
	request := &loombridgev1.ListStepsRequest{AgentId: agent, PageSize: 3}
	for pages := 1; ; pages++ {
		got, err := s.Context.ListSteps(t.Context(), request)
		must(t, err)
		all = append(all, stepIDs(got)...)
		if request.PageToken = got.GetNextPageToken(); request.PageToken == "" {
			if pages != 3 {
				t.Errorf("%d pages", pages)
			}
			break
		}
	}
	if len(all) != 7 || !slices.IsSorted(all) {
		t.Errorf("steps = %v", all)
	}
	one, err := s.Context.GetStep(t.Context(), &loombridgev1.GetStepRequest{AgentId: agent, StepId: "step_002"})
	must(t, err)
	if one.GetId() != "step_002" || one.GetMinimalArgs().GetFields()["path"].GetStringValue() != "a.txt" {
		t.Errorf("step = %v", one)
	}
	_, err = s.Context.GetStep(t.Context(), &loombridgev1.GetStepRequest{AgentId: "somebody-else", StepId: "step_002"})
	MustFail(t, err, codes.NotFound, "STEP_NOT_FOUND")
}

// A page is cut before it gets too large to send, and the token leads on.
func TestListStepsFitsTheMessage(t *testing.T) {
	s := servertest.Start(t, nil)
	MustWrite(t, s, "a.txt", "a")
	thought := strings.Repeat("t", 60<<10)
	const steps = 80
	for range steps {
		_, err := s.Bridge.Tool(t.Context(), &loombridgev1.ToolRequest{
			AgentId: agent, Name: "fs:read_file", Thought: thought,
			ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"path":"a.txt"}`},
		})
		must(t, err)
	}
	got, err := s.Context.ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: agent, PageSize: steps})
	must(t, err)
	if n := len(got.GetSteps()); n == 0 || n >= steps || got.GetNextPageToken() == "" {
		t.Fatalf("%d steps, token %q", n, got.GetNextPageToken())
	}
	rest, err := s.Context.ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: agent, PageSize: steps, PageToken: got.GetNextPageToken()})
	must(t, err)
	if len(got.GetSteps())+len(rest.GetSteps()) != steps {
		t.Errorf("%d and %d steps", len(got.GetSteps()), len(rest.GetSteps()))
	}
}

// MustReadBlob reads a blob through the stream and checks the stream's form.
func MustReadBlob(tb testing.TB, s *servertest.Server, r *loombridgev1.ReadBlobRequest) (*loombridgev1.BlobInfo, []byte) {
	tb.Helper()
	stream, err := s.Context.ReadBlob(tb.Context(), r)
	must(tb, err)
	var info *loombridgev1.BlobInfo
	var content bytes.Buffer
	for first := true; ; first = false {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return info, content.Bytes()
		}
		must(tb, err)
		if first != (message.GetInfo() != nil) || len(message.GetData()) > 1<<20 {
			tb.Fatalf("message with info %v and %d bytes", message.GetInfo() != nil, len(message.GetData()))
		}
		if first {
			info = message.GetInfo()
		}
		content.Write(message.GetData())
	}
}

// What was offloaded comes back byte for byte by path, step id and ref.
func TestReadBlobByEveryName(t *testing.T) {
	s := servertest.Start(t, nil)
	var text strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&text, "line %d of a long file, naïve and complete\n", i)
	}
	MustWrite(t, s, "long.txt", text.String())
	answer := MustRead(t, s, agent, "long.txt")
	if !answer.GetOutputTruncated() || answer.GetOutputBlob() == nil {
		t.Fatalf("truncated %v, blob %v", answer.GetOutputTruncated(), answer.GetOutputBlob())
	}
	blob := answer.GetOutputBlob()
	sum := sha256.Sum256([]byte(text.String()))
	if blob.GetRef() != hex.EncodeToString(sum[:]) {
		t.Errorf("ref = %s", blob.GetRef())
	}
	for _, name := range []string{blob.GetPath(), blob.GetStepId(), blob.GetRef(), blob.GetRef()[:12], "outputs/" + blob.GetStepId() + ".txt"} {
		info, content := MustReadBlob(t, s, &loombridgev1.ReadBlobRequest{AgentId: agent, Name: name})
		if string(content) != text.String() {
			t.Errorf("%s: %d bytes, want %d", name, len(content), text.Len())
		}
		if info.GetSize() != int64(text.Len()) || info.GetStepId() != "step_001" {
			t.Errorf("%s: info %v", name, info)
		}
	}
	_, part := MustReadBlob(t, s, &loombridgev1.ReadBlobRequest{AgentId: agent, Name: blob.GetRef(), Offset: 1<<20 - 5, Limit: 10})
	if string(part) != text.String()[1<<20-5:1<<20+5] {
		t.Errorf("part = %q", part)
	}
	info, none := MustReadBlob(t, s, &loombridgev1.ReadBlobRequest{AgentId: agent, Name: blob.GetRef(), Offset: 1 << 40})
	if info == nil || len(none) != 0 {
		t.Errorf("behind the end: info %v, %d bytes", info, len(none))
	}
}

func TestReadBlobOfOthers(t *testing.T) {
	s := servertest.Start(t, nil)
	MustWrite(t, s, "a.txt", strings.Repeat("secret ", 1000))
	blob := MustRead(t, s, agent, "a.txt").GetOutputBlob()
	stream, err := s.Context.ReadBlob(t.Context(), &loombridgev1.ReadBlobRequest{AgentId: "other", Name: blob.GetRef()})
	must(t, err)
	_, err = stream.Recv()
	MustFail(t, err, codes.NotFound, "BLOB_NOT_FOUND")
}

// conversation is one message of each role.
func conversation() []*loombridgev1.Message {
	return []*loombridgev1.Message{
		{Role: loombridgev1.Role_ROLE_USER, Content: "What is the price?", Name: "ada"},
		{Role: loombridgev1.Role_ROLE_ASSISTANT, ToolCalls: []*loombridgev1.ModelToolCall{{Id: "c1", Name: "price", ArgumentsJson: `{"coin":"btc"}`}}},
		{Role: loombridgev1.Role_ROLE_TOOL, Content: "45000", ToolCallId: "c1"},
		{Role: loombridgev1.Role_ROLE_ASSISTANT, Content: "It is 45,000."},
	}
}

func TestAppendAndAssemble(t *testing.T) {
	s := servertest.Start(t, nil)
	appended, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: "s1", Messages: conversation()})
	must(t, err)
	if diff := cmp.Diff([]int64{1, 2, 3, 4}, appended.GetPositions()); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
	request := &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s1", System: "You are careful.", Goal: "Answer."}
	prompt, err := s.Context.Assemble(t.Context(), request)
	must(t, err)
	var roles []string
	for _, m := range prompt.GetMessages() {
		roles = append(roles, m.GetRole().String())
	}
	want := []string{"ROLE_SYSTEM", "ROLE_USER", "ROLE_ASSISTANT", "ROLE_TOOL", "ROLE_ASSISTANT", "ROLE_USER"}
	if diff := cmp.Diff(want, roles); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
	if !strings.Contains(prompt.GetToolsJson(), `"fs:read_file"`) || prompt.GetPromptJson() != "" || len(prompt.GetPrefixSha256()) != 64 {
		t.Errorf("prompt = %v", prompt)
	}
	checkParts(t, prompt)
}

func checkParts(t *testing.T, prompt *loombridgev1.AssembleResponse) {
	t.Helper()
	sum := int32(0)
	for _, tokens := range prompt.GetParts() {
		sum += tokens
	}
	if diff := cmp.Diff([]string{"goal", "history", "system", "tools"}, slices.Sorted(maps.Keys(prompt.GetParts()))); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	tokens := prompt.GetTokens()
	if tokens.GetTokens() < sum || tokens.GetCounter() != "o200k_base" || tokens.GetCertainty() == loombridgev1.TokenCertainty_TOKEN_CERTAINTY_UNSPECIFIED {
		t.Errorf("tokens = %v, parts sum up to %d", tokens, sum)
	}
}

func TestAssembleForOpenAIWithoutTools(t *testing.T) {
	s := servertest.Start(t, nil)
	MustWrite(t, s, "a.txt", "alpha")
	MustRead(t, s, agent, "a.txt")
	prompt, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
		AgentId: agent, Goal: "Go on.", WithoutTools: true, Format: loombridgev1.PromptFormat_PROMPT_FORMAT_OPENAI_CHAT,
	})
	must(t, err)
	var chat struct {
		Messages []struct{ Role string }
		Tools    []any
	}
	must(t, json.Unmarshal([]byte(prompt.GetPromptJson()), &chat))
	if len(chat.Messages) != 3 || chat.Tools != nil || len(prompt.GetMessages()) != 0 || prompt.GetToolsJson() != "" {
		t.Errorf("prompt = %v", prompt)
	}
}

// A history that fits the budget but no answer is refused, and not collected
// first.
func TestAssembleMoreThanAnAnswerHolds(t *testing.T) {
	s := servertest.Start(t, nil)
	for range 5 {
		_, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{
			AgentId: agent, Messages: []*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_USER, Content: strings.Repeat("word ", 200_000)}},
		})
		must(t, err)
	}
	_, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, MaxTokens: math.MaxInt32})
	MustFail(t, err, codes.ResourceExhausted, "TOO_LARGE")
}

func TestCountTokens(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, test := range []struct {
		model, text, counter string
		tokens               int32
		certainty            loombridgev1.TokenCertainty
	}{
		{"", "hello world", "o200k_base", 2, loombridgev1.TokenCertainty_TOKEN_CERTAINTY_EXACT},
		{"gpt-4", "hello world", "cl100k_base", 2, loombridgev1.TokenCertainty_TOKEN_CERTAINTY_EXACT},
		{"claude-sonnet-5", "hello world", "anthropic", 3, loombridgev1.TokenCertainty_TOKEN_CERTAINTY_ESTIMATED},
		{"some-model", "hello world", "estimate", 3, loombridgev1.TokenCertainty_TOKEN_CERTAINTY_ESTIMATED},
		{"gpt-4o", "", "o200k_base", 0, loombridgev1.TokenCertainty_TOKEN_CERTAINTY_EXACT},
	} {
		got, err := s.Context.CountTokens(t.Context(), &loombridgev1.CountTokensRequest{AgentId: agent, Text: test.text, Model: test.model})
		must(t, err)
		if c := got; c.GetTokens() != test.tokens || c.GetCounter() != test.counter || c.GetCertainty() != test.certainty {
			t.Errorf("%q with %q: %v", test.text, test.model, c)
		}
	}
}

// Messages are counted by the rule of their model: what it adds to each, the roles and
// names, and what opens the reply. Nothing is stored, and what no log would take is refused.
//
// G13
func TestCountMessages(t *testing.T) {
	s := servertest.Start(t, nil)
	user, assistant := loombridgev1.Role_ROLE_USER, loombridgev1.Role_ROLE_ASSISTANT
	two := []*loombridgev1.Message{{Role: user, Content: "hello world"}, {Role: assistant, Content: "hello world"}}
	named := []*loombridgev1.Message{{Role: user, Content: "hello world", Name: "hello"}}
	call := []*loombridgev1.Message{{Role: assistant, ToolCalls: []*loombridgev1.ModelToolCall{{Id: "hello", Name: "hello", ArgumentsJson: "hello"}}}}
	for _, tt := range []struct {
		model    string
		messages []*loombridgev1.Message
		want     int32
		counter  string
	}{
		{"gpt-4o", two[:1], 3 + (3 + 1 + 2), "o200k_base"},
		{"", two, 3 + 2*(3+1+2), "o200k_base"},
		{"gpt-4", two, 3 + 2*(3+1+2), "cl100k_base"},
		{"gpt-4o", named, 3 + (3 + 1 + 2) + 1 + 1, "o200k_base"},
		{"gpt-4o", call, 3 + (3 + 1) + 4, "o200k_base"}, // with the word `function`
		{"claude-3-opus", two[:1], 3 + 2 + 3, "anthropic"},
		{"claude-3-opus", two, 2 * (3 + 2 + 3), "anthropic"},
		{"of-nobody", two[:1], 4 + 1 + 3, "estimate"},
		{"of-nobody", two, (4 + 1 + 3) + (4 + 3 + 3), "estimate"}, // `assistant` is three
	} {
		got, err := s.Context.CountTokens(t.Context(), &loombridgev1.CountTokensRequest{AgentId: agent, Messages: tt.messages, Model: tt.model})
		must(t, err)
		if c := got; c.GetTokens() != tt.want || c.GetCounter() != tt.counter {
			t.Errorf("%q: %d messages: %v, want %d by %s", tt.model, len(tt.messages), c, tt.want, tt.counter)
		}
	}
	_, err := s.Context.CountTokens(t.Context(), &loombridgev1.CountTokensRequest{AgentId: agent, Messages: []*loombridgev1.Message{two[0], {Role: user, BlocksJson: "{"}}})
	MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
	if got := fieldsOf(err); !slices.Equal(got, []string{"messages[1].blocks_json"}) {
		t.Errorf("fields = %v", got)
	}
}

// E04
func TestListTools(t *testing.T) {
	s := servertest.Start(t, nil)
	got, err := s.Tools.ListTools(t.Context(), &loombridgev1.ListToolsRequest{AgentId: agent})
	must(t, err)
	var names []string
	for _, tool := range got.GetTools() {
		names = append(names, tool.GetName())
		var schema map[string]any
		must(t, json.Unmarshal([]byte(tool.GetParametersSchemaJson()), &schema))
		if tool.GetDescription() == "" || tool.GetLevel() != 1 || schema["type"] != "object" {
			t.Errorf("tool = %v", tool)
		}
		if mutates := slices.Contains([]string{
			"fs:write_file", "fs:edit_file", "fs:delete", "memory:save", "agent:spawn", "agent:result", "message:send",
		}, tool.GetName()); tool.GetMutates() != mutates {
			t.Errorf("%s: mutates = %v", tool.GetName(), tool.GetMutates())
		}
	}
	want := []string{
		"agent:result", "agent:spawn", "fs:delete", "fs:edit_file", "fs:list_dir", "fs:read_file", "fs:search", "fs:stat", "fs:write_file",
		"memory:save", "message:send", "query_l1_memory", "query_l2_memory", "query_l3_memory", "query_l4_memory", "tools:search",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	exact, err := s.Tools.ListTools(convert.AskText(t.Context()), &loombridgev1.ListToolsRequest{AgentId: agent, Levels: []int32{1}})
	must(t, err)
	if len(exact.GetTools()) != len(want) || !json.Valid([]byte(exact.GetTools()[0].GetParametersSchemaJson())) {
		t.Errorf("level 1 as text = %v", exact)
	}
	none, err := s.Tools.ListTools(t.Context(), &loombridgev1.ListToolsRequest{AgentId: agent, Levels: []int32{3}})
	must(t, err)
	if len(none.GetTools()) != 0 {
		t.Errorf("level 3 = %v", none)
	}
}

// A step that the caller ran itself is listed with the server's own.
func TestRecordStep(t *testing.T) {
	s := servertest.Start(t, nil)
	r := &loombridgev1.RecordStepRequest{
		AgentId: "a", ToolName: "my.tool", RequestId: "r1", Success: true,
		ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: `{"n":9007199254740993}`},
		OutputForm:    &loombridgev1.RecordStepRequest_OutputJson{OutputJson: `{"sum":3}`},
	}
	first, err := s.Context.RecordStep(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Context.RecordStep(t.Context(), r)
	if err != nil || again.GetStep().GetId() != first.GetStep().GetId() {
		t.Errorf("the same request again: %v, %v", err, again)
	}
	list, err := s.Context.ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: "a", PageSize: 10})
	if err != nil || len(list.GetSteps()) != 1 || list.GetSteps()[0].GetToolName() != "my.tool" {
		t.Errorf("steps: %v, %v", err, list)
	}
	for name, bad := range map[string]*loombridgev1.RecordStepRequest{
		"no agent": {ToolName: "x", Success: true},
		"no name":  {AgentId: "a", Success: true},
		"output":   {AgentId: "a", ToolName: "x", OutputForm: &loombridgev1.RecordStepRequest_OutputJson{OutputJson: "{"}},
	} {
		bad.Success = true
		if _, err := s.Context.RecordStep(t.Context(), bad); codeOf(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}
