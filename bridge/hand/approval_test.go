package hand_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// closedWorkspaces fail whoever asks for one.
type closedWorkspaces struct{}

func (closedWorkspaces) Root(kv.Scope) (*os.Root, error) {
	return nil, errors.New("asked for a workspace")
}

// A call that a person has not agreed to is answered before anything of it happens: it
// takes no slot, opens no workspace and writes no intent, so its step is the only commit.
func TestUnapprovedCallsTouchNothing(t *testing.T) {
	w := MustWorld(t, nil, &hand.Options{MaxRunning: 1})
	w.add(tools.Descriptor{Name: "ask:first", RequiresApproval: true, Mutates: true},
		func(context.Context, tools.Input) (tools.Output, error) {
			t.Error("the tool ran")
			return tools.Output{}, nil
		})
	started, release := make(chan struct{}), make(chan struct{})
	w.add(tools.Descriptor{Name: "slow"}, func(context.Context, tools.Input) (tools.Output, error) {
		close(started)
		<-release
		return tools.Output{}, nil
	})
	ended := make(chan error)
	go func() {
		_, err := w.Call(context.Background(), request("slow", nil))
		ended <- err
	}()
	<-started // the only slot is taken
	open := w.Workspaces
	w.Workspaces = closedWorkspaces{}
	before, _ := w.engine.Calls()
	a := w.must(request("ask:first", nil))
	after, _ := w.engine.Calls()
	if a.ErrorCode != tools.PermissionDenied || a.ErrorMessage != "Permission denied: ask:first needs the approval of a person, but no approver is connected: run `loom-bridge-server approvals watch --answer`, then call again" {
		t.Errorf("answered %s: %s", a.ErrorCode, a.ErrorMessage)
	}
	if after-before != 1 {
		t.Errorf("%d commits, want that of the step", after-before)
	}
	raw, err := w.Run(t.Context(), request("ask:first", nil))
	if err != nil || raw.Failure == nil || raw.Failure.Code != tools.PermissionDenied {
		t.Errorf("unrecorded: %v %+v", err, raw)
	}
	w.Workspaces = open
	close(release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
