package sandbox

import (
	"context"
	"errors"
	"io"
	"net"
	"os"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Errors of runners.
var (
	// ErrUnavailable: nothing here confines a process. It comes as an *UnavailableError.
	ErrUnavailable = errors.New("sandbox: not available")
	// ErrNoProgram: there is no program of that name inside.
	ErrNoProgram = errors.New("sandbox: no such program")
	// ErrPolicy: the policy asks for what the runner can't give.
	ErrPolicy = errors.New("sandbox: the policy can't be kept")
	// ErrClosed: the runner was closed.
	ErrClosed = errors.New("sandbox: closed")
)

// UnavailableError says why nothing runs. It is an ErrUnavailable.
type UnavailableError struct{ Reason string }

func (e *UnavailableError) Error() string { return "sandbox: not available: " + e.Reason }

// Is makes errors.Is(err, ErrUnavailable) true.
func (e *UnavailableError) Is(target error) bool { return target == ErrUnavailable }

// Runner runs the processes of tools: confined on this machine, in a container, or on
// another machine. All methods are safe for concurrent use.
type Runner interface {
	// Describe says how a job would be confined. It may run probes, once.
	Describe(ctx context.Context) Confinement
	// Run runs a job to its end. When ctx ends, everything that the job started is
	// killed before Run returns with the error of ctx. An error means that the job did
	// not run, or not to its end; a program that fails is an Outcome.
	Run(ctx context.Context, job Job, streams Streams) (RunOutcome, error)
	// Close kills what still runs and waits for it.
	Close() error
}

// Job is one run of a program. Nothing in it is kept after the run.
type Job struct {
	// Scope is the agent for which it runs.
	Scope kv.Scope
	// Argv is the program and its arguments. A name without a slash is looked for in
	// the folders of Path, inside.
	Argv []string
	// Env are further variables, NAME=value. PATH, HOME, TMPDIR, LANG and TERM are set.
	Env []string
	// Cwd is where it starts, relative to the workspace; empty is the workspace. The
	// caller made sure that it stays inside.
	Cwd string
	// Root is the workspace. It stays the caller's.
	Root *os.Root
	// Policy is what it may do.
	Policy Policy
	// Network is its way out, in the modes that have one; it stays the caller's. Default:
	// there is none, and such a job is refused.
	Network Network
}

// Network is the way from a job to the network: a proxy, and the variables that lead
// programs to it. *egress.Session is one.
type Network interface {
	// Env are the variables for a proxy at an address, host:port. Shared says that others
	// than the job can reach the address.
	Env(address string, shared bool) []string
	// Files are what the variables name and the job must be able to read.
	Files() []string
	// Serve serves the proxy until the listener is closed.
	Serve(l net.Listener)
}

// Streams are the streams of the program. Separate goroutines use them until Run returns.
type Streams struct {
	// Stdin is read until its end. Default: nothing to read.
	Stdin io.Reader
	// Stdout and Stderr take what the program writes. A Write that fails ends the run.
	// Default: it is thrown away.
	Stdout, Stderr io.Writer
}

// RunOutcome is what came of a run.
type RunOutcome struct {
	// Exit is the exit code; -1 when a signal ended the program.
	Exit int
	// Signal is the number of that signal; 0 for none.
	Signal int
	// Limit names the limit that ended the run: cpu, memory, processes, disk or output;
	// empty for none.
	Limit string
	// Refused are the protected paths of the workspace that the run tried to change, the first
	// of them.
	Refused []string
	// Made are the folders of repositories that it has made in the workspace.
	Made []Folder
	// Confinement is how it was confined.
	Confinement Confinement
}

// Confinement says how a job is confined.
type Confinement struct {
	// Setting is auto, require or off.
	Setting Setting
	// Tier is namespaces or landlock; none when the sandbox is off; empty when nothing
	// runs.
	Tier string
	// Layers are the layers that hold, by name.
	Layers []string
	// LandlockABI is the version of Landlock in use; 0 for none.
	LandlockABI int
	// Gaps are what this tier can't stop, a sentence each.
	Gaps []string
	// Problems are why a better tier does not work here, a sentence each.
	Problems []string
}

// Confined reports whether a tier holds.
func (c Confinement) Confined() bool { return c.Tier == TierNamespaces || c.Tier == TierLandlock }
