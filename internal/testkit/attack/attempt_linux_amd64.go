package attack

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// World is what attacks are made on. The attacker gets it by its environment.
type World struct {
	Work, Outside, Other string // the workspace, a folder next to it, another agent's
	Victim, Mortal       int    // processes outside; Mortal may be killed
	Server, Port         int    // TCP ports on 127.0.0.1 (and ::1), 127.0.0.2
	UDP                  int    // echoes
	Abstract, Shm        string // the name of an abstract socket; of a file in /dev/shm
	SysV                 int    // id of a segment
	FirstStage           int    // the parent of what runs without a pid namespace
	Inherited            int    // descriptors that came with the attacker's own three
	Store                string // a file of the server's store
}

func (w World) out(name string) string  { return filepath.Join(w.Outside, name) }
func (w World) work(name string) string { return filepath.Join(w.Work, name) }
func (w World) helper(name string) string {
	return "/proc/" + strconv.Itoa(w.FirstStage) + "/" + name
}
func (w World) proc(name string) string { return "/proc/" + strconv.Itoa(w.Victim) + "/" + name }

// attempt tries one thing. Nil is that it was reached; an error is what stopped it.
type attempt func(w World) error

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

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }
