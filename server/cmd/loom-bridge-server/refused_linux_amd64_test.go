package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox/machine"
)

// On a machine whose kernel refuses everything that confines, a server that requires it
// does not start and says why, and doctor fails; where only namespaces are refused, doctor
// names the other tier. The refusals are the kernel's own.
//
// E05
func TestSandboxWhereTheKernelRefuses(t *testing.T) {
	const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	none := machine.NoNamespaces(unix.EPERM, namespaces)
	nothing := append(machine.Refuse(unix.ENOSYS, unix.SYS_LANDLOCK_CREATE_RULESET), none...)
	on := func(refusals []machine.Refusal, args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a server that starts all the same runs on
		defer cancel()
		cmd := machine.Machine{Refusals: refusals}.Command(ctx, "/proc/self/exe", args...)
		cmd.Env, cmd.Dir = append(os.Environ(), asServer+"=1"), t.TempDir()
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := on(nothing, "--addr", "127.0.0.1:0", "--data-dir", filepath.Join(t.TempDir(), "store"), "--sandbox", "require")
	if err == nil || !strings.Contains(out, "nothing here confines a process") || !strings.Contains(out, "operation not permitted") || !strings.Contains(out, "Landlock") {
		t.Errorf("require: %v, %s", err, out)
	}
	out, err = on(nothing, "doctor")
	if err == nil || !strings.Contains(out, "tier namespaces: does not work here") || !strings.Contains(out, "tier landlock: does not work here") {
		t.Errorf("doctor: %v, %s", err, out)
	}
	out, err = on(none, "doctor", "--jobs=false")
	if !strings.Contains(out, "tier namespaces: does not work here") || !strings.Contains(out, "tier landlock: works (used)") {
		t.Errorf("doctor without namespaces: %v, %s", err, out)
	}
}

// becomeMachine prepares another machine, if this program was started for that.
func becomeMachine() { machine.Main() }
