package lifetime

import "sync"

// Users counts who uses something that will be released, and releases it once, when
// it is closed and the last user has left. Unlike with a RWMutex, a user who enters
// again while another wants to close it is refused and does not wait for ever. All
// methods are safe for concurrent use.
type Users struct {
	// Release runs once, on the goroutine that closes or leaves last. It is set
	// before anybody enters.
	Release func()

	mu     sync.Mutex
	inside int  // guarded by mu
	closed bool // guarded by mu
}

// Enter reports whether it was not closed yet. One who entered must leave.
func (u *Users) Enter() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return false
	}
	u.inside++
	return true
}

// Leave takes one who entered away.
func (u *Users) Leave() {
	u.mu.Lock()
	u.inside--
	last := u.closed && u.inside == 0
	u.mu.Unlock()
	if last {
		u.Release()
	}
}

// Close refuses further users and reports whether this call did it.
func (u *Users) Close() bool {
	u.mu.Lock()
	first := !u.closed
	last := first && u.inside == 0
	u.closed = true
	u.mu.Unlock()
	if last {
		u.Release()
	}
	return first
}
