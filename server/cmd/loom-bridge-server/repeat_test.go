package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// noted is a call that adds a line to a file of the workspace each time it runs.
func noted(more string) *loombridgev1.ToolRequest {
	return &loombridgev1.ToolRequest{
		AgentId: "a", SessionId: "s", Name: "shell:run", TurnId: "t", CallId: "c",
		ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: fmt.Sprintf(`{"command":"echo x >> log; %s"}`, more)},
	}
}

// runsIn is how often the calls of noted ran.
func runsIn(workspace string) int {
	log, _ := os.ReadFile(filepath.Join(workspace, "log")) // none before the first run
	return strings.Count(string(log), "x")
}

// MustRunBeside starts a server whose store lies outside of its workspace, for noted.
func MustRunBeside(tb testing.TB, args ...string) *process {
	tb.Helper()
	return MustRunIn(tb, noEnvironment, append([]string{
		"--addr", "127.0.0.1:0", "--data-dir", filepath.Join(tb.TempDir(), "store"), "--workspace", tb.TempDir(), "--shell-allow", "echo,sleep",
	}, args...)...)
}

// The same call again, by its call id, gives the first answer and runs nothing. What differs
// in one of its parts is another call.
//
// N07
func TestSameCallRunsOnce(t *testing.T) {
	t.Parallel()
	p := MustRunBeside(t)
	call := func(r *loombridgev1.ToolRequest) *loombridgev1.ToolResponse {
		t.Helper()
		got, err := p.bridge().Tool(t.Context(), r)
		must(t, err)
		return got
	}
	first := call(noted("echo out"))
	again := call(noted("echo out"))
	if first.GetReplayed() || !again.GetReplayed() || runsIn(p.Workspace) != 1 {
		t.Fatalf("ran %d times; the second answer is %v", runsIn(p.Workspace), again)
	}
	again.Replayed = false
	if !proto.Equal(first, again) {
		t.Errorf("the first answer is %v, the second %v", first, again)
	}
	runs := 1
	for what, change := range map[string]func(*loombridgev1.ToolRequest){
		"agent":       func(r *loombridgev1.ToolRequest) { r.AgentId = "b" },
		"session":     func(r *loombridgev1.ToolRequest) { r.SessionId = "other" },
		"turn":        func(r *loombridgev1.ToolRequest) { r.TurnId = "other" },
		"call":        func(r *loombridgev1.ToolRequest) { r.CallId = "other" },
		"no turn":     func(r *loombridgev1.ToolRequest) { r.TurnId = "" },
		"content":     func(r *loombridgev1.ToolRequest) { r.ArgumentsForm = noted("echo other").ArgumentsForm },
		"request id":  func(r *loombridgev1.ToolRequest) { r.RequestId = "r" },
		"no identity": func(r *loombridgev1.ToolRequest) { r.CallId = "" },
	} {
		r := noted("echo out")
		change(r)
		runs++
		if got := call(r); got.GetReplayed() || runsIn(p.Workspace) != runs {
			t.Errorf("with another %s it ran %d times, want %d: %v", what, runsIn(p.Workspace), runs, got)
		}
	}
	// A failure is an answer too.
	lost := &loombridgev1.ToolRequest{AgentId: "a", Name: "fs:read_file", TurnId: "t", CallId: "c", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"path":"gone"}`}}
	if got := call(lost); got.GetSuccess() || got.GetReplayed() {
		t.Errorf("a missing file gave %v", got)
	}
	must(t, os.WriteFile(filepath.Join(p.Workspace, "gone"), []byte("here"), 0o600))
	if got := call(lost); got.GetSuccess() || !got.GetReplayed() {
		t.Errorf("the failure again is %v", got)
	}
	// Ids may repeat from turn to turn: without a turn, what only reads is read again.
	lost.TurnId = ""
	for _, content := range []string{"first", "then"} {
		must(t, os.WriteFile(filepath.Join(p.Workspace, "gone"), []byte(content), 0o600))
		if got := call(lost); got.GetReplayed() || !strings.Contains(got.GetOutput().String(), content) {
			t.Errorf("a file of %q is read as %v", content, got)
		}
	}
}

// While a call runs, the same one waits for its answer.
func TestSameCallAtOnce(t *testing.T) {
	t.Parallel()
	p := MustRunBeside(t)
	var work sync.WaitGroup
	var mu sync.Mutex
	replayed := 0
	for range 8 {
		work.Go(func() {
			got, err := p.bridge().Tool(t.Context(), noted("sleep 0.2"))
			if err != nil || !got.GetSuccess() {
				t.Errorf("got %v, %v", got, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if got.GetReplayed() {
				replayed++
			}
		})
	}
	work.Wait()
	if runs := runsIn(p.Workspace); runs != 1 || replayed != 7 {
		t.Errorf("ran %d times, %d answers are the first one's", runs, replayed)
	}
}

// A server that is killed while a tool runs can't know what came of it. It says so, and does
// not run the tool again.
func TestSameCallAfterKill(t *testing.T) {
	t.Parallel()
	store, workspace := filepath.Join(t.TempDir(), "store"), t.TempDir()
	start := func(t *testing.T) (*child, *process) {
		c := MustStartChild(t, workspace, "--data-dir="+store, "--shell-allow=echo,sleep")
		return c, &process{conn: MustDial(t, c.Address)}
	}
	for name, by := range map[string]func(*loombridgev1.ToolRequest){
		"call id":    func(*loombridgev1.ToolRequest) {},
		"request id": func(r *loombridgev1.ToolRequest) { r.RequestId = "r" },
	} {
		t.Run(name, func(t *testing.T) {
			before := runsIn(workspace)
			c, p := start(t)
			r := noted("sleep 1000")
			by(r)
			go func() { _, _ = p.bridge().Tool(t.Context(), r) }() // ends with the server
			eventually(t, waitTime, func() error {
				if runsIn(workspace) == before {
					return fmt.Errorf("the tool does not run")
				}
				return nil
			})
			must(t, c.Process.Kill())
			_ = c.Wait()
			c, p = start(t)
			for range 2 {
				got, err := p.bridge().Tool(t.Context(), r)
				must(t, err)
				if got.GetSuccess() || got.GetErrorCode() != loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_OUTCOME_UNKNOWN || !got.GetReplayed() {
					t.Errorf("got %v", got)
				}
			}
			page, err := loombridgev1.NewToolServiceClient(p.conn).ListAudit(t.Context(), &loombridgev1.ListAuditRequest{AgentId: "a"})
			must(t, err)
			unknown := page.GetRecords()[len(page.GetRecords())-1]
			for _, one := range page.GetRecords() {
				if one.GetOutcome() == loombridgev1.AuditOutcome_AUDIT_OUTCOME_UNKNOWN && one.GetRequestId() == r.GetRequestId() {
					unknown = one
				}
			}
			if unknown.GetOutcome() != loombridgev1.AuditOutcome_AUDIT_OUTCOME_UNKNOWN || unknown.GetRequestId() != r.GetRequestId() || unknown.GetCallId() != "c" {
				t.Errorf("the record is %v", unknown)
			}
			if runs := runsIn(workspace); runs != before+1 {
				t.Errorf("ran %d times", runs-before)
			}
			must(t, c.Process.Kill())
			_ = c.Wait()
		})
	}
}
