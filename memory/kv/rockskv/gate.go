//go:build cgo && !norocksdb

package rockskv

import "sync"

// gate counts who is inside something that will be released, and releases it
// once, when the gate is shut and the last one has left. Unlike a RWMutex it
// lets one who is inside enter again while another wants to shut it.
type gate struct {
	release func()

	mu     sync.Mutex
	inside int  // guarded by mu
	closed bool // guarded by mu
}

// enter tells whether the gate was open. One who entered must leave.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.inside++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	g.inside--
	last := g.closed && g.inside == 0
	g.mu.Unlock()
	if last {
		g.release()
	}
}

// shut closes the gate and tells whether this call did it.
func (g *gate) shut() bool {
	g.mu.Lock()
	first := !g.closed
	last := first && g.inside == 0
	g.closed = true
	g.mu.Unlock()
	if last {
		g.release()
	}
	return first
}
