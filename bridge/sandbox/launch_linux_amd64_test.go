package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox/inner"
	"github.com/loom-bridge/loom-bridge/internal/testkit/machine"
)

// launchers are the launchers that this process has started.
func launchers() []int {
	var found []int
	out, _ := exec.Command("pgrep", "-P", strconv.Itoa(os.Getpid()), "-f", "^"+inner.Launcher).Output() // fails when there is none
	for _, word := range strings.Fields(string(out)) {
		if n, err := strconv.Atoi(word); err == nil {
			found = append(found, n)
		}
	}
	return found
}

// A launcher starts what has a user namespace; when it is killed, what runs goes on, and
// the next run has another one. It ends with its runner.
func TestLauncher(t *testing.T) {
	before := launchers()
	// A stage that was ready before the kill would need no launcher.
	runner := sandbox.NewLocal(&sandbox.Options{Tier: sandbox.TierNamespaces, Warm: -1})
	if c := runner.Describe(t.Context()); !c.Confined() {
		machine.Lacks(t, sandbox.TierNamespaces, c.Problems)
	}
	own := func() []int {
		return slices.DeleteFunc(launchers(), func(pid int) bool { return slices.Contains(before, pid) })
	}
	b := MustBox(t, runner, 0)
	b.want("echo one", "one\n")
	first := own()
	if len(first) != 1 {
		t.Fatalf("launchers: %v", first)
	}
	done := make(chan result, 1)
	go func() { done <- b.sh("touch ready; while [ ! -e go ]; do sleep 0.01; done; echo two") }()
	for range 1000 {
		if _, err := os.Stat(filepath.Join(b.dir, "ready")); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	process, err := os.FindProcess(first[0])
	must(t, err)
	must(t, process.Kill())
	b.put("go", "")
	if got := <-done; got.err != nil || got.stdout != "two\n" {
		t.Errorf("what ran ended with %+v, %v", got, got.err)
	}
	b.want("echo three", "three\n")
	if again := own(); len(again) != 1 || again[0] == first[0] {
		t.Errorf("launchers: %v, was %v", again, first)
	}
	must(t, runner.Close())
	if left := own(); len(left) > 0 {
		t.Errorf("launchers stay: %v", left)
	}
}

// The launcher can start stages after it has collected its garbage.
func TestLauncherKeepsItsProgram(t *testing.T) {
	runner := newRunner(t, sandbox.Options{Tier: sandbox.TierNamespaces, Warm: -1})
	if c := runner.Describe(t.Context()); !c.Confined() {
		machine.Lacks(t, sandbox.TierNamespaces, c.Problems)
	}
	b := MustBox(t, runner, 0)
	for range 3 {
		b.want("echo one", "one\n")
		must(t, runner.Litter())
	}
	b.want("echo two", "two\n")
}
