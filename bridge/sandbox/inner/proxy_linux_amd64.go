package inner

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// listenBacklog is how many connections wait until the server accepts them.
const listenBacklog = 128

// passListener listens in the network of the sandbox and sends the listener to the server,
// which alone accepts: nothing else of this network leads out.
func (s *supervisor) passListener() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	if err := firstOf(unix.Bind(socket, loopback(s.spec.Proxy)), unix.Listen(socket, listenBacklog)); err != nil {
		return err
	}
	return unix.Sendmsg(fdControl, []byte{ListenerMark}, unix.UnixRights(socket), nil, 0)
}

// ListenerMark is the byte with which a listener comes to the server. No message begins with
// it: that would be too long.
const ListenerMark = 0xff

// connect connects a socket of the caller's to the proxy, and to nothing else: where to is
// not read from the caller's memory again.
func (c *caller) connect() error {
	var name [unix.SizeofSockaddrInet4]byte
	if c.int(2) < len(name) {
		return unix.EINVAL
	}
	if err := c.memory(c.arg(1), name[:]); err != nil {
		return err
	}
	proxy := loopback(c.s.spec.Proxy)
	port := int(binary.BigEndian.Uint16(name[2:]))
	if binary.NativeEndian.Uint16(name[:]) != unix.AF_INET || [4]byte(name[4:8]) != proxy.Addr || port != proxy.Port || port == 0 {
		return unix.EACCES
	}
	socket, err := c.descriptor(0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	for option, want := range map[int]int{unix.SO_DOMAIN: unix.AF_INET, unix.SO_PROTOCOL: unix.IPPROTO_TCP} {
		if got, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, option); err != nil || got != want {
			return unix.EACCES
		}
	}
	return unix.Connect(socket, proxy)
}
