package proxy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// looks are requests of each API that say the same: two calls with their results, and what the
// user says behind the first.
var looks = map[dialect]string{
	chat: `{"n":1, "messages":[{"role":"system","content":"S"}, {"role":"user","content":"Q"},
		{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"long result one"},{"role":"user","content":"and"},
		{"role":"assistant","tool_calls":[{"id":"2","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"2","content":"long result two"}],"x":[1]}`,
	anthropic: `{"n":1, "system":"S", "messages":[{"role":"user","content":"Q"},
		{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"long result one"}, {"type":"text","text":"and"}]},
		{"role":"assistant","content":[{"type":"tool_use","id":"2","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"2","content":"long result two"}]}],"x":[1]}`,
	responses: `{"n":1, "input":[{"role":"system","content":"S"}, {"role":"user","content":"Q"},
		{"type":"reasoning","id":"r"},{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"long result one"},{"role":"user","content":"and"},
		{"type":"function_call","call_id":"2","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"2","output":"long result two"}],"x":[1]}`,
}

// A request says of its conversation what the session's prompt shows, in its own words.
func TestShown(t *testing.T) {
	t.Parallel()
	word := func(role loombridgev1.Role, text string) *loombridgev1.Message {
		return &loombridgev1.Message{Role: role, Content: text}
	}
	const user, system, tool = loombridgev1.Role_ROLE_USER, loombridgev1.Role_ROLE_SYSTEM, loombridgev1.Role_ROLE_TOOL
	for d, body := range looks {
		told, err := d.parse([]byte(body), newKnown())
		must(t, err)
		calls := []*loombridgev1.Message{told.items[1].said(), told.items[4].said()}
		result := func(id, text string) *loombridgev1.Message {
			return &loombridgev1.Message{Role: tool, ToolCallId: id, Content: text}
		}
		all := []*loombridgev1.Message{word(system, "S"), word(user, "Q"), calls[0], result("1", "long result one"), word(user, "and"), calls[1], result("2", "long result two")}
		if d == anthropic {
			all[4] = told.items[3].said()
		}
		for name, row := range map[string]struct {
			prompt []*loombridgev1.Message
			want   string // what it says of each message, empty: as it was, "-": not at all
		}{
			"all":       {all, ""},
			"a fold":    {append([]*loombridgev1.Message{all[0], all[1], word(user, "FOLD")}, all[4:]...), "Q FOLD and 2 two"},
			"a cut":     {append([]*loombridgev1.Message{all[0], all[1], all[2], result("1", "cut")}, all[4:]...), "Q 1 cut and 2 two"},
			"a longer":  {append([]*loombridgev1.Message{all[0], all[1], all[2], result("1", "a longer text than it was")}, all[4:]...), ""},
			"no newest": {append([]*loombridgev1.Message{word(user, "FOLD")}, all[:5]...), "-"},
			"others":    {append([]*loombridgev1.Message{result("9", "x")}, all...), "-"},
			"no word":   {all[4:], "-"},
			"nothing":   {nil, "-"},
		} {
			prompt := &loombridgev1.AssembleResponse{Messages: row.prompt, Receipt: &loombridgev1.Receipt{Policy: "ledger"}}
			got, err := told.shown(d, []byte(body), prompt, []addition{{told.items[0].from, "MEMORY"}})
			if (err != nil) != (row.want == "-") || (got != nil) != (row.want != "" && row.want != "-") {
				t.Errorf("%d, %s: %v, %v", d, name, got, err)
			}
			if got == nil {
				continue
			}
			text := string(replaced([]byte(body), told.list, got.conversation))
			if !json.Valid([]byte(text)) || !strings.HasPrefix(text, `{"n":1, "`) || !strings.HasSuffix(text, `],"x":[1]}`) || !strings.Contains(text, "MEMORY") {
				t.Errorf("%d, %s: %s", d, name, text)
			}
			at := 0
			for word := range strings.FieldsSeq(row.want) {
				i := strings.Index(text[at:], word)
				if i < 0 {
					t.Errorf("%d, %s: no %s behind the %d bytes in %s", d, name, word, at, text)
				}
				at += max(i, 0)
			}
			if name == "a fold" == strings.Contains(text, "result one") && name != "a cut" {
				t.Errorf("%d, %s: %s", d, name, text)
			}
			again, err := d.parse([]byte(text), nil)
			if err != nil || name == "a cut" && len(again.items) != len(told.items) {
				t.Errorf("%d, %s: it is read as %d items: %v", d, name, len(again.items), err)
			}
			if d == anthropic && strings.Contains(text, `{"role":"user","content":"FOLD"}`) {
				t.Errorf("two messages of the user stand side by side: %s", text)
			}
		}
	}
}

// FuzzValues: what is found of JSON is what encoding/json finds, and of anything else the search
// ends.
func FuzzValues(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1,"b\u0061":[{"c":"\\\""}],"d":{}}`, ` {"a" : null , "b":"x" } `, `{"a":"`, `[1,2`, `{"a":]}`, `{"a":1}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found := map[string]string{}
		ok := members([]byte(text), span{0, len(text)}, func(name string, value span) { found[name] = string(value.of([]byte(text))) })
		elements([]byte(text), span{0, len(text)}, func(span) {})
		var want map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &want) != nil || want == nil {
			return
		}
		if !ok || len(found) != len(want) {
			t.Fatalf("%q: %v, %v; want %s", text, ok, found, fmt.Sprint(want))
		}
		for name, value := range want {
			if found[name] != string(value) {
				t.Errorf("%q: %s is %q, want %q", text, name, found[name], value)
			}
		}
	})
}
