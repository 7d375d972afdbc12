package servertest

import (
	"sync"
	"time"
)

// Clock is a time that only the test moves. All methods are safe for
// concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time // guarded by mu
}

// NewClock returns a clock that stands at noon of 1 March 2026, UTC.
func NewClock() *Clock {
	return &Clock{now: time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)}
}

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock forward.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
