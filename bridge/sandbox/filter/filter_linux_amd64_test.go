package filter

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// kernel runs a program as the kernel does.
type kernel struct {
	t  testing.TB
	vm *bpf.VM
}

func load(t testing.TB, o Options) kernel {
	t.Helper()
	code, err := Assemble(o)
	if err != nil {
		t.Fatal(err)
	}
	if len(code) > 4096 {
		t.Fatalf("%d instructions, the kernel takes 4096", len(code))
	}
	raw := make([]bpf.RawInstruction, len(code))
	for i, c := range code {
		raw[i] = bpf.RawInstruction{Op: c.Code, Jt: c.Jt, Jf: c.Jf, K: c.K}
	}
	program, known := bpf.Disassemble(raw)
	if !known {
		t.Fatal("the program has instructions that are not those of classic BPF")
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	return kernel{t, vm}
}

// call returns the answer to a call on an architecture. The kernel's data has the byte
// order of the machine, that of the VM is of the network.
func (k kernel) call(arch, number uint32, args ...uint64) uint32 {
	k.t.Helper()
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[offsetNumber:], number)
	binary.BigEndian.PutUint32(data[offsetArch:], arch)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[offsetArgs+8*i:], uint32(a))
		binary.BigEndian.PutUint32(data[offsetArgs+8*i+4:], uint32(a>>32))
	}
	answer, err := k.vm.Run(data)
	if err != nil {
		k.t.Fatal(err)
	}
	return uint32(answer)
}

func (k kernel) amd64(number uint32, args ...uint64) string {
	k.t.Helper()
	switch answer := k.call(unix.AUDIT_ARCH_X86_64, number, args...); answer & unix.SECCOMP_RET_ACTION_FULL {
	case unix.SECCOMP_RET_ALLOW:
		return "allow"
	case unix.SECCOMP_RET_USER_NOTIF:
		return "notify"
	case unix.SECCOMP_RET_ERRNO:
		return unix.ErrnoName(unix.Errno(answer & unix.SECCOMP_RET_DATA))
	default:
		return fmt.Sprintf("%#x", answer)
	}
}

// every are all options that a run can have.
func every() []Options {
	var all []Options
	for bits := range 1 << 7 {
		has := func(n int) bool { return bits>>n&1 == 1 }
		all = append(all, Options{
			Sockets: has(0), Proxied: has(1), SysV: has(2), First: has(3), Supervised: has(4), Signals: has(5), Names: has(6),
		})
	}
	return all
}

func TestWhatNoProgramMayDo(t *testing.T) {
	t.Parallel()
	for _, o := range every() {
		k := load(t, o)
		for _, call := range refused {
			if got := k.amd64(call); got != "EPERM" {
				t.Fatalf("%+v: call %d: %s", o, call, got)
			}
		}
		for _, call := range slices.Concat(absent, []uint32{newest + 1, newest + 1000, 1 << 29, 1<<30 | unix.SYS_WRITE, 1<<32 - 1}) {
			if got := k.amd64(call); got != "ENOSYS" {
				t.Fatalf("%+v: call %d: %s", o, call, got)
			}
		}
		for _, arch := range []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_AARCH64, 0, 1<<32 - 1} {
			if got := k.call(arch, unix.SYS_READ); got != unix.SECCOMP_RET_KILL_PROCESS {
				t.Fatalf("%+v: architecture %#x: %#x", o, arch, got)
			}
		}
		for _, call := range []uint32{unix.SYS_READ, unix.SYS_WRITE, unix.SYS_EXECVE, unix.SYS_FORK, unix.SYS_FUTEX, unix.SYS_EXIT_GROUP, unix.SYS_MMAP} {
			if got := k.amd64(call); got != "allow" {
				t.Fatalf("%+v: call %d: %s", o, call, got)
			}
		}
	}
}

// rows are calls with their answers.
type rows []struct {
	call uint32
	args []uint64
	want string
}

func (all rows) check(t *testing.T, o Options) {
	t.Helper()
	k := load(t, o)
	for _, row := range all {
		if got := k.amd64(row.call, row.args...); got != row.want {
			t.Errorf("%+v: call %d%#x: %s, want %s", o, row.call, row.args, got, row.want)
		}
	}
}

// high are bits that the kernel does not read of an argument of 32 bits.
const high = 0xdeadbeef << 32

func TestArguments(t *testing.T) {
	t.Parallel()
	const setID = unix.S_ISUID | 0o755
	for _, o := range every() {
		changed, made := "allow", "allow"
		if o.Supervised || o.Names {
			changed = "notify"
		}
		if o.Names {
			made = "notify"
		}
		rows{
			{unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, "allow"},
			{unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_THREAD}, "allow"},
			{unix.SYS_CLONE, []uint64{unix.CLONE_NEWUSER}, "EPERM"},
			{unix.SYS_CLONE, []uint64{high | unix.CLONE_NEWNET | uint64(unix.SIGCHLD)}, "EPERM"},
			{unix.SYS_IOCTL, []uint64{0, unix.TIOCGWINSZ}, "allow"},
			{unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI}, "EPERM"},
			{unix.SYS_IOCTL, []uint64{0, high | unix.TIOCSTI}, "EPERM"},
			{unix.SYS_IOCTL, []uint64{0, 0x541c}, "EPERM"},
			{unix.SYS_IOCTL, []uint64{0, 0x541d}, "EPERM"},
			{unix.SYS_CHMOD, []uint64{1, 0o644}, changed},
			{unix.SYS_CHMOD, []uint64{1, setID}, "EPERM"},
			{unix.SYS_FCHMOD, []uint64{1, high | unix.S_ISGID}, "EPERM"},
			{unix.SYS_FCHMODAT, []uint64{3, 1, setID}, "EPERM"},
			{unix.SYS_FCHMODAT2, []uint64{3, 1, setID}, "EPERM"},
			{unix.SYS_FCHMODAT2, []uint64{3, 1, 0o1777}, changed},
			{unix.SYS_CREAT, []uint64{1, 0o644}, made},
			{unix.SYS_CREAT, []uint64{1, setID}, "EPERM"},
			{unix.SYS_MKNOD, []uint64{1, unix.S_IFREG | setID}, "EPERM"},
			{unix.SYS_MKNODAT, []uint64{3, 1, unix.S_IFIFO | 0o600}, made},
			{unix.SYS_OPEN, []uint64{1, unix.O_RDONLY}, "allow"},
			{unix.SYS_OPEN, []uint64{1, unix.O_RDONLY, setID}, "allow"}, // the mode means nothing
			{unix.SYS_OPEN, []uint64{1, unix.O_WRONLY}, made},
			{unix.SYS_OPEN, []uint64{1, unix.O_WRONLY | unix.O_RDWR}, made}, // neither, for ioctl alone
			{unix.SYS_OPEN, []uint64{1, unix.O_RDONLY | unix.O_TRUNC}, made},
			{unix.SYS_OPEN, []uint64{1, high | unix.O_CREAT, setID}, "EPERM"},
			{unix.SYS_OPENAT, []uint64{3, 1, unix.O_CREAT, high | 0o644}, made},
			{unix.SYS_OPENAT, []uint64{3, 1, unix.O_TMPFILE | unix.O_RDWR, setID}, "EPERM"},
			{unix.SYS_OPENAT, []uint64{3, 1, unix.O_DIRECTORY}, "allow"},
		}.check(t, o)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, o := range every() {
		k := load(t, o)
		want := "allow"
		if o.Names {
			want = "notify"
		}
		for _, call := range named {
			if got := k.amd64(call); got != want {
				t.Fatalf("%+v: call %d: %s, want %s", o, call, got, want)
			}
		}
		want = "allow"
		if o.Supervised {
			want = "notify"
		}
		for _, call := range metadata {
			if got := k.amd64(call); got != want {
				t.Fatalf("%+v: call %d: %s, want %s", o, call, got, want)
			}
		}
		want = "EPERM"
		if o.SysV {
			want = "allow"
		}
		for _, call := range sysV {
			if got := k.amd64(call); got != want {
				t.Fatalf("%+v: call %d: %s, want %s", o, call, got, want)
			}
		}
	}
}

func TestSockets(t *testing.T) {
	t.Parallel()
	const cloexec = unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
	rows{ // nothing but connected pairs
		{unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM}, "EACCES"},
		{unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_STREAM}, "EACCES"},
		{unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_STREAM | cloexec}, "allow"},
		{unix.SYS_SOCKETPAIR, []uint64{high | unix.AF_UNIX, unix.SOCK_SEQPACKET}, "allow"},
		{unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM | cloexec}, "EACCES"},
		{unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_RAW}, "EACCES"}, // the kernel makes a datagram socket of it
		{unix.SYS_SOCKETPAIR, []uint64{unix.AF_INET, unix.SOCK_STREAM}, "EAFNOSUPPORT"},
	}.check(t, Options{})
	rows{ // the network is the run's own
		{unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM}, "allow"},
		{unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, "allow"},
		{unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_TCP}, "allow"},
		{unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM, 262}, "EPROTONOSUPPORT"}, // MPTCP
		{unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP}, "EPROTONOSUPPORT"},
		{unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, "allow"},
		{unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER}, "EPROTONOSUPPORT"},
		{unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT}, "EPROTONOSUPPORT"},
		{unix.SYS_SOCKET, []uint64{unix.AF_PACKET, unix.SOCK_RAW, 0}, "EAFNOSUPPORT"},
		{unix.SYS_SOCKET, []uint64{unix.AF_VSOCK, unix.SOCK_STREAM}, "EAFNOSUPPORT"},
		{unix.SYS_SOCKET, []uint64{unix.AF_ALG, unix.SOCK_SEQPACKET}, "EAFNOSUPPORT"},
		{unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM}, "allow"},
		{unix.SYS_CONNECT, nil, "allow"},
		{unix.SYS_LISTEN, nil, "allow"},
	}.check(t, Options{Sockets: true})
	rows{ // TCP over IPv4 in the machine's network, connected by the supervisor
		{unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM | cloexec, unix.IPPROTO_TCP}, "allow"},
		{unix.SYS_SOCKET, []uint64{unix.AF_INET, high | unix.SOCK_STREAM, 0}, "allow"},
		{unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_DGRAM, 0}, "EACCES"},
		{unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP}, "EACCES"},
		{unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, "EPROTONOSUPPORT"},
		{unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM, 262}, "EPROTONOSUPPORT"},
		{unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_STREAM, 0}, "EAFNOSUPPORT"},
		{unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 0}, "EACCES"},
		{unix.SYS_CONNECT, nil, "notify"},
		{unix.SYS_BIND, nil, "EACCES"},
		{unix.SYS_LISTEN, nil, "EACCES"},
		{unix.SYS_ACCEPT, nil, "EACCES"},
		{unix.SYS_ACCEPT4, nil, "EACCES"},
		{unix.SYS_SENDTO, []uint64{0, 0, 0, 0}, "allow"},
		{unix.SYS_SENDTO, []uint64{0, 0, 0, high | unix.MSG_FASTOPEN}, "ENOTSUP"},
		{unix.SYS_SENDMSG, []uint64{0, 0, unix.MSG_FASTOPEN | unix.MSG_NOSIGNAL}, "ENOTSUP"},
		{unix.SYS_SENDMMSG, []uint64{0, 0, 0, unix.MSG_FASTOPEN}, "ENOTSUP"},
		{unix.SYS_SETSOCKOPT, []uint64{0, unix.SOL_SOCKET, unix.SO_KEEPALIVE}, "allow"},
		{unix.SYS_SETSOCKOPT, []uint64{0, unix.IPPROTO_TCP, unix.TCP_NODELAY}, "allow"},
		{unix.SYS_SETSOCKOPT, []uint64{0, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT}, "ENOPROTOOPT"},
		{unix.SYS_SETSOCKOPT, []uint64{0, unix.IPPROTO_TCP, high | unix.TCP_REPAIR}, "ENOPROTOOPT"},
		{unix.SYS_SETSOCKOPT, []uint64{0, unix.IPPROTO_IP, unix.IP_OPTIONS}, "ENOPROTOOPT"},
	}.check(t, Options{Proxied: true})
}

func TestOtherProcesses(t *testing.T) {
	t.Parallel()
	rows{ // process 1 is what watches
		{unix.SYS_PRLIMIT64, []uint64{0}, "allow"},
		{unix.SYS_PRLIMIT64, []uint64{7}, "allow"},
		{unix.SYS_PRLIMIT64, []uint64{high | 1}, "EPERM"},
		{unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PROCESS, 1}, "EPERM"},
		{unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PROCESS, 0}, "allow"},
		{unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PGRP, 1}, "EPERM"},
		{unix.SYS_SETPRIORITY, []uint64{unix.PRIO_USER, 0}, "EPERM"},
		{unix.SYS_IOPRIO_SET, []uint64{1, 1}, "EPERM"},
		{unix.SYS_IOPRIO_SET, []uint64{1, 0}, "allow"},
		{unix.SYS_IOPRIO_SET, []uint64{3, 0}, "EPERM"},
		{unix.SYS_KILL, []uint64{1}, "allow"}, // it takes no signal that it does not want
	}.check(t, Options{First: true})
	common := rows{ // only the supervisor knows which are the run's own
		{unix.SYS_PRLIMIT64, []uint64{0}, "allow"},
		{unix.SYS_PRLIMIT64, []uint64{7}, "notify"},
		{unix.SYS_SCHED_SETAFFINITY, []uint64{1}, "notify"},
		{unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PROCESS, high}, "allow"},
		{unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PROCESS, 7}, "notify"},
		{unix.SYS_SETPRIORITY, []uint64{unix.PRIO_USER, 0}, "notify"},
		{unix.SYS_IOPRIO_SET, []uint64{1, 0}, "allow"},
		{unix.SYS_IOPRIO_SET, []uint64{3, 0}, "notify"},
		{unix.SYS_FCNTL, []uint64{0, unix.F_SETFL}, "allow"},
		{unix.SYS_FCNTL, []uint64{0, unix.F_SETOWN}, "EPERM"},
		{unix.SYS_FCNTL, []uint64{0, high | unix.F_SETOWN_EX}, "EPERM"},
		{unix.SYS_IOCTL, []uint64{0, fioSetOwn}, "EPERM"},
		{unix.SYS_IOCTL, []uint64{0, high | siocSetGroup}, "EPERM"},
		{unix.SYS_IOCTL, []uint64{0, unix.TIOCGWINSZ}, "allow"},
	}
	common.check(t, Options{Supervised: true})
	append(slices.Clone(common), rows{
		{unix.SYS_KILL, []uint64{1}, "notify"},
		{unix.SYS_TGKILL, []uint64{1, 1}, "notify"},
		{unix.SYS_RT_SIGQUEUEINFO, []uint64{1}, "notify"},
		{unix.SYS_PIDFD_SEND_SIGNAL, nil, "ENOSYS"},
	}...).check(t, Options{Supervised: true, Signals: true})
}

// TestEveryPathEnds: no data makes a program run off its end, and one option more never
// allows what was refused for another reason than that option's.
func TestEveryPathEnds(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	interesting := []uint64{0, 1, 2, 3, 7, 10, 16, 17, 0x5412, 0x8901, 0o4755, 0o100, 0o1101, 0x7e020000, 1<<32 - 1, high | 1}
	for _, o := range every() {
		k := load(t, o)
		for range 500 {
			args := make([]uint64, 6)
			for i := range args {
				args[i] = interesting[random.IntN(len(interesting))]
			}
			got := k.amd64(random.Uint32N(newest+8), args...)
			if got == "" || got[0] == '0' {
				t.Fatalf("%+v: %s", o, got)
			}
			if got == "notify" && !o.Supervised && !o.Names && (!o.Proxied || o.Sockets) {
				t.Fatalf("%+v: a call goes to a listener that is not there", o)
			}
		}
	}
}
