package embed

import (
	"sync"
	"time"
)

const (
	// breakAfter is how many failures in a row open the breaker.
	breakAfter = 5
	// firstRest is how long it stays open at first; the time doubles while the
	// request that is let through afterwards fails.
	firstRest = 5 * time.Second
	// maxRest bounds that, so that a server that is back is found soon.
	maxRest = time.Minute
)

// breaker keeps requests from a server that keeps failing.
type breaker struct {
	mu       sync.Mutex // guards the fields below
	failures int        // in a row
	rest     time.Duration
	until    time.Time // open until then
	probing  bool      // one request is under way, to see
}

func newBreaker() *breaker { return &breaker{} }

// enter lets a request through or returns ErrOpen. Whoever is let through says
// how it went.
func (b *breaker) enter(now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < breakAfter {
		return nil
	}
	if b.probing || now.Before(b.until) {
		return ErrOpen
	}
	b.probing = true
	return nil
}

// left: the caller went away before there was an answer.
func (b *breaker) left() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probing = false
}

func (b *breaker) failed(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures++
	b.probing = false
	if b.failures < breakAfter {
		return
	}
	b.rest = min(max(2*b.rest, firstRest), maxRest)
	b.until = now.Add(b.rest)
}
