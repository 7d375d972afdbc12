package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/registry"
	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// routed is two servers on one store with a mesh, of which the first, in a process of its
// own, has the workspace.
type routed struct {
	store, folder string
	owner         *apart
	other         *process
}

func mustRoute(t *testing.T, of ...string) *routed {
	t.Helper()
	r := &routed{store: postgresPlace(t, pgtest.Address(t)), folder: t.TempDir()}
	args := []string{"--mesh", "embedded", "--shell-allow", "echo,sleep,cat"}
	r.owner = MustBridgeApart(t, r.store, "owner", append(append(args, "--workspace", r.folder), of...)...)
	r.other = MustPlace(t, r.store, "other", t.TempDir(), args...)
	r.owner.MustUse(t, "x", "fs:write_file", object{"path": "plan.txt", "content": "sail at noon"})
	r.reads(t)
	return r
}

// reads waits until the other server reaches the workspace.
func (r *routed) reads(t *testing.T) {
	t.Helper()
	waitUntil(t, "the other server reads in the workspace", func() bool {
		got, err := r.other.tryTool(t, "x", "fs:read_file", object{"path": "plan.txt"})
		return err == nil && strings.Contains(got.GetOutputJson(), "sail at noon")
	})
}

// run has a command line run by way of the other server, once for each id.
func (r *routed) run(ctx context.Context, id, line string) (*loombridgev1.ToolResponse, error) {
	return r.other.bridge().Tool(convert.AskText(ctx), &loombridgev1.ToolRequest{
		AgentId: "x", SessionId: "s", Name: "system:shell", RequestId: id,
		ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: fmt.Sprintf(`{"command":%q}`, line)},
	})
}

// ran is how often the command lines of an id ran: each adds a line to the file of that name.
func (r *routed) ran(id string) int {
	text, _ := os.ReadFile(filepath.Join(r.folder, id)) // none before the first run
	return strings.Count(string(text), "\n")
}

// The server that has the workspace is killed under a call that another one has taken there.
// Its caller is told that the outcome is not known and at which server; what is called after
// it is refused as not reached, and nothing runs twice, also not by the same request id when
// the server is back: then the workspace works as before.
//
// Z40
func TestWorkspaceOwnerIsKilledUnderCallSoak(t *testing.T) {
	t.Parallel()
	r := mustRoute(t)
	failed := make(chan error, 1)
	go func() {
		_, err := r.run(t.Context(), "r1", "echo ran >> r1; sleep 600")
		failed <- err
	}()
	waitUntil(t, "it runs", func() bool { return r.ran("r1") == 1 })
	began := time.Now()
	r.owner.Kill(t)
	err := <-failed
	if reason, details := detailOf(err); reason != "OUTCOME_UNKNOWN" || details["server"] != "owner" || !strings.Contains(err.Error(), "request_id") {
		t.Errorf("the call that ran: %v %s %v", err, reason, details)
	}
	if passed := time.Since(began); passed > registry.Term+20*time.Second {
		t.Errorf("it ended after %v", passed)
	}

	r.other.listed(t, "other")
	_, err = r.run(t.Context(), "r2", "echo ran >> r2")
	if reason, details := detailOf(err); status.Code(err) != codes.Unavailable || reason != "WORKSPACE_AWAY" || details["server"] != "owner" {
		t.Errorf("a call after it: %v %s %v", err, reason, details)
	}
	// What the dead server left open is settled a little after it has left the list.
	var settled *loombridgev1.ToolResponse
	waitUntil(t, "the same request has an answer", func() bool {
		settled, err = r.run(t.Context(), "r1", "echo ran >> r1; sleep 600")
		return reasonOf(err) != "WORKSPACE_AWAY"
	})
	if err != nil || settled.GetErrorCode() != loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_OUTCOME_UNKNOWN {
		t.Errorf("the same request: %v %v", settled, err)
	}

	MustBridgeApart(t, r.store, "owner", "--mesh", "embedded", "--shell-allow", "echo,sleep", "--workspace", r.folder)
	r.reads(t)
	again, err := r.run(t.Context(), "r1", "echo ran >> r1; sleep 600")
	if err != nil || !again.GetReplayed() || again.GetStep().GetId() != settled.GetStep().GetId() {
		t.Errorf("the same request when it is back: %v %v, want %v", again, err, settled)
	}
	for range 2 {
		if got, err := r.run(t.Context(), "r2", "echo ran >> r2"); err != nil || !got.GetSuccess() {
			t.Errorf("what was refused: %v %v", got, err)
		}
	}
	if first, second := r.ran("r1"), r.ran("r2"); first != 1 || second != 1 {
		t.Errorf("ran %d and %d times", first, second)
	}
}

// The server that has the workspace stands still under calls that another one takes there.
// A call ends at its deadline, and does not run later; one without a deadline ends when the
// server has not said in time that it has it, and is not run twice. When the server goes on,
// its workspace works again, also after it was taken for dead.
//
// Z41
func TestWorkspaceOwnerStandsStillSoak(t *testing.T) {
	t.Parallel()
	r := mustRoute(t)
	r.owner.StandStill(t)
	began := time.Now()
	limited, unlimited := make(chan error, 1), make(chan error, 1)
	const limit = time.Second
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		_, err := r.run(ctx, "r1", "echo ran >> r1")
		limited <- err
	}()
	go func() {
		_, err := r.run(t.Context(), "r2", "echo ran >> r2")
		unlimited <- err
	}()
	if err, passed := <-limited, time.Since(began); status.Code(err) != codes.DeadlineExceeded || passed > limit+10*time.Second {
		t.Errorf("with a deadline of %v: %v after %v", limit, err, passed)
	}
	if err, passed := <-unlimited, time.Since(began); reasonOf(err) != "OUTCOME_UNKNOWN" || passed > registry.Term+20*time.Second {
		t.Errorf("without a deadline: %v %s after %v", err, reasonOf(err), passed)
	}
	must(t, r.owner.command.Process.Signal(syscall.SIGCONT))
	r.reads(t)
	for range 2 { // the first of them may learn what became of it
		if _, err := r.run(t.Context(), "r2", "echo ran >> r2"); err != nil {
			t.Errorf("the same request: %v", err)
		}
	}
	if first, second := r.ran("r1"), r.ran("r2"); first != 0 || second > 1 {
		t.Errorf("what had ended before ran %d times, the other %d", first, second)
	}

	r.owner.StandStill(t)
	r.other.listed(t, "other")
	if _, err := r.run(t.Context(), "r3", "echo ran >> r3"); reasonOf(err) != "WORKSPACE_AWAY" {
		t.Errorf("it was taken for dead: %v %s", err, reasonOf(err))
	}
	must(t, r.owner.command.Process.Signal(syscall.SIGCONT))
	r.other.listed(t, "other", "owner")
	r.reads(t)
	if got, err := r.run(t.Context(), "r3", "echo ran >> r3"); err != nil || !got.GetSuccess() || r.ran("r3") != 1 {
		t.Errorf("when it is back: %v %v, it ran %d times", got, err, r.ran("r3"))
	}
}
