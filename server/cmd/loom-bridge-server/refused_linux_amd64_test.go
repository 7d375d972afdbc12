package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loom-bridge/loom-bridge/internal/testkit/attack"
	"github.com/loom-bridge/loom-bridge/internal/testkit/machine"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// On a machine whose kernel refuses everything that confines, a server that requires it
// does not start and says why, and doctor fails; where only namespaces are refused, doctor
// names the other tier. The refusals are the kernel's own.
//
// E05
func TestSandboxWhereTheKernelRefuses(t *testing.T) {
	t.Parallel()
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

// With auto a server starts also where nothing confines: the status and the log say why, and
// programs are refused by the reason. With off, which is asked for, they run, and status, log
// and audit say that nothing confines them. The kernel refuses by itself.
//
// E05
func TestSandboxSettingIsTold(t *testing.T) {
	t.Parallel()
	const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	nothing := append(machine.Refuse(unix.ENOSYS, unix.SYS_LANDLOCK_CREATE_RULESET), machine.NoNamespaces(unix.EPERM, namespaces)...)
	for setting, want := range map[string]struct {
		tier, log, audit string
		runs             bool
	}{
		"auto": {log: "programs are not confined"},
		"off":  {tier: "none", log: "off: programs can do everything that the server's user can", audit: "none", runs: true},
	} {
		t.Run(setting, func(t *testing.T) {
			dir := t.TempDir()
			cmd := machine.Machine{Refusals: nothing}.Command(t.Context(), "/proc/self/exe", "--addr=127.0.0.1:0", "--data-dir="+filepath.Join(t.TempDir(), "store"), "--workspace="+dir, "--sandbox="+setting)
			log := &output{}
			cmd.Env, cmd.Dir, cmd.Stderr = append(os.Environ(), asServer+"=1"), dir, log
			stdout, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			line, err := bufio.NewReader(stdout).ReadString('\n')
			must(t, err)
			p := &process{conn: MustDial(t, strings.TrimSpace(strings.TrimPrefix(line, "listening on "))), Log: log}
			w := &shellWorld{t, p, want.tier}
			got := w.status().GetSandbox()
			if got.GetSetting() != setting || got.GetTier() != want.tier || len(got.GetGaps()) == 0 == want.runs || len(got.GetProblems()) == 0 != want.runs {
				t.Errorf("status: %v", got)
			}
			if !strings.Contains(log.String(), want.log) {
				t.Errorf("log: %s", log)
			}
			out, failure := w.run("system:shell", object{"command": "echo", "args": []string{"ran"}})
			if want.runs != (failure == nil && out.Stdout == "ran\n") || !want.runs && !strings.Contains(failure.GetMessage(), "nothing here confines it") {
				t.Errorf("a program gave %+v, %v", out, failure)
			}
			page, err := loombridgev1.NewToolServiceClient(p.conn).ListAudit(t.Context(), &loombridgev1.ListAuditRequest{AgentId: "a"})
			must(t, err)
			if len(page.GetRecords()) != 1 || page.GetRecords()[0].GetTier() != want.audit {
				t.Errorf("audit: %v", page)
			}
		})
	}
}

// doctor names the profiles and the bindings that the settings file has.
func TestDoctorTellsPolicies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "loom.toml"), []byte("[profile.look]\nmode = \"read\"\n[[bind]]\nagent = \"ci-*\"\nprofile = \"look\"\n"), 0o600))
	var out bytes.Buffer
	_ = run(t.Context(), []string{"doctor", "--jobs=false", "--config", filepath.Join(dir, "loom.toml")}, noEnvironment, &out, io.Discard) // a machine may have no tier
	for _, want := range []string{"profile look: mode read\n", `binding: tenant "", agent "ci-*", tool "": profile "look"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("doctor does not say %q: %s", want, out.String())
		}
	}
}

// lacks ends a test of a tier that this machine does not have.
func lacks(tb testing.TB, tier string, problems []string) {
	tb.Helper()
	machine.Lacks(tb, tier, problems)
}

// becomeOther prepares another machine, or attacks a sandbox, if this program was started
// for that.
func becomeOther() {
	machine.Main()
	attack.Main()
}
