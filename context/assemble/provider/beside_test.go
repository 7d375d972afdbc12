package provider_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/session"
)

// In Chat the results of a turn stand right behind its calls, and what a user says beside
// them, and what they show, behind them all, whatever comes last.
func TestBesideResults(t *testing.T) {
	t.Parallel()
	const image = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`
	blocks := func(role session.Role, texts ...string) session.Message {
		return session.Message{Role: role, BlocksJSON: []byte("[" + strings.Join(texts, ",") + "]")}
	}
	use := func(id string) string { return `{"type":"tool_use","id":"` + id + `","name":"look","input":{}}` }
	result := func(id, content string) string {
		return `{"type":"tool_result","tool_use_id":"` + id + `","content":[` + content + `]}`
	}
	word := func(s string) string { return `{"type":"text","text":"` + s + `"}` }
	asks := blocks(session.Assistant, use("a"), use("b"))
	for _, tt := range []struct {
		name string
		said []session.Message
		want []string
	}{
		{
			"words",
			[]session.Message{asks, blocks(session.User, result("b", word("two")), word("x")), blocks(session.User, word("y"), result("a", word("one"))), blocks(session.User, word("z"))},
			[]string{"assistant", "tool b", "tool a", "user x", "user y", "user z"},
		},
		{
			"images",
			[]session.Message{asks, blocks(session.User, result("a", image)), blocks(session.User, result("b", image), word("x"))},
			[]string{"assistant", "tool a", "tool b", "user What the tools showed:", "user x"},
		},
		{
			"the model speaks next",
			[]session.Message{asks, blocks(session.User, result("a", word("1")), word("x"), result("b", word("2"))), blocks(session.Assistant, word("done"))},
			[]string{"assistant", "tool a", "tool b", "user x", "assistant done"},
		},
		{
			"no such call",
			[]session.Message{blocks(session.User, result("z", word("1"))), asks, blocks(session.User, result("a", word("1")), result("a", word("2")), result("b", word("3")))},
			[]string{"user Result of the call z:", "assistant", "tool a", "tool b", "user Result of the call a:"},
		},
		{
			"calls of a turn before",
			[]session.Message{asks, blocks(session.User, result("a", word("1")), result("b", word("2"))), blocks(session.Assistant, use("c")), blocks(session.User, result("a", word("3")), result("c", word("4")))},
			[]string{"assistant", "tool a", "tool b", "assistant", "tool c", "user Result of the call a:"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			body, err := provider.Encode(provider.OpenAIChat, provider.Content{Messages: tt.said})
			if err != nil {
				t.Fatal(err)
			}
			var chat struct {
				Messages []struct {
					Role    string
					Content any
					ID      string `json:"tool_call_id"`
				}
			}
			if err := json.Unmarshal(body.JSON, &chat); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range chat.Messages {
				says := m.ID
				if list, ok := m.Content.([]any); ok {
					first, _ := list[0].(map[string]any)
					m.Content = first["text"]
				}
				if s, _ := m.Content.(string); m.Role != "tool" {
					says, _, _ = strings.Cut(s, "\n")
				}
				got = append(got, strings.TrimSpace(m.Role+" "+says))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q\nwant %q\n%s", got, tt.want, body.JSON)
			}
		})
	}
}
