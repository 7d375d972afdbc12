package provider_test

import (
	"bytes"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/session"
)

// Of the further fields of messages and calls, Chat gets those that it or a host that speaks it
// takes, each as it came; the neutral form gets all.
func TestFurtherFields(t *testing.T) {
	const host = `"uuid":"u1", "parentUuid":null,"usage":{"a":[1,"}"]}`
	for _, test := range []struct {
		name string
		m    session.Message
		want string // in Chat
	}{
		{
			"some known",
			session.Message{Role: session.Assistant, Content: "x", ExtraJSON: []byte(`{` + host + `, "reasoning_content" : "a \"b\" 1.0","refusal":null,"is_error":true}`)},
			`{"role":"assistant","content":"x","reasoning_content":"a \"b\" 1.0","refusal":null}`,
		},
		{
			"all known",
			session.Message{Role: session.Assistant, Content: "x", ExtraJSON: []byte(`{"reasoning_details":[{"data": 1.0}],"function_call":{"name":"f"}}`)},
			`{"role":"assistant","content":"x","reasoning_details":[{"data":1.0}],"function_call":{"name":"f"}}`,
		},
		{"none known", session.Message{Role: session.Assistant, Content: "x", ExtraJSON: []byte(`{` + host + `}`)}, `{"role":"assistant","content":"x"}`},
		{"empty", session.Message{Role: session.Assistant, Content: "x", ExtraJSON: []byte(` { } `)}, `{"role":"assistant","content":"x"}`},
		{"of the user", session.Message{Role: session.User, Content: "x", ExtraJSON: []byte(`{"timestamp":"t","reasoning_content":"r"}`)}, `{"role":"user","content":"x"}`},
		{
			"of a result",
			session.Message{Role: session.Tool, Content: "x", ToolCallID: "c", ExtraJSON: []byte(`{"is_error":true,"toolUseResult":{}}`)},
			`{"role":"tool","content":"x","tool_call_id":"c"}`,
		},
		{
			"of calls",
			session.Message{Role: session.Assistant, ToolCalls: []session.ToolCall{
				{ID: "c", Name: "f", Arguments: "{}", Extra: `{"index":0,"extra_content":{"google":{}},` + host + `}`}, {ID: "d", Name: "g", Arguments: "any", Extra: `{"type":"custom","index":1}`},
			}},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{}}},{"id":"d","type":"custom","custom":{"name":"g","input":"any"}}]}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, format := range []provider.Format{provider.OpenAIChat, provider.Neutral} {
				var out bytes.Buffer
				w := provider.NewWriter(format)
				if err := w.Add(&out, format.Renamed(test.m)); err != nil {
					t.Fatal(err)
				}
				if got := out.String(); format == provider.OpenAIChat && got != test.want {
					t.Errorf("%s\nwant %s", got, test.want)
				}
				if format == provider.Neutral && bytes.Contains(test.m.ExtraJSON, []byte("uuid")) != bytes.Contains(out.Bytes(), []byte("uuid")) && len(test.m.ToolCalls) == 0 {
					t.Errorf("the neutral form: %s", out.String())
				}
			}
		})
	}
}
