package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// said is one message of each form, in the session "said".
func said() []*loombridgev1.Message {
	return []*loombridgev1.Message{
		{Role: loombridgev1.Role_ROLE_USER, Content: "  Ça va?\n\n\t<b>\u2028</b>  "},
		{Role: loombridgev1.Role_ROLE_ASSISTANT, Content: "Let me look.", ToolCalls: []*loombridgev1.ModelToolCall{
			{Id: "c1", Name: "bash", ArgumentsJson: `{ "command": "ls  -l" }`}, {Id: "c2", Name: "odd", ArgumentsJson: "no {JSON"},
		}},
		{Role: loombridgev1.Role_ROLE_TOOL, ToolCallId: "c1", Content: strings.Repeat("a line of output\n", 20_000)},
		{Role: loombridgev1.Role_ROLE_ASSISTANT, BlocksJson: `[ {"type":"text", "text":"one\ttwo", "n": 12345678901234567890.50} ]`},
	}
}

// wantSaid is how the messages read.
func wantSaid() map[string]string {
	m := said()
	return map[string]string{
		"message_001": m[0].GetContent(),
		"message_002": "Let me look.\n[call c1] bash\n" + `{ "command": "ls  -l" }` + "\n[call c2] odd\nno {JSON",
		"message_003": m[2].GetContent(),
		"message_004": m[3].GetBlocksJson(),
	}
}

// readBench is an agent with everything that can be read back.
type readBench struct {
	*servertest.Server
	want map[string]string // by name, in session "said"
}

func MustReadBench(tb testing.TB, opts *servertest.Options) *readBench {
	tb.Helper()
	b := &readBench{servertest.Start(tb, opts), wantSaid()}
	_, err := b.Context.AppendMessages(tb.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: "said", Messages: said()})
	must(tb, err)
	b.want["step_001"] = `{ "short":"stays in the log","exit":0.0 }`
	b.record(tb, b.want["step_001"])
	b.want["step_002"] = textAbout("step 2")
	long := b.recordText(tb, textAbout("step 2")).GetOutputBlob()
	b.want[long.GetPath()], b.want[long.GetRef()] = textAbout("step 2"), textAbout("step 2")
	return b
}

func (b *readBench) record(tb testing.TB, output string) *loombridgev1.RecordStepResponse {
	tb.Helper()
	return b.recordStep(tb, &loombridgev1.RecordStepRequest{OutputForm: &loombridgev1.RecordStepRequest_OutputJson{OutputJson: output}})
}

func (b *readBench) recordText(tb testing.TB, output string) *loombridgev1.RecordStepResponse {
	tb.Helper()
	return b.recordStep(tb, &loombridgev1.RecordStepRequest{OutputForm: &loombridgev1.RecordStepRequest_OutputText{OutputText: output}})
}

// recordStep records a step with the result that a request has.
func (b *readBench) recordStep(tb testing.TB, r *loombridgev1.RecordStepRequest) *loombridgev1.RecordStepResponse {
	tb.Helper()
	r.AgentId, r.SessionId, r.ToolName, r.Success, r.Thought = agent, "said", "my.tool", true, "I record"
	r.ArgumentsForm = &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: `{"z":[1,2,3],"a":"` + strings.Repeat("long ", 100) + `"}`}
	got, err := b.Context.RecordStep(tb.Context(), r)
	must(tb, err)
	return got
}

// blob reads through ReadBlob in the session "said".
func (b *readBench) blob(tb testing.TB, name string) (*loombridgev1.BlobInfo, string) {
	tb.Helper()
	info, content := MustReadBlob(tb, b.Server, &loombridgev1.ReadBlobRequest{AgentId: agent, SessionId: "said", Name: name})
	return info, string(content)
}

// file reads through fs:read_file in a session.
func (b *readBench) file(tb testing.TB, session string, args map[string]any) *loombridgev1.ToolResponse {
	tb.Helper()
	text, err := json.Marshal(args)
	must(tb, err)
	got, err := b.Bridge.Tool(convert.AskText(tb.Context()), &loombridgev1.ToolRequest{
		AgentId: agent, SessionId: session, Name: "fs:read_file",
		ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: string(text)},
	})
	must(tb, err)
	return got
}

// content is the text that a read gave, and the whole answer.
func content(tb testing.TB, r *loombridgev1.ToolResponse) (string, map[string]any) {
	tb.Helper()
	var out map[string]any
	must(tb, json.Unmarshal([]byte(r.GetOutputJson()), &out))
	text, _ := out["content"].(string)
	return text, out
}

// A21, P13, Q08: whatever a prompt left out comes back byte for byte, through
// the tool and through ReadBlob, before and after a restart.
func TestEverythingReadsBack(t *testing.T) {
	engine := memkv.New(nil)
	defer func() { must(t, engine.Close()) }()
	var want map[string]string
	check := func(t *testing.T, b *readBench) {
		for _, name := range slices.Sorted(maps.Keys(b.want)) {
			info, got := b.blob(t, name)
			if got != b.want[name] {
				t.Errorf("ReadBlob %s: %d bytes, want %d: %.60q", name, len(got), len(b.want[name]), got)
			}
			if info.GetSize() != int64(len(got)) {
				t.Errorf("%s: the description says %d bytes", name, info.GetSize())
			}
			if got, _ := content(t, b.file(t, "said", map[string]any{"path": name})); got != b.want[name] {
				t.Errorf("fs:read_file %s: %d bytes, want %d: %.60q", name, len(got), len(b.want[name]), got)
			}
			for _, part := range []struct{ offset, limit int64 }{{0, 1}, {3, 7}, {0, 1 << 40}, {1 << 40, 5}} {
				_, got := MustReadBlob(t, b.Server, &loombridgev1.ReadBlobRequest{AgentId: agent, SessionId: "said", Name: name, Offset: part.offset, Limit: part.limit})
				size := int64(len(b.want[name]))
				if want := b.want[name][min(part.offset, size):min(part.offset+part.limit, size)]; string(got) != want {
					t.Errorf("%s %v: got %.60q, want %.60q", name, part, got, want)
				}
			}
		}
	}
	t.Run("recorded", func(t *testing.T) {
		b := MustReadBench(t, &servertest.Options{Engine: engine})
		want = b.want
		check(t, b)
	})
	t.Run("after a restart", func(t *testing.T) {
		check(t, &readBench{servertest.Start(t, &servertest.Options{Engine: engine}), want})
	})
}

// B12: each step is a file of the history in both of its forms.
func TestHistoryFiles(t *testing.T) {
	b := MustReadBench(t, nil)
	var full map[string]any
	info, text := b.blob(t, "workspace/history/step_002.json")
	must(t, json.Unmarshal([]byte(text), &full))
	for key, want := range map[string]any{
		"id": "step_002", "number": 2., "tool_name": "my.tool", "thought": "I record", "outcome": "succeeded", "session_id": "said",
		"outcome_path": "workspace/outputs/tool_002.txt",
		"args":         map[string]any{"z": []any{1., 2., 3.}, "a": strings.Repeat("long ", 100)},
	} {
		if diff := cmp.Diff(want, full[key]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
	if info.GetKind() != "json" || info.GetRef() != "" || info.GetPath() != "workspace/history/step_002.json" || info.GetStepId() != "step_002" || info.GetSessionId() != "said" {
		t.Errorf("info = %v", info)
	}
	_, line := b.blob(t, "workspace/history/step_002.compact")
	if !strings.HasPrefix(line, "my.tool({") || strings.Contains(line, "\n") {
		t.Errorf("compact line %q", line)
	}
	for path, want := range map[string]string{
		"workspace/history/step_002.json": text, "history/step_002.json": text, "./history//step_002.json": text,
		"workspace/history/step_002.compact": line, "history/step_002.compact": line,
		"workspace/history/step_002.txt": textAbout("step 2"), "history/message_001.txt": said()[0].GetContent(),
	} {
		if got, _ := content(t, b.file(t, "said", map[string]any{"path": path})); got != want {
			t.Errorf("%s: got %.100q", path, got)
		}
		if _, got := b.blob(t, path); got != want {
			t.Errorf("ReadBlob %s: got %.100q", path, got)
		}
	}
	_, document := b.blob(t, "workspace/history/message_002.json")
	var message map[string]any
	must(t, json.Unmarshal([]byte(document), &message))
	delete(message, "time")
	want := map[string]any{
		"id": "message_002", "position": 2., "role": "assistant", "content": "Let me look.",
		"tool_calls": []any{
			map[string]any{"id": "c1", "name": "bash", "arguments": `{ "command": "ls  -l" }`},
			map[string]any{"id": "c2", "name": "odd", "arguments": "no {JSON"},
		},
	}
	if diff := cmp.Diff(want, message); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	b.put(t, "history/step_002.json", "a file of the agent")
	b.put(t, "workspace/history/step_002.json", "a file of the agent")
	b.put(t, "step_002", "a file of the agent")
	for path, want := range map[string]string{
		"history/step_002.json": "a file of the agent", "./step_002": "a file of the agent",
		"step_002": textAbout("step 2"), "workspace/history/step_002.json": text,
	} {
		if got, _ := content(t, b.file(t, "said", map[string]any{"path": path})); got != want {
			t.Errorf("%s beside a file: got %.100q", path, got)
		}
	}
}

func (b *readBench) put(tb testing.TB, path, text string) {
	tb.Helper()
	got, err := b.Bridge.Tool(tb.Context(), &loombridgev1.ToolRequest{
		AgentId: "somebody", Name: "fs:write_file",
		ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: fmt.Sprintf(`{"path":%q,"content":%q}`, filepath.ToSlash(path), text)},
	})
	must(tb, err)
	if !got.GetSuccess() {
		tb.Fatal(got.GetErrorMessage())
	}
}

// P13: text that was read back is never stored again, however often and by
// whatever name it is read, and its step leads to where it came from.
func TestReadBackMakesNoBlob(t *testing.T) {
	b := MustReadBench(t, nil)
	before := MustList(t, b.Server, &loombridgev1.ListBlobsRequest{})
	name := "message_003" // far longer than what is offloaded
	want := said()[2].GetContent()
	for range 5 {
		for _, args := range []map[string]any{{"path": name}, {"path": name, "offset": 10, "limit": 5000}, {"path": name, "offset_bytes": 5, "limit_bytes": 50_000}} {
			got := b.file(t, "said", args)
			text, _ := content(t, got)
			if !got.GetSuccess() || got.GetOutputBlob() != nil || !strings.Contains(want, text) || len(args) == 1 && text != want {
				t.Fatalf("%v: %v, blob %v, %d bytes", args, got.GetSuccess(), got.GetOutputBlob(), len(text))
			}
			if s := got.GetStep(); s.GetOutcomeRef() != "" || s.GetOutcomePath() != "workspace/history/message_003.txt" {
				t.Fatalf("%v: the step refers to %q %q", args, s.GetOutcomeRef(), s.GetOutcomePath())
			}
			name = got.GetStep().GetId() // the next one reads what this one read
			if _, got := b.blob(t, name); got != want {
				t.Fatalf("%s: %d bytes, want %d", name, len(got), len(want))
			}
		}
	}
	name = "workspace/history/step_002.json"
	for range 3 {
		got := b.file(t, "other", map[string]any{"path": name})
		if _, direct := b.blob(t, "workspace/history/step_002.json"); got.GetOutputBlob() != nil || got.GetStep().GetOutcomePath() != "workspace/history/step_002.json" {
			t.Fatalf("%s: %d bytes, %v", name, len(direct), got)
		}
		name = got.GetStep().GetId()
	}
	name = "step_002"
	for range 3 {
		got := b.file(t, "said", map[string]any{"path": name})
		if text, _ := content(t, got); text != textAbout("step 2") || got.GetOutputBlob().GetPath() != "workspace/outputs/tool_002.txt" {
			t.Fatalf("%s: %d bytes from %v", name, len(text), got.GetOutputBlob())
		}
		name = got.GetStep().GetId()
	}
	if after := MustList(t, b.Server, &loombridgev1.ListBlobsRequest{}); len(after) != len(before) {
		t.Errorf("%d blobs became %d", len(before), len(after))
	}
}

// P13: what a prompt can't show of a text that was read, it says how to read on,
// and whoever does so has seen every byte.
func TestPromptTellsHowToReadOn(t *testing.T) {
	var lines strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&lines, "%d: %x and nothing else, naïve\n", i, i*i*i)
	}
	for name, text := range map[string]string{"lines": lines.String(), "one line": strings.ReplaceAll(lines.String(), "\n", " ")} {
		t.Run(name, func(t *testing.T) {
			b := &readBench{Server: servertest.Start(t, nil)}
			name := MustOffload(t, b.Server, "another", text).GetPath()
			blobs := len(MustList(t, b.Server, &loombridgev1.ListBlobsRequest{}))
			var all strings.Builder
			args := map[string]any{"path": name}
			for i := range 100 {
				// A session shows nothing again that it has shown, so each read is in
				// one of its own.
				session := fmt.Sprint("reads ", i)
				b.file(t, session, args)
				head, more := b.head(t, session)
				if next, ok := args["offset"].(int); ok && head == "" {
					t.Fatalf("offset %d shows nothing", next)
				}
				all.WriteString(head)
				if more == nil {
					break
				}
				args = more
				args["path"] = name
			}
			if got := all.String(); strings.TrimSpace(got) != strings.TrimSpace(text) {
				at := 0
				for at < min(len(got), len(text)) && got[at] == text[at] {
					at++
				}
				t.Errorf("read %d of %d bytes; first difference at %d: %.80q, want %.80q", len(got), len(text), at, got[at:], text[at:])
			}
			if after := len(MustList(t, b.Server, &loombridgev1.ListBlobsRequest{})); after != blobs {
				t.Errorf("%d blobs became %d", blobs, after)
			}
		})
	}
}

// readOnMark is what a prompt says in place of the middle.
var readOnMark = regexp.MustCompile(`(?s)^(.*?)\n\[(?:\.\.\.\d+ (?:chars|bytes) omitted|… \d+ bytes left out)[^\n]*?(?:; read on with (offset|offset_bytes) (\d+)[^\n]*)?\]\n`)

// head is what a session's last prompt shows of the text that was read last,
// up to what it leaves out, and how to read on behind that.
func (b *readBench) head(tb testing.TB, session string) (string, map[string]any) {
	tb.Helper()
	prompt, err := b.Context.Assemble(tb.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: session, MaxTokens: 1 << 20})
	must(tb, err)
	last := prompt.GetMessages()[len(prompt.GetMessages())-1].GetContent()
	_, shown, found := strings.Cut(last, "\n") // behind the observation
	shown = strings.TrimPrefix(shown, "Use fs:read_file to retrieve if needed.\n")
	if !found {
		tb.Fatalf("prompt shows %.200q", last)
	}
	mark := readOnMark.FindStringSubmatch(shown)
	if mark == nil {
		return shown, nil
	}
	at, err := strconv.Atoi(mark[3])
	if err != nil {
		tb.Fatalf("does not say how to read on: %.300q", shown[len(mark[1]):])
	}
	if mark[2] == "offset" {
		return mark[1] + "\n", map[string]any{"offset": at, "limit": 1_000_000}
	}
	return mark[1], map[string]any{"offset_bytes": at, "limit_bytes": 1_000_000}
}

// P12: a prompt that hides results keeps a line and the path.
func TestHiddenResultKeepsItsPath(t *testing.T) {
	b := MustReadBench(t, nil)
	prompt, err := b.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{
		AgentId: agent, SessionId: "said", MaxTokens: 1 << 20, History: &loombridgev1.HistorySettings{Preset: "design"},
	})
	must(t, err)
	var all strings.Builder
	for _, m := range prompt.GetMessages() {
		all.WriteString(m.GetContent())
	}
	if !strings.Contains(all.String(), "workspace/outputs/tool_002.txt") || strings.Contains(all.String(), "line 150 about step 2") {
		t.Errorf("the prompt: %.2000s", all.String())
	}
}

// P12: each use by any name keeps the blob for the session that used it.
func TestUseKeepsABlob(t *testing.T) {
	engine := memkv.New(nil)
	defer func() { must(t, engine.Close()) }()
	var unused string
	t.Run("used", func(t *testing.T) {
		b := MustReadBench(t, &servertest.Options{Engine: engine})
		unused = MustOffload(t, b.Server, "said", textAbout("unused")).GetRef()
		for i, name := range []string{"step_002", "outputs/tool_002.txt", b.ref(t, "step_002")[:12]} {
			b.file(t, fmt.Sprint("user ", i), map[string]any{"path": name})
		}
		b.end(t, "said")
	})
	// A new server knows no tool that is still reading.
	b := &readBench{Server: servertest.Start(t, &servertest.Options{Engine: engine})}
	b.Clock.Advance(25 * time.Hour)
	var got []string
	for limit := time.Now().Add(5 * time.Minute); len(got) == 0 && time.Now().Before(limit); { // the names in the log are counted first
		got = MustCollect(t, b.Server, false).GetDeletedRefs()
	}
	if !slices.Equal(got, []string{unused}) {
		t.Errorf("collected %v, not what nobody used: %s", got, unused)
	}
	for i := range 3 {
		if got := MustCollect(t, b.Server, false); got.GetDeletedCount() != 0 || got.GetKept()["referenced"] != 1 {
			t.Errorf("with %d users: %v", 3-i, got)
		}
		b.end(t, fmt.Sprint("user ", i))
	}
	if got := MustCollect(t, b.Server, false); got.GetDeletedCount() != 1 {
		t.Errorf("without users: %v", got)
	}
}

func (b *readBench) end(tb testing.TB, session string) {
	tb.Helper()
	_, err := b.Context.EndSession(tb.Context(), &loombridgev1.EndSessionRequest{AgentId: agent, SessionId: session})
	must(tb, err)
}

func (b *readBench) ref(tb testing.TB, name string) string {
	tb.Helper()
	info, _ := b.blob(tb, name)
	return info.GetRef()
}

// A repeated call gives the first answer, also when it read from the log.
func TestReadBackOnce(t *testing.T) {
	b := MustReadBench(t, nil)
	for _, name := range []string{"message_003", "step_001", "step_002"} {
		request := &loombridgev1.ToolRequest{
			AgentId: agent, SessionId: "said", Name: "fs:read_file", RequestId: "once " + name,
			ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"path":"` + name + `"}`},
		}
		first, err := b.Bridge.Tool(convert.AskText(t.Context()), request)
		must(t, err)
		again, err := b.Bridge.Tool(convert.AskText(t.Context()), request)
		must(t, err)
		if first.GetOutputJson() != again.GetOutputJson() || again.GetStep().GetId() != first.GetStep().GetId() {
			t.Errorf("%s: %v, then %v", name, first, again)
		}
	}
}

// Messages are those of the caller's session, steps those of the agent.
func TestReadBackKeepsSessionsAndAgentsApart(t *testing.T) {
	b := MustReadBench(t, nil)
	_, err := b.Context.AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: agent, Messages: said()[3:]})
	must(t, err)
	if _, got := MustReadBlob(t, b.Server, &loombridgev1.ReadBlobRequest{AgentId: agent, Name: "message_001"}); string(got) != said()[3].GetBlocksJson() {
		t.Errorf("the default session's message: %q", got)
	}
	if got, _ := content(t, b.file(t, "", map[string]any{"path": "message_001"})); got != said()[3].GetBlocksJson() {
		t.Errorf("the default session's message through the tool: %q", got)
	}
	if _, got := MustReadBlob(t, b.Server, &loombridgev1.ReadBlobRequest{AgentId: agent, Name: "step_001"}); string(got) != b.want["step_001"] {
		t.Errorf("a step of another session: %q", got)
	}
	for name := range b.want {
		_, err := b.tryBlob(t, &loombridgev1.ReadBlobRequest{AgentId: "other", SessionId: "said", Name: name})
		MustFail(t, err, codes.NotFound, "BLOB_NOT_FOUND")
	}
}

func (b *readBench) tryBlob(tb testing.TB, r *loombridgev1.ReadBlobRequest) (*loombridgev1.ReadBlobResponse, error) {
	tb.Helper()
	stream, err := b.Context.ReadBlob(tb.Context(), r)
	must(tb, err)
	return stream.Recv()
}

// B12: arguments that are too long for the log are in the step's file.
func TestHistoryFileHasLongArguments(t *testing.T) {
	b := MustReadBench(t, nil)
	script := strings.Repeat("print('a long script')\n", 5000)
	args := fmt.Sprintf(`{"script": %q,"n":1e2}`, script)
	_, err := b.Context.RecordStep(t.Context(), &loombridgev1.RecordStepRequest{
		AgentId: agent, ToolName: "my.tool", Success: true, ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: args},
	})
	must(t, err)
	_, text := b.blob(t, "workspace/history/step_003.json")
	var full struct {
		Args struct {
			Script string
			N      int
		}
		Path string `json:"args_path"`
	}
	must(t, json.Unmarshal([]byte(text), &full))
	if full.Args.Script != script || full.Args.N != 100 {
		t.Errorf("%.300s", text)
	}
	if _, got := b.blob(t, full.Path); got != args {
		t.Errorf("%s: %.100q", full.Path, got)
	}
	if _, got := b.blob(t, "step_003"); strings.Contains(got, "print") {
		t.Errorf("the step's id leads to its arguments: %.100q", got)
	}
}

// Names that lead nowhere say why.
func TestReadBackOfNothing(t *testing.T) {
	b := MustReadBench(t, nil)
	for name, reason := range map[string]string{
		"step_999":                          "the agent has no such step",
		"workspace/history/step_999.json":   "the agent has no such step",
		"message_999":                       "the session has no such message",
		"message_006":                       "entry 6 of the session is step_002",
		"workspace/history/step_002":        "",
		"workspace/history/step_002.exe":    "not found",
		"workspace/history/step_002.":       "not found",
		"workspace/history/step_2.json":     "not found",
		"workspace/history/message_1.json":  "not found",
		"workspace/history/../step_002.txt": "not found",
		"message_001.json":                  "not found",
		"message_18446744073709551616":      "not found",
		"step_18446744073709551616":         "not found",
		"step_18446744073709551615":         "the agent has no such step",
		"message_18446744073709551615":      "the session has no such message",
		"workspace/history/../../x":         "not found",
		"workspace/history":                 "not found",
	} {
		_, err := b.tryBlob(t, &loombridgev1.ReadBlobRequest{AgentId: agent, SessionId: "said", Name: name})
		if reason == "" {
			must(t, err)
			continue
		}
		MustFail(t, err, codes.NotFound, "BLOB_NOT_FOUND")
		if !strings.Contains(err.Error(), reason) {
			t.Errorf("%q: %v, want %q", name, err, reason)
		}
	}
}

// P16: what was collected says so, and its step still says what it was.
func TestReadBackOfCollected(t *testing.T) {
	b := MustReadBench(t, nil)
	b.Clock.Advance(idle)
	// One that began with the session may be at it, too.
	if got := MustCollect(t, b.Server, false); got.GetDeletedCount() > 1 {
		t.Fatalf("collected %v", got)
	}
	for _, name := range []string{"step_002", "workspace/outputs/tool_002.txt", "outputs/tool_002.txt"} {
		_, err := b.tryBlob(t, &loombridgev1.ReadBlobRequest{AgentId: agent, Name: name})
		MustFail(t, err, codes.NotFound, "BLOB_COLLECTED")
		got := b.file(t, "said", map[string]any{"path": name})
		if got.GetSuccess() || !strings.Contains(got.GetErrorMessage(), "expired and was removed at "+b.Clock.Now().Add(0).UTC().Format(time.RFC3339)) || !strings.Contains(got.GetErrorMessage(), "make the call again") {
			t.Errorf("%s: %v", name, got)
		}
	}
	if _, text := b.blob(t, "workspace/history/step_002.json"); !strings.Contains(text, "line 7 about step 2") {
		t.Errorf("the step: %.300s", text)
	}
}
