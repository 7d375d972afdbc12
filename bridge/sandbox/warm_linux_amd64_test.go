package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox/inner"
	"github.com/loom-bridge/loom-bridge/internal/testkit/machine"
)

// MustWarm runs a job and waits until stages are ready for the next ones.
func (b *box) MustWarm() {
	b.tb.Helper()
	mustBeReady(b.tb, b.runner, sandbox.DefaultWarm, func() { b.want("true", "") })
}

// mustBeReady runs jobs until so many stages are ready: where another program mounts something
// meanwhile, all are made anew.
func mustBeReady(tb testing.TB, runner *sandbox.Local, want int, run func()) {
	tb.Helper()
	ready := 0
	for range 5 {
		run()
		runner.Settle()
		if ready = runner.Prepared(); ready == want {
			return
		}
	}
	tb.Fatalf("%d stages are ready, want %d", ready, want)
}

// A stage that waits is used once, and nothing of one job is in the next one.
func TestWarmStagesAreUsedOnce(t *testing.T) {
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		b := MustBox(t, runner, 0)
		b.MustWarm()
		for range 6 {
			b.want(`cat $TMPDIR/left /tmp/home/left /dev/shm/left 2>/dev/null; for f in $TMPDIR /tmp/home /dev/shm; do echo left > $f/left; done 2>/dev/null; hostname changed 2>/dev/null; hostname | grep changed; true`, "")
			b.runner.Settle()
		}
		b.stdin = "input"
		b.want("cat", "input")
		b.stdin = ""
		b.want("cat; readlink /proc/self/fd/0 2>/dev/null || echo /dev/null", "/dev/null\n")
	})
}

// What one job makes is protected from the next, though the stage of that one was ready
// before it was there; and what is hidden is hidden.
func TestWarmStagesProtect(t *testing.T) {
	runner := newRunner(t, sandbox.Options{Tier: sandbox.TierNamespaces})
	if c := runner.Describe(t.Context()); !c.Confined() {
		machine.Lacks(t, sandbox.TierNamespaces, c.Problems)
	}
	b := MustBox(t, runner, 0)
	b.policy.Hide = []string{filepath.Join(b.dir, "store")}
	b.MustWarm()
	b.put(".git/hooks/pre-commit", "kept")
	b.put(".env", "kept")
	b.put("store/data", "secret")
	b.want("echo x > .git/hooks/pre-commit; rm -f .env; echo y > .git/hooks/new; cat .git/hooks/* .env store/* 2>/dev/null; true", "keptkept")
}

// A place that is mounted while stages wait is seen by the next job.
func TestWarmStagesSeeMounts(t *testing.T) {
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		b := MustBox(t, runner, 0)
		place := filepath.Join(b.dir, "mounted")
		must(t, os.Mkdir(place, 0o755))
		b.MustWarm()
		if err := unix.Mount("tmpfs", place, "tmpfs", 0, "size=64k"); err != nil {
			t.Skipf("nothing can be mounted here: %v", err)
		}
		defer func() { must(t, unix.Unmount(place, unix.MNT_DETACH)) }()
		b.put("mounted/f", "seen")
		b.want("cat mounted/f", "seen")
	})
}

// A stage that was killed while it waited is not used; old ones are replaced, and without
// jobs there are none after a while. With the runner all end.
func TestWarmStagesEnd(t *testing.T) {
	eachTier(t, func(t *testing.T, _ *sandbox.Local) {
		tier := filepath.Base(t.Name())
		runner := newRunner(t, sandbox.Options{Tier: tier, TempDir: openFolder(t)})
		b := MustBox(t, runner, 0)
		b.MustWarm()
		runner.KillReady()
		b.want("echo one", "one\n")
		b.want("echo two", "two\n")
		b.want("echo three", "three\n")
		runner.Settle()
		runner.Age(time.Minute)
		runner.Settle()
		if n := runner.Prepared(); n != sandbox.DefaultWarm {
			t.Errorf("%d stages are ready, when the old ones were replaced", n)
		}
		runner.Age(time.Hour)
		runner.Settle()
		if n := runner.Prepared(); n != 0 {
			t.Errorf("%d stages wait though nothing runs", n)
		}
		b.MustWarm()
		if n := len(stages(t, os.Getpid())); n < 2*sandbox.DefaultWarm {
			t.Errorf("only %d processes of stages are there", n)
		}
		must(t, runner.Close())
		if left := stages(t, os.Getpid()); len(left) > 0 {
			t.Errorf("processes stay: %v", left)
		}
	})
}

// stages are the processes below one that are stages.
func stages(t *testing.T, of int) (found []string) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", of))
	must(t, err)
	for _, task := range tasks {
		text, _ := os.ReadFile(task) // it may have ended
		for _, word := range strings.Fields(string(text)) {
			if name, _ := os.ReadFile("/proc/" + word + "/cmdline"); strings.HasPrefix(string(name), inner.FirstStage) || strings.HasPrefix(string(name), inner.SecondStage) {
				found = append(found, word)
			}
			pid, err := strconv.Atoi(word)
			must(t, err)
			found = append(found, stages(t, pid)...)
		}
	}
	return found
}

// Stages are kept ready for so many workspaces at most.
func TestWarmStagesAreBounded(t *testing.T) {
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		const most = 8 * sandbox.DefaultWarm
		var boxes []*box
		for range 10 {
			boxes = append(boxes, MustBox(t, runner, 0))
		}
		use := func() {
			for i, b := range boxes {
				b.want(fmt.Sprint("echo ", i), fmt.Sprintln(i))
			}
		}
		mustBeReady(t, runner, most, use)
		runner.Age(20 * time.Second)
		slices.Reverse(boxes)
		mustBeReady(t, runner, most, use)
	})
}
