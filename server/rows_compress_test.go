package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// What each strategy shows of a result, to the letter, and how much of it at most:
// five hits of a search in 2,000 characters, ten lines of a file in 1,000, fifty
// lines of a command in 1,500, the keys of an answer in 1,000.
//
// J03, J04, J05, J06, J07
func TestCompressedForms(t *testing.T) {
	s := servertest.Start(t, nil)
	number := func(from, to int, line string) string {
		var b strings.Builder
		for i := from; i <= to; i++ {
			fmt.Fprintf(&b, line, i)
		}
		return b.String()
	}
	hits := make([]map[string]string, 8)
	for i := range hits {
		hits[i] = map[string]string{
			"title": fmt.Sprint("Title ", i+1), "url": fmt.Sprintf("https://example.org/%d", i+1), "snippet": strings.Repeat("s", 250), "page": strings.Repeat("p", 6000),
		}
	}
	search, err := json.Marshal(map[string]any{"results": hits})
	must(t, err)
	object := `{"name":"x","count":2,"ok":true,"none":null,"list":[1,2,3],"object":{"a":1,"b":2},"long":"` + strings.Repeat("l", 3000) + `","list2":[` + strings.Repeat("1,", 999) + `1]}`
	cut := strings.Repeat("s", 199) + "…"
	for _, tt := range []struct {
		name, tool, path, content, strategy string
		want                                string // without the first mark and the last line
		most, chars, tokens                 int
	}{
		{
			name: "search", tool: "web:search", content: string(search), strategy: "search", most: 2000, chars: 1289, tokens: 339,
			want: "Found 8 results. Top 5:\n" + number(1, 5, "%[1]d. Title %[1]d  https://example.org/%[1]d\n   "+cut+"\n"),
		},
		{
			name: "file", tool: "fs:read_file", path: "src/a.txt", content: number(1, 300, "line %d\n"), strategy: "file", most: 1000, chars: 174, tokens: 54,
			want: "src/a.txt: 2.5KB, 300 lines\n" + number(1, 10, "line %d\n"),
		},
		{
			name: "command", tool: "system:shell", content: number(1, 300, "line %d\n"), strategy: "exec", most: 1500, chars: 484, tokens: 208,
			want: "exit 0, 300 lines\n" + number(1, 50, "line %d\n"),
		},
		{
			name: "answer", tool: "billing:get", content: object, strategy: "api", most: 1000, chars: 379, tokens: 70,
			want: "8 keys\nname: x\ncount: 2\nok: true\nnone: null\nlist: [3 items]\nobject: {2 keys}\nlong: " + strings.Repeat("l", 199) + "…\nlist2: [1000 items]\n",
		},
	} {
		got, err := s.Context.CompressResult(t.Context(), &loombridgev1.CompressResultRequest{AgentId: agent, ToolName: tt.tool, Path: tt.path, Content: tt.content})
		must(t, err)
		path := got.GetBlob().GetPath()
		ref := strings.TrimSuffix(strings.TrimPrefix(path, "storage/tool_results/"), ".json")
		if want := "[COMPRESSED:" + ref + "] " + tt.want + "Full data: " + path; got.GetContent() != want || got.GetStrategy() != tt.strategy || len(ref) != 12 {
			t.Errorf("%s, by %s:\n%s\nwant\n%s", tt.name, got.GetStrategy(), got.GetContent(), want)
		}
		chars := utf8.RuneCountInString(got.GetContent())
		count, err := s.Context.CountTokens(t.Context(), &loombridgev1.CountTokensRequest{AgentId: agent, Text: tt.want})
		must(t, err)
		if tokens := int(count.GetTokens()); chars > tt.most || chars != tt.chars || tokens != tt.tokens {
			t.Errorf("%s: %d characters, at most %d, want %d; %d tokens, want %d", tt.name, chars, tt.most, tt.chars, tokens, tt.tokens)
		}
		_, whole := MustReadBlob(t, s, &loombridgev1.ReadBlobRequest{AgentId: agent, Name: path})
		var file struct{ Content string }
		if err := json.Unmarshal(whole, &file); err != nil || file.Content != tt.content {
			t.Errorf("%s: the whole is %.60q", tt.name, whole)
		}
	}
	// Long hits are bounded together, too.
	for i := range hits {
		hits[i]["title"], hits[i]["url"] = strings.Repeat("t", 300), "https://example.org/"+strings.Repeat("u", 200)
	}
	search, err = json.Marshal(map[string]any{"items": hits})
	must(t, err)
	got, err := s.Context.CompressResult(t.Context(), &loombridgev1.CompressResultRequest{AgentId: agent, ToolName: "web:search", Content: string(search)})
	must(t, err)
	if chars := utf8.RuneCountInString(got.GetContent()); chars > 2000 || chars < 1500 {
		t.Errorf("a search of long hits has %d characters", chars)
	}
}

// A prompt's messages have a role, a text, and calls, the id of the call that they
// answer, or a provider's blocks; each takes what it takes.
//
// G06
func TestFormOfMessages(t *testing.T) {
	s := servertest.Start(t, nil)
	blocks := `[{"type":"text","text":"in a block"}]`
	asked := `[{"text":"in a block\n\n---\n\nCurrent Goal: Read it","type":"text"}]`
	_, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, Messages: []*loombridgev1.Message{
		{Role: loombridgev1.Role_ROLE_SYSTEM, Content: "Be brief."},
		{Role: loombridgev1.Role_ROLE_USER, Content: "What is in a.txt?", Name: "eve"},
		{Role: loombridgev1.Role_ROLE_ASSISTANT, Content: "I look.", ToolCalls: []*loombridgev1.ModelToolCall{{Id: "c1", Name: "read_file", ArgumentsJson: `{"path": "a.txt"}`}}},
		{Role: loombridgev1.Role_ROLE_TOOL, ToolCallId: "c1", Content: "hello"},
		{Role: loombridgev1.Role_ROLE_USER, BlocksJson: blocks},
	}})
	must(t, err)
	prompt, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
		AgentId: agent, System: "You are an agent.", Goal: "Read it", WithoutTools: true, Model: "gpt-4o", Format: loombridgev1.PromptFormat_PROMPT_FORMAT_OPENAI_CHAT,
	})
	must(t, err)
	want := `{"messages":[{"role":"system","content":"You are an agent."},{"role":"system","content":"Be brief."},` +
		`{"role":"user","content":"What is in a.txt?","name":"eve"},` +
		`{"role":"assistant","content":"I look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"read_file","arguments":"{\"path\": \"a.txt\"}"}}]},` +
		`{"role":"tool","content":"hello","tool_call_id":"c1"},{"role":"user","content":` + asked + `}]}`
	if got := prompt.GetPromptJson(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	parts := prompt.GetParts()
	if fmt.Sprint(parts) != "map[goal:7 history:52 system:9 tools:0]" || prompt.GetTokens().GetTokens() != 71 {
		t.Errorf("%v, %d tokens", parts, prompt.GetTokens().GetTokens())
	}
}
