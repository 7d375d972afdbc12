package proxy

import (
	"encoding/json"
	"testing"
)

// A text is added to one message, and all other bytes stay; what is not as it should be stays
// whole.
func TestAddText(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		d          dialect
		n          int
		body, want string // empty: as it was
	}{
		"a text":          {chat, 1, `{ "messages" :[{"role":"user"}, {"content": "a\u00e9<" ,"role":"user"}],"x":1.0}`, `{ "messages" :[{"role":"user"}, {"content": "aé<\n\nM\"<" ,"role":"user"}],"x":1.0}`},
		"blocks":          {anthropic, 0, `{"messages":[{"role":"user","content":[ {"type":"text","text":"]"} ]}]}`, `{"messages":[{"role":"user","content":[ {"type":"text","text":"]"} ,{"type":"text","text":"M\"<"}]}]}`},
		"items":           {responses, 0, `{"input":[{"role":"user","content":[{}]}]}`, `{"input":[{"role":"user","content":[{},{"type":"input_text","text":"M\"<"}]}]}`},
		"the input alone": {responses, -1, "{\"input\":\n\"a\"}", "{\"input\":\n\"a\\n\\nM\\\"<\"}"},
		"no block":        {chat, 0, `{"messages":[{"role":"user","content":[ ]}]}`, ""},
		"no content":      {chat, 0, `{"messages":[{"role":"user","content":null}]}`, ""},
		"two lists":       {chat, 0, `{"messages":[{"content":"a"}],"messages":[{"content":"b"}]}`, ""},
		"two contents":    {chat, 0, `{"messages":[{"role":"user","content":"a","content":"b"}]}`, ""},
		"no list":         {chat, 0, `{"messages":7}`, ""},
		"no object":       {chat, 0, `[]`, ""},
		"nothing":         {chat, 0, ``, ""},
	} {
		got := row.body
		if told, err := row.d.parse([]byte(row.body), nil); err == nil {
			got = string(told.added(row.d, []byte(row.body), []addition{{row.n, `M"<`}}))
		}
		want := row.want
		if want == "" {
			want = row.body
		}
		if got != want || row.want != "" && !json.Valid([]byte(got)) {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}
