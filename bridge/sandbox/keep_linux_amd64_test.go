package sandbox_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox/inner"
	"github.com/loom-bridge/loom-bridge/internal/testkit/machine"
)

// git works in a workspace whose hooks and settings are protected: tier N.
func TestProtected(t *testing.T) {
	runner := newRunner(t, sandbox.Options{Tier: sandbox.TierNamespaces})
	if c := runner.Describe(t.Context()); !c.Confined() {
		machine.Lacks(t, sandbox.TierNamespaces, c.Problems)
	}
	b := MustBox(t, runner, 0)
	b.want("git init -q . && git config user.email a@b && git config user.name a && echo ok", "ok\n")
	b.put("f", "1")
	b.put(".env", "KEY=1")
	b.want("git add f && git commit -qm one && git checkout -qb other && echo 2 >> f && git commit -qam two && git checkout -q - && git merge -q other && git log --oneline | wc -l && git gc -q", "2\n")
	for _, script := range []string{
		"echo x > .env", "rm .env", "mv .env e", "mv f .env", "ln -f f .env", "echo x > .git/hooks/pre-commit", "rm -rf .git/hooks",
		"mv .git/hooks .git/h", "mv .git g", "git config core.fsmonitor x", "echo x >> .git/config", "chmod 600 .env", "truncate -s0 .git/config",
	} {
		if got := b.sh(script); got.err != nil || got.Exit == 0 {
			t.Errorf("%s gave %+v", script, got)
		}
	}
	// A link in the place of what is protected leads no mount anywhere.
	outside := b.put("../outside/file", "kept")
	must(t, os.RemoveAll(filepath.Join(b.dir, ".vscode")))
	must(t, os.Symlink(filepath.Dir(outside), filepath.Join(b.dir, ".vscode")))
	must(t, os.Symlink("/etc", filepath.Join(b.dir, ".idea")))
	if got := b.sh("cat .vscode/file; ls .idea/ssh"); got.stdout != "" || got.err != nil {
		t.Errorf("links gave %+v", got)
	}
}

// What is hidden stays empty and where it is, whatever is done to its parents.
func TestHidden(t *testing.T) {
	runner := newRunner(t, sandbox.Options{Tier: sandbox.TierNamespaces})
	if c := runner.Describe(t.Context()); !c.Confined() {
		machine.Lacks(t, sandbox.TierNamespaces, c.Problems)
	}
	b := MustBox(t, runner, 0)
	b.put(".loom/store/data", "secret")
	b.put(".loom/cache/f", "seen")
	b.policy.Hide = []string{filepath.Join(b.dir, ".loom", "store")}
	b.want("ls -A .loom/store; cat .loom/store/data 2>/dev/null; echo x > .loom/store/n 2>/dev/null; mv .loom l 2>/dev/null; mv .loom/store s 2>/dev/null; rm -rf .loom/store 2>/dev/null; cat .loom/cache/f", "seen")
	if text, err := os.ReadFile(filepath.Join(b.dir, ".loom/store/data")); err != nil || string(text) != "secret" {
		t.Errorf("what was hidden: %q, %v", text, err)
	}
}

// Each layer is there for something. An attack is stopped while the layer is there and
// reaches its target without it, beside those that stand in for it and are away both times.
func TestEachLayerIsNeededSoak(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("without a user namespace an ordinary user makes none of the others")
	}
	const n, l = sandbox.TierNamespaces, sandbox.TierLandlock
	for _, tt := range []struct {
		tier, layer string
		away        []string
		user        int
		attacks     string
	}{
		{n, inner.LayerUser, []string{inner.LayerSeccomp, inner.LayerCaps}, 0, "syslog swapon acct setuid-other"},
		{n, inner.LayerMount, []string{inner.LayerNotify}, 1234, "chmod-outside utime-outside stat-outside dotenv githook githook-rename unix-path"},
		{n, inner.LayerPID, []string{inner.LayerUser}, 1234, "read-cmdline prlimit-server affinity-server nice-server"},
		{n, inner.LayerNet, []string{inner.LayerSeccomp}, 1234, "udp mptcp interfaces proc-net"},
		{n, inner.LayerIPC, []string{inner.LayerSeccomp}, 1234, "sysv-shm"},
		{n, inner.LayerLandlock, nil, 0, "kill-helper tgkill-helper"},
		{n, inner.LayerSeccomp, nil, 1234, "clone-user clone3 int80 io_uring keyctl memfd-secret suid-bit tiocsti-high userfaultfd vsock"},
		{n, inner.LayerNotify, nil, 1234, "commands-create commands-rename commands-symlink commands-hardlink new-envrc race-name"},
		{n, inner.LayerCaps, []string{inner.LayerSeccomp}, 0, "hostname"},
		{n, inner.LayerNNP, []string{inner.LayerMount, inner.LayerLandlock, inner.LayerSeccomp}, 1234, "setuid"},
		{l, inner.LayerSeccomp, nil, 1234, "udp unix-path unix-dgram netlink sysv-shm"},
		{l, inner.LayerNotify, nil, 1234, "chmod-outside chmod-outside-fd chown-outside utime-outside xattr-outside inotify-outside prlimit-server affinity-server nice-server race-chmod commands-create commands-rename commands-symlink commands-hardlink commands-overwrite dotenv githook-rename race-name"},
		{l, inner.LayerCaps, []string{inner.LayerSeccomp, inner.LayerNotify}, 0, "hostname syslog swapon acct"},
	} {
		t.Run(tt.tier+" without "+tt.layer, func(t *testing.T) {
			if c := newRunner(t, sandbox.Options{Tier: tt.tier}).Describe(t.Context()); !c.Confined() {
				machine.Lacks(t, tt.tier, c.Problems)
			}
			names := strings.Fields(tt.attacks)
			fight := func(away ...string) ([]string, map[string]string) {
				runner := newRunner(t, sandbox.Options{Tier: tt.tier, Without: away})
				b := MustBattle(t, runner, tt.user)
				before, err := os.ReadFile("/proc/sys/kernel/pid_max")
				must(t, err)
				reached, stopped := b.fight(names...)
				if after, err := os.ReadFile("/proc/sys/kernel/pid_max"); err != nil || string(after) != string(before) {
					t.Errorf("pid_max of the machine was %s, is %s, %v", before, after, err)
				}
				return reached, stopped
			}
			if reached, _ := fight(tt.away...); len(reached) > 0 {
				t.Errorf("with it reached: %v", reached)
			}
			_, stopped := fight(append(slices.Clone(tt.away), tt.layer)...)
			// On a busy machine a race is won in the end, not at once.
			for tries := 0; len(stopped) > 0 && tries < 100; tries++ {
				names = slices.Collect(maps.Keys(stopped))
				if slices.ContainsFunc(names, func(name string) bool { return !strings.HasPrefix(name, "race-") }) {
					break
				}
				_, stopped = fight(append(slices.Clone(tt.away), tt.layer)...)
			}
			if len(stopped) > 0 {
				t.Errorf("without it were stopped all the same: %v", stopped)
			}
		})
	}
}

// Without Landlock there is no tier L, and without no_new_privs the kernel takes no
// Landlock from a tool that has no rights: such a run does not start.
func TestLandlockNeedsItsOwn(t *testing.T) {
	if c := newRunner(t, sandbox.Options{Tier: sandbox.TierLandlock}).Describe(t.Context()); !c.Confined() {
		machine.Lacks(t, sandbox.TierLandlock, c.Problems)
	}
	for _, layer := range []string{inner.LayerLandlock, inner.LayerNNP} {
		runner := newRunner(t, sandbox.Options{Tier: sandbox.TierLandlock, Without: []string{layer}})
		if got := MustBox(t, runner, 0).sh("true"); !errors.Is(got.err, sandbox.ErrUnavailable) {
			t.Errorf("without %s got %+v", layer, got)
		}
	}
}

// Without limits nothing ends what the kernel alone bounds.
func TestLimitsAreNeeded(t *testing.T) {
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		script := "ulimit -c; head -c 2000 /dev/zero > f && echo written"
		b := MustBox(t, runner, 0)
		b.policy.Limits.File = 1000
		if got := b.sh(script); got.stdout != "0\n" || got.Exit == 0 {
			t.Errorf("with limits got %+v", got)
		}
		b.runner = newRunner(t, sandbox.Options{Tier: runner.Describe(t.Context()).Tier, Without: []string{inner.LayerLimits}, TempDir: openFolder(t)})
		if got := b.sh(script); !strings.HasSuffix(got.stdout, "written\n") {
			t.Errorf("without limits got %+v", got)
		}
	})
}

// A layer that does not hold is found by the probe, and the tier is not used.
func TestProbeFindsWhatDoesNotHold(t *testing.T) {
	for _, tt := range []struct{ tier, layer, found string }{
		{sandbox.TierNamespaces, inner.LayerMount, "a file outside was read"},
		{sandbox.TierLandlock, inner.LayerNNP, "landlock"},
	} {
		if c := newRunner(t, sandbox.Options{Tier: tt.tier}).Describe(t.Context()); !c.Confined() {
			machine.Lacks(t, tt.tier, c.Problems)
		}
		if got := sandbox.Probe(t.Context(), tt.tier, tt.layer); !strings.Contains(got, tt.found) {
			t.Errorf("without %s the probe says %q", tt.layer, got)
		}
	}
}

// Bombs end at their limit, and the machine has what it had.
func TestBombs(t *testing.T) { setOff(t, 0) }

// So do those of an ordinary user.
func TestBombsSoak(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the tests run as a user already")
	}
	setOff(t, 1234)
}

// setOff sets off each bomb as a user, in each tier.
func setOff(t *testing.T, user int) {
	const mib = 1 << 20
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		namespaces := runner.Describe(t.Context()).Tier == sandbox.TierNamespaces
		for name, tt := range map[string]struct {
			script string
			limit  []string // one of them, or a failure of the program itself where it is empty
			only   bool     // tier N
		}{
			"forks":        {script: "import os,time\nend=time.time()+.5\nwhile time.time()<end:\n try: os.fork()\n except OSError: time.sleep(0.01)\nos._exit(3)", limit: []string{"processes", ""}},
			"one process":  {script: "b=[]\nwhile True: b.append(bytearray(16<<20))", limit: []string{"memory", ""}},
			"many of them": {script: "import os,time\nfor i in range(7): os.fork() if i<3 else 0\nb=bytearray(os.urandom(1<<20))*60\ntime.sleep(20)", limit: []string{"memory"}},
			"memory files": {script: "import os,time\nf=os.memfd_create('x')\nwhile True: os.write(f,b'x'*(1<<20))", limit: []string{"memory", ""}},
			"one file":     {script: "f=open('big','wb')\nwhile True: f.write(b'x'*(1<<20))", limit: []string{""}},
			"temporary":    {script: "f=open('/tmp/big','wb')\nwhile True: f.write(b'x'*(1<<20)); f.flush()", limit: []string{"", "memory"}, only: true},
			"processor":    {script: "while True: pass", limit: []string{"cpu"}},
		} {
			if tt.only && !namespaces {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := MustBox(t, runner, user)
				b.policy.Limits = sandbox.Limits{
					CPU: time.Second, Memory: 256 * mib, Processes: 64, File: 64 * mib, Scratch: 64 * mib, Output: mib,
				}
				got := b.run("python3", "-c", tt.script)
				if got.err != nil && !strings.Contains(got.err.Error(), "first stage") || !slices.Contains(tt.limit, got.Limit) || got.err == nil && got.Exit == 0 {
					t.Errorf("ended with %+v, %v, stderr %.300s", got.RunOutcome, got.err, got.stderr)
				}
			})
		}
	})
}

// A disk is not filled beyond its floor.
func TestDiskFloor(t *testing.T) {
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		b := MustBox(t, runner, 0)
		var stat unix.Statfs_t
		must(t, unix.Statfs(b.dir, &stat))
		const mib = 1 << 20
		b.policy.Limits.DiskFloor = int64(stat.Bavail)*stat.Bsize - 64*mib
		got := b.sh("i=0; while [ $i -lt 100 ]; do i=$((i+1)); head -c 30000000 /dev/urandom > f$i; done; sleep 5")
		if got.Limit != "disk" {
			t.Errorf("ended with %+v", got)
		}
	})
}

// What a run tells of the repositories that it made are those that are there: the number of
// one that is gone goes to another, which is not the run's.
func TestMade(t *testing.T) {
	for _, tier := range []string{sandbox.TierNamespaces, sandbox.TierLandlock} {
		t.Run(tier, func(t *testing.T) {
			runner := newRunner(t, sandbox.Options{Tier: tier})
			if c := runner.Describe(t.Context()); !c.Confined() {
				machine.Lacks(t, tier, c.Problems)
			}
			b := MustBox(t, runner, 0)
			if got := b.sh("git init -q gone && rm -rf gone"); got.err != nil || got.Exit != 0 || len(got.Made) > 0 {
				t.Errorf("of one that is gone: %+v", got)
			}
			got := b.sh("git init -q made && git -C made config user.name a")
			if want := sandbox.FolderAt(filepath.Join(b.dir, "made/.git")); got.err != nil || got.Exit != 0 || !slices.Equal(got.Made, []sandbox.Folder{want}) || want.Ino == 0 {
				t.Errorf("of one that is there: %+v, want %v", got, want)
			}
			if got := b.sh("git -C made config user.name b"); got.Exit == 0 {
				t.Error("another run that is not told of it changed it")
			}
			b.policy.Own = got.Made
			b.want("git -C made config user.name b && echo ok", "ok\n")
			must(t, os.RemoveAll(filepath.Join(b.dir, "made")))
			b.put("made/.git/config", "[core]\n")
			if got := b.sh("echo x >> made/.git/config"); got.Exit == 0 {
				t.Error("one that a person made in its place was changed")
			}
		})
	}
}
