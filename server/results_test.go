package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// recordJSON records a result that is JSON text.
func recordJSON(tb testing.TB, s *servertest.Server, tool, args, output string) *loombridgev1.RecordStepResponse {
	tb.Helper()
	if args == "" {
		args = "{}"
	}
	got, err := s.Context.RecordStep(tb.Context(), &loombridgev1.RecordStepRequest{
		AgentId: agent, ToolName: tool, Success: true,
		ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: args},
		OutputForm:    &loombridgev1.RecordStepRequest_OutputJson{OutputJson: output},
	})
	must(tb, err)
	return got
}

// readName reads what a name leads to.
func readName(tb testing.TB, s *servertest.Server, name string) string {
	tb.Helper()
	_, data := MustReadBlob(tb, s, &loombridgev1.ReadBlobRequest{AgentId: agent, Name: name})
	return string(data)
}

// oddJSON is JSON that every rewriting would change, short and long.
func oddJSON() []string {
	short := []string{
		`[1,2,3]`, `[]`, `{}`, `null`, `true`, `3`, `1.0`, `-0.0`, `1e5`, `"text"`, `"\u0041\/\ud83d\ude00 ab\u0000c"`,
		` { "b" : 1.0 , "a" : [ 1e5, -0.0 ] } `, `{"error_code":"E42"}`, `{"stdout":"one\ntwo","pid":4}`,
		`{"stdout":"out","stderr":"err\n","exit_code":0}`, `{"stderr":"only","exit_code":1}`, `{"output":"a\/b","exit_code":0}`,
		`{"content":"caf\u00e9"}`, `{"a":1,"a":2}`, `{"results":[{"title":"t"}]}`, `{"text":"page","links":["l"],"status":200}`,
		`{"entries":["a","b/"]}`, `12345678901234567890123.4500`,
	}
	all := short
	for _, text := range short {
		all = append(all, text+strings.Repeat(" ", 1500), `{"n":1,"inner":`+text+`,"z":"`+strings.Repeat("long ", 4000)+`"}`)
	}
	for _, n := range []int{900, 3000, 40_000} {
		line := strings.Repeat(`a line of \"output\", caf\u00e9 \t\\n\n`, n/30)
		all = append(
			all, `{"stdout":"`+line+`","stderr":"and errors","exit_code":0,"pid":4}`, `{"content":"`+line+`","lines":3}`, `"`+line+`"`,
			`{"stdout":"`+strings.Repeat(`plain line\n`, n/10)+`","stderr":"","exit_code":0}`,
		)
	}
	return all
}

// A21, Q08: JSON comes back byte for byte by the id of its step, whatever the tool,
// and by path and ref, too.
func TestJSONComesBackAsItWas(t *testing.T) {
	s := servertest.Start(t, nil)
	for _, tool := range []string{"my:tool", "web:search", "browser:navigate", "fs:list_dir", "system:shell", "fs:read_file", "weather:get"} {
		for _, text := range oddJSON() {
			got := recordJSON(t, s, tool, `{"path":"a","command":"ls"}`, text)
			names := []string{got.GetStep().GetId()}
			if tool != "system:shell" && tool != "fs:read_file" { // whose paths lead to the output and the content alone
				names = append(names, got.GetStep().GetOutcomePath(), got.GetStep().GetOutcomeRef())
			}
			for _, name := range names {
				if name == "" {
					continue
				}
				if read := readName(t, s, name); read != text {
					t.Errorf("%s, %s: %.80q came back as %.80q", tool, name, text, read)
				}
			}
		}
	}
}

// A18: true and numbers are shown as they are, and keys stay; what is nothing is said to be
// done, in whichever form.
func TestScalarsAreShownAsTheyAre(t *testing.T) {
	s := servertest.Start(t, nil)
	for text, want := range map[string]string{
		`null`: "my:tool completed", `[]`: "my:tool completed", `{}`: "my:tool completed", `""`: "my:tool completed",
		`[null]`: "my:tool → [null]", `false`: "my:tool → false", `0`: "my:tool → 0", `true`: "my:tool → true", `3`: "my:tool → 3", `[1]`: "my:tool → [1]",
		`{"error_code":"E42"}`: `my:tool → {"error_code": "E42"}`,
	} {
		if got := recordJSON(t, s, "my:tool", "", text).GetObservation(); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// X01: the observations of a session are in the style of its preset, by the server's own
// tools and by RecordStep, and change with it.
func TestObservationsOfASessionsPreset(t *testing.T) {
	s := servertest.Start(t, nil)
	MustWrite(t, s, "a.txt", "some text")
	for _, tt := range []struct{ preset, read, search string }{
		{"design", "Read file (9 bytes)", "Found 3 results"},
		{"reduction", "Read a.txt (9 bytes, text)", "Found 3 results for 'q'"},
		{"three_phase", "Read a.txt (9 bytes, text)", "Found 3 results for 'q'"},
		{"", "Read a.txt (9 bytes, text)", "Found 3 results for 'q'"},
	} {
		session := "of " + tt.preset
		if tt.preset != "" {
			MustConfigure(t, s, &loombridgev1.ConfigureSessionRequest{SessionId: session, History: &loombridgev1.HistorySettings{Preset: tt.preset}})
		}
		read, err := s.Bridge.Tool(t.Context(), &loombridgev1.ToolRequest{
			AgentId: agent, SessionId: session, Name: "fs:read_file", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"path":"a.txt"}`},
		})
		must(t, err)
		found, err := s.Context.RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
			AgentId: agent, SessionId: session, ToolName: "web:search", Success: true, ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: `{"query":"q"}`},
			OutputForm: &loombridgev1.RecordStepRequest_OutputJson{OutputJson: `{"results":[{"title":"a"},{"title":"b"},{"title":"c"}]}`},
		})
		must(t, err)
		if got := read.GetStep().GetObservation(); got != tt.read {
			t.Errorf("%q: a file was %q, want %q", tt.preset, got, tt.read)
		}
		if got := found.GetStep().GetObservation(); got != tt.search {
			t.Errorf("%q: a search was %q, want %q", tt.preset, got, tt.search)
		}
	}
}

// A09: a file that is no text, however short, is bytes in a blob.
func TestShortBinaryFilesAreKept(t *testing.T) {
	s := servertest.Start(t, nil)
	for name, data := range map[string]string{"nul.bin": "ab\x00c", "short.bin": "\x00\x01", "long.bin": strings.Repeat("\x00\xff", 700)} {
		MustWrite(t, s, name, data)
		got := MustRead(t, s, agent, name)
		if want := fmt.Sprintf("Read %s (%d bytes, binary)", name, len(data)); !got.GetSuccess() || got.GetStep().GetObservation() != want {
			t.Errorf("%s: %q", name, got.GetStep().GetObservation())
		}
		if kind := got.GetOutputBlob().GetKind(); kind != "binary" {
			t.Errorf("%s: the blob is %q", name, kind)
			continue
		}
		for _, name := range []string{got.GetStep().GetId(), got.GetOutputBlob().GetPath(), got.GetOutputBlob().GetRef()} {
			if read := readName(t, s, name); read != data {
				t.Errorf("%s came back as %q", name, read)
			}
		}
	}
}

// What a prompt can't show of a text that JSON holds, it says how to read as text.
func TestLongTextsInJSONReadAsText(t *testing.T) {
	s := servertest.Start(t, nil)
	text := textAbout("a long text in JSON")
	text += strings.Repeat(text, 1+20_000/len(text))
	for tool, output := range map[string]any{"my:tool": text, "bash": map[string]any{"output": text, "exit_code": 0}} {
		got := recordJSON(t, s, tool, "", string(mustJSON(t, output)))
		name := got.GetStep().GetId() + ".txt"
		if !strings.Contains(got.GetStep().GetInline(), " bytes left out; full text: see reference; as text: "+name+"]") {
			t.Errorf("%s shows %.300q", tool, got.GetStep().GetInline())
		}
		if read := readName(t, s, name); read != text {
			t.Errorf("%s: ReadBlob gives %.60q", tool, read)
		}
		answer := MustRead(t, s, agent, name)
		if read, _ := content(t, answer); read != text {
			t.Errorf("%s: fs:read_file gives %.60q", tool, read)
		}
	}
}

// FuzzResultsComeBack: whatever is recorded comes back.
func FuzzResultsComeBack(f *testing.F) {
	for i, text := range append(oddJSON(), "", "ab\x00c", "\xff\xfe", "\x89PNG\r\n\x1a\n", "data:image/png;base64,iVBORw0KGgo=") {
		f.Add([]byte(text), uint8(i))
	}
	s := servertest.Start(f, nil)
	tools := []string{"my:tool", "web:search", "browser:navigate", "fs:list_dir", "system:shell", "fs:read_file", "fs:write_file", "weather:get"}
	f.Fuzz(func(t *testing.T, data []byte, kind uint8) {
		r := &loombridgev1.RecordStepRequest{AgentId: agent, ToolName: tools[int(kind)%len(tools)], Success: kind < 200}
		switch {
		case kind%3 == 0 && utf8.Valid(data):
			r.OutputForm = &loombridgev1.RecordStepRequest_OutputText{OutputText: string(data)}
		case kind%3 == 1 && utf8.Valid(data) && json.Valid(data):
			r.OutputForm = &loombridgev1.RecordStepRequest_OutputJson{OutputJson: string(data)}
		default:
			r.OutputForm = &loombridgev1.RecordStepRequest_OutputBytes{OutputBytes: &loombridgev1.ResultBytes{Data: data}}
		}
		got, err := s.Context.RecordStep(t.Context(), r)
		must(t, err)
		_, read := MustReadBlob(t, s, &loombridgev1.ReadBlobRequest{AgentId: agent, Name: got.GetStep().GetId(), Form: loombridgev1.BlobForm_BLOB_FORM_ORIGINAL})
		if !bytes.Equal(read, data) {
			t.Fatalf("%v of %s: %q came back as %q", r.GetOutputForm(), r.GetToolName(), data, read)
		}
		for _, form := range []loombridgev1.BlobForm{loombridgev1.BlobForm_BLOB_FORM_TEXT, loombridgev1.BlobForm_BLOB_FORM_UNSPECIFIED} {
			MustReadBlob(t, s, &loombridgev1.ReadBlobRequest{AgentId: agent, Name: got.GetStep().GetId(), Form: form})
		}
	})
}

// P26: what a summary of a task refers to can be read.
func TestTasksReadBackByReference(t *testing.T) {
	s := servertest.Start(t, nil)
	_, err := s.Context.RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
		AgentId: agent, SessionId: "elsewhere", ToolName: "planner", Success: true,
		Task: &loombridgev1.Task{TaskId: "t000", Action: "execute", Result: "done"},
	})
	must(t, err)
	if got := readName(t, s, "task/t000"); !strings.Contains(got, `"task_id":"t000"`) || !strings.Contains(got, `"result":"done"`) {
		t.Errorf("read_blob gives %q", got)
	}
	if got := MustRead(t, s, agent, "task/t000"); !strings.Contains(got.GetOutputJson(), `\"task_id\":\"t000\"`) {
		t.Errorf("fs:read_file gives %v", got)
	}
}

// A16: a call that was refused says so, once.
func TestRefusedCallsAreRecordedAsRefused(t *testing.T) {
	s := servertest.Start(t, nil)
	got, err := s.Context.RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
		AgentId: agent, ToolName: "system:shell", ErrorMessage: "Tool not found: system:shell",
		ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: `{"command":"ls -l"}`},
	})
	must(t, err)
	if want := "ls: refused: Tool not found: system:shell"; got.GetObservation() != want {
		t.Errorf("%q, want %q", got.GetObservation(), want)
	}
	prompt, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
		AgentId: agent, Settings: &loombridgev1.PromptSettings{Sources: &loombridgev1.SourceSettings{Exclude: []string{"errors"}}},
	})
	must(t, err)
	if text := shownIn(prompt); strings.Count(text, "Tool not found: system:shell") != 1 || strings.Contains(text, "exit -1") {
		t.Errorf("the prompt shows\n%s", text)
	}
}

// The server refuses commands itself, too, and a tool that needs a person's consent.
func TestCallsTheServerRefusesAreRecordedAsRefused(t *testing.T) {
	s := servertest.Start(t, nil)
	got, err := s.Bridge.Tool(t.Context(), &loombridgev1.ToolRequest{
		AgentId: agent, Name: "system:shell",
		ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"command":"ls -l"}`},
	})
	must(t, err)
	const reason = "Permission denied: Command 'ls -l' is not allowed"
	if want := "ls: refused: " + reason; got.GetStep().GetObservation() != want || !got.GetStep().GetRefused() {
		t.Errorf("step %v, want %q", got.GetStep(), want)
	}
	if code := got.GetErrorCode(); code != loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_PERMISSION_DENIED {
		t.Errorf("code %v", code)
	}
	prompt, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
		AgentId: agent, Settings: &loombridgev1.PromptSettings{Sources: &loombridgev1.SourceSettings{Exclude: []string{"errors"}}},
	})
	must(t, err)
	if text := shownIn(prompt); strings.Count(text, reason) != 1 || strings.Contains(text, "exit -1") {
		t.Errorf("the prompt shows\n%s", text)
	}
}

// I19: what a cut says of its size is true, and its own words name nothing.
func TestCutsTellTheTruth(t *testing.T) {
	s := servertest.Start(t, nil)
	var text strings.Builder
	for i := 0; text.Len() < 60_000; i++ {
		fmt.Fprintf(&text, "<%d> alpha beta gamma delta epsilon zeta eta theta\n", i)
	}
	recordJSON(t, s, "my:tool", "", string(mustJSON(t, text.String())))
	prompt, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, MaxTokens: 1 << 20})
	must(t, err)
	shown := shownIn(prompt)
	_, mark, found := strings.Cut(shown, "[...")
	mark, _, _ = strings.Cut(mark, "]")
	if !found {
		t.Fatalf("the prompt shows\n%.3000s", shown)
	}
	var missing int
	if _, err := fmt.Sscanf(mark, "%d bytes omitted.", &missing); err != nil {
		t.Fatalf("%v: %s", err, mark)
	}
	stays := 0
	for line := range strings.Lines(text.String()) {
		if strings.Contains(shown, line) {
			stays += len(line)
		}
	}
	if left := text.Len() - stays; missing < left-200 || missing > left+200 {
		t.Errorf("%s, but %d are missing", mark, left)
	}
	if strings.Contains(mark, fmt.Sprint("they name: ", missing)) || strings.Count(shown, " bytes") > strings.Count(mark, " bytes") {
		t.Errorf("the words of a cut pass for a name: %s", shown)
	}
}

// J09: no prompt shows the bytes of an image as text.
func TestPromptsShowNoBase64(t *testing.T) {
	image := strings.Repeat("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ", 300)
	for name, text := range map[string]string{
		"a data URL":  `"data:image/png;base64,` + image + `"`,
		"MCP":         `{"content":[{"type":"text","text":"a screenshot"},{"type":"image","data":"` + image + `","mimeType":"image/png"}]}`,
		"in a text":   `"<p>a page <img src='data:image/png;base64,` + image + `'> and more</p>"`,
		"in a page":   `{"html":"<img src='data:image/png;base64,` + image + `'>","n":1}`,
		"under a key": `{"screenshot":"data:image/png;base64,` + image + `","title":"home"}`,
	} {
		s := servertest.Start(t, nil)
		got := recordJSON(t, s, "my:tool", "", text)
		prompt, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent})
		must(t, err)
		if shown := shownIn(prompt); strings.Contains(shown, image[:40]) || !strings.Contains(shown, "[image image/png 1x1, "+got.GetStep().GetOutcomePath()+"]") {
			t.Errorf("%s: the prompt shows\n%.600s", name, shown)
		}
		if read := readName(t, s, got.GetStep().GetId()); read != text {
			t.Errorf("%s came back as %.80q", name, read)
		}
	}
}

// J09: nor as the text of a tool's message, however the client has written it.
func TestToolMessagesShowNoBase64(t *testing.T) {
	image := strings.Repeat("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ", 300)
	url := "data:image/png;base64," + image
	for name, content := range map[string]string{
		"a data URL":  url,
		"in a text":   "seen: <img src='" + url + "'> and more",
		"in JSON":     `{"screenshot": "` + url + `", "title": "home"}`,
		"MCP":         `{"content": [{"type": "text", "text": "and more"}, {"type": "image", "data": "` + image + `", "mimeType": "image/png"}]}`,
		"Anthropic":   `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + image + `"}}]`,
		"below words": "a screenshot:\n" + `{"type": "image", "data": "` + image + `", "mimeType": "image/png"}` + "\nand more",
	} {
		for _, called := range []bool{true, false} {
			s := servertest.Start(t, nil)
			messages := []*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_USER, Content: "look"}}
			if called {
				messages = append(messages, &loombridgev1.Message{Role: loombridgev1.Role_ROLE_ASSISTANT, ToolCalls: []*loombridgev1.ModelToolCall{{Id: "c1", Name: "look", ArgumentsJson: "{}"}}})
			}
			messages = append(messages, &loombridgev1.Message{Role: loombridgev1.Role_ROLE_TOOL, ToolCallId: "c1", Content: content})
			_, err := s.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: "s", Messages: messages})
			must(t, err)
			ref := fmt.Sprintf("message_%03d", len(messages))
			for _, format := range []loombridgev1.PromptFormat{loombridgev1.PromptFormat_PROMPT_FORMAT_NEUTRAL, loombridgev1.PromptFormat_PROMPT_FORMAT_OPENAI_CHAT} {
				prompt, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s", Format: format})
				must(t, err)
				shown := shownIn(prompt) + prompt.GetPromptJson()
				if strings.Contains(shown, image[:40]) || !strings.Contains(shown, "[image image/png 1x1, "+ref+"]") || strings.Contains(content, "and more") && !strings.Contains(shown, "and more") {
					t.Errorf("%s, called %t: the prompt shows\n%.600s", name, called, shown)
				}
			}
		}
	}
}

// B16: names in folds are those that the decoded text says.
func TestNamesInFoldsAreDecoded(t *testing.T) {
	s := servertest.Start(t, nil)
	filler := strings.Repeat(`filler line of plain words\n`, 60)
	for range 12 {
		recordJSON(t, s, "my:tool", "", `{"status":"ok","log":"`+filler+`src/app/main.py\tsrc/app/db.py\nConnectionError\nCVE-2024-31337\n`+filler+`"}`)
	}
	folded, err := s.Context.CompactHistory(t.Context(), &loombridgev1.CompactHistoryRequest{AgentId: agent})
	must(t, err)
	prompt, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent})
	must(t, err)
	text := shownIn(prompt)
	for _, wrong := range []string{"nsrc/", "tsrc/", "nConnectionError", "nCVE-"} {
		at := strings.Index(strings.ReplaceAll(text, `\`+wrong, ""), wrong)
		if at >= 0 {
			t.Errorf("%s: %.200s", wrong, text[max(at-100, 0):])
		}
	}
	if !strings.Contains(text, "src/app/main.py") {
		t.Errorf("nothing is named: %v\n%.2000s", folded, text)
	}
}
