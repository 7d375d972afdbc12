package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// short is an item in a line.
func short(i item) string {
	if i.result != nil {
		failed, step := "", i.step()
		if !step.Success {
			failed = " failed: " + step.ErrorMessage
		}
		return step.ToolName + step.GetArgumentsJson() + " = " + i.result.text + failed
	}
	m := i.said()
	line := strings.TrimPrefix(m.Role.String(), "ROLE_") + " " + m.Content + m.BlocksJson + m.ExtraJson
	for _, c := range m.ToolCalls {
		line += fmt.Sprintf(" %s(%s)%s", c.Name, c.ArgumentsJson, c.ExtraJson)
	}
	return line
}

func shorts(items []item) (out []string) {
	for _, i := range items {
		out = append(out, short(i))
	}
	return out
}

// What a request says, in each API.
func TestParse(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		d    dialect
		body string
		want []string // nil: it is not read
	}{
		"chat": {chat, `{"model":"m","messages":[{"role":"system","content":"S"},{"role":"developer","content":"D"},{"role":"user","content":[{"type":"text","text":"Q"}]},
			{"role":"assistant","content":null,"refusal":null,"reasoning_content":"R","tool_calls":[{"id":"1","type":"function","function":{"name":"look at","arguments":"{\"p\":1}"}},{"id":"2","type":"custom","custom":{"name":"c","input":"x"}}]},
			{"role":"tool","tool_call_id":"1","content":"out"},{"role":"tool","tool_call_id":"2","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
			{"role":"tool","tool_call_id":"9","content":"lost"},{"role":"system","content":"late"},{"role":"assistant","content":""}]}`, []string{
			`USER [{"type":"text","text":"Q"}]`, `ASSISTANT {"reasoning_content":"R"} look at({"p":1}) c(x){"type":"custom"}`,
			`look_at{"p":1} = out`, `c{"input":"x"} = a` + "\nb", `TOOL lost`, `SYSTEM late`,
		}},
		"anthropic": {anthropic, `{"system":"S","messages":[{"role":"user","content":"Q"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"1","name":"look","input":{"a":1}},{"type":"tool_use","id":"2","name":"look","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"no","is_error":true},{"type":"tool_result","tool_use_id":"2","content":[{"type":"image","source":{"type":"url","url":"https://e/x"}}]},{"type":"text","text":"go on"}]}]}`, []string{
			`USER Q`, `ASSISTANT [{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"1","name":"look","input":{"a":1}},{"type":"tool_use","id":"2","name":"look","input":{}}]`,
			`look{"a":1} = no failed: no`, `USER [{"type":"tool_result","tool_use_id":"2","content":[{"type":"image","source":{"type":"url","url":"https://e/x"}}]},{"type":"text","text":"go on"}]`,
		}},
		"responses": {responses, `{"input":[{"role":"developer","content":"D"},{"role":"user","content":"Q"},{"type":"reasoning","id":"r"},{"role":"assistant","content":"A"},{"type":"function_call","call_id":"1","name":"look","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"out"},{"type":"function_call_output","call_id":"7","output":"lost"}]}`, []string{
			`USER Q`, `ASSISTANT [{"type":"reasoning","id":"r"},{"type":"message","role":"assistant","content":"A"},{"type":"function_call","call_id":"1","name":"look","arguments":"{}"}]`,
			`look{} = out`, `USER [{"type":"function_call_output","call_id":"7","output":"lost"}]`,
		}},
		"a text":             {responses, `{"input":"Q","previous_response_id":null}`, []string{`USER Q`}},
		"too many values":    {chat, `{"messages":[{"role":"assistant","tool_calls":[` + strings.Repeat("{},", maxValues/2) + `{}]}]}`, nil},
		"too many items":     {responses, `{"input":[` + strings.Repeat("7,", maxValues) + `7]}`, nil},
		"no JSON":            {chat, `{"messages":[`, nil},
		"no list":            {chat, `{"messages":{}}`, nil},
		"no role":            {chat, `{"messages":[{"content":"x"}]}`, nil},
		"a role of nobody":   {anthropic, `{"messages":[{"role":"root","content":"x"}]}`, nil},
		"an item of no kind": {responses, `{"input":[{}]}`, nil},
		"an item of no form": {responses, `{"input":[7]}`, nil},
	} {
		told, err := row.d.parse([]byte(row.body), nil)
		switch {
		case row.want == nil && err == nil:
			t.Errorf("%s: read as %q", name, shorts(told.items))
		case row.want != nil && (err != nil || !slices.Equal(shorts(told.items), row.want)):
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, strings.Join(shorts(told.items), "\n"), strings.Join(row.want, "\n"))
		}
	}
}

// What a stream says is what a whole answer does, and what has not ended says nothing.
func TestRead(t *testing.T) {
	t.Parallel()
	stream := func(events ...string) string { return "data: " + strings.Join(events, "\r\n\r\ndata:") + "\n\n" }
	for name, row := range map[string]struct {
		d      dialect
		events bool
		body   string
		want   string // empty: nothing is read
	}{
		"chat":     {chat, false, `{"choices":[{"message":{"role":"assistant","content":"A","annotations":[]}},{"message":{"role":"assistant","content":"B"}}]}`, `ASSISTANT A{"annotations":[]}`},
		"an error": {chat, false, `{"error":{"message":"no"}}`, ""},
		"too much": {chat, false, `{"choices":[{"message":{"role":"assistant","content":"A","tool_calls":[` + strings.Repeat("{},", maxValues/2) + `{}]}}]}`, ""},
		"too much at once": {anthropic, true, stream(`{"type":"content_block_start","index":0,"content_block":{"type":"x","x":[`+strings.Repeat("{},", maxValues/2)+`{}]}}`,
			`{"type":"message_stop"}`), ""},
		"anthropic": {anthropic, false, `{"content":[{"type":"text","text":"A"}]}`, `ASSISTANT [{"type":"text","text":"A"}]`},
		"responses": {responses, false, `{"id":"r","output":[{"type":"message","role":"assistant","content":[]}]}`, `ASSISTANT [{"type":"message","role":"assistant","content":[]}]`},
		"chat's stream": {chat, true, stream(`{"choices":[{"index":1,"delta":{"content":"other"}},{"index":0,"delta":{"reasoning_content":"R","content":"A"}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"1","type":"function","function":{"name":"f","arguments":"{"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}},{"index":0,"id":"2","type":"custom","custom":{"name":"g","input":"x"}}]}}]}`,
			`{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`, `[DONE]`), `ASSISTANT A{"reasoning_content":"R"} f({}) g(x){"type":"custom"}`},
		"one that has not ended": {chat, true, stream(`{"choices":[{"delta":{"content":"A"}}]}`, `[DONE]`), ""},
		"one that fails":         {chat, true, stream(`{"choices":[{"delta":{"content":"A"},"finish_reason":"stop"}]}`, `{"error":{"message":"x"}}`), ""},
		"anthropic's stream": {
			anthropic, true, "event: ping\ndata: {\"type\":\"ping\"}\n\n" + stream(`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"t"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}`,
				`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"A"}}`, `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"B"}}`,
				`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"1","name":"f","input":{}}}`, `{"type":"content_block_delta","index":2,"delta":{"partial_json":"{\"a\""}}`,
				`{"type":"content_block_delta","index":2,"delta":{"partial_json":":1}"}}`, `{"type":"message_stop"}`),
			`ASSISTANT [{"signature":"s","thinking":"t","type":"thinking"},{"text":"AB","type":"text"},{"id":"1","input":{"a":1},"name":"f","type":"tool_use"}]`,
		},
		"one that closes in a call": {anthropic, true, stream(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"1","name":"f","input":{}}}`, `{"type":"content_block_delta","index":0,"delta":{"partial_json":"{\"a\""}}`), ""},
		"a call of half JSON":       {anthropic, true, stream(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"1","name":"f","input":{}}}`, `{"type":"content_block_delta","index":0,"delta":{"partial_json":"{\"a\""}}`, `{"type":"message_stop"}`), ""},
		"a block from nowhere":      {anthropic, true, stream(`{"type":"content_block_delta","index":-1,"delta":{"text":"x"}}`, `{"type":"message_stop"}`), ""},
		"responses' stream":         {responses, true, stream(`{"type":"response.output_text.delta","delta":"A"}`, `{"type":"response.completed","response":{"id":"r","output":[{"type":"message","role":"assistant","content":"A"}]}}`), `ASSISTANT [{"type":"message","role":"assistant","content":"A"}]`},
		"garbage":                   {responses, true, "\x00\xff\ndata:" + strings.Repeat("[", 1<<20), ""},
	} {
		got := ""
		if a := row.d.read([]byte(row.body), row.events); a != nil {
			got = strings.Join(shorts(a.items), "\n")
		}
		if got != row.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, row.want)
		}
	}
}

// FuzzTalk: whatever is said, reading it ends, and what is said again has the same marks.
func FuzzTalk(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":"x"}],"input":"x"}`), true)
	f.Add([]byte(`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]}],"input":[{"type":"function_call"}]}`), false)
	f.Fuzz(func(t *testing.T, body []byte, events bool) {
		for _, d := range dialects {
			d.read(body, events)
			told, err := d.parse(body, nil)
			if err != nil {
				continue
			}
			again, err := d.parse(body, newKnown())
			if err != nil || !slices.Equal(marksOf(told.items), marksOf(again.items)) {
				t.Errorf("read twice: %v", err)
			}
		}
	})
}

// logs are sessions in memory.
type logs struct {
	loombridgev1.SessionServiceClient
	entries map[string][]*loombridgev1.ConversationEntry
	fail    error
	reads   int
}

func (l *logs) AppendMessages(_ context.Context, r *loombridgev1.AppendMessagesRequest, _ ...grpc.CallOption) (*loombridgev1.AppendMessagesResponse, error) {
	if l.fail != nil {
		return nil, l.fail
	}
	for _, m := range r.GetMessages() {
		l.entries[r.GetSessionId()] = append(l.entries[r.GetSessionId()], &loombridgev1.ConversationEntry{Entry: &loombridgev1.ConversationEntry_Message{Message: m}})
	}
	return &loombridgev1.AppendMessagesResponse{}, nil
}

func (l *logs) ListConversation(_ context.Context, r *loombridgev1.ListConversationRequest, _ ...grpc.CallOption) (*loombridgev1.ListConversationResponse, error) {
	l.reads++
	return &loombridgev1.ListConversationResponse{Entries: l.entries[r.GetSessionId()]}, nil
}

// said is a conversation of texts, of the user and the assistant in turn.
func said(tb testing.TB, texts ...string) *talk {
	tb.Helper()
	var messages []map[string]string
	for i, text := range texts {
		messages = append(messages, map[string]string{"role": []string{"user", "assistant"}[i%2], "content": text})
	}
	body, err := json.Marshal(map[string]any{"messages": messages})
	must(tb, err)
	told, err := chat.parse(body, nil)
	must(tb, err)
	return told
}

// asked records a request.
func asked(tb testing.TB, r *recorder, p place, session string, told *talk) recorded {
	tb.Helper()
	c, err := r.find(tb.Context(), p, session, told)
	must(tb, err)
	return r.request(tb.Context(), c, session, told)
}

// A conversation goes on in its session, also for a recorder that does not know it, and in no
// other's.
func TestSessions(t *testing.T) {
	t.Parallel()
	l := &logs{entries: map[string][]*loombridgev1.ConversationEntry{}}
	fresh := func() *recorder { r := newRecorder(nil); r.sessions = l; return r }
	r, me := fresh(), place{"t", "me"}
	ask := func(r *recorder, p place, session string, told *talk, added int) string {
		t.Helper()
		out := asked(t, r, p, session, told)
		must(t, out.err)
		if out.added != added {
			t.Errorf("%d were added, want %d", out.added, added)
		}
		return out.to.session
	}
	first := ask(r, me, "", said(t, "A"), 1)
	if again := ask(r, me, "", said(t, "A"), 0); again != first {
		t.Error("a request that is repeated is another conversation")
	}
	ask(r, me, "", said(t, "A", "B", "C"), 2)
	reads := l.reads
	if on := ask(r, me, "", said(t, "A", " B\n", "C", "D", "E"), 2); on != first || l.reads != reads {
		t.Error("a conversation that goes on is not known")
	}
	other := ask(r, me, "", said(t, "A", "B", "X"), 3)
	if other == first {
		t.Error("another conversation is mixed in")
	}
	if ask(fresh(), me, "", said(t, "A", "B", "C", "D", "E", "F", "G"), 2) != first || ask(fresh(), me, "", said(t, "A", "B", "X", "Y", "Z"), 2) != other {
		t.Error("who does not know them does not find them by their logs")
	}
	if stranger := ask(r, place{"t", "you"}, "", said(t, "A"), 1); len(l.entries[stranger]) == 0 {
		t.Error("nothing is recorded for another agent")
	}
	ask(r, me, "mine", said(t, "A", "B", "C"), 3)
	ask(r, me, "mine", said(t, "summary", "B", "C", "D", "E"), 2)
	ask(r, me, "mine", said(t, "new"), 1)
	l.fail = fmt.Errorf("the disk is full")
	if out := asked(t, r, me, "", said(t, "P")); out.err == nil {
		t.Error("a failure is not told")
	}
	l.fail = nil
	ask(r, me, "", said(t, "P", "Q", "R"), 3)
}

// Conversations that were not used for long are forgotten.
func TestForgotten(t *testing.T) {
	t.Parallel()
	l := &logs{entries: map[string][]*loombridgev1.ConversationEntry{}}
	r := newRecorder(nil)
	r.sessions = l
	for i := range maxNames + 10 {
		if out := asked(t, r, place{"t", "me"}, "", said(t, fmt.Sprint("message ", i))); out.err != nil {
			t.Fatal(out.err)
		}
	}
	if known, first := r.known.Len(), r.byFirst.Len(); known != maxMarks/(1+besideMarks) || first != maxNames {
		t.Errorf("%d and %d are known", known, first)
	}
}

// Two elements that are found by the same key are told apart by their bytes.
func TestKnownElementsAreCompared(t *testing.T) {
	t.Parallel()
	one, two := []byte(`{"role":"user","content":"one"}`), []byte(`{"role":"user","content":"two"}`)
	k := newKnown()
	first, err := k.tell(chat, one)
	must(t, err)
	k.kept.Load().Put(keyOf(chat, two), first, 1)
	for range 2 {
		second, err := k.tell(chat, two)
		must(t, err)
		if got := second.message.GetContent(); got != "two" {
			t.Errorf("it says %q", got)
		}
	}
}
