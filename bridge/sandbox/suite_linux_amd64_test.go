package sandbox_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox/inner"
	"github.com/loom-bridge/loom-bridge/internal/testkit/attack"
	"github.com/loom-bridge/loom-bridge/internal/testkit/machine"
)

func TestMain(m *testing.M) {
	machine.Main()
	attack.Main()
	if len(os.Args) == 2 && os.Args[1] == asDescriber {
		describe()
		return
	}
	os.Exit(m.Run())
}

// battle is a box, and a world around it.
type battle struct {
	*box
	*attack.Scene
}

// MustBattle makes a world that a user could attack.
func MustBattle(tb testing.TB, runner *sandbox.Local, user int) *battle {
	tb.Helper()
	b := MustBox(tb, runner, user)
	// What protect.Follower tells of the repository below the workspace.
	b.policy.Protect = append(sandbox.Protected(), "nested/.git/config", "nested/.git/hooks")
	return &battle{b, attack.MustScene(tb, b.dir, user)}
}

// fight makes attacks, all without names, and returns those that reached, and what
// stopped the others.
func (b *battle) fight(names ...string) (reached []string, stopped map[string]string) {
	b.tb.Helper()
	got := b.run(b.Command(names...)...)
	if got.err != nil || got.Exit != 0 {
		b.tb.Fatalf("the attacker ended with %+v, %v", got, got.err)
	}
	reached, stopped = attack.Read(got.stdout)
	if want := len(names) + len(attack.Names()); len(names) == 0 && len(reached)+len(stopped) != want {
		b.tb.Fatalf("%d attacks were made, of %d: %s", len(reached)+len(stopped), want, got.stderr)
	}
	return reached, stopped
}

// column is a way to be confined, and the attacks that it does not stop.
type column struct {
	name  string
	opts  sandbox.Options
	leaks []string
}

// tier is one without anything changed.
func tier(name, tier string, abi int, leaks []string, without ...string) column {
	return column{name, sandbox.Options{Tier: tier, LandlockABI: abi, Without: without}, leaks}
}

// columns are the two tiers.
func columns() []column {
	return []column{
		tier("N", sandbox.TierNamespaces, 0, attack.Unstopped(true)),
		tier("L", sandbox.TierLandlock, 0, attack.Unstopped(false)),
	}
}

// bareColumns are the tiers without their newest parts.
func bareColumns() []column {
	l := attack.Unstopped(false)
	list := []column{
		// The first stage is 1 there: nothing within can send it a deadly signal.
		tier("N, no Landlock", sandbox.TierNamespaces, 0, append([]string{"kill-helper", "tgkill-helper"}, attack.Unstopped(true)...), inner.LayerLandlock),
		tier("L, ABI 1", sandbox.TierLandlock, 1, l),
	}
	if os.Getenv(soakRounds) != "" {
		list = append(list, tier("L, ABI 5", sandbox.TierLandlock, 5, l), tier("L, ABI 4", sandbox.TierLandlock, 4, l),
			tier("L, ABI 3", sandbox.TierLandlock, 3, l), tier("L, ABI 2", sandbox.TierLandlock, 2, l))
	}
	return list
}

// soakRounds is set where there is time for everything.
const soakRounds = "LOOM_SOAK_ROUNDS"

// Every attack that reaches its target without the sandbox is stopped in each tier, but
// for what the tier is known not to stop.
func TestAttacks(t *testing.T) {
	t.Parallel()
	mustStop(t, 0, columns())
}

// So they are where a tier lacks a part, and where the program is an ordinary user's.
func TestAttacksSoak(t *testing.T) {
	t.Parallel()
	mustStop(t, 0, bareColumns())
	if os.Geteuid() != 0 {
		return
	}
	const user = 1234
	list := columns()
	if os.Getenv(soakRounds) != "" {
		list = append(list, bareColumns()...)
	}
	mustStop(t, user, list)
}

// mustStop makes all attacks on each way to be confined.
func mustStop(t *testing.T, user int, columns []column) {
	t.Helper()
	t.Run(fmt.Sprint("user ", max(user, os.Geteuid())), func(t *testing.T) {
		open := MustBattle(t, newRunner(t, sandbox.Options{Setting: sandbox.Off}), user)
		works, refused := open.fight()
		t.Logf("%d of %d attacks reach without the sandbox; the machine refuses %v", len(works), len(attack.Names()), slices.Sorted(maps.Keys(refused)))
		if len(works) < 60 {
			t.Fatalf("only %d attacks reach without the sandbox: %v", len(works), refused)
		}
		for _, c := range columns {
			t.Run(c.name, func(t *testing.T) {
				runner := newRunner(t, c.opts)
				if got := runner.Describe(t.Context()); !got.Confined() {
					machine.Lacks(t, c.opts.Tier, got.Problems)
				}
				b := MustBattle(t, runner, user)
				reached, stopped := b.fight()
				for _, name := range reached {
					if !slices.Contains(c.leaks, name) {
						t.Errorf("%s reached", name)
					}
				}
				t.Logf("stopped %d, of which reach without: %d", len(stopped), len(works)-len(reached))
				b.WantWhole()
			})
		}
	})
}

// The same as an ordinary user, whose server can't become anybody.
func TestAsUserSoak(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("the tests run as a user already")
	}
	elsewhere(t, machine.Machine{User: 4567}, "^(TestAttacks|TestRun|TestStopped|TestModes|TestProtected|TestHidden)$")
}

// elsewhere runs tests on another machine.
func elsewhere(t *testing.T, m machine.Machine, tests string) {
	t.Helper()
	dir := openFolder(t)
	home := filepath.Join(dir, "h")
	must(t, os.Mkdir(home, 0o755))
	must(t, os.Chown(home, m.User, m.User))
	self, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	program := filepath.Join(dir, "tests")
	syscall.ForkLock.RLock() // a child that had it open for writing would keep it from being started (ETXTBSY)
	err = os.WriteFile(program, self, 0o755)
	syscall.ForkLock.RUnlock()
	must(t, err)
	cmd := m.Command(t.Context(), program, "-test.run", tests, "-test.v", "-test.timeout=3m", fmt.Sprint("-test.short=", testing.Short()))
	cmd.Env, cmd.Dir = append(os.Environ(), "TMPDIR="+home, "HOME="+home), home
	if m.Container {
		cmd.Env = append(cmd.Env, machine.TestTiers+"="+sandbox.TierLandlock)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", lastLines(string(out), 40))
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
