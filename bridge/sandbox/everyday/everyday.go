// Package everyday has what people do with programs every day, to see what of it works in
// a sandbox: git, Python, compilers, archives, local test servers. `doctor` says which of
// it works on a machine.
package everyday

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// ErrNoProgram: the machine does not have the program that a job is about.
var ErrNoProgram = errors.New("everyday: the machine does not have the program")

// jobTime bounds one job.
const jobTime = 30 * time.Second

// Task is something that people do, and what it writes.
type Task struct {
	Name string
	// Socket says that it needs a socket, a terminal or shared memory, which tier L has
	// none of.
	Socket bool

	script, stdout string
}

// Jobs returns all jobs.
func Jobs() []Task { return append([]Task(nil), jobs...) }

// Script is the command line that a job runs.
func (j Task) Script() string { return j.script }

// optional are programs that a machine may not have. The name of a job about one begins
// with it.
var optional = []string{"gcc", "g++", "node", "java", "sqlite3", "jq", "git", "xz", "make", "perl", "python"}

// Try does a job in its own workspace, and returns why it does not work; nil when it
// does.
func (j Task) Try(ctx context.Context, runner sandbox.Runner) error {
	work, err := os.MkdirTemp("", "loom-everyday-")
	if err != nil {
		return fmt.Errorf("everyday: %w", err)
	}
	defer os.RemoveAll(work)
	root, err := os.OpenRoot(work)
	if err != nil {
		return fmt.Errorf("everyday: %w", err)
	}
	defer root.Close()
	ctx, cancel := context.WithTimeout(ctx, jobTime)
	defer cancel()
	run := func(script string) (stdout, stderr string, exit int, err error) {
		var out, said bytes.Buffer
		job := sandbox.Job{Scope: kv.AgentScope("default", "doctor"), Argv: []string{"/bin/sh", "-c", script}, Root: root}
		outcome, err := runner.Run(ctx, job, sandbox.Streams{Stdout: &out, Stderr: &said})
		return out.String(), said.String(), outcome.Exit, err
	}
	program, _, _ := strings.Cut(j.Name, " ")
	for _, name := range optional {
		if name != program {
			continue
		}
		if name == "python" {
			name = "python3"
		}
		if _, _, exit, err := run("command -v " + name + " >/dev/null"); err == nil && exit != 0 {
			return fmt.Errorf("%w: %s", ErrNoProgram, name)
		}
	}
	stdout, stderr, exit, err := run(j.script)
	switch {
	case err != nil:
		return err
	case exit != 0 || stdout != j.stdout:
		return fmt.Errorf("exit %d, %q, %q, want %q", exit, stdout, stderr, j.stdout)
	}
	return nil
}
