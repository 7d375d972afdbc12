package conns_test

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/server/conns"
)

// dialed is one end of a connection in memory that says where it comes from.
type dialed struct {
	net.Conn
	from net.Addr
}

func (d dialed) RemoteAddr() net.Addr { return d.from }

// network accepts what is dialed.
type network struct {
	tb       testing.TB
	incoming chan net.Conn
	listener net.Listener
}

func (n *network) Accept() (net.Conn, error) {
	if conn, open := <-n.incoming; open {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (n *network) Close() error { close(n.incoming); return nil }

func (n *network) Addr() net.Addr { return &net.UnixAddr{} }

func newNetwork(tb testing.TB, slots int, silent time.Duration) *network {
	n := &network{tb: tb, incoming: make(chan net.Conn)}
	n.listener = conns.NewPool(slots, silent).Listener(n)
	tb.Cleanup(func() { _ = n.listener.Close() })
	return n
}

// connection has both ends.
type connection struct {
	client, server net.Conn
}

// dial connects from a machine, or from this one when it is empty. The connection
// is not accepted yet.
func (n *network) dial(machine string) *connection {
	client, server := net.Pipe()
	var from net.Addr = &net.UnixAddr{Name: "@"}
	if machine != "" {
		from = net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(machine), 1))
	}
	go func() { n.incoming <- dialed{server, from} }()
	n.tb.Cleanup(func() { _ = client.Close() })
	return &connection{client: client}
}

// open connects and accepts.
func (n *network) open(machine string) *connection {
	n.tb.Helper()
	c := n.dial(machine)
	conn, err := n.listener.Accept()
	if err != nil {
		n.tb.Fatal(err)
	}
	c.server = conn
	return c
}

func (c *connection) known() { conns.Of(c.server.RemoteAddr()).Known() }

// closed reports whether the server has closed the connection.
func (c *connection) closed() bool {
	_ = c.client.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := c.client.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

func states(all []*connection) (closed []bool) {
	for _, c := range all {
		closed = append(closed, c.closed())
	}
	return closed
}

func wantClosed(tb testing.TB, what string, all []*connection, want ...int) {
	tb.Helper()
	for i, closed := range states(all) {
		should := false
		for _, w := range want {
			should = should || w == i
		}
		if closed != should {
			tb.Errorf("%s: connection %d closed is %v", what, i, closed)
		}
	}
}

// When all slots are taken the oldest stranger goes, then none but strangers do,
// and a connection waits when there is none.
func TestFullPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, 3, time.Hour)
		all := []*connection{n.open(""), n.open(""), n.open("")}
		all[0].known()
		all = append(all, n.open(""))
		wantClosed(t, "the oldest stranger", all, 1)
		all[2].known()
		all[3].known()
		waiting := n.dial("")
		accepted := make(chan struct{})
		go func() {
			defer close(accepted)
			_, _ = n.listener.Accept()
		}()
		synctest.Wait()
		select {
		case <-accepted:
			t.Error("a connection too many was accepted")
		default:
		}
		wantClosed(t, "connections with a call", all, 1)
		_ = all[0].server.Close()
		<-accepted
		if waiting.closed() {
			t.Error("the connection that waited is closed")
		}
	})
}

// The machine with the most connections makes room for others, and none takes the
// last eighth of the slots.
func TestSharesOfMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const crowd, other, third = "10.0.0.1", "10.0.0.2", "10.0.0.3"
		n := newNetwork(t, 8, time.Hour)
		quiet := n.open(other)
		var all []*connection
		for range 7 {
			all = append(all, n.open(crowd))
		}
		wantClosed(t, "all slots", all)
		all = append(all, n.open(crowd))
		wantClosed(t, "beyond its share a machine replaces its own", all, 0)
		n.open(third)
		n.open("")
		wantClosed(t, "who has the most makes room", all, 0, 1, 2)
		if quiet.closed() {
			t.Error("the oldest connection made room, of a machine with one")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, 8, time.Hour)
		for range 7 {
			n.open("10.0.0.1").known()
		}
		accepted := make(chan struct{})
		go func() {
			defer close(accepted)
			_, _ = n.listener.Accept()
		}()
		refused := n.dial("10.0.0.1")
		synctest.Wait()
		if !refused.closed() {
			t.Error("a machine takes the last slot")
		}
		taken := n.dial("10.0.0.2")
		<-accepted
		if taken.closed() {
			t.Error("another machine does not get the last slot")
		}
	})
}

// Silence closes strangers only, and not while they hold a stream.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, 8, time.Minute)
		all := []*connection{n.open(""), n.open("10.0.0.1"), n.open(""), n.open("")}
		all[1].known()
		holding := conns.Of(all[2].server.RemoteAddr())
		if !holding.Hold(1) || holding.Hold(1) {
			t.Error("the streams of a connection are not bounded")
		}
		time.Sleep(30 * time.Second)
		if late := conns.Of(all[3].server.RemoteAddr()); late.Hold(1) {
			late.Release()
		}
		time.Sleep(46 * time.Second)
		wantClosed(t, "after a minute", all, 0)
		time.Sleep(31 * time.Second)
		wantClosed(t, "a minute after the last call", all, 0, 3)
		holding.Release()
		time.Sleep(76 * time.Second)
		wantClosed(t, "a minute after the last stream", all, 0, 2, 3)
	})
}

// What is no connection of a pool is nobody's, and bounded by nothing.
func TestOfNobody(t *testing.T) {
	c := conns.Of(&net.TCPAddr{})
	c.Known()
	if c != nil || !c.Hold(0) {
		t.Error("a connection without a pool is bounded")
	}
	c.Release()
}
