package conns

import (
	"container/list"
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// reservedShare is the part of all slots (one in 8) that no single other machine can
// take.
const reservedShare = 8

// Pool bounds the open connections. It is safe for concurrent use.
type Pool struct {
	max    int
	silent time.Duration

	mu   sync.Mutex // guards all below, and the fields of connections that say so
	open int
	from map[netip.Addr]int // connections of each other machine
	// strangers are the connections without an authenticated call, the one that was
	// silent longest first.
	strangers *list.List
	// freed is closed when a connection has ended, and replaced.
	freed chan struct{}
}

// NewPool returns a pool of max connections. It closes connections of strangers that were
// silent for the given time.
func NewPool(maxOpen int, silent time.Duration) *Pool {
	return &Pool{
		max: maxOpen, silent: silent, from: make(map[netip.Addr]int), strangers: list.New(), freed: make(chan struct{}),
	}
}

// Conn is an accepted connection.
type Conn struct {
	net.Conn
	pool    *Pool
	address netip.Addr // of another machine; zero on this one
	known   atomic.Bool
	// open ends when the connection is closed.
	open context.Context //nolint:containedctx // it is that of the connection
	end  context.CancelFunc
	// The pool's mu guards these.
	stranger *list.Element // nil once it is known or closed
	seen     time.Time     // when it was opened, or last used
	held     int           // streams of strangers that are open
	closed   bool
}

func newConn(raw net.Conn, pool *Pool) *Conn {
	c := &Conn{Conn: raw, pool: pool, address: machineOf(raw.RemoteAddr())}
	c.open, c.end = context.WithCancel(context.Background())
	return c
}

// remote is the peer's address, by which Of finds the connection again.
type remote struct {
	net.Addr
	conn *Conn
}

// RemoteAddr is what Of takes.
func (c *Conn) RemoteAddr() net.Addr { return remote{c.Conn.RemoteAddr(), c} }

// Of returns the connection with an address; nil if there is none.
func Of(address net.Addr) *Conn {
	if r, ok := address.(remote); ok {
		return r.conn
	}
	return nil
}

// Known is called when a call on the connection was authenticated. On a nil connection
// it does nothing.
func (c *Conn) Known() {
	if c == nil || c.known.Load() {
		return
	}
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	c.known.Store(true)
	c.pool.forget(c)
}

// Hold counts a stream of a stranger; it returns false if limit of them are open. A
// connection with an open stream is not closed for silence. Call Release if it returns
// true. A nil connection has no limit.
func (c *Conn) Hold(limit int) bool {
	if c == nil {
		return true
	}
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	if c.held >= limit {
		return false
	}
	c.held++
	c.heard()
	return true
}

// Release counts a stream out that Hold has counted.
func (c *Conn) Release() {
	if c == nil {
		return
	}
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	c.held--
	c.heard()
}

// heard notes that a stranger was not silent.
func (c *Conn) heard() {
	c.seen = time.Now()
	if c.stranger != nil {
		c.pool.strangers.MoveToBack(c.stranger)
	}
}

// Close closes the connection and frees its slot.
func (c *Conn) Close() error {
	c.pool.mu.Lock()
	c.pool.remove(c)
	c.pool.mu.Unlock()
	return c.Conn.Close()
}

// AtClose has f called, on its own goroutine, once the connection is closed. The
// returned function takes that back. A nil connection is never closed.
func (c *Conn) AtClose(f func()) (stop func() bool) {
	if c == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(c.open, f)
}

// add takes a slot for a connection, if there is one. If victim is set, its slot was
// taken, and the caller closes it.
func (p *Pool) add(c *Conn) (added bool, victim *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.overShare(c.address):
		victim = p.oldest(func(s *Conn) bool { return s.address == c.address })
	case p.open >= p.max:
		most := p.most()
		victim = p.oldest(func(s *Conn) bool { return p.from[s.address] == most })
	default:
		p.enter(c)
		return true, nil
	}
	if victim == nil {
		return false, nil
	}
	p.remove(victim)
	p.enter(c)
	return true, victim
}

// overShare reports whether another machine has used up its share.
func (p *Pool) overShare(address netip.Addr) bool {
	return address.IsValid() && p.from[address] >= max(p.max-p.max/reservedShare, 1)
}

// most returns the number of connections of the machine that has the most, among those
// with a stranger's connection.
func (p *Pool) most() int {
	most := 0
	for e := p.strangers.Front(); e != nil; e = e.Next() {
		most = max(most, p.from[e.Value.(*Conn).address])
	}
	return most
}

// oldest returns, among some connections, the stranger's that was silent longest. It
// prefers those without open streams. Nil when there is none.
func (p *Pool) oldest(among func(*Conn) bool) *Conn {
	var held *Conn
	for e := p.strangers.Front(); e != nil; e = e.Next() {
		c := e.Value.(*Conn)
		switch {
		case !among(c):
		case c.held == 0:
			return c
		case held == nil:
			held = c
		}
	}
	return held
}

func (p *Pool) enter(c *Conn) {
	p.open++
	if c.address.IsValid() {
		p.from[c.address]++
	}
	c.seen = time.Now()
	c.stranger = p.strangers.PushBack(c)
}

// remove frees a slot, once.
func (p *Pool) remove(c *Conn) {
	if c.closed {
		return
	}
	c.closed = true
	c.end()
	p.forget(c)
	p.open--
	if c.address.IsValid() {
		if p.from[c.address]--; p.from[c.address] == 0 {
			delete(p.from, c.address)
		}
	}
	close(p.freed)
	p.freed = make(chan struct{})
}

// forget removes a connection from the strangers.
func (p *Pool) forget(c *Conn) {
	if c.stranger != nil {
		p.strangers.Remove(c.stranger)
		c.stranger = nil
	}
}

// silentSince returns the strangers' connections on which nothing is open and
// nothing was heard since a time.
func (p *Pool) silentSince(at time.Time) (silent []*Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for e := p.strangers.Front(); e != nil; e = e.Next() {
		c := e.Value.(*Conn)
		if c.seen.After(at) {
			break
		}
		if c.held == 0 {
			silent = append(silent, c)
		}
	}
	return silent
}
