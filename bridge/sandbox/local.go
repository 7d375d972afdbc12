package sandbox

import (
	"log/slog"
	"sync"
)

// Options adjusts a Local. Nil and zero fields mean the defaults.
type Options struct {
	// Setting is auto, require or off. Default Auto.
	Setting Setting
	// Tier is the only tier to use, or TierAuto, the default: the best that works.
	Tier string
	// LandlockABI is the newest version of Landlock to use. Default: what the kernel
	// has.
	LandlockABI int
	// Without are layers to leave out, for tests of what each is there for. With any, a
	// tier is taken without a probe.
	Without []string
	// AllowOff runs jobs whose policy has ModeOff. Default: they are refused.
	AllowOff bool
	// Warm is how many first stages are kept ready for the next job, for each user that jobs
	// run as. Each is used once. Default DefaultWarm; negative: none.
	Warm int
	// TempDir holds the temporary files of tier L. Default: that of the system.
	TempDir string
	// Logger logs tools that could not be cleaned up after. Default silent.
	Logger *slog.Logger
}

// DefaultWarm is how many first stages are kept ready.
const DefaultWarm = 2

// Local runs jobs on this machine. Its methods are safe for concurrent use.
type Local struct {
	opts   Options
	logger *slog.Logger

	probed sync.Once
	found  Confinement // by probed

	mu      sync.Mutex
	closed  bool           // guarded by mu
	running sync.WaitGroup // added to under mu

	released sync.Once
	err      error         // by released
	stop     chan struct{} // closed by Close

	machine
}

// NewLocal returns a runner. It starts nothing until it is asked to.
func NewLocal(opts *Options) *Local {
	l := &Local{logger: slog.New(slog.DiscardHandler), stop: make(chan struct{})}
	if opts != nil {
		l.opts = *opts
	}
	if l.opts.Setting == "" {
		l.opts.Setting = Auto
	}
	if l.opts.Tier == "" {
		l.opts.Tier = TierAuto
	}
	if l.opts.Warm == 0 {
		l.opts.Warm = DefaultWarm
	}
	if l.opts.Logger != nil {
		l.logger = l.opts.Logger
	}
	return l
}

var _ Runner = (*Local)(nil)

// begin counts a job in, unless the runner is closed.
func (l *Local) begin() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	l.running.Add(1)
	return nil
}

// Close kills what still runs and waits for it. Closing twice is harmless.
func (l *Local) Close() error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.stop)
	}
	l.mu.Unlock()
	l.running.Wait()
	l.released.Do(func() { l.err = l.release() })
	return l.err
}

// gaps are what the tiers can't stop.
func gaps(c Confinement) []string {
	if c.Tier == tierNone {
		return []string{"the sandbox is off: tools can do everything that the server's user can"}
	}
	list := []string{
		"kernel faults: all share one kernel",
		"no cgroup bounds memory and processes, but a look every 25 ms: they can be exceeded for that long; a server that is started in its own cgroup (`systemd-run --scope -p MemoryMax=4G -p TasksMax=2000`, a container's limits) keeps the machine from it",
	}
	switch c.Tier {
	case TierNamespaces:
		list = append(list, "a UNIX socket that a process outside keeps in the workspace can be reached")
		if c.LandlockABI == 0 {
			list = append(list, "without Landlock the namespaces alone keep files apart")
		}
	case TierLandlock:
		list = append(list,
			"names, sizes and modes of files outside can be seen, not their contents",
			"tools can make no sockets but to the proxy, no terminals and no shared memory",
			"when the first stage of a run is killed from outside, processes that left the tool's session stay")
		if c.LandlockABI < 2 {
			list = append(list, "files can't be renamed into another folder")
		}
		if c.LandlockABI < 3 {
			list = append(list, "files that may be read and belong to the server's user can be emptied by open")
		}
	}
	return list
}
