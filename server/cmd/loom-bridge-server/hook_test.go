package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/hosts"
)

// hooked runs the command of a hook with what a host wrote, and returns what the host
// reads.
func hooked(tb testing.TB, input string, args ...string) (string, error) {
	tb.Helper()
	var stdout bytes.Buffer
	command := hookCommand(noEnvironment, &stdout, io.Discard)
	command.SetArgs(args)
	command.SetIn(strings.NewReader(input))
	command.SilenceErrors, command.SilenceUsage = true, true
	err := command.ExecuteContext(tb.Context())
	return stdout.String(), err
}

// hookEvent is one event as a host told it.
type hookEvent struct {
	Event string
	Input json.RawMessage
}

// buildLog is the long result of testdata/hooks.
var buildLog = strings.Repeat("a line of the log of a long build\n", 2000)

// recordedHooks are the events of a session of a host.
func recordedHooks(tb testing.TB, host, project string) []hookEvent {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "hooks", host+".jsonl"))
	must(tb, err)
	long, err := json.Marshal(buildLog)
	must(tb, err)
	inside := strings.Trim(string(long), `"`)
	var all []hookEvent
	for line := range strings.Lines(string(text)) {
		if host == "cursor" { // its result is JSON in a text
			line = strings.ReplaceAll(line, "LOG", strings.ReplaceAll(inside, `\`, `\\`))
		}
		var one hookEvent
		must(tb, json.Unmarshal([]byte(strings.ReplaceAll(strings.ReplaceAll(line, "LOG", inside), "PROJECT", project)), &one))
		all = append(all, one)
	}
	return all
}

// contextOf is the text for the model in what a host reads.
func contextOf(tb testing.TB, answer string) string {
	tb.Helper()
	var out struct {
		Context  string `json:"additional_context"`
		Specific struct {
			Context string `json:"additionalContext"`
		} `json:"hookSpecificOutput"`
	}
	must(tb, json.Unmarshal([]byte(answer), &out))
	return cmp.Or(out.Context, out.Specific.Context)
}

// A session of each host, as it tells of it: its tools are steps, what was said is there,
// and the model is given back what is known, when it begins and after a compaction.
func TestHooksOfHosts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir)
	_, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "mcp", Text: "Ada wants small commits"})
	must(t, err)
	for _, host := range hosts.Names() { // each finds the session of the one before
		t.Run(host, func(t *testing.T) { hookSession(t, p, host) })
	}
}

// hookSessions is what each host's session must leave.
var hookSessions = map[string]struct {
	session  string
	steps    []string // tools, and a minus in front of those that failed
	restored string   // the event that gives back after the compaction
}{
	"claude-code": {"5f0c1f2e-claude", []string{"Bash", "-Read", "Edit"}, "SessionStart"},
	"codex":       {"0199-codex", []string{"Bash", "apply_patch", "Bash"}, "PostToolUse"},
	"cursor":      {"c0ffee-cursor", []string{"Shell", "-Read", "Write"}, "postToolUse"},
	"vscode":      {"9b1d-vscode", []string{"run_in_terminal", "host:read_file", "replace_string_in_file"}, "PostToolUse"},
}

func hookSession(t *testing.T, p *process, host string) {
	want := hookSessions[host]
	var begin, after, afterBy string
	for _, e := range recordedHooks(t, host, p.Workspace) {
		for range 2 { // a host that runs a hook twice records nothing twice
			answer, err := hooked(t, string(e.Input), host, e.Event, "--addr", p.Address)
			must(t, err)
			given := contextOf(t, answer)
			switch {
			case given == "":
			case len(given) > 10000:
				t.Errorf("%s is given %d characters", e.Event, len(given))
			case begin == "":
				begin = given
			case after == "":
				after, afterBy = given, e.Event
			default:
				t.Errorf("%s is given once more: %.200s", e.Event, given)
			}
			if strings.EqualFold(e.Event, "SessionStart") || host == "claude-code" && e.Event == "Stop" {
				break // nothing tells the second from another one
			}
		}
	}
	if !strings.Contains(begin, "Ada wants small commits") || strings.Contains(begin, want.session+",") {
		t.Errorf("at its beginning it is given %q", begin)
	}
	if host != hosts.Names()[0] && (!strings.Contains(begin, "The session before") || !strings.Contains(begin, "harbour")) {
		t.Errorf("at its beginning it does not read of the session before: %q", begin)
	}
	if afterBy != want.restored || !strings.Contains(after, "Find out why the harbour test fails") || !strings.Contains(after, "go test ./harbour") {
		t.Errorf("after the compaction %q is given %q", afterBy, after)
	}
	hookSteps(t, p, host)
}

// hookSteps checks what is recorded of a session.
func hookSteps(t *testing.T, p *process, host string) {
	t.Helper()
	want := hookSessions[host]
	contexts := contexts.New(p.conn)
	listed, err := contexts.ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: "mcp", SessionId: want.session, PageSize: 100})
	must(t, err)
	var got []string
	for _, step := range listed.GetSteps() {
		got = append(got, map[bool]string{false: "-"}[step.GetSuccess()]+step.GetToolName())
	}
	if fmt.Sprint(got) != fmt.Sprint(want.steps) {
		t.Fatalf("its steps are %v, want %v", got, want.steps)
	}
	stream, err := contexts.ReadBlob(t.Context(), &loombridgev1.ReadBlobRequest{AgentId: "mcp", Name: listed.GetSteps()[0].GetId()})
	must(t, err)
	var whole bytes.Buffer
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		whole.Write(part.GetData())
	}
	if text := strings.ReplaceAll(whole.String(), `\n`, "\n"); !strings.Contains(text, buildLog) {
		t.Errorf("of the long result %d bytes came back", whole.Len())
	}
	said, err := contexts.ListConversation(t.Context(), &loombridgev1.ListConversationRequest{AgentId: "mcp", SessionId: want.session})
	must(t, err)
	text := said.String()
	if strings.Count(text, "Find out why") != 1 || host != "vscode" && strings.Count(text, "one hour off") != 1 {
		t.Errorf("what was said: %.500s", text)
	}
}

// A hook that can't do its work says so, and changes nothing.
func TestHookRefuses(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir())
	const good = `{"session_id":"s","tool_name":"Bash"}`
	for _, test := range []struct {
		name, input, want string
		args              []string
	}{
		{"no JSON", "{", "bad input", []string{"codex", "Stop"}},
		{"nothing", "", "bad input", []string{"codex", "Stop"}},
		{"no session", `{"tool_name":"Bash"}`, "which session", []string{"codex", "PostToolUse"}},
		{"no tool", `{"session_id":"s"}`, "which tool", []string{"codex", "PostToolUse"}},
		{"wrong type", `["session"]`, "bad input", []string{"codex", "Stop"}},
		{"too long", `{"session_id":"s","tool_name":"Bash","tool_response":"` + strings.Repeat("x", 33<<20) + `"}`, "more than", []string{"codex", "PostToolUse"}},
		{"no such host", good, "unknown host", []string{"emacs", "Stop"}},
		{"no such event", good, "unknown event", []string{"codex", "Explode"}},
		{"no server", good, "no server answers", []string{"codex", "PostToolUse", "--server-ca", certificate(t)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			address := p.Address
			if test.name == "no server" {
				address = "127.0.0.1:1"
			}
			answer, err := hooked(t, test.input, append(test.args, "--addr", address)...)
			if err == nil || !strings.Contains(err.Error(), test.want) || answer != "" {
				t.Errorf("answer %q, error %v", answer, err)
			}
		})
	}
	sessions, err := contexts.New(p.conn).ListSessions(t.Context(), &loombridgev1.ListSessionsRequest{AgentId: "mcp"})
	must(t, err)
	if len(sessions.GetSessions()) != 0 {
		t.Errorf("sessions: %v", sessions)
	}
}

func certificate(t *testing.T) string {
	dir := t.TempDir()
	MustCertificate(t, dir, "server")
	return filepath.Join(dir, "server.pem")
}

// Long results, odd names and texts that are none reach the session, as far as they fit.
func TestHookTakesWhatHostsTell(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir())
	long := strings.Repeat("0123456789abcdef", 200<<10) // 3.2 MB
	for n, input := range []string{
		`{"session_id":"s","tool_name":"my tool (v2)","tool_input":"text","tool_response":"` + long + `"}`,
		`{"session_id":"s","tool_name":"Bash","tool_input":null,"tool_response":null,"later":{"field":[1]}}`,
		"{\"session_id\":\"s\",\"tool_name\":\"Bash\",\"tool_response\":\"half \xff\"}",
		`{"session_id":"s","tool_name":"Bash","timestamp":1704614400000,"turn_id":5,"tool_response":"ok"}`,
		`{"session_id":"s","tool_name":"Write","tool_input":{"content":"` + long + `"},"tool_response":"ok"}`,
	} {
		if _, err := hooked(t, input, "codex", "PostToolUse", "--addr", p.Address); err != nil {
			t.Errorf("%d: %v", n, err)
		}
	}
	listed, err := contexts.New(p.conn).ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: "mcp", SessionId: "s", PageSize: 9})
	must(t, err)
	if steps := listed.GetSteps(); len(steps) != 5 || steps[0].GetToolName() != "my_tool__v2_" || steps[0].GetOutcomeRef() == "" {
		t.Errorf("steps: %v", steps)
	}
}

// Hooks of one project, while no server runs, record everything in the store that the
// project's server uses.
//
// They run one after another: at once, about one round in twenty took longer than a hook may.
func TestHooksWithoutServer(t *testing.T) {
	t.Parallel()
	project, runtime := t.TempDir(), t.TempDir()
	start := func(n int) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		command := exec.CommandContext(ctx, os.Args[0], "hook", "claude-code", "PostToolUse")
		command.Env = append(os.Environ(), asServer+"=1", "XDG_RUNTIME_DIR="+runtime, envClaudeProject+"="+project)
		command.Stdin = strings.NewReader(fmt.Sprintf(`{"session_id":"s","cwd":"/","tool_name":"Bash","tool_use_id":"%d","tool_response":"ok %d"}`, n, n))
		var stderr bytes.Buffer
		command.Stderr = &stderr
		text, err := command.Output()
		if err == nil && string(text) != "{}\n" {
			err = errors.New("it answers " + string(text))
		}
		if err != nil {
			return fmt.Errorf("%w: %s", err, stderr.String())
		}
		return nil
	}
	for n := range 2 {
		must(t, start(n))
	}
	p := MustRunIn(t, noEnvironment, "--addr", "127.0.0.1:0", "--data-dir", filepath.Join(project, ".loom", "store"), "--workspace", project)
	listed, err := contexts.New(p.conn).ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: "mcp", SessionId: "s", PageSize: 9})
	must(t, err)
	if len(listed.GetSteps()) != 2 {
		t.Errorf("%d steps", len(listed.GetSteps()))
	}
}

// A hook meets the server that a host of the same project has started, whichever path
// leads there, and what it records is what that host reads back.
func TestHookMeetsHost(t *testing.T) {
	t.Parallel()
	project, runtime := t.TempDir(), t.TempDir()
	other := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(project, other))
	host, _ := MustShim(t, runtime, nil, "--data-dir", filepath.Join(project, ".loom", "store"), "--workspace", project)
	host.works("memory_save", object{"text": "x"}, nil)
	command := exec.CommandContext(t.Context(), os.Args[0], "hook", "vscode", "PostToolUse")
	command.Env = append(os.Environ(), asServer+"=1", "XDG_RUNTIME_DIR="+runtime)
	command.Stdin = strings.NewReader(`{"sessionId":"s","cwd":"` + other + `","tool_name":"run_in_terminal","tool_input":{"command":"ls"},"tool_response":"` + strings.Repeat(`harbour.go\n`, 5000) + `"}`)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if text := host.works("context_assemble", object{"session": "s"}, nil); !strings.Contains(text, "harbour.go") {
		t.Errorf("the host reads %s", text)
	}
	// Its own session is another one, and the step's name leads to it all the same.
	if text := host.works("blob_read", object{"name": "step_001", "offset": 11, "limit": 10}, nil); !strings.Contains(text, `"text":"harbour.go"`) {
		t.Errorf("the host reads back %s", text)
	}
}

// A hook that fails ends with 1: hosts take 2 for an order to stop.
func TestHookExit(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), os.Args[0], "hook", "claude-code", "PostToolUse")
	command.Env = append(os.Environ(), asServer+"=1")
	output, err := command.CombinedOutput()
	failed, ok := errors.AsType[*exec.ExitError](err)
	if !ok || failed.ExitCode() != 1 || !strings.Contains(string(output), "hooks: bad input") {
		t.Errorf("%v: %s", err, output)
	}
}

// With credentials a hook shows its token.
func TestHookToken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "callers.toml")
	must(t, os.WriteFile(file, []byte(credentialOf("one", `["anna"]`, "")), 0o600))
	p := MustRun(t, dir, "--credentials", file)
	for token, want := range map[string]string{"one": "", "two": "Unauthenticated"} {
		command := hookCommand(environment{vars: map[string]string{envToken: token}}, io.Discard, io.Discard)
		command.SetArgs([]string{"vscode", "UserPromptSubmit", "--addr", p.Address}) // as the agent of its credential
		command.SetIn(strings.NewReader(`{"sessionId":"s","prompt":"hello"}`))
		command.SilenceErrors, command.SilenceUsage = true, true
		if err := command.ExecuteContext(t.Context()); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", token, err)
		}
	}
}
