package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"

	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// bindings ask for fs:stat of every agent, always, and never for anything of agent b.
const bindings = `
[[bind]]
agent = "b"
tool = "fs:list_dir"
approval = "never"

[[bind]]
tool = "fs:stat"
approval = "always"
`

// MustRunBound starts a server with bindings.
func MustRunBound(tb testing.TB, dir string, args ...string) *process {
	tb.Helper()
	file := filepath.Join(dir, "loom.toml")
	must(tb, os.WriteFile(file, []byte(bindings), 0o600))
	must(tb, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("text"), 0o600))
	return MustRun(tb, dir, append([]string{"--config", file}, args...)...)
}

func (p *process) tools() loombridgev1.ToolServiceClient {
	return loombridgev1.NewToolServiceClient(p.conn)
}

// MustWatch watches the calls that wait, as agent boss; it returns when the server knows.
func MustWatch(tb testing.TB, p *process) grpc.ServerStreamingClient[loombridgev1.WatchApprovalsResponse] {
	tb.Helper()
	stream, err := p.tools().WatchApprovals(tb.Context(), &loombridgev1.WatchApprovalsRequest{AgentId: "boss"})
	must(tb, err)
	_, err = stream.Header()
	must(tb, err)
	return stream
}

// stat calls a tool that needs approval, and returns its answer when it has come.
func stat(tb testing.TB, p *process, agent, session string) <-chan *loombridgev1.ToolResponse {
	tb.Helper()
	answered := make(chan *loombridgev1.ToolResponse, 1)
	go func() {
		answer, err := p.bridge().Tool(context.WithoutCancel(tb.Context()), &loombridgev1.ToolRequest{
			AgentId: agent, SessionId: session, Name: "fs:stat",
			ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"path":"a.txt"}`},
		})
		if err != nil {
			answer = &loombridgev1.ToolResponse{ErrorMessage: err.Error()}
		}
		answered <- answer
	}()
	return answered
}

// MustPending is the next call that waits.
func MustPending(tb testing.TB, stream grpc.ServerStreamingClient[loombridgev1.WatchApprovalsResponse]) *loombridgev1.PendingApproval {
	tb.Helper()
	for {
		change, err := stream.Recv()
		must(tb, err)
		if pending := change.GetPending(); pending != nil {
			return pending
		}
	}
}

// answer says something to a call that waits.
func (p *process) answer(tb testing.TB, id string, decision loombridgev1.ApprovalDecision) error {
	tb.Helper()
	_, err := p.tools().ApproveCall(tb.Context(), &loombridgev1.ApproveCallRequest{AgentId: "boss", Id: id, Decision: decision})
	return err
}

const (
	sayNo      = loombridgev1.ApprovalDecision_APPROVAL_DECISION_DENY
	sayOnce    = loombridgev1.ApprovalDecision_APPROVAL_DECISION_ONCE
	saySession = loombridgev1.ApprovalDecision_APPROVAL_DECISION_SESSION
	sayAlways  = loombridgev1.ApprovalDecision_APPROVAL_DECISION_ALWAYS
)

// A call that is bound to approval waits for another client, which lets it run or denies it.
// What is remembered lets later calls run, in its scope alone, also after a restart, until it
// is revoked.
func TestApproval(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRunBound(t, dir)
	if a := <-stat(t, p, "a", "s1"); a.GetSuccess() || !strings.HasPrefix(a.GetErrorMessage(), "Permission denied") {
		t.Errorf("nobody watches, and the call is answered %v", a)
	}
	watch := MustWatch(t, p)
	waits := stat(t, p, "a", "s1")
	pending := MustPending(t, watch)
	if c := pending.GetCapability(); c.GetKind() != "tool" || c.GetName() != "fs:stat" || pending.GetAgentId() != "a" || pending.GetArgumentsJson() != `{"path":"a.txt"}` {
		t.Errorf("asked for %v", pending)
	}
	must(t, p.answer(t, pending.GetId(), sayOnce))
	if a := <-waits; !a.GetSuccess() {
		t.Errorf("approved, and answered %v", a)
	}
	if err := p.answer(t, pending.GetId(), sayOnce); reasonOf(err) != "APPROVAL_NOT_FOUND" {
		t.Errorf("answered twice: %v", err)
	}
	waits = stat(t, p, "a", "s1")
	pending = MustPending(t, watch)
	// E08
	secret := "ghp_" + strings.Repeat("a1B2", 9)
	noted := &loombridgev1.ApproveCallRequest{AgentId: "boss", Id: pending.GetId(), Decision: sayNo, Note: "a.txt is Ann's: ask her, not " + secret}
	for _, bad := range []string{"two\nlines", strings.Repeat("n", 1001)} {
		if _, err := p.tools().ApproveCall(t.Context(), &loombridgev1.ApproveCallRequest{AgentId: "boss", Id: pending.GetId(), Decision: sayNo, Note: bad}); reasonOf(err) != "INVALID_REQUEST" {
			t.Errorf("note %.10q: %v", bad, err)
		}
	}
	_, err := p.tools().ApproveCall(t.Context(), noted)
	must(t, err)
	if change, err := watch.Recv(); err != nil || change.GetClosedId() != pending.GetId() {
		t.Errorf("behind the answer: %v %v", change, err)
	}
	if a := <-waits; a.GetSuccess() || !strings.HasSuffix(a.GetErrorMessage(), "who said no: a.txt is Ann's: ask her, not "+secret) || a.GetStep() == nil {
		t.Errorf("denied, and answered %v", a)
	}
	prompt, err := p.context().Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "a", SessionId: "s1"})
	must(t, err)
	if !strings.Contains(prompt.String(), "a.txt is Ann's") {
		t.Errorf("the next prompt does not say why: %v", prompt)
	}
	calls, err := p.tools().ListAudit(t.Context(), &loombridgev1.ListAuditRequest{AgentId: "boss", CallerId: "a", PageSize: 1})
	must(t, err)
	if r := calls.GetRecords()[0]; r.GetApproval() != "denied" || !strings.HasPrefix(r.GetApprovalNote(), "a.txt is Ann's: ask her, not [redacted") {
		t.Errorf("the audit has %v", r)
	}
	first, second := stat(t, p, "a", "s1"), stat(t, p, "a", "s1")
	MustPending(t, watch)
	must(t, p.answer(t, MustPending(t, watch).GetId(), saySession)) // answers the other, too
	for _, waits := range []<-chan *loombridgev1.ToolResponse{first, second, stat(t, p, "a", "s1")} {
		if a := <-waits; !a.GetSuccess() {
			t.Errorf("remembered for the session, and answered %v", a)
		}
	}
	waits = stat(t, p, "a", "s2") // another session
	must(t, p.answer(t, MustPending(t, watch).GetId(), sayAlways))
	<-waits
	must(t, p.Stop())

	p = MustRunBound(t, dir)
	if a := <-stat(t, p, "c", "s3"); !a.GetSuccess() {
		t.Errorf("remembered for all, and answered %v after a restart", a)
	}
	list, err := p.tools().ListApprovals(t.Context(), &loombridgev1.ListApprovalsRequest{AgentId: "boss"})
	must(t, err)
	if len(list.GetApprovals()) != 2 {
		t.Errorf("remembered: %v", list)
	}
	for _, one := range list.GetApprovals() {
		if one.GetApproverId() != "boss" || one.GetCreateTime() == nil {
			t.Errorf("remembered: %v", one)
		}
		_, err := p.tools().RevokeApproval(t.Context(), &loombridgev1.RevokeApprovalRequest{AgentId: "boss", Id: one.GetId()})
		must(t, err)
		_, err = p.tools().RevokeApproval(t.Context(), &loombridgev1.RevokeApprovalRequest{AgentId: "boss", Id: one.GetId()})
		if reasonOf(err) != "APPROVAL_NOT_FOUND" {
			t.Errorf("revoked twice: %v", err)
		}
	}
	if a := <-stat(t, p, "a", "s1"); a.GetSuccess() {
		t.Error("revoked, and the call ran")
	}
	seen := map[string]int{}
	audit, err := p.tools().ListAudit(t.Context(), &loombridgev1.ListAuditRequest{AgentId: "boss", Tool: "fs:stat"})
	must(t, err)
	for _, r := range audit.GetRecords() {
		seen[r.GetApproval()]++
	}
	for approval, want := range map[string]int{"unattended": 2, "once": 1, "denied": 1, "session": 3, "always": 2} {
		if seen[approval] != want {
			t.Errorf("%d records with the approval %s, want %d", seen[approval], approval, want)
		}
	}
}

// Clients of loom.v1 wait, too, and are told in the words that they look for.
func TestApprovalOfLoomCalls(t *testing.T) {
	t.Parallel()
	p := MustRunBound(t, t.TempDir())
	watch := MustWatch(t, p)
	for decision, want := range map[loombridgev1.ApprovalDecision]loomv1pb.ToolStatus{
		sayNo: loomv1pb.ToolStatus_TOOL_ERROR, sayOnce: loomv1pb.ToolStatus_TOOL_OK,
	} {
		answered := make(chan *loomv1pb.ToolResult, 1)
		go func() {
			answer, _ := loomv1pb.NewBridgeClient(p.conn).ForwardToolCall(context.WithoutCancel(t.Context()), &loomv1pb.ToolCall{
				Id: "1", Name: "fs:stat", Arguments: `{"path":"a.txt"}`,
			})
			answered <- answer
		}()
		must(t, p.answer(t, MustPending(t, watch).GetId(), decision))
		a := <-answered
		if a.GetStatus() != want || want == loomv1pb.ToolStatus_TOOL_ERROR && !strings.HasPrefix(a.GetError().GetMessage(), "Permission denied") {
			t.Errorf("%v: %v", decision, a)
		}
	}
}

// Nobody answers: the call is denied. The server is killed: the call ends, and nothing ran.
func TestApprovalThatNeverComes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRunBound(t, dir, "--approval-timeout", "1ms")
	MustWatch(t, p)
	a := <-stat(t, p, "a", "s1")
	if a.GetSuccess() || a.GetErrorMessage() != "Permission denied: fs:stat needs the approval of a person, but no answer came in time" {
		t.Errorf("answered %v", a)
	}
	must(t, p.Stop())

	c := MustStartChild(t, dir, "--config", filepath.Join(dir, "loom.toml"))
	child := &process{conn: MustDial(t, c.Address)}
	watch := MustWatch(t, child)
	waits := stat(t, child, "a", "s1")
	pending := MustPending(t, watch)
	must(t, c.Process.Kill())
	_ = c.Wait()
	if a := <-waits; a.GetSuccess() || strings.HasPrefix(a.GetErrorMessage(), "Permission denied") {
		t.Errorf("the server was killed, and the call is answered %v", a)
	}
	p = MustRunBound(t, dir)
	if err := p.answer(t, pending.GetId(), sayOnce); reasonOf(err) != "APPROVAL_NOT_FOUND" {
		t.Errorf("a call of the killed server is approved: %v", err)
	}
	steps, err := p.context().ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: "a", SessionId: "s1"})
	if err != nil || len(steps.GetSteps()) != 1 {
		t.Errorf("%v; steps %v, want the one that was denied", err, steps.GetSteps())
	}
}

// A server does not start with bindings that it does not understand.
func TestBadBindings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[[bind]]\napproval = \"maybe\"":   "maybe",
		"[[bind]]\ntool = \"a*b\"":         "a*b",
		"[[bind]]\napproval = \"level:9\"": "level:9",
		"[[bind]]\nwho = \"a\"":            "bind",
		"bind = 3":                         "bind",
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "loom.toml")
		must(t, os.WriteFile(file, []byte(text), 0o600))
		if err := runBriefly(t, "--config", file, "--data-dir", filepath.Join(dir, "store"), "--workspace", dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
