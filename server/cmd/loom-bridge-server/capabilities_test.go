package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/approvals"
)

// later makes a call that waits for a person.
func (w *shellWorld) later(agent, session, name string, args map[string]any) <-chan *loombridgev1.ToolResponse {
	answered := make(chan *loombridgev1.ToolResponse, 1)
	go func() { answered <- w.callAs(agent, session, name, args) }()
	return answered
}

// A call that needs a place beyond its profile waits for a person, who is asked for the place
// and never for a command line. What is remembered holds for the place and all in it, in its
// scope, for file tools and programs in both tiers, until it is revoked. N07
func TestPlacesAreAskedFor(t *testing.T) {
	t.Parallel()
	eachPolicyTier(t, "[[bind]]\nagent = \"never\"\napproval = \"never\"\n[[bind]]\nagent = \"reader\"\nprofile = \"read\"\n", func(t *testing.T, w *policyWorld) {
		file, folder := w.outside+"/secret/f", w.outside+"/secret"
		must(t, os.RemoveAll(folder+"/made"))
		read := map[string]any{"path": file}
		if got := w.callAs("a", "s1", "fs:read_file", read); got.GetErrorMessage() != "Permission denied: Path traversal detected" {
			t.Errorf("nobody watches: %q", got.GetErrorMessage())
		}
		watch := MustWatch(t, w.process)
		waits := w.later("a", "s1", "fs:read_file", read)
		pending := MustPending(t, watch)
		if c := pending.GetCapability(); c.GetKind() != "read" || c.GetName() != file || pending.GetTool() != "fs:read_file" {
			t.Errorf("asked for %v", pending)
		}
		must(t, w.answer(t, pending.GetId(), sayNo))
		if got := <-waits; got.GetErrorMessage() != "Permission denied: read "+file+" needs the approval of a person, who said no" {
			t.Errorf("denied: %q", got.GetErrorMessage())
		}
		needs := map[string]any{"command": "cat " + file + "; echo x > " + folder + "/made", "needs": map[string]any{"read": []string{folder}}}
		waits = w.later("a", "s1", "shell:run", needs)
		pending = MustPending(t, watch)
		if c := pending.GetCapability(); c.GetKind() != "read" || c.GetName() != folder {
			t.Errorf("asked for %v", pending)
		}
		must(t, w.answer(t, pending.GetId(), saySession))
		if got := <-waits; !strings.Contains(got.GetOutputJson(), "text of secret") {
			t.Errorf("allowed: %v", got)
		}
		if _, err := os.Stat(folder + "/made"); err == nil {
			t.Error("to read became to write")
		}
		// Remembered: nobody is asked again in the session, nor for what lies in it.
		if got := w.callAs("a", "s1", "fs:read_file", read); !got.GetSuccess() {
			t.Errorf("remembered: %q", got.GetErrorMessage())
		}
		if got := w.callAs("a", "s1", "shell:run", needs); !strings.Contains(got.GetOutputJson(), "text of secret") {
			t.Errorf("remembered: %v", got)
		}
		// A program that says nothing gets nothing.
		if got := w.sh("a", "cat "+file+" || echo absent"); !strings.Contains(got, "absent") {
			t.Errorf("without a word: %q", got)
		}
		for _, other := range []struct {
			agent, session, tool string
			args                 map[string]any
		}{
			{"a", "s2", "fs:read_file", read},
			{"b", "s1", "fs:read_file", read},
			{"a", "s1", "fs:write_file", map[string]any{"path": folder + "/made", "content": "c"}},
			{"a", "s1", "shell:run", map[string]any{"command": "true", "needs": map[string]any{"write": []string{folder}}}},
			{"a", "s1", "fs:read_file", map[string]any{"path": w.outside + "/read/f"}},
		} {
			waits = w.later(other.agent, other.session, other.tool, other.args)
			must(t, w.answer(t, MustPending(t, watch).GetId(), sayNo))
			if got := <-waits; got.GetSuccess() || !strings.HasPrefix(got.GetErrorMessage(), "Permission denied") {
				t.Errorf("%v: %v", other, got)
			}
		}
		// What nobody is asked for.
		for _, other := range []struct {
			agent, tool string
			args        map[string]any
			want        string
		}{
			{"never", "fs:read_file", read, "Path traversal detected"},
			{"reader", "fs:write_file", map[string]any{"path": folder + "/made", "content": "c"}, "lets nothing be changed"},
			{"reader", "shell:run", map[string]any{"command": "true", "needs": map[string]any{"write": []string{folder}}}, "lets nothing be changed"},
			{"a", "shell:run", map[string]any{"command": "true", "needs": map[string]any{"read": []string{"secret"}}}, "absolute"},
			{"a", "shell:run", map[string]any{"command": "true", "needs": map[string]any{"off": true}}, "off"},
		} {
			if got := w.callAs(other.agent, "s1", other.tool, other.args); got.GetSuccess() || !strings.Contains(got.GetErrorMessage(), other.want) {
				t.Errorf("%s %s: %q, want %q", other.agent, other.tool, got.GetErrorMessage(), other.want)
			}
		}
		waits = w.later("a", "s1", "fs:write_file", map[string]any{"path": folder + "/made", "content": "c"})
		must(t, w.answer(t, MustPending(t, watch).GetId(), sayOnce))
		if got := <-waits; !got.GetSuccess() {
			t.Errorf("allowed to write: %v", got)
		}
		list, err := w.tools().ListApprovals(t.Context(), &loombridgev1.ListApprovalsRequest{AgentId: "boss"})
		must(t, err)
		if len(list.GetApprovals()) != 1 {
			t.Fatalf("remembered: %v", list)
		}
		_, err = w.tools().RevokeApproval(t.Context(), &loombridgev1.RevokeApprovalRequest{AgentId: "boss", Id: list.GetApprovals()[0].GetId()})
		must(t, err)
		waits = w.later("a", "s1", "fs:read_file", read)
		must(t, w.answer(t, MustPending(t, watch).GetId(), sayNo))
		if got := <-waits; got.GetSuccess() {
			t.Error("revoked, and it was read")
		}
		audit, err := w.tools().ListAudit(t.Context(), &loombridgev1.ListAuditRequest{AgentId: "boss", Tool: "shell:run", CallerId: "a"})
		must(t, err)
		seen := false
		for _, r := range audit.GetRecords() {
			seen = seen || r.GetApproval() == "session" && r.GetCapability() == "read "+folder && r.GetTier() == w.tier
		}
		if !seen {
			t.Errorf("the audit does not say what was allowed: %v", audit.GetRecords())
		}
	})
}

// What is the server's own is nobody's to give.
func TestTheServersOwnIsNotAskedFor(t *testing.T) {
	t.Parallel()
	data, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	p := MustRun(t, data, "--workspace", t.TempDir())
	w := &shellWorld{tb: t, process: p}
	MustWatch(t, p)
	for _, place := range []string{filepath.Join(data, "store"), data, filepath.Join(data, "store", "CURRENT")} {
		got := w.callAs("a", "s1", "fs:read_file", map[string]any{"path": place})
		if !strings.Contains(got.GetErrorMessage(), "would give away what is the server's own") {
			t.Errorf("%s: %v", place, got)
		}
	}
}

// Approving is a role of its own: a credential without `approves` approves nothing, and
// nobody approves the calls of the agent that they speak as.
func TestApproversAreNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	credentials := filepath.Join(dir, "callers.toml")
	must(t, os.WriteFile(credentials, []byte(`
[[credential]]
token = "agents-token"
tenant = "t"
agents = ["*"]
[[credential]]
token = "person-token"
tenant = "t"
agents = ["operator", "ci-1"]
approves = ["ci-*"]
`), 0o600))
	settings := filepath.Join(dir, "loom.toml")
	must(t, os.WriteFile(settings, []byte("[[bind]]\ntool = \"fs:list_dir\"\napproval = \"always\"\n"), 0o600))
	p := MustRun(t, dir, "--config", settings, "--credentials", credentials, "--workspace", t.TempDir())
	as := func(token string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
	}
	stream, err := p.tools().WatchApprovals(as("agents-token"), &loombridgev1.WatchApprovalsRequest{AgentId: "boss"})
	must(t, err)
	if _, err := stream.Recv(); reasonOf(err) != "APPROVAL_NOT_ALLOWED" {
		t.Errorf("an agent's credential watches: %v", err)
	}
	watch, err := p.tools().WatchApprovals(as("person-token"), &loombridgev1.WatchApprovalsRequest{AgentId: "operator"})
	must(t, err)
	_, err = watch.Header()
	must(t, err)
	call := func(agent string) <-chan *loombridgev1.ToolResponse {
		answered := make(chan *loombridgev1.ToolResponse, 1)
		go func() {
			answer, _ := p.bridge().Tool(as("agents-token"), &loombridgev1.ToolRequest{AgentId: agent, Name: "fs:list_dir"})
			answered <- answer
		}()
		return answered
	}
	if got := <-call("other"); !strings.HasPrefix(got.GetErrorMessage(), "Permission denied: fs:list_dir needs the approval of a person, but no approver is connected: run `loom-bridge-server approvals watch --answer`") {
		t.Errorf("whose calls nobody approves: %v", got)
	}
	waits := call("ci-1")
	id := MustPending(t, watch).GetId()
	for _, c := range []struct{ token, agent, want string }{
		{"agents-token", "ci-2", "APPROVAL_NOT_ALLOWED"},
		{"agents-token", "ci-1", "APPROVAL_NOT_ALLOWED"},
		{"person-token", "ci-1", "APPROVAL_NOT_ALLOWED"},
		{"person-token", "ci-2", "AGENT_NOT_OWNED"},
	} {
		_, err := p.tools().ApproveCall(as(c.token), &loombridgev1.ApproveCallRequest{AgentId: c.agent, Id: id, Decision: sayOnce})
		if reasonOf(err) != c.want {
			t.Errorf("%v: %v", c, err)
		}
	}
	_, err = p.tools().ApproveCall(as("person-token"), &loombridgev1.ApproveCallRequest{AgentId: "operator", Id: id, Decision: sayAlways})
	if reasonOf(err) != "APPROVAL_NOT_ALLOWED" {
		t.Errorf("for all agents by one of some: %v", err)
	}
	_, err = p.tools().ApproveCall(as("person-token"), &loombridgev1.ApproveCallRequest{AgentId: "operator", Id: id, Decision: sayOnce})
	must(t, err)
	if got := <-waits; !got.GetSuccess() {
		t.Errorf("approved, and %v", got)
	}
}

// A person answers from the command line.
func TestApprovalsCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRunBound(t, dir)
	command := func(args ...string) string {
		var out bytes.Buffer
		if err := run(t.Context(), append(append([]string{"approvals"}, args...), "--addr", p.Address), noEnvironment, &out, &out); err != nil {
			return err.Error()
		}
		return out.String()
	}
	watch := MustWatch(t, p)
	waits := stat(t, p, "a", "s1")
	id := MustPending(t, watch).GetId()
	if got := command("list"); !strings.Contains(got, id) || !strings.Contains(got, `agent "a", session "s1", asks to use the tool fs:stat`) {
		t.Errorf("list: %q", got)
	}
	if got := command("approve", id, "--for", "session"); got != "approved: tool fs:stat for agent \"a\"\n" {
		t.Errorf("approve: %q", got)
	}
	if got := <-waits; !got.GetSuccess() {
		t.Errorf("approved, and %v", got)
	}
	got := command("list")
	if !strings.Contains(got, `remembered: tool fs:stat for agent "a", session "s1", by operator`) {
		t.Errorf("list: %q", got)
	}
	if said := command("revoke", strings.Fields(got)[0]); !strings.HasPrefix(said, "revoked") {
		t.Errorf("revoke: %q", said)
	}
	waits = stat(t, p, "a", "s1")
	if got := command("deny", MustPending(t, watch).GetId(), "--note", "it is Ann's"); got != "denied: tool fs:stat for agent \"a\"\n" {
		t.Errorf("deny: %q", got)
	}
	if got := <-waits; !strings.HasSuffix(got.GetErrorMessage(), ", who said no: it is Ann's") {
		t.Errorf("denied, and answered %v", got)
	}
	waits = stat(t, p, "a", "s1")
	MustPending(t, watch)
	for _, word := range []string{"n", "No", "deny", "no Not today"} {
		if got := answerOnce(t, p, word); !strings.Contains(got, "yes (y, once), no (n, deny; why may stand behind it), session, agent, always") || !strings.Contains(got, "denied: tool fs:stat") {
			t.Errorf("%s: %q", word, got)
		}
		_, why, _ := strings.Cut(word, " ")
		if got := <-waits; got.GetSuccess() || !strings.HasSuffix(got.GetErrorMessage(), why) {
			t.Errorf("%s, and answered %v", word, got)
		}
		waits = stat(t, p, "a", "s1")
		MustPending(t, watch)
	}
	for _, word := range []string{"y", "YES", "once"} {
		got := answerOnce(t, p, word)
		for _, want := range []string{"approved: tool fs:stat", `arguments: {"path":"a.txt"}`, `| leads to "a.txt", a file`, "every call of fs:stat, whatever its arguments", "all of it: SHA-256 "} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: lacks %q: %s", word, want, got)
			}
		}
		if got := <-waits; !got.GetSuccess() {
			t.Errorf("%s, and %v", word, got)
		}
		waits = stat(t, p, "a", "s1")
		MustPending(t, watch)
	}
	answerOnce(t, p, "n")
	<-waits
	for _, args := range [][]string{{"approve", "none"}, {"approve", id, "--for", "ever"}, {"approve"}, {"revoke", "none"}} {
		if got := command(args...); !strings.Contains(got, "APPROVAL") && !strings.Contains(got, "is not once") && !strings.Contains(got, "accepts 1 arg") && !strings.Contains(got, "none") {
			t.Errorf("%v: %q", args, got)
		}
	}
}

// answerOnce watches with answers from a terminal, until the first decision was said. It says
// the word at every question, and goes on where that is not taken.
func answerOnce(t *testing.T, p *process, word string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	screen := &terminal{word: word, decided: cancel}
	command := approvals.Command(approvals.Options{
		Dial: func(ctx context.Context) (context.Context, *grpc.ClientConn, error) {
			conn, err := grpc.NewClient(p.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
			return ctx, conn, err
		},
		In: screen, Out: screen,
	})
	command.SetArgs([]string{"watch", "--answer"})
	if err := command.ExecuteContext(ctx); err != nil {
		t.Error(err)
	}
	return screen.text.String()
}

// terminal is a screen with a person in front of it.
type terminal struct {
	word    string
	decided func()
	text    strings.Builder
	tried   bool // the word was not taken: there is more to see
}

func (s *terminal) Write(p []byte) (int, error) {
	n, err := s.text.Write(p)
	if text := s.text.String(); strings.Contains(text, "approved: ") || strings.Contains(text, "denied: ") {
		s.decided()
	}
	return n, err
}

func (s *terminal) Read(p []byte) (int, error) {
	word := s.word
	if strings.HasSuffix(s.text.String(), "or no (n): ") {
		if s.tried {
			word = ""
		}
		s.tried = !s.tried
	}
	return copy(p, word+"\n"), nil
}

// A call that is longer than a screen is shown by pages, and can't be agreed to before the last.
func TestLongCallsAreShownByPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "loom.toml")
	must(t, os.WriteFile(file, []byte("[[bind]]\ntool = \"fs:write_file\"\napproval = \"always\"\n"), 0o600))
	p := MustRun(t, dir, "--config", file)
	watch := MustWatch(t, p)
	answered := make(chan *loombridgev1.ToolResponse, 1)
	go func() {
		content, _ := json.Marshal(strings.Repeat("x", 20_000) + "\u202eEND")
		answer, _ := p.bridge().Tool(context.WithoutCancel(t.Context()), &loombridgev1.ToolRequest{
			AgentId: "a", Name: "fs:write_file",
			ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"path":"b.txt","content":` + string(content) + `}`},
		})
		answered <- answer
	}()
	MustPending(t, watch)
	got := answerOnce(t, p, "y")
	if !strings.Contains(got, "\\u202eEND") || strings.Contains(got, "\u202e") {
		t.Errorf("shown: %.300q … %.1500q", got, got[max(0, len(got)-1500):])
	}
	if pages, last := strings.Index(got, "lines more: nothing to see them, or no (n): "), strings.Index(got, "approved: "); pages < 0 || last < pages {
		t.Errorf("shown without pages: %.2000q", got)
	}
	if a := <-answered; !a.GetSuccess() {
		t.Errorf("approved, and %v", a)
	}
}
