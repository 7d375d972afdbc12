package conns

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// looks is how often the pool looks for silent strangers within the time that one may
// be silent.
const looks = 8

// listener accepts connections into a pool.
type listener struct {
	net.Listener
	pool *Pool
	once sync.Once
	done chan struct{}
}

// Listener accepts connections of inner into the pool. Closing it ends the pool's
// background work.
func (p *Pool) Listener(inner net.Listener) net.Listener {
	l := &listener{Listener: inner, pool: p, done: make(chan struct{})}
	go l.sweep()
	return l
}

// Close stops accepting. Connections stay open.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

// Accept waits for a connection and for a slot. A connection of a machine that has used
// up its share is closed.
func (l *listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := newConn(raw, l.pool)
		if l.admit(c) {
			return c, nil
		}
		c.end()
		_ = raw.Close()
	}
}

// admit waits for a slot, unless the machine has its share, or the listener closes.
func (l *listener) admit(c *Conn) bool {
	for {
		l.pool.mu.Lock()
		freed, over := l.pool.freed, l.pool.overShare(c.address)
		l.pool.mu.Unlock()
		added, victim := l.pool.add(c)
		if victim != nil {
			_ = victim.Conn.Close()
		}
		if added || over {
			return added
		}
		select {
		case <-freed:
		case <-l.done:
			return false
		}
	}
}

// sweep closes the connections of strangers that are silent too long.
func (l *listener) sweep() {
	ticker := time.NewTicker(max(l.pool.silent/looks, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-l.done:
			return
		case <-ticker.C:
		}
		for _, c := range l.pool.silentSince(time.Now().Add(-l.pool.silent)) {
			_ = c.Close()
		}
	}
}

// machineOf returns the machine of an address; zero if it is this one.
func machineOf(address net.Addr) netip.Addr {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	if ip.IsLoopback() {
		return netip.Addr{}
	}
	return ip
}
