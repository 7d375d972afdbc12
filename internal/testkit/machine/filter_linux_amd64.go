package machine

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Where seccomp_data has what, in bytes.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

// assemble makes the program of a filter. What it does not name is allowed, and so are the
// calls of other architectures.
func assemble(refusals []Refusal) ([]unix.SockFilter, error) {
	allow := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	code := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AUDIT_ARCH_X86_64, SkipTrue: 1},
		allow,
	}
	for _, r := range refusals {
		answer := bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(r.Errno)}
		load := bpf.LoadAbsolute{Off: offsetNumber, Size: 4}
		argument := bpf.LoadAbsolute{Off: offsetArgs + 8*uint32(r.Arg), Size: 4}
		switch {
		case r.Bits != 0:
			code = append(code, load, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: r.Call, SkipTrue: 3},
				argument, bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: r.Bits, SkipFalse: 1}, answer)
		case r.Compare:
			code = append(code, load, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: r.Call, SkipTrue: 3},
				argument, bpf.JumpIf{Cond: bpf.JumpEqual, Val: r.Value, SkipFalse: 1}, answer)
		default:
			code = append(code, load, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: r.Call, SkipTrue: 1}, answer)
		}
	}
	raw, err := bpf.Assemble(append(code, allow))
	if err != nil {
		return nil, err
	}
	out := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		out[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return out, nil
}

// dockerRefusals are what the default profile of containers refuses to a program without
// further capabilities.
func dockerRefusals() []Refusal {
	list := Refuse(unix.EPERM,
		unix.SYS_ACCT, unix.SYS_ADD_KEY, unix.SYS_BPF, unix.SYS_CLOCK_SETTIME, unix.SYS_DELETE_MODULE, unix.SYS_FANOTIFY_INIT,
		unix.SYS_FINIT_MODULE, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSOPEN, unix.SYS_FSPICK, unix.SYS_GET_MEMPOLICY,
		unix.SYS_INIT_MODULE, unix.SYS_IOPERM, unix.SYS_IOPL, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		unix.SYS_IO_URING_SETUP, unix.SYS_KCMP, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_KEXEC_LOAD, unix.SYS_KEYCTL, unix.SYS_LISTMOUNT,
		unix.SYS_LOOKUP_DCOOKIE, unix.SYS_MBIND, unix.SYS_MIGRATE_PAGES, unix.SYS_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_MOVE_MOUNT,
		unix.SYS_MOVE_PAGES, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_OPEN_TREE, unix.SYS_PERF_EVENT_OPEN, unix.SYS_PIDFD_GETFD,
		unix.SYS_PIVOT_ROOT, unix.SYS_PROCESS_MADVISE, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_REBOOT, unix.SYS_REQUEST_KEY,
		unix.SYS_SETDOMAINNAME, unix.SYS_SETHOSTNAME, unix.SYS_SETNS, unix.SYS_SETTIMEOFDAY, unix.SYS_SET_MEMPOLICY, unix.SYS_STATMOUNT,
		unix.SYS_SWAPOFF, unix.SYS_SWAPON, unix.SYS_SYSFS, unix.SYS_SYSLOG, unix.SYS_UMOUNT2, unix.SYS_UNSHARE, unix.SYS_USELIB,
		unix.SYS_USERFAULTFD, unix.SYS_USTAT, unix.SYS_VHANGUP,
	)
	const all = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	return append(list,
		Refusal{Call: unix.SYS_CLONE, Errno: unix.EPERM, Bits: all},
		Refusal{Call: unix.SYS_CLONE3, Errno: unix.ENOSYS},
		Refusal{Call: unix.SYS_SOCKET, Errno: unix.EPERM, Compare: true, Value: unix.AF_VSOCK},
	)
}
