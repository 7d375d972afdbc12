package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox/inner"
)

// git works in a workspace whose hooks and settings are protected: tier N.
func TestProtected(t *testing.T) {
	runner := newRunner(t, sandbox.Options{Tier: sandbox.TierNamespaces})
	if c := runner.Describe(t.Context()); !c.Confined() {
		t.Skipf("this machine does not have the tier: %v", c.Problems)
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
		t.Skipf("this machine does not have the tier: %v", c.Problems)
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

// Each of the layers that nothing else stands in for is there for something: without it,
// attacks reach that it stops. Without Landlock there is no tier L at all; without a network
// of its own a tool gets no sockets.
func TestEachLayerIsNeeded(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("without a user namespace an ordinary user makes none of the others")
	}
	for _, tt := range []struct {
		tier, layer string
		reached     []string
	}{
		{sandbox.TierNamespaces, inner.LayerSeccomp, []string{"clone-user", "clone3", "io_uring", "keyctl", "suid-bit", "tiocsti-high", "userfaultfd", "vsock"}},
		{sandbox.TierLandlock, inner.LayerNotify, []string{"chmod-outside", "chmod-outside-fd", "chown-outside", "utime-outside", "xattr-outside", "inotify-outside", "prlimit-server", "affinity-server", "nice-server"}},
		{sandbox.TierLandlock, inner.LayerSeccomp, []string{"udp", "unix-path", "unix-dgram", "netlink", "sysv-shm"}},
	} {
		t.Run(tt.tier+" without "+tt.layer, func(t *testing.T) {
			if c := newRunner(t, sandbox.Options{Tier: tt.tier}).Describe(t.Context()); !c.Confined() {
				t.Skipf("this machine does not have the tier: %v", c.Problems)
			}
			runner := newRunner(t, sandbox.Options{Tier: tt.tier, Without: []string{tt.layer}})
			reached, stopped := MustBattle(t, runner, 1234).fight()
			for _, name := range tt.reached {
				if !slices.Contains(reached, name) {
					t.Errorf("%s is stopped all the same: %s", name, stopped[name])
				}
			}
		})
	}
}

// A layer that does not hold is found by the probe, and the tier is not used.
func TestProbeFindsWhatDoesNotHold(t *testing.T) {
	if c := newRunner(t, sandbox.Options{Tier: sandbox.TierNamespaces}).Describe(t.Context()); !c.Confined() {
		t.Skipf("this machine does not have the tier: %v", c.Problems)
	}
	if got := sandbox.Probe(t.Context(), sandbox.TierNamespaces, inner.LayerMount); !strings.Contains(got, "a file outside was read") {
		t.Errorf("the probe says %q", got)
	}
}

// Bombs end at their limit, and the machine has what it had.
func TestBombs(t *testing.T) {
	const mib = 1 << 20
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		users := []int{0}
		if os.Geteuid() == 0 {
			users = []int{0, 1234}
		}
		namespaces := runner.Describe(t.Context()).Tier == sandbox.TierNamespaces
		for _, user := range users {
			for name, tt := range map[string]struct {
				script string
				limit  []string // one of them, or a failure of the program itself where it is empty
				only   bool     // tier N
			}{
				"forks":        {script: "import os,time\nend=time.time()+2\nwhile time.time()<end:\n try: os.fork()\n except OSError: time.sleep(0.01)\nos._exit(3)", limit: []string{"processes", ""}},
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
						t.Errorf("ended with %+v, stderr %.300s", got.Outcome, got.stderr)
					}
				})
			}
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
		got := b.sh("for i in 1 2 3 4 5 6 7 8 9; do head -c 30000000 /dev/urandom > f$i; done; sleep 5")
		if got.Limit != "disk" {
			t.Errorf("ended with %+v", got)
		}
	})
}
