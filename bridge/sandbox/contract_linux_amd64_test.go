package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/protect"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// quiet is how long a program that was killed must have written nothing.
const quiet = 200 * time.Millisecond

// What tools rely on, wherever their programs run: of the runner of this machine in each
// tier, and of one that keeps what is protected, as servers use it. It looks at nothing
// but streams, outcomes and the workspace.
func TestRunners(t *testing.T) {
	for _, tier := range []string{sandbox.TierNamespaces, sandbox.TierLandlock} {
		t.Run(tier, func(t *testing.T) {
			checkRunner(t, func() sandbox.Runner { return sandbox.NewLocal(&sandbox.Options{Tier: tier}) })
		})
	}
	t.Run("protecting", func(t *testing.T) {
		checkRunner(t, func() sandbox.Runner { return protect.New(sandbox.NewLocal(nil), nil) })
	})
}

// checkRunner checks the runners that open makes. One that confines nothing on this machine
// skips the test.
func checkRunner(t *testing.T, open func() sandbox.Runner) {
	for name, test := range map[string]func(b *anyRunner){
		"streams":     streams,
		"files":       files,
		"outcomes":    outcomes,
		"environment": environment,
		"modes":       modes,
		"policies":    policies,
		"output":      output,
		"cancelled":   cancelled,
		"left behind": leftBehind,
		"at once":     atOnce,
		"closed":      closed,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runner := open()
			t.Cleanup(func() { must(t, runner.Close()) })
			if c := runner.Describe(t.Context()); !c.Confined() {
				t.Skipf("nothing confines a process here: %v", c.Problems)
			}
			dir := t.TempDir()
			root, err := os.OpenRoot(dir)
			must(t, err)
			t.Cleanup(func() { must(t, root.Close()) })
			test(&anyRunner{TB: t, runner: runner, dir: dir, job: sandbox.Job{Scope: kv.AgentScope("default", "tester"), Root: root}})
		})
	}
}

// anyRunner is a runner with a workspace and the job that its runs begin with.
type anyRunner struct {
	testing.TB
	runner sandbox.Runner
	dir    string
	job    sandbox.Job
}

// start runs a program with a job that change adjusts.
func (b *anyRunner) start(ctx context.Context, stdin io.Reader, change func(*sandbox.Job), argv ...string) result {
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	job := b.job
	job.Argv = argv
	if change != nil {
		change(&job)
	}
	var stdout, stderr bytes.Buffer
	out, err := b.runner.Run(ctx, job, sandbox.Streams{Stdin: stdin, Stdout: &stdout, Stderr: &stderr})
	return result{out, stdout.String(), stderr.String(), err}
}

// sh runs a script of the shell and wants it to succeed.
func (b *anyRunner) sh(script string) result {
	b.Helper()
	r := b.start(b.Context(), nil, nil, "sh", "-c", script)
	if r.err != nil || r.Exit != 0 {
		b.Fatalf("%s: exit %d, %v: %s", script, r.Exit, r.err, r.stderr)
	}
	return r
}

func (b *anyRunner) read(name string) string {
	content, _ := os.ReadFile(filepath.Join(b.dir, name)) // what is not there is empty
	return string(content)
}

func randomBytes(n int) []byte {
	out, random := make([]byte, n), rand.New(rand.NewPCG(1, 2))
	for i := range out {
		out[i] = byte(random.Uint32())
	}
	return out
}

// What goes in comes out, byte for byte, and the two outputs stay apart.
func streams(b *anyRunner) {
	in := randomBytes(1 << 20)
	r := b.start(b.Context(), bytes.NewReader(in), nil, "sh", "-c", "cat; echo err >&2")
	if r.err != nil || r.stdout != string(in) || r.stderr != "err\n" {
		b.Errorf("%d of %d bytes came back, and %q: %v", len(r.stdout), len(in), r.stderr, r.err)
	}
	if r := b.start(b.Context(), nil, nil, "cat"); r.err != nil || r.Exit != 0 || r.stdout != "" {
		b.Errorf("without input: %+v", r)
	}
	// A program may leave its input unread.
	if r := b.start(b.Context(), bytes.NewReader(in), nil, "true"); r.err != nil || r.Exit != 0 {
		b.Errorf("with unread input: %+v", r)
	}
}

// Files of the workspace are the same inside and outside.
func files(b *anyRunner) {
	content := randomBytes(300_000)
	must(b, os.WriteFile(filepath.Join(b.dir, "in"), content, 0o600))
	must(b, os.Mkdir(filepath.Join(b.dir, "sub"), 0o700))
	b.sh("cp in sub/out && rm in && ln -s sub/out link")
	if b.read("sub/out") != string(content) || b.read("link") != string(content) || b.read("in") != "" {
		b.Error("the files are not as the program left them")
	}
	if r := b.start(b.Context(), nil, func(j *sandbox.Job) { j.Cwd = "sub" }, "ls"); r.stdout != "out\n" {
		b.Errorf("in the folder: %+v", r)
	}
}

// A program that fails is an outcome; one that is not there, an error.
func outcomes(b *anyRunner) {
	if r := b.start(b.Context(), nil, nil, "sh", "-c", "exit 7"); r.err != nil || r.Exit != 7 || r.Signal != 0 {
		b.Errorf("exit: %+v", r)
	}
	if r := b.start(b.Context(), nil, nil, "sh", "-c", "kill -9 $$"); r.err != nil || r.Exit != -1 || r.Signal != 9 {
		b.Errorf("signal: %+v", r)
	}
	if r := b.start(b.Context(), nil, nil, "no-such-program"); !errors.Is(r.err, sandbox.ErrNoProgram) {
		b.Errorf("no program: %+v", r)
	}
	r := b.sh("true")
	if told := b.runner.Describe(b.Context()); r.Confinement.Tier != told.Tier || len(r.Confinement.Layers) != len(told.Layers) {
		b.Errorf("the outcome tells of %v, the runner of %v", r.Confinement, told)
	}
}

// A program has the variables of its job, and none of the server's.
func environment(b *anyRunner) {
	r := b.start(b.Context(), nil, func(j *sandbox.Job) { j.Env = []string{"ONE=a b", "TWO=é"} }, "sh", "-c", `echo "$ONE|$TWO|$PATH|$HOME" && env`)
	if !strings.HasPrefix(r.stdout, "a b|é|"+sandbox.Path+"|/") {
		b.Errorf("the variables are %q: %v", r.stdout, r.err)
	}
	_, rest, _ := strings.Cut(r.stdout, "\n")
	for line := range strings.Lines(rest) {
		name, _, _ := strings.Cut(line, "=")
		if !slices.Contains([]string{"ONE", "TWO", "PATH", "HOME", "TMPDIR", "LANG", "TERM", "PWD", "OLDPWD", "SHLVL", "_"}, name) {
			b.Errorf("a variable that nobody gave is inside: %s", line)
		}
	}
}

// A mode that reads can't write, and one that works writes in the workspace alone.
func modes(b *anyRunner) {
	must(b, os.WriteFile(filepath.Join(b.dir, "f"), []byte("one"), 0o600))
	r := b.start(b.Context(), nil, func(j *sandbox.Job) { j.Policy.Mode = sandbox.ModeRead }, "sh", "-c", "cat f; echo x > f || echo x > g || rm f")
	if r.stdout != "one" || r.Exit == 0 || b.read("f") != "one" || b.read("g") != "" {
		b.Errorf("mode read: %+v", r)
	}
	outside := b.TempDir()
	must(b, os.WriteFile(filepath.Join(outside, "f"), []byte("secret"), 0o600))
	r = b.start(b.Context(), nil, nil, "sh", "-c", fmt.Sprintf("cat %s/f || echo x > %s/g", outside, outside))
	if _, err := os.Stat(filepath.Join(outside, "g")); r.Exit == 0 || strings.Contains(r.stdout, "secret") || err == nil {
		b.Errorf("outside of the workspace: %+v", r)
	}
}

// A policy that can't be kept is refused, and nothing runs.
func policies(b *anyRunner) {
	for name, change := range map[string]func(*sandbox.Job){
		"no such mode":             func(j *sandbox.Job) { j.Policy.Mode = "some" },
		"a network without a way":  func(j *sandbox.Job) { j.Policy.Mode = sandbox.ModeNet },
		"off, which nobody let":    func(j *sandbox.Job) { j.Policy.Mode = sandbox.ModeOff },
		"a place that is relative": func(j *sandbox.Job) { j.Policy.Read = []string{"x"} },
		"protected, but outside":   func(j *sandbox.Job) { j.Policy.Protect = []string{"../x"} },
	} {
		if r := b.start(b.Context(), nil, change, "sh", "-c", "echo x > ran"); !errors.Is(r.err, sandbox.ErrPolicy) {
			b.Errorf("%s: %+v", name, r)
		}
	}
	if b.read("ran") != "" {
		b.Error("a program ran")
	}
}

// errFull is what a writer says that takes no more.
var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// Output beyond its limit ends the run, and so does a writer that takes no more.
func output(b *anyRunner) {
	r := b.start(b.Context(), nil, func(j *sandbox.Job) { j.Policy.Limits.Output = 1 << 16 }, "sh", "-c", "while :; do echo 0123456789; done")
	if r.Limit != "output" || len(r.stdout) > 1<<16 || len(r.stdout) < 1<<15 {
		b.Errorf("beyond the limit: %d bytes, %+v, %v", len(r.stdout), r.RunOutcome, r.err)
	}
	ctx, cancel := context.WithTimeout(b.Context(), runTime)
	defer cancel()
	job := b.job
	job.Argv = []string{"sh", "-c", "while :; do echo 0123456789; done"}
	out, err := b.runner.Run(ctx, job, sandbox.Streams{Stdout: full{}})
	if ctx.Err() != nil || err == nil && out.Limit == "" && out.Exit == 0 {
		b.Errorf("a writer that takes nothing: %+v, %v", out, err)
	}
}

// beating is a script that starts a program which leaves its session and writes to a file
// again and again.
const beating = `setsid sh -c 'trap "" TERM HUP INT; while :; do echo x >> beats; sleep 0.02; done' & while [ ! -s beats ]; do sleep 0.01; done; `

// stopped wants that nothing writes to the file any more.
func (b *anyRunner) stopped() {
	b.Helper()
	before := b.read("beats")
	time.Sleep(quiet)
	if after := b.read("beats"); before == "" || after != before {
		b.Errorf("a program goes on: it wrote %d bytes more", len(after)-len(before))
	}
}

// A run that is given up ends with the error of its context, and all that it started with
// it.
func cancelled(b *anyRunner) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	go func() {
		for b.read("beats") == "" && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		cancel()
	}()
	if r := b.start(ctx, nil, nil, "sh", "-c", beating+"sleep 1000"); !errors.Is(r.err, context.Canceled) {
		b.Errorf("given up: %+v", r)
	}
	b.stopped()
}

// What a program leaves behind ends with it.
func leftBehind(b *anyRunner) {
	b.sh(beating + "true")
	b.stopped()
}

// Many runs at once do not get at each other.
func atOnce(b *anyRunner) {
	var work sync.WaitGroup
	for i := range 16 {
		work.Go(func() {
			want := fmt.Sprint("run ", i, "\n")
			r := b.start(b.Context(), strings.NewReader(want), nil, "sh", "-c", fmt.Sprintf("cat; exit %d", i))
			if r.err != nil || r.stdout != want || r.Exit != i {
				b.Errorf("run %d: %+v", i, r)
			}
		})
	}
	work.Wait()
}

// A runner that is closed kills what runs, and takes no more.
func closed(b *anyRunner) {
	ended := make(chan result, 1)
	go func() { ended <- b.start(b.Context(), nil, nil, "sh", "-c", beating+"sleep 1000") }()
	for end := time.Now().Add(runTime); b.read("beats") == "" && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	must(b, b.runner.Close())
	if r := <-ended; !errors.Is(r.err, sandbox.ErrClosed) {
		b.Errorf("the run ended as %+v", r)
	}
	b.stopped()
	if r := b.start(b.Context(), nil, nil, "true"); !errors.Is(r.err, sandbox.ErrClosed) {
		b.Errorf("a run after it: %+v", r)
	}
}
