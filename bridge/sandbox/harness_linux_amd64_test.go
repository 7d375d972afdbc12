package sandbox_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/internal/testkit/machine"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// runTime bounds one run of a test: machines of CI are slow.
const runTime = 30 * time.Second

// box is a workspace, what lies around it, and a runner.
type box struct {
	tb     testing.TB
	runner *sandbox.Local
	top    string // everything
	dir    string // the workspace
	root   *os.Root
	policy sandbox.Policy
	stdin  string
	cwd    string
}

// MustBox makes a workspace for a runner. With an owner the workspace is that user's.
func MustBox(tb testing.TB, runner *sandbox.Local, owner int) *box {
	tb.Helper()
	top := openFolder(tb)
	b := &box{tb: tb, runner: runner, top: top, dir: filepath.Join(top, "work")}
	must(tb, os.Mkdir(b.dir, 0o755))
	if owner > 0 {
		must(tb, os.Chown(b.dir, owner, owner))
	}
	root, err := os.OpenRoot(b.dir)
	must(tb, err)
	tb.Cleanup(func() { must(tb, root.Close()) })
	b.root = root
	return b
}

// openFolder makes a folder that others than its owner can enter, as a project's.
func openFolder(tb testing.TB) string {
	tb.Helper()
	top := tb.TempDir()
	for dir := top; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		must(tb, os.Chmod(dir, 0o755))
	}
	return top
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// result is what came of a run.
type result struct {
	sandbox.RunOutcome
	stdout, stderr string
	err            error
}

// run runs a program to its end.
func (b *box) run(argv ...string) result {
	b.tb.Helper()
	ctx, cancel := context.WithTimeout(b.tb.Context(), runTime)
	defer cancel()
	return b.runIn(ctx, argv...)
}

func (b *box) runIn(ctx context.Context, argv ...string) result {
	var stdout, stderr bytes.Buffer
	var stdin io.Reader
	if b.stdin != "" {
		stdin = bytes.NewReader([]byte(b.stdin))
	}
	job := sandbox.Job{Scope: kv.AgentScope("default", "tester"), Argv: argv, Root: b.root, Policy: b.policy, Cwd: b.cwd}
	out, err := b.runner.Run(ctx, job, sandbox.Streams{Stdin: stdin, Stdout: &stdout, Stderr: &stderr})
	return result{out, stdout.String(), stderr.String(), err}
}

// sh runs a script of the shell.
func (b *box) sh(script string) result {
	b.tb.Helper()
	return b.run("/bin/sh", "-c", script)
}

// want runs a script and compares what it writes; it has to succeed.
func (b *box) want(script, stdout string) {
	b.tb.Helper()
	got := b.sh(script)
	if got.err != nil || got.Exit != 0 || got.stdout != stdout {
		b.tb.Errorf("%s\ngave %q, %q, exit %d, %v\nwant %q", script, got.stdout, got.stderr, got.Exit, got.err, stdout)
	}
}

// put writes a file beside or in the workspace.
func (b *box) put(name, content string) string {
	b.tb.Helper()
	path := filepath.Join(b.dir, name)
	must(b.tb, os.MkdirAll(filepath.Dir(path), 0o755))
	must(b.tb, os.WriteFile(path, []byte(content), 0o644))
	return path
}

// newRunner returns a runner that ends with the test.
func newRunner(tb testing.TB, opts sandbox.Options) *sandbox.Local {
	tb.Helper()
	runner := sandbox.NewLocal(&opts)
	tb.Cleanup(func() { must(tb, runner.Close()) })
	return runner
}

// eachTier runs a test in every tier that a probe finds to work here. One that does
// not work is told, not failed: containers may forbid namespaces. That at least one
// works is a test of its own.
//
// Nothing may stay among the temporary files.
func eachTier(t *testing.T, test func(t *testing.T, runner *sandbox.Local)) {
	t.Helper()
	for _, tier := range []string{sandbox.TierNamespaces, sandbox.TierLandlock} {
		t.Run(tier, func(t *testing.T) {
			temp := openFolder(t)
			runner := newRunner(t, sandbox.Options{Tier: tier, TempDir: temp})
			t.Cleanup(func() {
				left, err := filepath.Glob(filepath.Join(temp, "*", "run-*"))
				must(t, err)
				names, err := os.ReadDir(temp)
				// The runner has one folder, with a lock, until it is closed.
				if err != nil || len(left) > 0 || len(names) > 1 || len(names) == 1 && !strings.HasPrefix(names[0].Name(), "loom-scratch-") {
					t.Errorf("temporary files stay: %v, %v, %v", left, names, err)
				}
			})
			if c := runner.Describe(t.Context()); !c.Confined() {
				machine.Lacks(t, tier, c.Problems)
			}
			test(t, runner)
		})
	}
}
