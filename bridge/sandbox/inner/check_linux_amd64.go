package inner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/loom-bridge/loom-bridge/bridge/protect/commands"
)

// check tries what each layer must refuse, and that the workspace can be worked in. It
// returns what got through, by layer. It runs on the confined thread.
func (c *confined) check() map[string]string {
	failed := map[string]string{}
	for layer, try := range map[string]func() string{
		LayerLandlock: c.checkLandlock, LayerSeccomp: c.checkSeccomp, LayerCaps: checkCaps, LayerNNP: checkNNP,
		LayerMount: c.checkMount, LayerNet: c.checkNet, LayerPID: c.checkPID, LayerNotify: c.checkNotify,
		LayerUser: func() string { return shared("user", c.spec.Check.User) }, LayerIPC: func() string { return shared("ipc", c.spec.Check.IPC) },
		LayerLimits: c.checkLimits,
	} {
		if !c.spec.with(layer) {
			continue
		}
		if got := try(); got != "" {
			failed[layer] = got
		}
	}
	if err := c.checkWork(); err != nil {
		failed["workspace"] = err.Error()
	}
	return failed
}

// checkWork writes and reads in the workspace.
func (c *confined) checkWork() error {
	if c.spec.ReadOnly {
		return nil
	}
	file, err := os.CreateTemp(c.spec.Workspace.Path, ".loom-probe-")
	if err != nil {
		return fmt.Errorf("the workspace can't be written to: %w", err)
	}
	_, err = file.WriteString("x")
	return firstOf(err, file.Close(), os.Remove(file.Name()))
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *confined) checkLandlock() string {
	if _, err := os.ReadFile(c.spec.Check.Outside); err == nil {
		return "a file outside was read"
	}
	if !c.spec.with(LayerMount) {
		return ""
	}
	// It is there for everybody to see, but no rule lets anybody read it.
	if _, err := os.ReadFile(checkFile); !errors.Is(err, unix.EACCES) {
		return "a file without a rule was read"
	}
	return ""
}

func (c *confined) checkSeccomp() string {
	mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	if err != nil || mode != unix.SECCOMP_MODE_FILTER {
		return "there is no filter"
	}
	if _, _, e := unix.RawSyscall(unix.SYS_UNSHARE, unix.CLONE_NEWUSER, 0, 0); e != unix.EPERM {
		return "a namespace was made"
	}
	if _, _, e := unix.RawSyscall(unix.SYS_IO_URING_SETUP, 1, 0, 0); e != unix.ENOSYS {
		return "io_uring is there"
	}
	if n, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0); err == nil {
		_ = unix.Close(n)
		return "a socket of another family was made"
	}
	if !c.spec.with(LayerNet) {
		if n, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); err == nil {
			_ = unix.Close(n)
			return "a socket was made"
		}
	}
	return ""
}

func checkCaps() string {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err.Error()
	}
	for _, d := range data {
		if d.Effective|d.Permitted|d.Inheritable != 0 {
			return "capabilities are left"
		}
	}
	return ""
}

func checkNNP() string {
	if set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || set != 1 {
		return "not set"
	}
	return ""
}

func (c *confined) checkMount() string {
	if _, err := os.Stat(c.spec.Check.Outside); err == nil {
		return "a file outside was seen"
	}
	flags := func(place string) int64 {
		var stat unix.Statfs_t
		if unix.Statfs(place, &stat) != nil {
			return 0
		}
		return stat.Flags
	}
	const system = unix.ST_RDONLY | unix.ST_NOSUID | unix.ST_NODEV
	switch {
	case flags("/")&unix.ST_RDONLY == 0:
		return "the root can be written to"
	case flags("/usr")&system != system:
		return "the system's programs can be written to, or lend rights"
	case flags("/proc")&unix.ST_RDONLY == 0:
		return "/proc can be written to"
	case flags(c.spec.Workspace.Path)&unix.ST_NOSUID == 0:
		return "programs of the workspace can lend rights"
	}
	return ""
}

// shared reports a namespace that is the server's.
func shared(kind, servers string) string {
	own, err := os.Readlink("/proc/self/ns/" + kind)
	switch {
	case err != nil:
		return err.Error()
	case own == servers:
		return "it is the server's"
	}
	return ""
}

// checkLimits asks for a descriptor beyond the limit.
func (c *confined) checkLimits() string {
	_, err := unix.FcntlInt(fdAnswers, unix.F_DUPFD_CLOEXEC, c.spec.Limits.OpenFiles)
	if !errors.Is(err, unix.EINVAL) {
		return "a descriptor beyond the limit was made"
	}
	return ""
}

func (c *confined) checkNet() string {
	if text, err := os.ReadFile("/proc/net/dev"); err == nil && strings.Count(string(text), ":") > 1 {
		return "there are other networks than the loopback"
	}
	if err := dial(c.spec.Check.Port); err == nil {
		return "the loopback of the machine was reached"
	}
	if err := listenAndDial(); err != nil {
		return "the loopback of the sandbox does not work: " + err.Error()
	}
	return ""
}

// loopback is a port of 127.0.0.1.
func loopback(port int) *unix.SockaddrInet4 {
	return &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
}

func dial(port int) error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	return unix.Connect(socket, loopback(port))
}

func listenAndDial() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	if err := firstOf(unix.Bind(socket, loopback(0)), unix.Listen(socket, 1)); err != nil {
		return err
	}
	name, err := unix.Getsockname(socket)
	if err != nil {
		return err
	}
	return dial(name.(*unix.SockaddrInet4).Port)
}

func (c *confined) checkPID() string {
	if text, err := os.ReadFile("/proc/1/cmdline"); err != nil || !strings.HasPrefix(string(text), FirstStage) {
		return "other processes are seen"
	}
	return ""
}

// checkNotify sees that calls on names are answered by the first stage, and a name that is
// kept can't be made. In tier L the same holds for calls that Landlock does not cover: the
// mode of a file outside stays, and one inside can be changed.
func (c *confined) checkNotify() string {
	for _, name := range commands.AtTop(c.spec.Protect) {
		if unix.Mkdir(filepath.Join(c.spec.Workspace.Path, name), 0o700) == nil {
			return "a name that is protected was made"
		}
	}
	if c.spec.Tier != Landlock {
		return ""
	}
	chmod := func(place string) unix.Errno {
		path, err := unix.BytePtrFromString(place)
		if err != nil {
			return unix.EINVAL
		}
		_, _, e := unix.Syscall(unix.SYS_CHMOD, uintptr(unsafe.Pointer(path)), 0o600, 0)
		return e
	}
	if chmod(c.spec.Check.Outside) == 0 {
		return "the mode of a file outside was changed"
	}
	if e := chmod(c.spec.Scratch); e != 0 {
		return "the mode of a file inside can't be changed: " + e.Error()
	}
	if _, _, e := unix.Syscall6(unix.SYS_PRLIMIT64, uintptr(c.spec.Check.Server), unix.RLIMIT_NOFILE, 0, 0, 0, 0); e == 0 {
		return "the limits of the server were reached"
	}
	return ""
}
