package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// asMachine is the first argument of a program that prepares a machine and then becomes
// what the arguments behind it say.
const asMachine = "loom-machine"

// Machine is what differs from this machine. The zero value is this machine.
type Machine struct {
	// Refusals are what the kernel does not do.
	Refusals []Refusal
	// Container gives the program its own namespaces and the rights of a default container.
	Container bool
	// User is whom the program runs as; 0 is the caller.
	User int
}

// Refusal is a call that the kernel does not make.
type Refusal struct {
	// Call is its number.
	Call uint32
	// Errno is its answer. 0 pretends that the call was made.
	Errno unix.Errno
	// Bits limit it to calls that have one of these bits set in the argument Arg. None
	// mean all calls.
	Bits uint32
	// Value limits it to calls whose argument Arg has this value, if Bits is 0 and
	// Compare is set.
	Value   uint32
	Compare bool
	Arg     int
}

// Refuse makes calls fail.
func Refuse(errno unix.Errno, calls ...uint32) []Refusal {
	var list []Refusal
	for _, call := range calls {
		list = append(list, Refusal{Call: call, Errno: errno})
	}
	return list
}

// Pretend makes calls do nothing and say that they were made.
func Pretend(calls ...uint32) []Refusal { return Refuse(0, calls...) }

// NoNamespaces refuses to create the namespaces in flags.
func NoNamespaces(errno unix.Errno, flags uint32) []Refusal {
	return []Refusal{
		{Call: unix.SYS_CLONE, Errno: errno, Bits: flags},
		{Call: unix.SYS_UNSHARE, Errno: errno, Bits: flags},
		{Call: unix.SYS_CLONE3, Errno: unix.ENOSYS}, // its flags can't be looked at
	}
}

// Docker is a default container, whose programs run as a user.
func Docker(user int) Machine {
	return Machine{Refusals: dockerRefusals(), Container: true, User: user}
}

// Command is the command that runs a program on the machine.
func (m Machine) Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // it has numbers alone
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append([]string{asMachine, string(text), program}, args...)...)
	if m.Container {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
			unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP}
	}
	return cmd
}

// Main prepares a machine and becomes the program that is to run on it, if this one was
// started for that. Else it returns.
func Main() {
	if len(os.Args) < 4 || os.Args[1] != asMachine {
		return
	}
	runtime.LockOSThread() // the setup applies to the thread that becomes the program
	var m Machine
	err := json.Unmarshal([]byte(os.Args[2]), &m)
	if err == nil {
		err = m.prepare()
	}
	if err == nil {
		err = syscall.Exec(os.Args[3], os.Args[3:], syscall.Environ())
	}
	fmt.Fprintln(os.Stderr, "machine:", err)
	os.Exit(125)
}

func (m Machine) prepare() error {
	if m.Container {
		if err := contain(); err != nil {
			return err
		}
	}
	if err := m.refuse(); err != nil {
		return err
	}
	if m.Container {
		return takeRights(m.User)
	}
	return become(m.User)
}

// refuse installs the filter. Root needs no no_new_privs for it, and has none, as in a
// container.
func (m Machine) refuse() error {
	if len(m.Refusals) == 0 {
		return nil
	}
	if os.Geteuid() != 0 {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
	}
	code, err := assemble(m.Refusals)
	if err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	_, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(code)
	if e != 0 {
		return fmt.Errorf("seccomp: %w", e)
	}
	return nil
}

func become(user int) error {
	if user == 0 || user == os.Geteuid() {
		return nil
	}
	id := uintptr(user)
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); e != 0 {
		return fmt.Errorf("setgroups: %w", e)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, id, id, id); e != 0 {
		return fmt.Errorf("setresgid: %w", e)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, id, id, id); e != 0 {
		return fmt.Errorf("setresuid: %w", e)
	}
	return nil
}
