package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func parse(t *testing.T, host, event, text string) Event {
	t.Helper()
	e, err := Parse(host, event, []byte(text))
	if err != nil {
		t.Fatalf("%s %s %s: %v", host, event, text, err)
	}
	return e
}

func TestRefusedInput(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		host, event, text string
		want              error
	}{
		{"emacs", "Stop", `{"session_id":"s"}`, ErrUnknown},
		{"", "Stop", `{"session_id":"s"}`, ErrUnknown},
		{"codex", "Nothing", `{"session_id":"s"}`, ErrUnknown},
		{"codex", "Stop", "", ErrInput},
		{"codex", "Stop", "{", ErrInput},
		{"codex", "Stop", "[]", ErrInput},
		{"codex", "Stop", `{"session_id":[]}`, ErrInput},
		{"codex", "Stop", "{}", ErrInput},
		{"codex", "Stop", `{"session_id":"\u0000"}`, ErrInput},
		{"codex", "PostToolUse", `{"session_id":"s"}`, ErrInput},
		{"codex", "Stop", strings.Repeat(" ", MaxInputBytes+1), ErrInput},
	} {
		if _, err := Parse(row.host, row.event, []byte(row.text)); !errors.Is(err, row.want) {
			t.Errorf("%s %s %.40q: %v", row.host, row.event, row.text, err)
		}
	}
}

// TestHosts: each host says the same in its own fields.
func TestHosts(t *testing.T) {
	t.Parallel()
	e := parse(t, "vscode", "sessionStart", "\uFEFF\uFEFF"+`{"sessionId":"s","cwd":"/a","workspace_roots":["/b","/c"],"source":"compact"}`)
	if e.Session != "s" || e.Project != "/b" || e.kind != started || e.source != "compact" {
		t.Errorf("%+v", e)
	}
	e = parse(t, "cursor", "beforeSubmitPrompt", `{"conversation_id":"c","session_id":"s","generation_id":"g","prompt":"hi"}`)
	if e.Session != "c" || e.turn != "g" || e.said != "hi" {
		t.Errorf("%+v", e)
	}
	e = parse(t, "codex", "stop", `{"session_id":"s","last_assistant_message":"done","text":"other"}`)
	if e.said != "done" {
		t.Errorf("%+v", e)
	}
	e = parse(t, "cursor", "afterAgentResponse", `{"session_id":"s","text":"reply","last_assistant_message":"other"}`)
	if e.said != "reply" {
		t.Errorf("%+v", e)
	}
	e = parse(t, "claude-code", "PostToolUseFailure", `{"session_id":"s","tool_name":"Bash"}`)
	if e.kind != failed || e.problem == "" {
		t.Errorf("a tool that failed did not say why: %+v", e)
	}
}

// TestReportsOfOtherTypes: what a host writes in another type than the others, or another
// encoding, is taken all the same.
func TestReportsOfOtherTypes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ event, text, want string }{
		{"UserPromptSubmit", `{"session_id":"s","timestamp":1704614400000,"prompt":"a"}`, "a"},
		{"UserPromptSubmit", `{"session_id":12,"turn_id":5,"prompt":7}`, "7"},
		{"UserPromptSubmit", `{"session_id":"s","prompt":[{"type":"text","text":"a"},{"type":"image","source":{"type":"file"}},"b"]}`, "a\n" + `{"source":{"type":"file"},"type":"image"}` + "\nb"},
		{"UserPromptSubmit", `{"session_id":"s","prompt":{"content":[{"text":"a"}]}}`, "a"},
		{"UserPromptSubmit", `{"session_id":"s","workspace_roots":"/a","prompt":"a"}`, "a"},
		{"UserPromptSubmit", `{"session_id":"s","workspace_roots":[{"uri":"x"},"/a"],"prompt":"a"}`, "a"},
		{"UserPromptSubmit", " \r\n\uFEFF\n" + `{"session_id":"s","prompt":"a"}` + "\r\n\x00", "a"},
		{"UserPromptSubmit", "\xff\xfe" + wide(`{"session_id":"s","prompt":"ü"}`, 0), "ü"},
		{"UserPromptSubmit", "\xfe\xff" + wide(`{"session_id":"s","prompt":"ü"}`, 1), "ü"},
		{"Stop", `{"session_id":"s","last_assistant_message":[{"type":"text","text":"done"}]}`, "done"},
		{"PostToolUseFailure", `{"session_id":"s","tool_name":"Bash","error":{"code":1,"message":"boom"}}`, "boom"},
		{"PostToolUseFailure", `{"session_id":"s","tool_name":"Bash","error":{"code":1}}`, `{"code":1}`},
		{"PostToolUseFailure", `{"session_id":"s","tool_name":"Bash","error":true}`, "true"},
	} {
		e := parse(t, "claude-code", row.event, row.text)
		if got := e.said + e.problem; got != row.want {
			t.Errorf("%.80q: %q, want %q", row.text, got, row.want)
		}
	}
}

// wide is a text of letters below U+0100 in UTF-16, with the low bytes at a place of each unit.
func wide(text string, low int) string {
	var out []byte
	for _, r := range text {
		unit := [2]byte{byte(r), byte(r)}
		unit[1-low] = 0
		out = append(out, unit[:]...)
	}
	return string(out)
}

// TestLongArguments: a call that was given more than the native API takes is recorded with the
// beginning of what is long.
func TestLongArguments(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 700_000)
	for _, row := range []struct{ input, want string }{
		{`{"path":"a","content":"` + long + `"}`, `{"content":"` + long[:maxMemberBytes] + `","path":"a"}`},
		{`"` + long + `"`, `{"input":"` + long[:maxMemberBytes] + `"}`},
	} {
		e := parse(t, "claude-code", "PostToolUse", `{"session_id":"s","tool_name":"Write","tool_input":`+row.input+`}`)
		if string(e.arguments) != row.want {
			t.Errorf("%d bytes: %.60s … %.60s", len(e.arguments), e.arguments, e.arguments[max(len(e.arguments)-60, 0):])
		}
	}
	var many strings.Builder
	for i := range 40 {
		many.WriteString(strings.Repeat(",", min(i, 1)) + `"m` + strings.Repeat("x", i) + `":"` + strings.Repeat("a", 60_000) + `"`)
	}
	e := parse(t, "claude-code", "PostToolUse", `{"session_id":"s","tool_name":"Write","tool_input":{`+many.String()+`}}`)
	if len(e.arguments) > maxArgumentsBytes || !json.Valid(e.arguments) {
		t.Errorf("%d bytes", len(e.arguments))
	}
}

func TestTools(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Bash": "Bash", "read_file": "host:read_file", "mcp__x__y": "mcp__x__y", "do it!": "do_it_", "ü": "_", strings.Repeat("a", 200): strings.Repeat("a", 128),
	} {
		if got := ToolName(name); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
	for name, want := range map[string]bool{
		"mcp__loom-bridge__memory_save": true, "MCP_loom_bridge_x": true, "loom-bridge:x": true, "mcp__other__loom-bridge": false, "Bash": false,
	} {
		if got := (Event{tool: ToolName(name)}).own(); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for given, want := range map[string][2]string{ // as what a tool was given, and as what it gave
		`{"a":1.10}`: {`{"a":1.10}`, `{"a":1.10}`}, `"{\"a\":1}"`: {`{"a":1}`, `"{\"a\":1}"`}, `null`: {"", ""}, ``: {"", ""},
		`"text"`: {`{"input":"text"}`, `"text"`}, `[1]`: {`{"input":[1]}`, `[1]`}, `7`: {`{"input":7}`, `7`}, `"{"`: {`{"input":"{"}`, `"{"`},
		`{"stdout":"a\n","stderr":"b"}`: {`{"stdout":"a\n","stderr":"b"}`, `"a\n[stderr]\nb"`},
		`{"stdout":"","stderr":""}`:     {`{"stdout":"","stderr":""}`, `""`}, `{"stdout":7}`: {`{"stdout":7}`, `{"stdout":7}`},
		`{"stderr":"b"}`: {`{"stderr":"b"}`, `{"stderr":"b"}`},
		`{"type":"text","file":{"filePath":"/a","content":"x\ny","numLines":2}}`: {`{"type":"text","file":{"filePath":"/a","content":"x\ny","numLines":2}}`, `"x\ny"`},
		`{"file":{"base64":"eA=="}}`: {`{"file":{"base64":"eA=="}}`, `{"file":{"base64":"eA=="}}`},
		`{"originalFile":"a","structuredPatch":[{"lines":["-a","+b"]},{"lines":["+c"]}]}`: {`{"originalFile":"a","structuredPatch":[{"lines":["-a","+b"]},{"lines":["+c"]}]}`, `"-a\n+b\n+c"`},
		`{"mode":"content","filenames":[],"content":"a:1:x"}`:                             {`{"mode":"content","filenames":[],"content":"a:1:x"}`, `"a:1:x"`},
		`{"filenames":["a","b"],"durationMs":3}`:                                          {`{"filenames":["a","b"],"durationMs":3}`, `"a\nb"`},
		`{"url":"u","result":"page","durationMs":3}`:                                      {`{"url":"u","result":"page","durationMs":3}`, `"page"`},
		`{"result":"x","more":1}`:                                                         {`{"result":"x","more":1}`, `{"result":"x","more":1}`},
		`{"oldTodos":[],"newTodos":[]}`:                                                   {`{"oldTodos":[],"newTodos":[]}`, ``},
	} {
		if got := string(asObject(json.RawMessage(given))); got != want[0] {
			t.Errorf("given %s: %s", given, got)
		}
		if got := string(asResult(json.RawMessage(given))); got != want[1] {
			t.Errorf("gave %s: %s", given, got)
		}
	}
}

// TestLongIDs: ids that are too long stay different from each other.
func TestLongIDs(t *testing.T) {
	t.Parallel()
	keys, sessions := map[string]bool{}, map[string]bool{}
	for _, id := range []string{
		"s", strings.Repeat("x", maxSessionBytes), strings.Repeat("x", maxSessionBytes-1) + "y", strings.Repeat("x", maxSessionBytes-5),
		strings.Repeat("x", maxSessionBytes+1), strings.Repeat("x", maxSessionBytes) + "y",
	} {
		e := parse(t, "codex", "stop", `{"session_id":"`+id+`"}`)
		if len(e.Session) > maxSessionBytes || len(e.savedKey()) > maxSessionBytes {
			t.Errorf("%d bytes of a session, %d of its key", len(e.Session), len(e.savedKey()))
		}
		keys[e.savedKey()], sessions[e.Session] = true, true
	}
	if len(keys) != 6 || len(sessions) != 6 {
		t.Errorf("of 6 sessions there are %d, and %d keys of what is saved", len(sessions), len(keys))
	}
}

// TestRequests: the same event is the same request, and another one another.
func TestRequests(t *testing.T) {
	t.Parallel()
	e, other := Event{Session: "s"}, Event{Session: "t"}
	dated, later := Event{Session: "s", once: "1"}, Event{Session: "s", once: "2"}
	ids := []string{
		e.request("w", "id", 7), e.request("w", "other", 7), e.request("v", "id", 7), other.request("w", "id", 7), e.request("w", "", 7),
		e.request("w", "", 8), dated.request("w", "", 7), later.request("w", "", 7),
	}
	seen := map[string]bool{}
	for _, id := range ids {
		seen[id] = true
	}
	if len(seen) != len(ids) {
		t.Errorf("different events have one request: %q", ids)
	}
	if e.request("w", "id", 7) != e.request("w", "id", 9) || dated.request("w", "", 7) != dated.request("w", "", 9) {
		t.Error("an event with an id is another request at another place")
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	const said = "<known> \"quoted\" ü\n"
	for _, row := range []struct{ host, text, want string }{
		{"cursor", "", "{}\n"},
		{"codex", "", "{}\n"},
		{"cursor", "x", `{"additional_context":"x"}` + "\n"},
		{"claude-code", "x", `{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"x"}}` + "\n"},
	} {
		if got := string((Event{host: row.host, name: "SessionStart"}).Answer(row.text)); got != row.want {
			t.Errorf("%s %q: %s", row.host, row.text, got)
		}
	}
	var back struct {
		Specific struct{ AdditionalContext string } `json:"hookSpecificOutput"`
	}
	if err := json.Unmarshal((Event{host: "codex"}).Answer(said), &back); err != nil || back.Specific.AdditionalContext != said {
		t.Errorf("%q, %v", back.Specific.AdditionalContext, err)
	}
}

// TestBounded: what is given back fits, keeps its beginning and its end, and says which
// session it is.
func TestBounded(t *testing.T) {
	t.Parallel()
	for _, e := range []Event{{}, {Session: "s"}, {Session: strings.Repeat("x", maxSessionBytes)}} {
		for _, n := range []int{0, 1, 100, maxContextChars, 5 * maxContextChars} {
			for _, letter := range []string{"x", "ü", "😀"} {
				known := "BEGIN" + strings.Repeat(letter, n) + "END"
				got := bounded(known, e)
				if len(got) > maxContextChars || !utf8.ValidString(got) || !strings.Contains(got, "BEGIN") || !strings.Contains(got, "END") || !strings.Contains(got, e.Session) {
					t.Errorf("session of %d, %d %s: %d bytes", len(e.Session), n, letter, len(got))
				}
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"session_id":"s","tool_name":"Bash","tool_input":"{\"a\":1}","tool_response":{"stdout":"x","stderr":"y"},"tool_use_id":"1"}`,
		`{"conversation_id":"s","prompt":"\ud800","timestamp":"t"}`, "\uFEFF{}", "{\"session_id\":\"\xff\"}",
	} {
		f.Add("cursor", "posttooluse", []byte(seed))
		f.Add("codex", "userpromptsubmit", []byte(seed))
	}
	f.Fuzz(func(t *testing.T, host, event string, text []byte) {
		e, err := Parse(host, event, bytes.Clone(text))
		if err != nil {
			if !errors.Is(err, ErrInput) && !errors.Is(err, ErrUnknown) {
				t.Error(err)
			}
			return
		}
		if e.Session == "" || len(e.Session) > maxSessionBytes || len(e.said) > maxSaidBytes || len(e.turn) > maxIDBytes || len(e.call) > maxIDBytes || len(e.tool) > maxToolBytes {
			t.Errorf("%+v", e)
		}
		for _, id := range []string{e.Session, e.turn, e.call, e.tool, e.said} {
			if !utf8.ValidString(id) {
				t.Errorf("%q is no text", id)
			}
		}
		if len(e.arguments) > 0 && (e.arguments[0] != '{' || !json.Valid(e.arguments)) || len(e.result) > 0 && !json.Valid(e.result) {
			t.Errorf("given %s, gave %s", e.arguments, e.result)
		}
		if !json.Valid(e.Answer(e.said)) {
			t.Errorf("%q is no answer", e.said)
		}
	})
}
