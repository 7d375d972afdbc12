package inner

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox/filter"
)

// Descriptors of the second stage.
const (
	fdAnswers = 3
	fdSpec    = 4
)

// secondStage confines the process and becomes the tool; it returns if it can't.
func secondStage() int {
	unix.CloseOnExec(fdAnswers)
	unix.CloseOnExec(fdSpec)
	c := &confined{}
	if err := ReadMessage(fd(fdSpec), &c.spec); err != nil {
		return 2 // the first stage is gone
	}
	set, err := c.base()
	if e := ReadMessage(fd(fdSpec), &c.spec); e != nil {
		return 2
	}
	if err == nil {
		err = c.confine(set)
	}
	if err == nil && c.spec.Check != nil {
		c.said.Failed = c.check()
		c.send(nil)
		return 0
	}
	if err == nil {
		err = c.become()
	}
	c.said.Error, c.said.Missing = err.Error(), errors.Is(err, errMissing)
	c.send(nil)
	return 127
}

// confined is the second stage.
type confined struct {
	spec Spec
	said answer
	abi  int // of Landlock, as used
}

// send sends a message, with or without a descriptor.
func (c *confined) send(rights []byte) {
	text, err := json.Marshal(c.said)
	if err != nil {
		return
	}
	_ = unix.Sendmsg(fdAnswers, text, rights, nil, 0) // a first stage that is gone has no use for it
}

// base makes what is the same for all jobs of a base; nil without Landlock.
func (c *confined) base() (*ruleset, error) {
	if !c.spec.with(LayerLandlock) {
		return nil, nil
	}
	set, err := c.rules()
	if err != nil {
		return nil, fmt.Errorf("landlock: %w", err)
	}
	return set, nil
}

// confine takes on all layers, in an order in which none hinders the next.
func (c *confined) confine(set *ruleset) error {
	if err := c.input(); err != nil {
		return err
	}
	if err := os.Chdir(c.spec.Cwd); err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	if set != nil && c.spec.Tier == Landlock {
		if err := set.add(c.spec.Scratch, set.handled&^rightsMake); err != nil {
			return fmt.Errorf("landlock: %w", err)
		}
	}
	if c.spec.with(LayerLimits) {
		if err := c.limit(); err != nil {
			return err
		}
		c.took(LayerLimits)
	}
	if err := c.identity(); err != nil {
		return err
	}
	if c.spec.with(LayerNNP) {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("no_new_privs: %w", err)
		}
		c.took(LayerNNP)
	}
	if set != nil {
		if _, _, e := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(set.file), 0, 0); e != 0 {
			return fmt.Errorf("landlock: restrict: %w", e)
		}
		_ = unix.Close(set.file)
		c.said.ABI = c.abi
		c.took(LayerLandlock)
	}
	if c.spec.with(LayerSeccomp) {
		return c.install()
	}
	return nil
}

// input puts an empty file in the place of the pipe when there is nothing to read: programs
// look at what they are given, and read from pipes.
func (c *confined) input() error {
	if c.spec.Input {
		return nil
	}
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", os.DevNull, err)
	}
	defer unix.Close(null)
	if err := unix.Dup3(null, 0, 0); err != nil {
		return fmt.Errorf("input: %w", err)
	}
	return nil
}

func (c *confined) took(layer string) { c.said.Layers = append(c.said.Layers, layer) }

// limit sets the limits that the kernel keeps for each process.
func (c *confined) limit() error {
	l := c.spec.Limits
	set := func(resource int, soft, hard uint64) error {
		if soft == 0 {
			return nil
		}
		var old unix.Rlimit
		if err := unix.Prlimit(0, resource, nil, &old); err != nil {
			return fmt.Errorf("limit %d: %w", resource, err)
		}
		hard = min(hard, old.Max)
		if err := unix.Prlimit(0, resource, &unix.Rlimit{Cur: min(soft, hard), Max: hard}, nil); err != nil {
			return fmt.Errorf("limit %d: %w", resource, err)
		}
		return nil
	}
	cpu := uint64((l.CPU + time.Second - 1) / time.Second)
	zero := unix.Rlimit{}
	return errors.Join(
		set(unix.RLIMIT_CPU, cpu, cpu+1),
		set(unix.RLIMIT_DATA, uint64(l.Memory), uint64(l.Memory)),
		set(unix.RLIMIT_FSIZE, uint64(l.File), uint64(l.File)),
		set(unix.RLIMIT_NOFILE, uint64(l.OpenFiles), uint64(l.OpenFiles)),
		set(unix.RLIMIT_NPROC, c.processes(), c.processes()),
		unix.Prlimit(0, unix.RLIMIT_CORE, &zero, nil),
	)
}

// processes is the bound of RLIMIT_NPROC. In a user namespace only what runs in it
// counts; elsewhere all that the user runs, of which there are at most as many as there
// are on the machine.
func (c *confined) processes() uint64 {
	budget := uint64(c.spec.Limits.Processes)
	if budget == 0 || c.spec.with(LayerUser) {
		return budget
	}
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	var a, b, d float64
	var running, all uint64
	if _, err := fmt.Sscanf(string(text), "%f %f %f %d/%d", &a, &b, &d, &running, &all); err != nil {
		return 0
	}
	return all + budget
}

// identity becomes the user that the tool runs as, without any capability.
func (c *confined) identity() error {
	drop := c.spec.with(LayerCaps)
	if drop {
		for capability := range uintptr(64) {
			// Without the right to drop them there are none to drop; the bounding set
			// then lends nothing, because of no_new_privs.
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil {
				break
			}
		}
		const noRoot, noRootLocked, noSetuidFixup, fixupLocked, keepLocked = 1, 2, 4, 8, 32
		_ = unix.Prctl(unix.PR_SET_SECUREBITS, noRoot|noRootLocked|noSetuidFixup|fixupLocked|keepLocked, 0, 0, 0) // as above
		_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)                               // there may be none
	}
	if err := c.take(); err != nil {
		return err
	}
	if !drop {
		return nil
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	// A change of identity takes it away.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("pdeathsig: %w", err)
	}
	c.took(LayerCaps)
	return nil
}

// take changes user and group of this thread, which is the one that calls execve.
func (c *confined) take() error {
	if unix.Geteuid() == c.spec.UID && unix.Getegid() == c.spec.GID {
		return nil
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); e != 0 {
		return fmt.Errorf("drop groups: %w", e)
	}
	gid, uid := uintptr(c.spec.GID), uintptr(c.spec.UID)
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, gid, gid, gid); e != 0 {
		return fmt.Errorf("become group %d: %w", gid, e)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid); e != 0 {
		return fmt.Errorf("become user %d: %w", uid, e)
	}
	// A filter of the machine's may say that the calls were made.
	if groups, err := unix.Getgroups(); unix.Geteuid() != c.spec.UID || unix.Getegid() != c.spec.GID || err != nil || len(groups) > 0 {
		return fmt.Errorf("become user %d: the process is still another's", uid)
	}
	return nil
}

// install takes the filter on and sends its listener to the first stage.
func (c *confined) install() error {
	heard := c.spec.with(LayerNotify)
	supervised := heard && c.spec.Tier == Landlock
	code, err := filter.Assemble(filter.Options{
		Sockets:    c.spec.with(LayerNet),
		Proxied:    c.spec.Proxy > 0 && supervised,
		SysV:       c.spec.with(LayerIPC),
		First:      c.spec.with(LayerPID),
		Names:      heard,
		Supervised: supervised,
		Signals:    supervised && c.abi < 6,
	})
	if err != nil {
		return err
	}
	program := struct {
		length uint16
		code   *filter.Instruction
	}{uint16(len(code)), &code[0]}
	var flags uintptr
	if heard {
		// Once the supervisor has a call, no signal makes it fail in the tool.
		flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
	c.took(LayerSeccomp)
	n, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	if e == unix.EINVAL && heard { // before Linux 5.19
		flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
		n, _, e = unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	}
	runtime.KeepAlive(code)
	if e != 0 {
		return fmt.Errorf("seccomp: %w", e)
	}
	var rights []byte
	if heard {
		c.said.Listener, rights = true, unix.UnixRights(int(n))
	}
	c.send(rights)
	c.said = answer{}
	if heard {
		_ = unix.Close(int(n))
	}
	return nil
}

// become calls execve; it returns if it can't.
func (c *confined) become() error {
	if len(c.said.Layers) > 0 {
		c.send(nil)
	}
	program, err := c.find()
	if err != nil {
		return err
	}
	path, err := unix.BytePtrFromString(program)
	if err != nil {
		return err
	}
	argv, err := syscall.SlicePtrFromStrings(c.spec.Argv)
	if err != nil {
		return err
	}
	env, err := syscall.SlicePtrFromStrings(c.spec.Env)
	if err != nil {
		return err
	}
	defaultSignals()
	_, _, e := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0])))
	return fmt.Errorf("start %s: %w", c.spec.Argv[0], e)
}

// find looks for the program as a shell does, from inside.
func (c *confined) find() (string, error) {
	name := c.spec.Argv[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	folders := ""
	for _, e := range c.spec.Env {
		if value, ok := strings.CutPrefix(e, "PATH="); ok {
			folders = value
		}
	}
	for _, folder := range filepath.SplitList(folders) {
		path := filepath.Join(folder, name)
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() && unix.Access(path, unix.X_OK) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: %s", errMissing, name)
}

// defaultSignals gives the tool what a process has at its start: whatever the server
// ignores would stay ignored.
func defaultSignals() {
	var action [4]uint64 // handler, flags, restorer, mask: the default
	for n := uintptr(1); n <= 64; n++ {
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, n, uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	}
	var mask uint64
	const setMask = 2
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, setMask, uintptr(unsafe.Pointer(&mask)), 0, 8, 0, 0)
}
