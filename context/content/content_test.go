package content_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/content"
)

// brief is a part in a line.
func brief(p *content.Block) string {
	kinds := []string{"other", "text", "refusal", "image", "audio", "file", "call", "result", "thought", "said"}
	dialects := []string{"", "chat ", "responses ", "anthropic ", "gemini ", "mcp "}
	s := dialects[p.Dialect] + kinds[p.Kind]
	m := p.Media()
	for _, word := range []string{p.ID, p.Name, p.Arguments, p.Text, m.Type, m.Data, m.URL, m.FileID, m.Text, m.Name, p.Signature} {
		if word != "" {
			s += " " + word
		}
	}
	if p.Failed {
		s += " failed"
	}
	for i := range p.Parts {
		s += " [" + brief(&p.Parts[i]) + "]"
	}
	return s
}

func TestParse(t *testing.T) {
	for _, test := range []struct{ block, want string }{
		{`{"type":"text","text":"a"}`, "text a"},
		{`{"text":"a\u00e9","type":"text","citations":null}`, "anthropic text aé"},
		{`{"type":"input_text","text":"a"}`, "responses text a"},
		{`{"text":"a"}`, "gemini text a"},
		{`{"text":"a","thought":true,"thoughtSignature":"s"}`, "gemini thought a s"},
		{`{"type":"thinking","thinking":"a","signature":"s"}`, "anthropic thought a"},
		{`{"type":"redacted_thinking","data":"x"}`, "anthropic thought"},
		{`{"type":"reasoning","summary":[],"encrypted_content":"x"}`, "responses thought"},
		{`{"type":"refusal","refusal":"no"}`, "chat refusal no"},
		{`{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`, "chat image image/png AAAA"},
		{`{"type":"image_url","image_url":"https://e.org/a"}`, "chat image https://e.org/a"},
		{`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`, "anthropic image image/png AAAA"},
		{`{"type":"image","data":"AAAA","mimeType":"image/png"}`, "mcp image image/png AAAA"},
		{`{"type":"image"}`, "other"},
		{`{"inline_data":{"mime_type":"audio/wav","data":"AAAA"}}`, "gemini audio audio/wav AAAA"},
		{`{"fileData":{"mimeType":"application/pdf","fileUri":"gs://a"}}`, "gemini file application/pdf gs://a"},
		{`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a"},"title":"t"}`, "anthropic file text/plain a t"},
		{`{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA","filename":"a.pdf"}}`, "chat file application/pdf AAAA a.pdf"},
		{`{"type":"tool_use","id":"1","name":"n","input":{"a":1}}`, `anthropic call 1 n {"a":1}`},
		{`{"type":"tool_result","tool_use_id":"1","content":"a","is_error":true}`, "anthropic result 1 failed [text a]"},
		{`{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"a"},1]}`, "anthropic result 1 [text a] [other]"},
		{`{"type":"tool_result","tool_use_id":"1"}`, "anthropic result 1"},
		{`{"type":"function_call","call_id":"1","name":"n","arguments":"{}","id":"fc"}`, "responses call 1 n {}"},
		{`{"type":"function_call_output","call_id":"1","output":[{"type":"input_text","text":"a"}]}`, "responses result 1 [responses text a]"},
		{`{"type":"custom_tool_call","call_id":"1","name":"n","input":"ls"}`, "responses call 1 n ls"},
		{`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}`, "responses said [responses text a]"},
		{`{"type":"web_search_call","id":"1"}`, "responses other"},
		{`{"type":"server_tool_use","id":"1"}`, "anthropic other"},
		{`{"functionCall":{"name":"n","args":{"a":1}},"thoughtSignature":"s"}`, `gemini call n-1 n {"a":1} s`},
		{`{"function_call":{"id":"7","name":"n","args":{}}}`, "gemini call 7 n {}"},
		{`{"functionResponse":{"name":"n","response":{"output":"a"}}}`, "gemini result n-1 n [text a]"},
		{`{"functionResponse":{"name":"n","response":{"error":{"a":1}}}}`, `gemini result n-1 n failed [text {"a":1}]`},
		{`{"functionResponse":{"name":"n","response":{"a":1,"b":2}}}`, `gemini result n-1 n [text {"a":1,"b":2}]`},
		{`{"role":"model","parts":[{"text":"a"}]}`, "gemini text a"},
		{`{"type":"of nobody","text":"a"}`, "other a"},
		{`{"type":7}`, "other"},
		{`{}`, "other"},
		{`1`, "other"},
		{`"text"`, "other"},
		{`null`, "other"},
	} {
		parts := content.Parse(json.RawMessage("[ " + test.block + " ]"))
		if len(parts) != 1 {
			t.Errorf("%s: %d parts", test.block, len(parts))
			continue
		}
		if got := brief(&parts[0]); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.block, got, test.want)
		}
		if !strings.Contains(test.block, string(parts[0].Raw)) {
			t.Errorf("%s: came as %s", test.block, parts[0].Raw)
		}
	}
}

// A block that nobody knows belongs to whom all others do.
func TestUnknownBlocks(t *testing.T) {
	for blocks, want := range map[string]string{
		`[{"type":"new"},{"type":"thinking","thinking":"a"}]`:                     "anthropic other",
		`[{"type":"new"},{"type":"reasoning"}]`:                                   "responses other",
		`[{"type":"new"},{"type":"reasoning"},{"type":"thinking","thinking":""}]`: "other",
		`[{"type":"new"},{"text":"a"}]`:                                           "other",
		`[{"new":1},{"text":"a"}]`:                                                "gemini other",
		`[{"type":"new"},{"type":"text","text":"a"}]`:                             "other",
	} {
		if got := brief(&content.Parse(json.RawMessage(blocks))[0]); got != want {
			t.Errorf("%s: got %s, want %s", blocks, got, want)
		}
	}
	for _, none := range []string{"", "{}", "7", "[", `"x"`} {
		if got := content.Parse(json.RawMessage(none)); len(got) != 0 {
			t.Errorf("%q: %d parts", none, len(got))
		}
	}
}

// Blocks that stay keep their bytes.
func TestEdits(t *testing.T) {
	const blocks = `[ {"type" : "text","text":"a"}, {"type":"tool_use","id":"1","name":"n","input":{"a": 1}},` +
		`{"type":"function_call","call_id":"2","name":"n","arguments":"{}"},{"functionCall":{"name":"n","args":{"a":1}}},` +
		`{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"long"}]},{"type":"tool_result","tool_use_id":"3","content":[{"type":"image","data":"AAAA"}]},` +
		`{"functionResponse":{"name":"n","response":{"error":"long"}}} ]`
	one := func(want string) func(string) (string, bool) {
		return func(id string) (string, bool) { return `{"b":2}`, id == want }
	}
	for _, tt := range []struct {
		got       json.RawMessage
		was, then string
	}{
		{content.WithArguments(json.RawMessage(blocks), one("1")), `{"type":"tool_use","id":"1","name":"n","input":{"a": 1}}`, `{"id":"1","input":{"b":2},"name":"n","type":"tool_use"}`},
		{content.WithArguments(json.RawMessage(blocks), one("2")), `{"type":"function_call","call_id":"2","name":"n","arguments":"{}"}`, `{"arguments":"{\"b\":2}","call_id":"2","name":"n","type":"function_call"}`},
		{content.WithArguments(json.RawMessage(blocks), one("n-1")), `{"functionCall":{"name":"n","args":{"a":1}}}`, `{"functionCall":{"args":{"b":2},"name":"n"}}`},
		{content.WithResults(json.RawMessage(blocks), one("1")), `{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"long"}]}`, `{"content":"{\"b\":2}","tool_use_id":"1","type":"tool_result"}`},
		{content.WithResults(json.RawMessage(blocks), one("n-2")), "", ""},
		{content.WithResults(json.RawMessage(blocks), one("3")), "", ""}, // an image stays
		{content.WithTexts(json.RawMessage(blocks), func(s string) string { return s + s }), `{"type" : "text","text":"a"}`, `{"text":"aa","type":"text"}`},
	} {
		want := blocks
		if tt.was != "" {
			// What is changed is written anew, all other blocks as they came.
			var all []string
			for _, p := range content.Parse(json.RawMessage(blocks)) {
				all = append(all, strings.Replace(string(p.Raw), tt.was, tt.then, 1))
			}
			want = "[" + strings.Join(all, ",") + "]"
		}
		if diff := cmp.Diff(want, string(tt.got)); diff != "" {
			t.Error(diff)
		}
	}
	dropped := content.Without(json.RawMessage(blocks), func(p *content.Block) bool { return p.Kind != content.Text })
	if got, want := string(dropped), `[{"type" : "text","text":"a"}]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := content.Without(json.RawMessage(blocks), func(*content.Block) bool { return true }); got != nil {
		t.Errorf("got %s", got)
	}
	inner := content.Edit(json.RawMessage(blocks), func(p *content.Block) json.RawMessage {
		if p.Kind != content.Image {
			return nil
		}
		return p.Dialect.TextBlock("seen")
	})
	if !strings.Contains(string(inner), `{"content":[{"text":"seen","type":"text"}],"tool_use_id":"3","type":"tool_result"}`) {
		t.Errorf("the image within stays: %s", inner)
	}
}

// FuzzParse takes any JSON apart as encoding/json does.
func FuzzParse(f *testing.F) {
	f.Add(`{"type":"text","text":"a\"b","x":[1,{"y":"]"}],"z":-1.5e3, "n" : null }`)
	f.Add(`{"\u0074ype":"text","text":"\\"}`)
	f.Fuzz(func(t *testing.T, block string) {
		if !utf8.ValidString(block) || !json.Valid([]byte(block)) { // messages are UTF-8
			return
		}
		var want struct{ Type, Text any }
		var fields map[string]any
		if json.Unmarshal([]byte(block), &fields) == nil {
			want.Type, want.Text = fields["type"], fields["text"]
		}
		parts := content.Parse(json.RawMessage("[" + block + "]"))
		if fields["parts"] != nil || len(parts) != 1 {
			return
		}
		if got := parts[0].Type; got != fmt.Sprint(want.Type) && !(want.Type == nil && got == "") {
			if _, isText := want.Type.(string); isText {
				t.Errorf("%s: type %q, want %v", block, got, want.Type)
			}
		}
		if text, ok := want.Text.(string); ok && want.Type == "text" && parts[0].Text != text {
			t.Errorf("%s: text %q, want %q", block, parts[0].Text, text)
		}
	})
}
