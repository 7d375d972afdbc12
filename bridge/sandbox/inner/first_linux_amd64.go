package inner

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// supervisor is the first stage.
type supervisor struct {
	spec   Spec
	report Report
	child  int // the second stage, later the tool
	names  *names

	answers int // of the second stage, a socket
	orders  int // to it, a pipe

	limit  atomic.Pointer[string] // that ended the run
	failed error                  // why the tool was not started
}

// firstStage runs the first stage and returns its exit code. Whatever goes wrong is
// named by the report.
func firstStage() int {
	s := &supervisor{report: Report{Exit: -1}}
	if err := ReadMessage(fd(fdControl), &s.spec); err != nil {
		return 2 // the server is gone
	}
	err := s.ready()
	mark := byte(ReadyMark)
	if err != nil {
		mark = FailedMark
	}
	if _, err := fd(fdControl).Write([]byte{mark}); err != nil {
		return 2
	}
	// Until here nothing is of any job. Spec.Base is what the server has sent already.
	if err := ReadMessage(fd(fdControl), &s.spec); err != nil {
		return 2
	}
	s.names = newNames(&s.spec)
	if err == nil {
		err = s.run()
	}
	s.names.fill(&s.report)
	if err != nil {
		s.report.Error = err.Error()
		s.report.Missing = errors.Is(err, errMissing)
	}
	if limit := s.limit.Load(); limit != nil {
		s.report.Limit = *limit
	}
	if err := WriteMessage(fd(fdControl), s.report); err != nil {
		return 2
	}
	return 0
}

var errMissing = errors.New("no such program")

// ready makes what is the same for all jobs of a base, the second stage included.
func (s *supervisor) ready() error {
	if err := s.guard(); err != nil {
		return err
	}
	if s.spec.with(LayerNet) {
		if err := loopbackUp(); err != nil {
			return fmt.Errorf("loopback of the sandbox: %w", err)
		}
	}
	if s.spec.with(LayerMount) {
		if err := s.mountBase(); err != nil {
			return err
		}
	}
	return s.start()
}

// run runs the job.
func (s *supervisor) run() error {
	if err := s.prepare(); err != nil {
		s.end() // the second stage waits
		return err
	}
	ended := make(chan struct{})
	// The server says nothing more; when it closes its end, all is over.
	go func() {
		_, _ = fd(fdControl).Read(make([]byte, 1)) // whatever it returns
		s.killAll()
	}()
	if err := WriteMessage(fd(s.orders), s.spec); err != nil {
		s.end()
		return fmt.Errorf("notify the second stage: %w", err)
	}
	_ = unix.Close(s.orders)
	s.hear(s.answers)
	go s.watch(ended)
	state := s.wait()
	close(ended)
	s.end()
	s.account(state)
	return s.failed
}

// guard keeps the first stage from being disturbed, looked into or outlived.
func (s *supervisor) guard() error {
	// Received, not ignored: the tool would inherit ignored signals.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGPIPE, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGALRM, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGIO, unix.SIGPWR, unix.SIGVTALRM, unix.SIGPROF)
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // without it the kernel chooses by size
	for option, value := range map[int]uintptr{unix.PR_SET_DUMPABLE: 0, unix.PR_SET_CHILD_SUBREAPER: 1} {
		if err := unix.Prctl(option, value, 0, 0, 0); err != nil {
			return fmt.Errorf("prctl %d: %w", option, err)
		}
	}
	for n := fdControl; n <= fdHelper; n++ {
		unix.CloseOnExec(n)
	}
	// Marked, not closed: some belong to the Go runtime.
	if err := unix.CloseRange(fdHelper+1, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return keepFrom(fdHelper + 1)
	}
	return nil
}

// keepFrom keeps descriptors from the tool on kernels before 5.11.
func keepFrom(first int) error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("open descriptors: %w", err)
	}
	for _, e := range entries {
		var n int
		if _, err := fmt.Sscan(e.Name(), &n); err == nil && n >= first {
			unix.CloseOnExec(n)
		}
	}
	return nil
}

// prepare makes what is the job's own.
func (s *supervisor) prepare() error {
	if s.spec.Proxy > 0 && s.spec.Tier == Namespaces {
		if err := s.passListener(); err != nil {
			return fmt.Errorf("listener of the proxy: %w", err)
		}
	}
	if s.spec.with(LayerMount) {
		return s.mountJob()
	}
	return nil
}

// start starts the second stage and sends it the base.
func (s *supervisor) start() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socketpair: %w", err)
	}
	var orders [2]int
	if err := unix.Pipe2(orders[:], unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	pid, err := syscall.ForkExec(HelperPath, []string{SecondStage}, &syscall.ProcAttr{
		Env:   []string{},
		Files: []uintptr{fdStdin, fdStdout, fdStderr, uintptr(pair[1]), uintptr(orders[0])},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	for _, n := range []int{pair[1], orders[0], fdStdin, fdStdout, fdStderr, fdHelper} {
		_ = unix.Close(n)
	}
	if err != nil {
		return fmt.Errorf("start the second stage: %w", err)
	}
	s.child, s.answers, s.orders = pid, pair[0], orders[1]
	return WriteMessage(fd(s.orders), s.spec)
}

// answer is what the second stage says before it becomes the tool.
type answer struct {
	Error    string            `json:"error,omitempty"`
	Missing  bool              `json:"missing,omitempty"`
	Layers   []string          `json:"layers,omitempty"`
	ABI      int               `json:"abi,omitempty"`
	Listener bool              `json:"listener,omitempty"` // a descriptor comes with it
	Failed   map[string]string `json:"failed,omitempty"`
}

// wait reaps until the tool has ended. Orphans of the tool are reaped on the way.
func (s *supervisor) wait() unix.WaitStatus {
	for {
		var state unix.WaitStatus
		pid, err := unix.Wait4(-1, &state, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return state // nothing is left to wait for
		case pid == s.child:
			return state
		}
	}
}

// end kills and reaps whatever the tool left behind.
func (s *supervisor) end() {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WALL|unix.WNOHANG, nil)
		if err == nil && pid == 0 {
			s.killAll()
			_, err = unix.Wait4(-1, nil, unix.WALL, nil)
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return // orphans come to this process: without children none is left
		}
	}
}

// account fills the report.
func (s *supervisor) account(state unix.WaitStatus) {
	switch {
	case state.Exited():
		s.report.Exit = state.ExitStatus()
	case state.Signaled():
		s.report.Signal = int(state.Signal())
	}
	if s.report.Signal == int(unix.SIGXCPU) {
		s.exceed(LimitCPU)
	}
	for _, layer := range []string{LayerUser, LayerMount, LayerPID, LayerNet, LayerIPC, LayerNotify} {
		if s.spec.with(layer) && !slices.Contains(s.report.Layers, layer) {
			s.report.Layers = append(s.report.Layers, layer)
		}
	}
}

// exceed notes the limit that ended the run; the first one counts.
func (s *supervisor) exceed(limit string) { s.limit.CompareAndSwap(nil, &limit) }
