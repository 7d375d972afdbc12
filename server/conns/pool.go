package conns

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// reservedShare is the part of all slots that no single other machine gets: one
// eighth.
const reservedShare = 8

// Pool bounds the open connections. It is safe for concurrent use.
type Pool struct {
	max    int
	silent time.Duration

	mu   sync.Mutex // guards all below, and the fields of connections that say so
	open int
	from map[netip.Addr]int // connections of each other machine
	// strangers are the connections without an authenticated call, those first that
	// were silent longest.
	strangers *list.List
	// freed is closed when a connection has ended, and replaced.
	freed chan struct{}
}

// NewPool bounds open connections to max, and closes those of strangers that are
// silent for so long.
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
	// The pool's mu guards these.
	stranger *list.Element // nil once it is known or closed
	seen     time.Time     // when it was opened, or last heard of
	held     int           // streams of strangers that are open
	closed   bool
}

// remote is the peer's address, by which Of finds the connection again.
type remote struct {
	net.Addr
	conn *Conn
}

// RemoteAddr is what Of takes.
func (c *Conn) RemoteAddr() net.Addr { return remote{c.Conn.RemoteAddr(), c} }

// Of returns the connection that an address is of; nil when it is of none.
func Of(address net.Addr) *Conn {
	if r, ok := address.(remote); ok {
		return r.conn
	}
	return nil
}

// Known says that a call on the connection was authenticated. A nil connection is
// nobody's.
func (c *Conn) Known() {
	if c == nil || c.known.Load() {
		return
	}
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	c.known.Store(true)
	c.pool.forget(c)
}

// Hold counts a stream that a stranger opens, and refuses more than limit of them
// at a time. While it has one, silence does not close the connection. Release must
// follow when it returns true. A nil connection takes all.
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

// Release ends what Hold began.
func (c *Conn) Release() {
	if c == nil {
		return
	}
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	c.held--
	c.heard()
}

// heard puts a stranger behind the others.
func (c *Conn) heard() {
	c.seen = time.Now()
	if c.stranger != nil {
		c.pool.strangers.MoveToBack(c.stranger)
	}
}

// Close gives the slot free.
func (c *Conn) Close() error {
	c.pool.mu.Lock()
	c.pool.remove(c)
	c.pool.mu.Unlock()
	return c.Conn.Close()
}

// add takes a connection in if there is room; victim is one that has lost its slot
// to it, and must be closed.
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

// overShare tells whether another machine has all that it may have.
func (p *Pool) overShare(address netip.Addr) bool {
	return address.IsValid() && p.from[address] >= max(p.max-p.max/reservedShare, 1)
}

// most is how many connections the machine with the most of them has, of those that
// have a stranger's.
func (p *Pool) most() int {
	most := 0
	for e := p.strangers.Front(); e != nil; e = e.Next() {
		most = max(most, p.from[e.Value.(*Conn).address])
	}
	return most
}

// oldest returns the stranger's connection that was silent longest among some; one
// with open streams only when there is no other. Nil when there is none.
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

// remove gives a slot free, once.
func (p *Pool) remove(c *Conn) {
	if c.closed {
		return
	}
	c.closed = true
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

// forget takes a connection off the strangers.
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
