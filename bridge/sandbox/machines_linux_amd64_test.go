package sandbox_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox/inner"
	"github.com/loom-bridge/loom-bridge/internal/testkit/machine"
)

// asDescriber is the argument with which this test binary tells how it would confine.
const asDescriber = "describe"

func describe() {
	runner := sandbox.NewLocal(nil)
	defer runner.Close()
	text, err := json.Marshal(runner.Describe(nil)) //nolint:staticcheck // it takes no context
	if err != nil {
		panic(err)
	}
	fmt.Print(string(text))
}

// confinementOn tells how programs are confined on another machine.
func confinementOn(t *testing.T, m machine.Machine) sandbox.Confinement {
	t.Helper()
	out, err := m.Command(t.Context(), "/proc/self/exe", asDescriber).Output()
	var c sandbox.Confinement
	if err == nil {
		err = json.Unmarshal(out, &c)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return c
}

const anyNamespace = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// Whatever the kernel refuses, or only pretends to do, is found out: the next tier that
// holds is taken, and it is told what is missing.
func TestProbesFindWhatIsMissing(t *testing.T) {
	if c := newRunner(t, sandbox.Options{}).Describe(t.Context()); c.Tier != sandbox.TierNamespaces || c.LandlockABI < 1 {
		t.Skipf("this machine has not everything that could be taken away: %+v", c)
	}
	const n, l, without, nothing = "namespaces", "landlock", "namespaces without Landlock", ""
	noNamespaces := machine.NoNamespaces(unix.EPERM, anyNamespace)
	with := func(lists ...[]machine.Refusal) []machine.Refusal { return slices.Concat(lists...) }
	prctl := func(option uint32, e unix.Errno) []machine.Refusal {
		return []machine.Refusal{{Call: unix.SYS_PRCTL, Compare: true, Value: option, Errno: e}}
	}
	listener := []machine.Refusal{{Call: unix.SYS_SECCOMP, Arg: 1, Bits: unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, Errno: unix.EINVAL}}
	loopback := []machine.Refusal{{Call: unix.SYS_IOCTL, Arg: 1, Compare: true, Value: unix.SIOCSIFFLAGS, Errno: unix.EPERM}}
	for name, tt := range map[string]struct {
		refusals []machine.Refusal
		tier     string
		problem  string
	}{
		"nothing":                      {nil, n, ""},
		"user namespace":               {machine.NoNamespaces(unix.EPERM, unix.CLONE_NEWUSER), l, "operation not permitted"},
		"user namespaces are used up":  {machine.NoNamespaces(unix.ENOSPC, unix.CLONE_NEWUSER), l, "no space left"},
		"mount namespace":              {machine.NoNamespaces(unix.EPERM, unix.CLONE_NEWNS), l, "operation not permitted"},
		"pid namespace":                {machine.NoNamespaces(unix.EPERM, unix.CLONE_NEWPID), l, "operation not permitted"},
		"net namespace":                {machine.NoNamespaces(unix.EPERM, unix.CLONE_NEWNET), l, "operation not permitted"},
		"ipc namespace":                {machine.NoNamespaces(unix.EINVAL, unix.CLONE_NEWIPC), l, "invalid argument"},
		"namespaces without rights":    {loopback, l, "loopback"},
		"mount":                        {machine.Refuse(unix.EPERM, unix.SYS_MOUNT), l, "mounts"},
		"pivot_root":                   {machine.Refuse(unix.EPERM, unix.SYS_PIVOT_ROOT), l, "pivot_root"},
		"open_tree":                    {machine.Refuse(unix.ENOSYS, unix.SYS_OPEN_TREE), l, "open_tree"},
		"mount_setattr":                {machine.Refuse(unix.ENOSYS, unix.SYS_MOUNT_SETATTR), l, "mount_setattr"},
		"mount_setattr, pretended":     {machine.Pretend(unix.SYS_MOUNT_SETATTR), l, "mount-namespace: the root can be written to"},
		"umount, pretended":            {machine.Pretend(unix.SYS_UMOUNT2), l, "old"},
		"Landlock is not there":        {machine.Refuse(unix.ENOSYS, unix.SYS_LANDLOCK_CREATE_RULESET), without, ""},
		"Landlock is switched off":     {machine.Refuse(unix.EOPNOTSUPP, unix.SYS_LANDLOCK_CREATE_RULESET), without, ""},
		"Landlock rules":               {machine.Refuse(unix.EINVAL, unix.SYS_LANDLOCK_ADD_RULE), without, "landlock"},
		"Landlock":                     {machine.Refuse(unix.EPERM, unix.SYS_LANDLOCK_RESTRICT_SELF), without, "landlock"},
		"Landlock, pretended":          {machine.Pretend(unix.SYS_LANDLOCK_RESTRICT_SELF), without, "landlock: a file without a rule was read"},
		"filters":                      {machine.Refuse(unix.EINVAL, unix.SYS_SECCOMP), nothing, "seccomp"},
		"filters, pretended":           {machine.Pretend(unix.SYS_SECCOMP), nothing, "seccomp"},
		"no_new_privs":                 {prctl(unix.PR_SET_NO_NEW_PRIVS, unix.EINVAL), nothing, "no_new_privs"},
		"no_new_privs, pretended":      {prctl(unix.PR_SET_NO_NEW_PRIVS, 0), nothing, "seccomp: permission denied"},
		"capset":                       {machine.Refuse(unix.EPERM, unix.SYS_CAPSET), nothing, "capabilities"},
		"capset, pretended":            {machine.Pretend(unix.SYS_CAPSET), nothing, "capabilities are left"},
		"limits":                       {machine.Refuse(unix.EPERM, unix.SYS_PRLIMIT64), nothing, "limit"},
		"limits, pretended":            {[]machine.Refusal{{Call: unix.SYS_PRLIMIT64, Arg: 1, Compare: true, Value: unix.RLIMIT_NOFILE}}, nothing, "limits: a descriptor beyond the limit was made"},
		"both tiers":                   {with(noNamespaces, machine.Refuse(unix.ENOSYS, unix.SYS_LANDLOCK_CREATE_RULESET)), nothing, "Landlock"},
		"both, pretended":              {with(noNamespaces, machine.Pretend(unix.SYS_LANDLOCK_RESTRICT_SELF)), nothing, "a file outside was read"},
		"supervisors":                  {with(noNamespaces, listener), nothing, "seccomp"},
		"a supervisor's look":          {with(noNamespaces, machine.Refuse(unix.EPERM, unix.SYS_PROCESS_VM_READV)), nothing, "supervisor"},
		"copies of descriptors":        {with(noNamespaces, machine.Refuse(unix.EPERM, unix.SYS_PIDFD_GETFD)), l, "operation not permitted"},
		"filters beside no namespaces": {with(noNamespaces, machine.Pretend(unix.SYS_SECCOMP)), nothing, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := confinementOn(t, machine.Machine{Refusals: tt.refusals})
			got := c.Tier
			if got == n && c.LandlockABI == 0 {
				got = without
			}
			if told := strings.Join(c.Problems, "; "); got != tt.tier || !strings.Contains(told, tt.problem) {
				t.Errorf("tier %q, want %q; problems: %s; want %q", got, tt.tier, told, tt.problem)
			}
			if slices.Contains(c.Layers, inner.LayerLandlock) != (c.LandlockABI > 0) {
				t.Errorf("layers: %v, Landlock %d", c.Layers, c.LandlockABI)
			}
		})
	}
}

// A default container has tier L alone, as root and as a user.
func TestContainerSoak(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("a container takes root to make")
	}
	if c := newRunner(t, sandbox.Options{Tier: sandbox.TierLandlock}).Describe(t.Context()); !c.Confined() {
		machine.Lacks(t, sandbox.TierLandlock, c.Problems)
	}
	elsewhere(t, machine.Docker(0), "^(TestAttacks|TestRun|TestStopped|TestOwner)$")
	elsewhere(t, machine.Docker(4567), "^(TestAttacks|TestRun|TestStopped)$")
}
