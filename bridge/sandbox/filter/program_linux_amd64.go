package filter

import (
	"fmt"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Where seccomp_data has what, in bytes.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

const (
	// newest is the newest call that the tables know.
	newest = unix.SYS_FILE_SETATTR
	// setIDBits are the modes by which a file lends its owner's rights.
	setIDBits = unix.S_ISUID | unix.S_ISGID
	// creates are the flags with which open looks at its mode.
	creates = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
	// writes are the flags with which open lets something be changed.
	writes = unix.O_WRONLY | unix.O_RDWR | unix.O_TRUNC
	// typeBits masks a socket's type without its flags.
	typeBits = 0xf
)

func errno(e unix.Errno) bpf.RetConstant {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(e)}
}

var (
	allow  = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	kill   = bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS}
	notify = bpf.RetConstant{Val: unix.SECCOMP_RET_USER_NOTIF}
)

// program is a program that is being written.
type program struct{ code []bpf.Instruction }

func (p *program) add(code ...bpf.Instruction) { p.code = append(p.code, code...) }

// answer gives each of the calls the same answer.
func (p *program) answer(with bpf.RetConstant, calls ...uint32) {
	for _, call := range calls {
		p.when(call, with)
	}
}

// when runs block, which has to end the program, for one call.
func (p *program) when(call uint32, block ...bpf.Instruction) {
	p.add(bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: uint8(len(block))})
	p.add(block...)
}

// arg loads the lower 32 bits of an argument, counted from 0.
func arg(n uint32) bpf.LoadAbsolute { return bpf.LoadAbsolute{Off: offsetArgs + 8*n, Size: 4} }

// Assemble makes a program.
func Assemble(o Options) ([]Instruction, error) {
	p := &program{}
	p.add(
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AUDIT_ARCH_X86_64, SkipTrue: 1},
		kill,
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: newest, SkipTrue: 1},
		errno(unix.ENOSYS), // including the x32 ABI's, which are larger
	)
	p.answer(errno(unix.ENOSYS), absent...)
	p.answer(errno(unix.EPERM), refused...)
	if !o.SysV {
		p.answer(errno(unix.EPERM), sysV...)
	}
	p.namespaces()
	p.controls(o)
	p.modes(o)
	p.sockets(o)
	if o.Names {
		p.answer(notify, named...)
	}
	switch {
	case o.Supervised:
		p.supervised(o)
	case o.First:
		p.first()
	}
	p.add(allow)
	raw, err := bpf.Assemble(p.code)
	if err != nil {
		return nil, fmt.Errorf("filter: %w", err)
	}
	out := make([]Instruction, len(raw))
	for i, r := range raw {
		out[i] = Instruction{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return out, nil
}

// namespaces refuses to make them. clone3 hides its flags behind a pointer: it does
// not exist, and libraries then use clone.
func (p *program) namespaces() {
	const all = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	p.when(unix.SYS_CLONE, arg(0), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: all, SkipFalse: 1}, errno(unix.EPERM), allow)
}

// Of a socket, these set who gets its signals, as F_SETOWN does.
const fioSetOwn, siocSetGroup = 0x8901, 0x8902

// controls refuses what puts input into a terminal and, for a supervised process, what
// chooses who gets the signals of a socket.
func (p *program) controls(o Options) {
	const tioclinux, tioccons = 0x541c, 0x541d
	requests := []uint32{unix.TIOCSTI, tioclinux, tioccons}
	if o.Supervised {
		requests = append(requests, fioSetOwn, siocSetGroup)
	}
	p.when(unix.SYS_IOCTL, oneOf(1, errno(unix.EPERM), allow, requests...)...)
}

// oneOf answers with in when an argument is one of the values, else with out.
func oneOf(n uint32, in, out bpf.RetConstant, values ...uint32) []bpf.Instruction {
	code := []bpf.Instruction{arg(n)}
	for i, v := range values {
		code = append(code, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(len(values) - i)})
	}
	return append(code, out, in)
}

// modes refuses set-user-id and set-group-id bits: a root server's tool could leave a
// program that lends root's rights in the workspace.
func (p *program) modes(o Options) {
	changed, made := allow, allow
	if o.Supervised || o.Names {
		changed = notify
	}
	if o.Names {
		made = notify
	}
	bits := func(n uint32, answer bpf.RetConstant) []bpf.Instruction {
		return []bpf.Instruction{arg(n), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: setIDBits, SkipFalse: 1}, errno(unix.EPERM), answer}
	}
	p.when(unix.SYS_CHMOD, bits(1, changed)...)
	p.when(unix.SYS_FCHMOD, bits(1, changed)...)
	p.when(unix.SYS_FCHMODAT, bits(2, changed)...)
	p.when(unix.SYS_FCHMODAT2, bits(2, changed)...)
	p.when(unix.SYS_CREAT, bits(1, made)...)
	p.when(unix.SYS_MKNOD, bits(1, made)...)
	p.when(unix.SYS_MKNODAT, bits(2, made)...)
	opened := func(n uint32) []bpf.Instruction {
		return slices.Concat([]bpf.Instruction{
			arg(n),
			bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: creates, SkipTrue: 3},
			bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: writes, SkipFalse: 1},
			made,
			allow,
		}, bits(n+1, made))
	}
	p.when(unix.SYS_OPEN, opened(1)...)
	p.when(unix.SYS_OPENAT, opened(2)...)
}

func (p *program) sockets(o Options) {
	pair := oneOf(0, allow, errno(unix.EAFNOSUPPORT), unix.AF_UNIX)
	if !o.Sockets {
		// A datagram socket of a pair can send to any other one by path.
		pair = slices.Concat(
			[]bpf.Instruction{arg(0), bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipTrue: 1}, errno(unix.EAFNOSUPPORT)},
			[]bpf.Instruction{
				arg(1),
				bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: typeBits},
				bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 2},
				bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_SEQPACKET, SkipTrue: 1},
				errno(unix.EACCES), allow,
			},
		)
		p.when(unix.SYS_SOCKETPAIR, pair...)
		if o.Proxied {
			p.proxied()
		} else {
			p.when(unix.SYS_SOCKET, errno(unix.EACCES))
		}
		return
	}
	p.when(unix.SYS_SOCKETPAIR, pair...)
	inet := oneOf(2, allow, errno(unix.EPROTONOSUPPORT), 0, unix.IPPROTO_ICMP, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMPV6)
	netlink := oneOf(2, allow, errno(unix.EPROTONOSUPPORT), unix.NETLINK_ROUTE)
	p.when(unix.SYS_SOCKET, slices.Concat(
		[]bpf.Instruction{
			arg(0),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipTrue: 4},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 4},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET6, SkipTrue: 3},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_NETLINK, SkipTrue: 2 + uint8(len(inet))},
			errno(unix.EAFNOSUPPORT),
			allow,
		},
		inet, netlink,
	)...)
}

// shares are the calls that change how a process runs, of which 0 is the caller.
var shares = []uint32{
	unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR,
}

// ranks are the calls that do so for a process, a group or a user, with the value that
// means a process; those for a group and a user follow it.
var ranks = map[uint32]uint32{unix.SYS_SETPRIORITY: 0, unix.SYS_IOPRIO_SET: 1}

// first keeps process 1 from being held up: without descriptors it sees no limit
// exceeded.
func (p *program) first() {
	for _, call := range shares {
		p.when(call, oneOf(0, errno(unix.EPERM), allow, 1)...)
	}
	for call, process := range ranks {
		user := []bpf.Instruction{arg(0), bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: process + 1, SkipTrue: 1}, errno(unix.EPERM)}
		p.when(call, slices.Concat(user, oneOf(1, errno(unix.EPERM), allow, 1))...)
	}
}

// proxied allows sockets of TCP over IPv4, which the supervisor connects. Whatever else
// chooses where bytes go is refused: to bind and to listen, to send while connecting, and
// the options that route.
func (p *program) proxied() {
	p.when(unix.SYS_SOCKET, slices.Concat(
		[]bpf.Instruction{
			arg(0),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 3},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET6, SkipTrue: 1},
			errno(unix.EACCES), errno(unix.EAFNOSUPPORT),
			arg(1),
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: typeBits},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 1},
			errno(unix.EACCES),
		},
		oneOf(2, allow, errno(unix.EPROTONOSUPPORT), 0, unix.IPPROTO_TCP),
	)...)
	p.answer(notify, unix.SYS_CONNECT)
	p.answer(errno(unix.EACCES), unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4)
	for call, flags := range map[uint32]uint32{unix.SYS_SENDTO: 3, unix.SYS_SENDMSG: 2, unix.SYS_SENDMMSG: 3} {
		p.when(call, arg(flags), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.MSG_FASTOPEN, SkipFalse: 1}, errno(unix.EOPNOTSUPP), allow)
	}
	p.when(unix.SYS_SETSOCKOPT, slices.Concat(
		[]bpf.Instruction{
			arg(1),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOL_SOCKET, SkipFalse: 1},
			allow,
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipTrue: 1},
			errno(unix.ENOPROTOOPT), // source routes are options of IP
		},
		oneOf(2, errno(unix.ENOPROTOOPT), allow, unix.TCP_FASTOPEN, unix.TCP_FASTOPEN_CONNECT, unix.TCP_REPAIR, unix.TCP_ULP),
	)...)
}

// supervised sends to the listener what Landlock does not see.
func (p *program) supervised(o Options) {
	p.answer(notify, metadata...)
	// Of these, 0 is the caller.
	self := func(n uint32) []bpf.Instruction { return oneOf(n, allow, notify, 0) }
	for _, call := range shares {
		p.when(call, self(0)...)
	}
	// Of these it is the caller only where a process is named, not its user.
	for call, process := range ranks {
		p.when(call, slices.Concat([]bpf.Instruction{arg(0), bpf.JumpIf{Cond: bpf.JumpEqual, Val: process, SkipTrue: 1}, notify}, self(1))...)
	}
	// The owner of a descriptor gets any signal that is chosen for it.
	p.when(unix.SYS_FCNTL, oneOf(1, errno(unix.EPERM), allow, unix.F_SETOWN, unix.F_SETOWN_EX)...)
	if !o.Signals {
		return
	}
	p.answer(notify, unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO)
	p.answer(errno(unix.ENOSYS), unix.SYS_PIDFD_SEND_SIGNAL)
}
