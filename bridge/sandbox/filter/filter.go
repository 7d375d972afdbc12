// Package filter makes the seccomp programs that confined processes run under.
//
// A program allows the known system calls except the ones that [Options] refuse. Calls of
// another architecture end the process. Calls of the x32 ABI, and calls newer than this
// package, fail with ENOSYS. The arguments of some calls are checked. Arguments that the
// kernel takes as 32 bits are compared as 32 bits: a comparison of 64 lets TIOCSTI|1<<32
// pass.
//
// Caveats: only amd64 has a table. A program sees numbers, never what a pointer leads
// to: calls that are decided by a path go to a supervisor ([Options.Supervised]).
package filter

import "errors"

// ErrUnsupported: there is no table for this machine.
var ErrUnsupported = errors.New("filter: no table of system calls for this architecture")

// Options says what a program refuses beyond what it always does.
type Options struct {
	// Sockets lets the process make sockets, in its own network: UNIX, IPv4, IPv6
	// and the route table. Without it only pairs of connected UNIX sockets can be made.
	Sockets bool
	// Proxied lets the process make sockets of TCP over IPv4 in the network of the machine,
	// and sends what they connect to to the listener of the program. They can't listen.
	Proxied bool
	// SysV lets it use System V memory, semaphores and queues, in a namespace of its
	// own.
	SysV bool
	// First refuses to change how process 1 runs, its limits and its shares: in its own
	// process namespace it is the watcher of the process.
	First bool
	// Supervised sends calls that change metadata by path, and calls that change how
	// another process runs, to the listener of the program.
	Supervised bool
	// Signals sends signals to the listener, too.
	Signals bool
	// Names sends the calls that make, move or remove names, open something to be changed,
	// or change it by its path, to the listener of the program.
	Names bool
}

// Instruction is one of a classic BPF program, as the kernel takes it.
type Instruction struct {
	Code   uint16
	Jt, Jf uint8
	K      uint32
}
