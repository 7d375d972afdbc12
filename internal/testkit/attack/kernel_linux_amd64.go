package attack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernelAttacks are those on wide parts of the kernel.
var kernelAttacks = map[string]attempt{
	"proc-kernel": readsKernel,
	"bpf": func(World) error {
		var a [72]byte
		a[0], a[4], a[8], a[12] = 2, 4, 4, 1
		return call(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&a)), 72)
	},
	"perf": func(World) error {
		var a [128]byte
		return call(unix.SYS_PERF_EVENT_OPEN, uintptr(unsafe.Pointer(&a)), 0, ^uintptr(0), ^uintptr(0), 0)
	},
	"userfaultfd": func(World) error { return call(unix.SYS_USERFAULTFD, 1) },
	"io_uring": func(World) error {
		var p [120]byte
		return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&p)))
	},
	"io_uring_enter":    func(World) error { return call(unix.SYS_IO_URING_ENTER, ^uintptr(0), 0, 0, 0, 0) },
	"io_uring_register": func(World) error { return call(unix.SYS_IO_URING_REGISTER, ^uintptr(0), 0, 0, 0) },
	"int80":             func(World) error { return int80() },
	"x32": func(World) error {
		const x32 = 0x40000000
		return call(x32 | unix.SYS_GETPID)
	},
	"request-key": func(World) error { return call(unix.SYS_REQUEST_KEY, text("user"), text("loom"), 0, 0) },
	"remount": func(World) error {
		var nothing unix.MountAttr
		return call(unix.SYS_MOUNT_SETATTR, ^uintptr(99), text("/"), 0, uintptr(unsafe.Pointer(&nothing)), unsafe.Sizeof(nothing))
	},
	"setuid":        setUserID,
	"memfd-exec":    memfdExec,
	"fanotify-mark": func(World) error { return call(unix.SYS_FANOTIFY_MARK, ^uintptr(0), 1, 2, ^uintptr(99), 0) },
	"vm-writev":     func(World) error { return call(unix.SYS_PROCESS_VM_WRITEV, uintptr(os.Getppid()), 0, 0, 0, 0, 0) },
	"migrate-pages": func(World) error { return call(unix.SYS_MOVE_PAGES, uintptr(os.Getppid()), 0, 0, 0, 0, 0) },
	"tioclinux":     func(World) error { return call(unix.SYS_IOCTL, 0, 0x541c, text("x")) },
	"keyctl":        func(World) error { return call(unix.SYS_KEYCTL, 0, ^uintptr(3), 0) },
	"add-key": func(World) error {
		return call(unix.SYS_ADD_KEY, text("user"), text("loom"), text("x"), 1, ^uintptr(2))
	},
	"memfd-secret": func(World) error { return call(unix.SYS_MEMFD_SECRET, 0) },
	"module":       func(World) error { return call(unix.SYS_INIT_MODULE, text("x"), 1, text("")) },
	"kexec":        func(World) error { return call(unix.SYS_KEXEC_LOAD, 0, 0, 0, ^uintptr(0)) },
	"reboot":       func(World) error { return call(unix.SYS_REBOOT, 1, 2, 3, 0) }, // wrong numbers: nothing happens
	"clock": func(World) error {
		t := unix.Timespec{Nsec: -1}
		return call(unix.SYS_CLOCK_SETTIME, 0, uintptr(unsafe.Pointer(&t)))
	},
	"swapon": func(World) error { return call(unix.SYS_SWAPON, text("/nowhere"), 0) },
	"acct":   func(World) error { return call(unix.SYS_ACCT, text("/nowhere")) },
	"syslog": func(World) error { return call(unix.SYS_SYSLOG, 10, 0, 0) },
	"hostname": func(World) error {
		var n unix.Utsname
		_ = unix.Uname(&n)
		return call(unix.SYS_SETHOSTNAME, uintptr(unsafe.Pointer(&n.Nodename)), uintptr(len(unix.ByteSliceToString(n.Nodename[:]))))
	},
	"chroot":       func(World) error { return call(unix.SYS_CHROOT, text("/nowhere")) },
	"mount":        func(World) error { return call(unix.SYS_MOUNT, text("none"), text("/nowhere"), text("tmpfs"), 0, 0) },
	"umount":       func(World) error { return call(unix.SYS_UMOUNT2, text("/nowhere"), 0) },
	"pivot":        func(World) error { return call(unix.SYS_PIVOT_ROOT, text("/nowhere"), text("/nowhere")) },
	"open-tree":    func(w World) error { return call(unix.SYS_OPEN_TREE, ^uintptr(99), text(w.Work), 0) },
	"fsopen":       func(World) error { return call(unix.SYS_FSOPEN, text("tmpfs"), 0) },
	"unshare-user": func(World) error { return call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER) }, // of a thread: EINVAL where it may be
	"unshare-net":  func(World) error { return call(unix.SYS_UNSHARE, unix.CLONE_NEWNET) },
	"clone3":       func(World) error { return call(unix.SYS_CLONE3, 0, 0) },
	"openat2":      func(World) error { return call(unix.SYS_OPENAT2, 0, 0, 0, 0) },
	"handle": func(w World) error {
		var h [136]byte
		h[0] = 128
		var id int32
		return call(unix.SYS_NAME_TO_HANDLE_AT, ^uintptr(99), text(w.Work), uintptr(unsafe.Pointer(&h)), uintptr(unsafe.Pointer(&id)), 0)
	},
	"open-handle": func(World) error {
		var h [136]byte
		h[0] = 8
		return call(unix.SYS_OPEN_BY_HANDLE_AT, ^uintptr(99), uintptr(unsafe.Pointer(&h)), 0)
	},
	"fanotify":     func(World) error { return call(unix.SYS_FANOTIFY_INIT, 0x200, 0) },
	"tiocsti":      func(World) error { return call(unix.SYS_IOCTL, 0, unix.TIOCSTI, text("x")) },
	"tiocsti-high": func(World) error { return call(unix.SYS_IOCTL, 0, unix.TIOCSTI|1<<32, text("x")) },
	"ioperm":       func(World) error { return call(unix.SYS_IOPERM, 0x80, 1, 1) },
	"modify-ldt": func(World) error {
		var b [64]byte
		return call(unix.SYS_MODIFY_LDT, 0, uintptr(unsafe.Pointer(&b)), 64)
	},
	"clone-user":   func(World) error { return cloneUser() },
	"setuid-other": func(World) error { _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, 4321, 4321, 4321); return orNil(e) },
	"setxattrat":   func(World) error { return call(unix.SYS_SETXATTRAT, 0, 0, 0, 0, 0, 0) },
	"quotactl":     func(World) error { return call(unix.SYS_QUOTACTL, 0x800002<<8, text("/nowhere"), 0, 0) },
	"process-madv": func(World) error { return call(unix.SYS_PROCESS_MADVISE, ^uintptr(0), 0, 0, 0, 0) },
	"list-mounts":  func(World) error { return call(unix.SYS_LISTMOUNT, 0, 0, 0, 0) },
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

// int80 makes a call of the 32-bit table, whose numbers are others.
func int80() error {
	code, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	// mov eax, 20 (getpid); int 0x80; mov [rdx+8], eax; ret. A function value is behind rdx.
	copy(code, []byte{0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0x89, 0x42, 8, 0xc3})
	value := &struct {
		code   *byte
		answer int32
	}{code: &code[0]}
	runtime.LockOSThread()
	(*(*func())(unsafe.Pointer(&value)))()
	if int(value.answer) != os.Getpid() {
		return syscall.Errno(-value.answer)
	}
	return nil
}

// setUserID starts a program that lends another user's rights.
func setUserID(w World) error {
	out, err := exec.Command(w.work("lends"), asLent).Output()
	if err == nil && string(out) != "other" {
		return errStopped
	}
	return err
}

// memfdExec runs a program from memory, which reads what this one may not.
func memfdExec(w World) error {
	program, err := os.ReadFile(w.work("attacker"))
	if err != nil {
		return err
	}
	n, err := unix.MemfdCreate("program", 0)
	if err != nil {
		return err
	}
	if _, err := unix.Write(n, program); err != nil {
		return err
	}
	cmd := exec.Command("/proc/self/fd/3", asOne, w.encode(), "read-outside")
	cmd.ExtraFiles, cmd.Env = []*os.File{os.NewFile(uintptr(n), "program")}, []string{}
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.Join(err, errors.New(string(out)))
	}
	return nil
}

// readsKernel reads what /proc says of the kernel and the machine.
func readsKernel(World) error {
	for _, name := range []string{
		"kallsyms", "slabinfo", "keys", "key-users", "config.gz", "modules", "iomem", "ioports", "vmallocinfo", "timer_list", "sched_debug", "pagetypeinfo",
		"cmdline", "partitions", "interrupts", "softirqs", "crypto", "misc", "devices", "kcore", "kpagecount", "locks", "bus/pci/devices", "driver/rtc",
	} {
		file, err := os.Open("/proc/" + name)
		if err != nil {
			continue
		}
		n, _ := file.Read(make([]byte, 16))
		_ = file.Close() // it was read
		if n > 0 {
			fmt.Print(name)
			return nil
		}
	}
	return errStopped
}
