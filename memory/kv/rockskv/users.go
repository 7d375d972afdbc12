//go:build cgo && !norocksdb

package rockskv

import "sync"

// users counts who uses something that will be released, and releases it once, when
// it is closed and the last user has left. Unlike with a RWMutex, a user who enters
// again while another wants to close it is refused and does not wait for ever.
type users struct {
	release func()

	mu     sync.Mutex
	inside int  // guarded by mu
	closed bool // guarded by mu
}

// enter tells whether it was not closed yet. One who entered must leave.
func (u *users) enter() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return false
	}
	u.inside++
	return true
}

func (u *users) leave() {
	u.mu.Lock()
	u.inside--
	last := u.closed && u.inside == 0
	u.mu.Unlock()
	if last {
		u.release()
	}
}

// close lets nobody in any more and tells whether this call did it.
func (u *users) close() bool {
	u.mu.Lock()
	first := !u.closed
	last := first && u.inside == 0
	u.closed = true
	u.mu.Unlock()
	if last {
		u.release()
	}
	return first
}
