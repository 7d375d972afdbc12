package attack

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// processAttacks are those on other processes.
var processAttacks = map[string]attempt{
	"kill-server":   func(w World) error { return unix.Kill(w.Mortal, unix.SIGKILL) },
	"stop-server":   func(w World) error { return unix.Kill(w.Victim, unix.SIGCONT) },
	"tgkill-server": func(w World) error { return unix.Tgkill(w.Victim, w.Victim, unix.SIGCONT) },
	"queue-server": func(w World) error {
		var info [128]byte
		*(*int32)(unsafe.Pointer(&info[0])), *(*int32)(unsafe.Pointer(&info[8])) = int32(unix.SIGCONT), -1
		_, _, e := unix.Syscall(unix.SYS_RT_SIGQUEUEINFO, uintptr(w.Victim), uintptr(unix.SIGCONT), uintptr(unsafe.Pointer(&info)))
		return orNil(e)
	},
	"pidfd-signal-server": func(w World) error {
		n, err := unix.PidfdOpen(w.Victim, 0)
		if err != nil {
			return err
		}
		return unix.PidfdSendSignal(n, unix.SIGCONT, nil, 0)
	},
	"signal-group": func(w World) error {
		group, err := unix.Getpgid(w.Victim)
		if err != nil {
			return err
		}
		if group == 0 {
			return errStopped // it is of another process namespace: 0 is the attacker's own
		}
		return unix.Kill(-group, unix.SIGCONT)
	},
	"realtime": func(World) error {
		priority := int32(1)
		_, _, e := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, 0, 1, uintptr(unsafe.Pointer(&priority)))
		return orNil(e)
	},
	"nice-up": func(World) error { return unix.Setpriority(unix.PRIO_PROCESS, 0, -5) },
	"raise-limits": func(World) error {
		var old unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
			return err
		}
		return unix.Prlimit(0, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: old.Cur, Max: old.Max + 1}, nil)
	},
	"sigio-server": sigio,
	"sigio-socket": socketOwner,
	// What may send the first stage no signal may send it no deadly one.
	"kill-helper":   func(w World) error { return unix.Kill(w.FirstStage, 0) },
	"tgkill-helper": func(w World) error { return unix.Tgkill(w.FirstStage, w.FirstStage, 0) },
	"ptrace-server": func(w World) error { return ptraces(w.Victim) },
	"ptrace-helper": func(w World) error { return ptraces(w.FirstStage) },
	"mem-helper":    func(w World) error { return opens("/proc/"+strconv.Itoa(w.FirstStage)+"/mem", unix.O_RDWR) },
	"vm-readv": func(w World) error {
		var buffer [8]byte
		local := []unix.Iovec{{Base: &buffer[0], Len: 8}}
		_, err := unix.ProcessVMReadv(w.Victim, local, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&buffer)), Len: 8}}, 0)
		if errors.Is(err, unix.EFAULT) {
			return nil // it was looked for there
		}
		return err
	},
	"pidfd-getfd": func(w World) error {
		n, err := unix.PidfdOpen(w.Victim, 0)
		if err != nil {
			return err
		}
		_, err = unix.PidfdGetfd(n, 0, 0)
		return err
	},
	"kcmp": func(w World) error {
		_, _, e := unix.Syscall6(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(w.Victim), 0, 0, 0, 0)
		return orNil(e)
	},
	"prlimit-server":  func(w World) error { return limits(w.Victim) },
	"prlimit-helper":  func(w World) error { return limits(w.FirstStage) },
	"affinity-server": func(w World) error { return pins(w.Victim) },
	"affinity-helper": func(w World) error { return pins(w.FirstStage) },
	"nice-helper":     func(w World) error { return nicer(unix.PRIO_PROCESS, w.FirstStage) },
	"nice-group": func(w World) error {
		group, err := unix.Getpgid(w.Victim)
		if err != nil {
			return err
		}
		if group == 0 { // it has no number here, and 0 is the caller's own
			return errStopped
		}
		return nicer(unix.PRIO_PGRP, group)
	},
	"nice-group-helper": func(w World) error { return nicer(unix.PRIO_PGRP, w.FirstStage) },
	"nice-server":       func(w World) error { return nicer(unix.PRIO_PROCESS, w.Victim) },
	"nice-user": func(w World) error {
		const zero = 20 // as the call gives it
		if err := unix.Setpriority(unix.PRIO_USER, 0, 2); err != nil {
			return err
		}
		if got, err := unix.Getpriority(unix.PRIO_PROCESS, w.Victim); err != nil || got == zero {
			return errStopped
		}
		return nil
	},
	"ioprio-server": func(w World) error {
		_, _, e := unix.Syscall(unix.SYS_IOPRIO_SET, 1, uintptr(w.Victim), 2<<13|7)
		return orNil(e)
	},
	"ioprio-helper": func(w World) error {
		_, _, e := unix.Syscall(unix.SYS_IOPRIO_SET, 1, uintptr(w.FirstStage), 2<<13|7)
		return orNil(e)
	},
	"ioprio-user": func(World) error {
		_, _, e := unix.Syscall(unix.SYS_IOPRIO_SET, 3, uintptr(os.Getuid()), 2<<13|7)
		return orNil(e)
	},
	"scheduler-helper": func(w World) error {
		var p int32
		_, _, e := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(w.FirstStage), 3, uintptr(unsafe.Pointer(&p)))
		return orNil(e)
	},
	"schedattr-server": func(w World) error {
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr}
		return unix.SchedSetAttr(w.Victim, &attr, 0)
	},
	"schedparam-server": func(w World) error {
		var p int32
		_, _, e := unix.Syscall(unix.SYS_SCHED_SETPARAM, uintptr(w.Victim), uintptr(unsafe.Pointer(&p)), 0)
		return orNil(e)
	},
	"core": func(World) error {
		if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}); err != nil {
			return err
		}
		return nil
	},
	"fds": func(w World) error {
		if w.Inherited > 0 {
			return nil
		}
		return errStopped
	},
	"scheduler-server": func(w World) error {
		var p int32
		_, _, e := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(w.Victim), 3, uintptr(unsafe.Pointer(&p)))
		return orNil(e)
	},
	"setns": func(w World) error {
		n, err := unix.Open(w.proc("ns/uts"), unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		return unix.Setns(n, 0)
	},
	"sysv-shm": func(w World) error {
		_, err := unix.SysvShmAttach(w.SysV, 0, unix.SHM_RDONLY)
		return err
	},
	"posix-queue": func(w World) error {
		_, _, e := unix.Syscall6(unix.SYS_MQ_OPEN, text(w.Abstract), unix.O_RDONLY, 0, 0, 0, 0)
		return orNil(e)
	},
}

func ptraces(pid int) error {
	runtime.LockOSThread()
	if err := unix.PtraceAttach(pid); err != nil {
		return err
	}
	var status unix.WaitStatus
	_, _ = unix.Wait4(pid, &status, unix.WALL, nil)
	return unix.PtraceDetach(pid)
}

// sigio makes a victim the owner of a pipe, for which any signal can be chosen.
func sigio(w World) error {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	const setSignal = 10
	if _, err := unix.FcntlInt(uintptr(pipe[0]), setSignal, int(unix.SIGWINCH)); err != nil {
		return err
	}
	_, err := unix.FcntlInt(uintptr(pipe[0]), unix.F_SETOWN, w.Victim)
	return err
}

// socketOwner makes a victim the owner of a socket.
func socketOwner(w World) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	const fioSetOwn = 0x8901
	return unix.IoctlSetPointerInt(pair[0], fioSetOwn, w.Victim)
}

// limits sets a limit of another process to what it is: a process that may do that may set it
// to nothing.
func limits(pid int) error {
	var old unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &old); err != nil {
		return err
	}
	return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &old, nil)
}

// pins sets on which processors another process runs.
func pins(pid int) error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		return err
	}
	return unix.SchedSetaffinity(pid, &set)
}

// nicer lowers a priority by one, which takes no rights but over the process: how nice it is
// already says how the tests were started.
func nicer(which, who int) error {
	const zero, lowest = 20, 19 // 20 less the niceness is what the call gives
	is, err := unix.Getpriority(which, who)
	if err != nil {
		return err
	}
	return unix.Setpriority(which, who, min(zero-is+1, lowest))
}
