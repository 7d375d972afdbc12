package sandbox_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// world is what attacks are made on. It stands in the environment of the attacker.
type world struct {
	Work, Outside, Other string // the workspace, a folder beside it, another agent's
	Victim, Mortal       int    // processes outside; Mortal may be killed
	Server, Port         int    // TCP ports on 127.0.0.1 (and ::1), 127.0.0.2
	UDP                  int    // echoes
	Abstract, Shm        string // the name of an abstract socket; of a file in /dev/shm
	SysV                 int    // id of a segment
	FirstStage           int    // the parent of what runs without a pid namespace
}

func (w world) out(name string) string  { return filepath.Join(w.Outside, name) }
func (w world) work(name string) string { return filepath.Join(w.Work, name) }
func (w world) proc(name string) string { return "/proc/" + strconv.Itoa(w.Victim) + "/" + name }

// attack tries one thing. Nil is that it was reached; an error is what stopped it.
type attack func(w world) error

var errStopped = errors.New("stopped")

func reads(path string) error {
	_, err := os.ReadFile(path)
	return err
}

func opens(path string, flags int) error {
	n, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err == nil {
		_ = unix.Close(n)
	}
	return err
}

// call makes a system call that must not be there: any answer but these is reached.
func call(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	_, _, e := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	switch e {
	case unix.EPERM, unix.ENOSYS, unix.EACCES:
		return e
	}
	return nil
}

func socket(family, kind, protocol int) error {
	n, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err == nil {
		_ = unix.Close(n)
	}
	return err
}

func dials(network, address string) error {
	conn, err := net.DialTimeout(network, address, time.Second)
	if err == nil {
		_ = conn.Close()
	}
	return err
}

func text(s string) uintptr {
	p, err := unix.BytePtrFromString(s)
	if err != nil {
		panic(err)
	}
	return uintptr(unsafe.Pointer(p))
}

// fileAttacks are those on files.
var fileAttacks = map[string]attack{
	"read-outside": func(w world) error { return reads(w.out("secret")) },
	"read-dotdot":  func(world) error { return reads("../outside/secret") },
	"read-symlink": func(w world) error {
		if err := os.Symlink(w.out("secret"), w.work("link")); err != nil {
			return err
		}
		return reads(w.work("link"))
	},
	"read-self-root":   func(w world) error { return reads("/proc/self/root" + w.out("secret")) },
	"read-pid-root":    func(w world) error { return reads(w.proc("root") + w.out("secret")) },
	"read-pid-cwd":     func(w world) error { return reads(w.proc("cwd/secret")) },
	"read-shadow":      func(world) error { return reads("/etc/shadow") },
	"read-home":        func(world) error { return opens("/root", unix.O_RDONLY) },
	"read-other-agent": func(w world) error { return reads(filepath.Join(w.Other, "secret")) },
	"read-devshm":      func(w world) error { return reads(w.Shm) },
	"read-environ":     func(w world) error { return reads(w.proc("environ")) },
	"read-cmdline":     func(w world) error { return reads(w.proc("cmdline")) },
	"read-mem":         func(w world) error { return opens(w.proc("mem"), unix.O_RDONLY) },
	"list-outside":     func(w world) error { return opens(w.Outside, unix.O_RDONLY|unix.O_DIRECTORY) },
	"list-root-home":   func(world) error { return opens("/home", unix.O_RDONLY|unix.O_DIRECTORY) },
	"write-outside":    func(w world) error { return os.WriteFile(w.out("new"), nil, 0o644) },
	"append-outside":   func(w world) error { return opens(w.out("secret"), unix.O_WRONLY|unix.O_APPEND) },
	"mkdir-outside":    func(w world) error { return os.Mkdir(w.out("made"), 0o755) },
	"symlink-outside":  func(w world) error { return os.Symlink("x", w.out("linked")) },
	"truncate-outside": func(w world) error { return os.Truncate(w.out("trunc"), 0) },
	"unlink-outside":   func(w world) error { return os.Remove(w.out("unlink")) },
	"rename-out": func(w world) error {
		if err := os.WriteFile(w.work("mine"), nil, 0o644); err != nil {
			return err
		}
		return os.Rename(w.work("mine"), w.out("theirs"))
	},
	"hardlink-in": func(w world) error { return os.Link(w.out("hard"), w.work("hard")) },
	"exec-outside": func(w world) error {
		_, err := syscall.ForkExec(w.out("program"), []string{"x"}, &syscall.ProcAttr{})
		if errors.Is(err, unix.ENOEXEC) {
			return nil // it is no program, but was read as one
		}
		return err
	},
	"chmod-outside": func(w world) error { return os.Chmod(w.out("meta"), 0o600) },
	"chmod-outside-fd": func(w world) error {
		n, err := unix.Open(w.out("meta"), unix.O_PATH, 0)
		if err != nil {
			return err
		}
		return unix.Fchmodat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(n), 0o640, 0)
	},
	"fchmodat2-outside": func(w world) error {
		_, _, e := unix.Syscall6(unix.SYS_FCHMODAT2, ^uintptr(99), text(w.out("meta")), 0o640, 0, 0, 0)
		return orNil(e)
	},
	"chown-outside":   func(w world) error { return os.Chown(w.out("meta"), os.Getuid(), os.Getgid()) },
	"lchown-outside":  func(w world) error { return os.Lchown(w.out("meta"), os.Getuid(), os.Getgid()) },
	"utime-outside":   func(w world) error { return os.Chtimes(w.out("meta"), time.Unix(1, 0), time.Unix(1, 0)) },
	"xattr-outside":   func(w world) error { return unix.Setxattr(w.out("meta"), "user.x", []byte("y"), 0) },
	"inotify-outside": watchesOutside,
	"stat-outside":    func(w world) error { _, err := os.Stat(w.out("secret")); return err },
	"race-symlink": func(w world) error {
		return race(w, func(p string) bool { b, err := os.ReadFile(p); return err == nil && len(b) > 0 })
	},
	"dotenv": func(w world) error { return os.WriteFile(w.work(".env"), []byte("x"), 0o644) },
	"dotenv-replace": func(w world) error {
		if err := os.WriteFile(w.work("env2"), nil, 0o644); err != nil {
			return err
		}
		return os.Rename(w.work("env2"), w.work(".env"))
	},
	"gitconfig":      func(w world) error { return opens(w.work(".git/config"), unix.O_WRONLY) },
	"githook":        func(w world) error { return os.WriteFile(w.work(".git/hooks/post-commit"), nil, 0o755) },
	"githook-rename": func(w world) error { return os.Rename(w.work(".git"), w.work("git2")) },
	"suid-bit":       func(w world) error { return withFile(w, func(p string) error { return unix.Chmod(p, 0o4755) }) },
	"suid-creat": func(w world) error {
		n, err := unix.Open(w.work("suid"), unix.O_CREAT|unix.O_WRONLY, 0o6755)
		if err == nil {
			_ = unix.Close(n)
		}
		return err
	},
	"suid-mknod":      func(w world) error { return unix.Mknod(w.work("suid2"), unix.S_IFREG|0o4755, 0) },
	"mknod":           func(w world) error { return unix.Mknod(w.work("node"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))) },
	"device":          func(world) error { return opens("/dev/kmsg", unix.O_WRONLY) },
	"device-disk":     func(world) error { return opens("/dev/loop-control", unix.O_RDONLY) },
	"procsys-write":   func(world) error { return opens("/proc/sys/kernel/core_pattern", unix.O_WRONLY) },
	"sysrq-write":     func(world) error { return opens("/proc/sysrq-trigger", unix.O_WRONLY) },
	"sysfs-write":     func(world) error { return opens("/sys/kernel/mm/transparent_hugepage/enabled", unix.O_WRONLY) },
	"sysfs-list":      func(world) error { return opens("/sys/class", unix.O_RDONLY|unix.O_DIRECTORY) },
	"cgroup-list":     func(world) error { return opens("/sys/fs/cgroup", unix.O_RDONLY|unix.O_DIRECTORY) },
	"proc-oomadj":     func(w world) error { return opens(w.proc("oom_score_adj"), unix.O_WRONLY) },
	"proc-victim-fd":  func(w world) error { return opens(w.proc("fd"), unix.O_RDONLY|unix.O_DIRECTORY) },
	"write-usr":       func(world) error { return os.WriteFile("/usr/lib/loom-attack", nil, 0o644) },
	"write-etc":       func(world) error { return opens("/etc/passwd", unix.O_WRONLY) },
	"write-root":      func(world) error { return os.WriteFile("/loom-attack", nil, 0o644) },
	"chmod-system":    func(world) error { return os.Chmod("/usr/bin/env", 0o755) },
	"truncate-system": func(world) error { return opens("/etc/passwd", unix.O_RDWR) },
}

func orNil(e syscall.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}

func withFile(w world, do func(path string) error) error {
	path := w.work("file")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		return err
	}
	return do(path)
}

func watchesOutside(w world) error {
	n, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return err
	}
	_, err = unix.InotifyAddWatch(n, w.Outside, unix.IN_ALL_EVENTS)
	return err
}

// race swaps a link between a file inside and one outside while it is used.
func race(w world, reached func(path string) bool) error {
	inside, link := w.work("inside"), w.work("raced")
	if err := os.WriteFile(inside, nil, 0o644); err != nil {
		return err
	}
	end := time.Now().Add(150 * time.Millisecond)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for time.Now().Before(end) {
			for _, to := range []string{inside, w.out("secret")} {
				_ = os.Symlink(to, link+"2")
				_ = os.Rename(link+"2", link)
			}
		}
	}()
	for time.Now().Before(end) {
		if reached(link) {
			return nil
		}
	}
	<-done
	return errStopped
}

// processAttacks are those on other processes.
var processAttacks = map[string]attack{
	"kill-server":   func(w world) error { return unix.Kill(w.Mortal, unix.SIGKILL) },
	"stop-server":   func(w world) error { return unix.Kill(w.Victim, unix.SIGCONT) },
	"tgkill-server": func(w world) error { return unix.Tgkill(w.Victim, w.Victim, unix.SIGCONT) },
	"queue-server": func(w world) error {
		var info [128]byte
		*(*int32)(unsafe.Pointer(&info[0])), *(*int32)(unsafe.Pointer(&info[8])) = int32(unix.SIGCONT), -1
		_, _, e := unix.Syscall(unix.SYS_RT_SIGQUEUEINFO, uintptr(w.Victim), uintptr(unix.SIGCONT), uintptr(unsafe.Pointer(&info)))
		return orNil(e)
	},
	"pidfd-signal-server": func(w world) error {
		n, err := unix.PidfdOpen(w.Victim, 0)
		if err != nil {
			return err
		}
		return unix.PidfdSendSignal(n, unix.SIGCONT, nil, 0)
	},
	"sigio-server": sigio,
	// What may send the first stage no signal may send it no deadly one.
	"kill-helper":   func(w world) error { return unix.Kill(w.FirstStage, 0) },
	"tgkill-helper": func(w world) error { return unix.Tgkill(w.FirstStage, w.FirstStage, 0) },
	"ptrace-server": func(w world) error { return ptraces(w.Victim) },
	"ptrace-helper": func(w world) error { return ptraces(w.FirstStage) },
	"mem-helper":    func(w world) error { return opens("/proc/"+strconv.Itoa(w.FirstStage)+"/mem", unix.O_RDWR) },
	"vm-readv": func(w world) error {
		var buffer [8]byte
		local := []unix.Iovec{{Base: &buffer[0], Len: 8}}
		_, err := unix.ProcessVMReadv(w.Victim, local, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&buffer)), Len: 8}}, 0)
		if errors.Is(err, unix.EFAULT) {
			return nil // it was looked for there
		}
		return err
	},
	"pidfd-getfd": func(w world) error {
		n, err := unix.PidfdOpen(w.Victim, 0)
		if err != nil {
			return err
		}
		_, err = unix.PidfdGetfd(n, 0, 0)
		return err
	},
	"kcmp": func(w world) error {
		_, _, e := unix.Syscall6(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(w.Victim), 0, 0, 0, 0)
		return orNil(e)
	},
	"prlimit-server": func(w world) error {
		var old unix.Rlimit
		if err := unix.Prlimit(w.Victim, unix.RLIMIT_NOFILE, nil, &old); err != nil {
			return err
		}
		return unix.Prlimit(w.Victim, unix.RLIMIT_NOFILE, &old, nil)
	},
	"affinity-server": func(w world) error {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(w.Victim, &set); err != nil {
			return err
		}
		return unix.SchedSetaffinity(w.Victim, &set)
	},
	"nice-server": func(w world) error { return unix.Setpriority(unix.PRIO_PROCESS, w.Victim, 5) },
	"nice-user": func(w world) error {
		const zero = 20 // as the call gives it
		if err := unix.Setpriority(unix.PRIO_USER, 0, 2); err != nil {
			return err
		}
		if got, err := unix.Getpriority(unix.PRIO_PROCESS, w.Victim); err != nil || got == zero {
			return errStopped
		}
		return nil
	},
	"ioprio-server": func(w world) error {
		_, _, e := unix.Syscall(unix.SYS_IOPRIO_SET, 1, uintptr(w.Victim), 2<<13|7)
		return orNil(e)
	},
	"scheduler-server": func(w world) error {
		var p int32
		_, _, e := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(w.Victim), 3, uintptr(unsafe.Pointer(&p)))
		return orNil(e)
	},
	"setns": func(w world) error {
		n, err := unix.Open(w.proc("ns/uts"), unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		return unix.Setns(n, 0)
	},
	"sysv-shm": func(w world) error {
		_, err := unix.SysvShmAttach(w.SysV, 0, unix.SHM_RDONLY)
		return err
	},
	"posix-queue": func(w world) error {
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
func sigio(w world) error {
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

// kernelAttacks are those on wide parts of the kernel.
var kernelAttacks = map[string]attack{
	"bpf": func(world) error {
		var a [72]byte
		a[0], a[4], a[8], a[12] = 2, 4, 4, 1
		return call(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&a)), 72)
	},
	"perf": func(world) error {
		var a [128]byte
		return call(unix.SYS_PERF_EVENT_OPEN, uintptr(unsafe.Pointer(&a)), 0, ^uintptr(0), ^uintptr(0), 0)
	},
	"userfaultfd": func(world) error { return call(unix.SYS_USERFAULTFD, 1) },
	"io_uring": func(world) error {
		var p [120]byte
		return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&p)))
	},
	"keyctl": func(world) error { return call(unix.SYS_KEYCTL, 0, ^uintptr(3), 0) },
	"add-key": func(world) error {
		return call(unix.SYS_ADD_KEY, text("user"), text("loom"), text("x"), 1, ^uintptr(2))
	},
	"memfd-secret": func(world) error { return call(unix.SYS_MEMFD_SECRET, 0) },
	"module":       func(world) error { return call(unix.SYS_INIT_MODULE, text("x"), 1, text("")) },
	"kexec":        func(world) error { return call(unix.SYS_KEXEC_LOAD, 0, 0, 0, ^uintptr(0)) },
	"reboot":       func(world) error { return call(unix.SYS_REBOOT, 1, 2, 3, 0) }, // wrong numbers: nothing happens
	"clock": func(world) error {
		t := unix.Timespec{Nsec: -1}
		return call(unix.SYS_CLOCK_SETTIME, 0, uintptr(unsafe.Pointer(&t)))
	},
	"swapon": func(world) error { return call(unix.SYS_SWAPON, text("/nowhere"), 0) },
	"acct":   func(world) error { return call(unix.SYS_ACCT, text("/nowhere")) },
	"syslog": func(world) error { return call(unix.SYS_SYSLOG, 10, 0, 0) },
	"hostname": func(world) error {
		var n unix.Utsname
		_ = unix.Uname(&n)
		return call(unix.SYS_SETHOSTNAME, uintptr(unsafe.Pointer(&n.Nodename)), uintptr(len(unix.ByteSliceToString(n.Nodename[:]))))
	},
	"chroot":       func(world) error { return call(unix.SYS_CHROOT, text("/nowhere")) },
	"mount":        func(world) error { return call(unix.SYS_MOUNT, text("none"), text("/nowhere"), text("tmpfs"), 0, 0) },
	"umount":       func(world) error { return call(unix.SYS_UMOUNT2, text("/nowhere"), 0) },
	"pivot":        func(world) error { return call(unix.SYS_PIVOT_ROOT, text("/nowhere"), text("/nowhere")) },
	"open-tree":    func(w world) error { return call(unix.SYS_OPEN_TREE, ^uintptr(99), text(w.Work), 0) },
	"fsopen":       func(world) error { return call(unix.SYS_FSOPEN, text("tmpfs"), 0) },
	"unshare-user": func(world) error { return call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER) }, // of a thread: EINVAL where it may be
	"unshare-net":  func(world) error { return call(unix.SYS_UNSHARE, unix.CLONE_NEWNET) },
	"clone3":       func(world) error { return call(unix.SYS_CLONE3, 0, 0) },
	"openat2":      func(world) error { return call(unix.SYS_OPENAT2, 0, 0, 0, 0) },
	"handle": func(w world) error {
		var h [136]byte
		h[0] = 128
		var id int32
		return call(unix.SYS_NAME_TO_HANDLE_AT, ^uintptr(99), text(w.Work), uintptr(unsafe.Pointer(&h)), uintptr(unsafe.Pointer(&id)), 0)
	},
	"open-handle": func(world) error {
		var h [136]byte
		h[0] = 8
		return call(unix.SYS_OPEN_BY_HANDLE_AT, ^uintptr(99), uintptr(unsafe.Pointer(&h)), 0)
	},
	"fanotify":     func(world) error { return call(unix.SYS_FANOTIFY_INIT, 0x200, 0) },
	"tiocsti":      func(world) error { return call(unix.SYS_IOCTL, 0, unix.TIOCSTI, text("x")) },
	"tiocsti-high": func(world) error { return call(unix.SYS_IOCTL, 0, unix.TIOCSTI|1<<32, text("x")) },
	"ioperm":       func(world) error { return call(unix.SYS_IOPERM, 0x80, 1, 1) },
	"modify-ldt": func(world) error {
		var b [64]byte
		return call(unix.SYS_MODIFY_LDT, 0, uintptr(unsafe.Pointer(&b)), 64)
	},
	"clone-user":   func(world) error { return cloneUser() },
	"setuid-other": func(world) error { _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, 4321, 4321, 4321); return orNil(e) },
	"setxattrat":   func(world) error { return call(unix.SYS_SETXATTRAT, 0, 0, 0, 0, 0, 0) },
	"quotactl":     func(world) error { return call(unix.SYS_QUOTACTL, 0x800002<<8, text("/nowhere"), 0, 0) },
	"process-madv": func(world) error { return call(unix.SYS_PROCESS_MADVISE, ^uintptr(0), 0, 0, 0, 0) },
	"list-mounts":  func(world) error { return call(unix.SYS_LISTMOUNT, 0, 0, 0, 0) },
}

// cloneUser forks into a user namespace.
func cloneUser() error {
	pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}})
	if err == nil {
		var status unix.WaitStatus
		_, _ = unix.Wait4(pid, &status, 0, nil)
	}
	return err
}

// networkAttacks are those on networks and sockets.
var networkAttacks = map[string]attack{
	"tcp-server": func(w world) error { return dials("tcp", fmt.Sprint("127.0.0.1:", w.Server)) },
	"tcp6":       func(w world) error { return dials("tcp", fmt.Sprint("[::ffff:127.0.0.1]:", w.Server)) },
	"tcp-other":  func(w world) error { return dials("tcp", fmt.Sprint("127.0.0.2:", w.Port)) },
	"udp": func(w world) error {
		conn, err := net.Dial("udp", fmt.Sprint("127.0.0.1:", w.UDP))
		if err != nil {
			return err
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(500 * time.Millisecond))
		if _, err := conn.Write([]byte("x")); err != nil {
			return err
		}
		_, err = conn.Read(make([]byte, 1))
		return err
	},
	"fastopen": func(w world) error {
		n, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return unix.Sendto(n, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: w.Server, Addr: [4]byte{127, 0, 0, 1}})
	},
	"mptcp": func(w world) error {
		n, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 262)
		if err != nil {
			return err
		}
		return unix.Connect(n, &unix.SockaddrInet4{Port: w.Server, Addr: [4]byte{127, 0, 0, 1}})
	},
	"unix-path":     func(w world) error { return dials("unix", w.out("socket")) },
	"unix-abstract": func(w world) error { return dials("unix", "@"+w.Abstract) },
	"unix-in-ws":    func(w world) error { return dials("unix", w.work("socket")) },
	"unix-dgram": func(w world) error {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return unix.Sendto(pair[0], []byte("x"), 0, &unix.SockaddrUnix{Name: w.out("datagrams")})
	},
	"netlink":    func(world) error { return socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT) },
	"netlink-nf": func(world) error { return socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER) },
	"packet":     func(world) error { return socket(unix.AF_PACKET, unix.SOCK_RAW, 0) },
	"raw":        func(world) error { return socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) },
	"vsock":      func(world) error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) },
	"alg":        func(world) error { return socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) },
	"sctp":       func(world) error { return socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP) },
	"udplite":    func(world) error { return socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE) },
	"interfaces": otherInterfaces,
	"proc-net": func(world) error {
		b, err := os.ReadFile("/proc/net/route")
		if err == nil && strings.Count(string(b), "\n") < 2 {
			return errStopped
		}
		return err
	},
	"bind-public": func(w world) error { return bindsOutside(w) },
}

// otherInterfaces looks for networks beyond the loopback.
func otherInterfaces(world) error {
	faces, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, face := range faces {
		if face.Flags&net.FlagLoopback == 0 && face.Name != "sit0" && face.Name != "ip6tnl0" && face.Name != "tunl0" {
			return nil
		}
	}
	return errStopped
}

// bindsOutside takes a port that is taken on the machine: where that is possible, it is
// a port of another network.
func bindsOutside(w world) error {
	listener, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", w.Server))
	if errors.Is(err, unix.EADDRINUSE) {
		return nil
	}
	if err == nil {
		_ = listener.Close()
		return errStopped
	}
	return err
}
