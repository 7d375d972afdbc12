package tokens_test

import (
	"encoding/json"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// N11: the openai rule, with texts whose tokens are counted apart.
func TestMessage(t *testing.T) {
	c := MustCounter(t, nil)
	n := func(text string) int { return MustCount(t, c, "gpt-4o", text).Tokens }
	for _, tt := range []struct {
		name    string
		message tokens.Message
		want    int
		exact   bool
	}{
		{"empty", tokens.Message{Role: "user"}, 3 + 1, true},
		{"text", tokens.Message{Role: "user", Content: "hello world"}, 3 + 1 + 2, true},
		{"named", tokens.Message{Role: "user", Content: "hi", Name: "bob"}, 3 + 1 + 1 + 1 + n("bob"), true},
		{
			"call",
			tokens.Message{Role: "assistant", Calls: []tokens.Call{{ID: "call_1", Name: "fs_stat", Arguments: `{"path":"a"}`}}},
			3 + n("assistant") + n("call_1") + n("function") + n("fs_stat") + n(`{"path":"a"}`), true,
		},
		{"result", tokens.Message{Role: "tool", Content: "ok", CallID: "call_1"}, 3 + 1 + 1 + n("call_1"), true},
		{"text block", tokens.Message{Role: "user", Blocks: json.RawMessage(`[{"type":"text","text":"hello world"}]`)}, 3 + 1 + 2, true},
		{"image", tokens.Message{Role: "user", Blocks: json.RawMessage(`[{"type":"image_url","image_url":{"url":"data:AAAA"}}]`)}, 3 + 1 + 1600, false},
		{"other block", tokens.Message{Role: "user", Blocks: json.RawMessage(`[{"type":"x"}]`)}, 3 + 1 + n(`{"type":"x"}`), false},
		{"text block without text", tokens.Message{Role: "user", Blocks: json.RawMessage(`[{"type":"text"}]`)}, 3 + 1 + n(`{"type":"text"}`), false},
		{"no array", tokens.Message{Role: "user", Blocks: json.RawMessage(`"x"`)}, 3 + 1 + n(`"x"`), false},
		{"no block", tokens.Message{Role: "user", Blocks: json.RawMessage(`[7]`)}, 3 + 1 + n(`7`), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := c.Message("gpt-4o", tt.message)
			want := tokens.Count{Tokens: tt.want, Counter: "o200k_base", Exact: tt.exact}
			if err != nil || got != want {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
			}
		})
	}
}

func TestTools(t *testing.T) {
	c := MustCounter(t, nil)
	n := func(text string) int { return MustCount(t, c, "gpt-4o", text).Tokens }
	weather := `{"type":"object","properties":{
		"location":{"type":"string","description":"The city."},
		"unit":{"type":"string","description":"Unit","enum":["celsius","fahrenheit"]}}}`
	one := 7 + n("weather:Tells the weather") + 3 +
		3 + n("location:string:The city") +
		3 + n("unit:string:Unit") - 3 + 3 + n("celsius") + 3 + n("fahrenheit")
	nested := `{"type":"object","properties":{"a":{"type":"object","description":"A","properties":{"b":{"type":"integer","description":"B"}}}}}`
	list := `{"type":"object","properties":{"a":{"type":"array","description":"A","items":{"type":"object","properties":{"b":{"type":"integer","description":"B"}}}}}}`
	for _, tt := range []struct {
		name  string
		model string
		tools []tokens.ToolDefinition
		want  int
		exact bool
	}{
		{"none", "gpt-4o", nil, 0, true},
		{"bare", "gpt-4o", []tokens.ToolDefinition{{Name: "f", Description: "d."}}, 7 + n("f:d") + 12, true},
		{"older model", "gpt-4", []tokens.ToolDefinition{{Name: "f", Description: "d."}}, 10 + n("f:d") + 12, true},
		{"one", "gpt-4o", []tokens.ToolDefinition{{"weather", "Tells the weather.", json.RawMessage(weather)}}, one + 12, true},
		{"two", "gpt-4o", []tokens.ToolDefinition{{"weather", "Tells the weather.", json.RawMessage(weather)}, {Name: "f", Description: "d"}}, one + 7 + n("f:d") + 12, true},
		{
			"nested", "gpt-4o",
			[]tokens.ToolDefinition{{"f", "d", json.RawMessage(nested)}},
			7 + n("f:d") + 3 + 3 + n("a:object:A") + 3 + 3 + n("b:integer:B") + 12, false,
		},
		{
			"nested in a list", "gpt-4o",
			[]tokens.ToolDefinition{{"f", "d", json.RawMessage(list)}},
			7 + n("f:d") + 3 + 3 + n("a:array:A") + 3 + 3 + n("b:integer:B") + 12, false,
		},
		{
			"types", "gpt-4o",
			[]tokens.ToolDefinition{{"f", "d", json.RawMessage(`{"properties":{"a":{"type":["string","null"]}}}`)}},
			7 + n("f:d") + 3 + 3 + n(`a:["string","null"]:`) + 12, true,
		},
		{"no type", "gpt-4o", []tokens.ToolDefinition{{"f", "d", json.RawMessage(`{"properties":{"a":{}}}`)}}, 7 + n("f:d") + 3 + 3 + n("a::") + 12, false},
		{"no object", "gpt-4o", []tokens.ToolDefinition{{"f", "d", json.RawMessage(`[1]`)}}, 7 + n("f:d") + n("[1]") + 12, false},
		{"no property", "gpt-4o", []tokens.ToolDefinition{{"f", "d", json.RawMessage(`{"properties":{"a":1}}`)}}, 7 + n("f:d") + 3 + n("a:1") + 12, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := c.Tools(tt.model, tt.tools)
			if err != nil || got.Tokens != tt.want || got.Exact != tt.exact {
				t.Errorf("got %+v, %v, want %d, exact %v", got, err, tt.want, tt.exact)
			}
		})
	}
}

// The rules of the other counters, and a whole conversation.
// P31
func TestMessageByCounter(t *testing.T) {
	c := MustCounter(t, nil)
	m := tokens.Message{Role: "user", Content: "hello world"}
	for _, tt := range []struct {
		model string
		want  tokens.Count
	}{
		{"gpt-4o", tokens.Count{Tokens: 3 + 1 + 2, Counter: "o200k_base", Exact: true}},
		{"claude-3-opus", tokens.Count{Tokens: 3 + 2 + 3, Counter: "anthropic"}}, // 1.1 and 2.2
		{"of-nobody", tokens.Count{Tokens: 4 + 1 + 3, Counter: "estimate"}},
	} {
		got, err := c.Message(tt.model, m)
		if err != nil || got != tt.want {
			t.Errorf("%s: got %+v, %v, want %+v", tt.model, got, err, tt.want)
		}
		tt.want.Tokens *= 2
		if tt.model == "gpt-4o" {
			tt.want.Tokens += tokens.ReplyTokens
		}
		if got, err = c.Messages(tt.model, []tokens.Message{m, m}); err != nil || got != tt.want {
			t.Errorf("%s: two messages: got %+v, %v, want %+v", tt.model, got, err, tt.want)
		}
	}
}

// What Anthropic's blocks carry is counted as text, whatever is around it.
func TestAnthropicBlocks(t *testing.T) {
	c := MustCounter(t, nil)
	n := func(text string) int { return MustCount(t, c, "claude-sonnet-5", text).Tokens }
	frame := tokens.MessageTokens + n("user")
	for name, tt := range map[string]struct {
		blocks string
		want   int
	}{
		"thought":        {`[{"type":"thinking","thinking":"let me see","signature":"AAAA"}]`, n("let me see")},
		"call":           {`[{"type":"tool_use","id":"t1","name":"fs_stat","input":{"path":"a"}}]`, n("t1") + n("fs_stat") + n(`{"path":"a"}`)},
		"result":         {`[{"type":"tool_result","tool_use_id":"t1","content":"all is well"}]`, n("t1") + n("all is well")},
		"result, blocks": {`[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"all is well"}]}]`, n("t1") + n("all is well")},
	} {
		got, err := c.Message("claude-sonnet-5", tokens.Message{Role: "user", Blocks: json.RawMessage(tt.blocks)})
		if err != nil || got.Tokens != frame+tt.want || got.Exact {
			t.Errorf("%s: got %+v, %v, want %d", name, got, err, frame+tt.want)
		}
	}
}

// Tool schemas count for every counter.
// P31
func TestToolsByCounter(t *testing.T) {
	c := MustCounter(t, nil)
	list := []tokens.ToolDefinition{{Name: "f", Description: "does it", Schema: json.RawMessage(`{ "type": "object" }`)}}
	for _, tt := range []struct {
		model  string
		prompt int
	}{{"claude-sonnet-5", 346}, {"of-nobody", 0}} {
		want := tt.prompt
		for _, text := range []string{"f", "does it", `{"type":"object"}`} {
			want += MustCount(t, c, tt.model, text).Tokens
		}
		got, err := c.Tools(tt.model, list)
		if err != nil || got.Tokens != want || got.Exact {
			t.Errorf("%s: got %+v, %v, want %d", tt.model, got, err, want)
		}
		if got, err = c.Tools(tt.model, nil); err != nil || got.Tokens != 0 {
			t.Errorf("%s: no tools: got %+v, %v", tt.model, got, err)
		}
	}
}
