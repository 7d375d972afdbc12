package attack

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// networkAttacks are those on networks and sockets.
var networkAttacks = map[string]attempt{
	"tcp-server": func(w World) error { return dials("tcp", fmt.Sprint("127.0.0.1:", w.Server)) },
	"tcp6":       func(w World) error { return dials("tcp", fmt.Sprint("[::ffff:127.0.0.1]:", w.Server)) },
	"tcp-other":  func(w World) error { return dials("tcp", fmt.Sprint("127.0.0.2:", w.Port)) },
	"tcp-any":    func(w World) error { return dials("tcp", fmt.Sprint("0.0.0.0:", w.Server)) },
	"udp": func(w World) error {
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
	"fastopen": func(w World) error {
		n, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return unix.Sendto(n, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: w.Server, Addr: [4]byte{127, 0, 0, 1}})
	},
	"mptcp": func(w World) error {
		n, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 262)
		if err != nil {
			return err
		}
		return unix.Connect(n, &unix.SockaddrInet4{Port: w.Server, Addr: [4]byte{127, 0, 0, 1}})
	},
	"unix-path":     func(w World) error { return dials("unix", w.out("socket")) },
	"unix-abstract": func(w World) error { return dials("unix", "@"+w.Abstract) },
	"unix-in-ws":    func(w World) error { return dials("unix", w.work("socket")) },
	"unix-dgram": func(w World) error {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return unix.Sendto(pair[0], []byte("x"), 0, &unix.SockaddrUnix{Name: w.out("datagrams")})
	},
	"netlink":       func(World) error { return socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT) },
	"netlink-nf":    func(World) error { return socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER) },
	"netlink-audit": func(World) error { return socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT) },
	"netlink-diag":  func(World) error { return socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG) },
	"icmp":          func(World) error { return socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW) },
	"xdp":           func(World) error { return socket(unix.AF_XDP, unix.SOCK_RAW, 0) },
	"bluetooth":     func(World) error { return socket(unix.AF_BLUETOOTH, unix.SOCK_RAW, 1) },
	"tipc":          func(World) error { return socket(unix.AF_TIPC, unix.SOCK_STREAM, 0) },
	"packet":        func(World) error { return socket(unix.AF_PACKET, unix.SOCK_RAW, 0) },
	"raw":           func(World) error { return socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) },
	"vsock":         func(World) error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) },
	"alg":           func(World) error { return socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) },
	"sctp":          func(World) error { return socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP) },
	"udplite":       func(World) error { return socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE) },
	"interfaces":    otherInterfaces,
	"proc-net": func(World) error {
		b, err := os.ReadFile("/proc/net/route")
		if err == nil && strings.Count(string(b), "\n") < 2 {
			return errStopped
		}
		return err
	},
	"bind-public": func(w World) error { return bindsOutside(w) },
}

// otherInterfaces looks for networks beyond the loopback.
func otherInterfaces(World) error {
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
func bindsOutside(w World) error {
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
