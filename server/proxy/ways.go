package proxy

import (
	"errors"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/egress"
)

const (
	// wayTime, wayRequests and wayBytes are how long a way to an upstream takes requests, and how
	// many: a connection of the gate ends after an hour, and a session of it has its limits.
	wayTime     = 30 * time.Minute
	wayRequests = egress.DefaultMaxRequests / 2
	wayBytes    = egress.DefaultMaxBytes / 4
	// wayIdle is how long one without a request stays.
	wayIdle = 2 * time.Minute
	// Caller is the agent by which the audit names what goes through the proxy.
	Caller = "proxy"
)

// way is a session of the gate that requests of a tenant to an upstream share, with its
// connections.
type way struct {
	session  *egress.Session
	key      wayKey
	born     time.Time
	left     time.Time // when its last request ended
	requests int       // all
	bytes    int       // of their bodies
	open     int       // under way
}

// worn reports whether it takes no more requests: another one does.
func (w *way) worn(now time.Time) bool {
	return now.Sub(w.born) > wayTime || w.requests >= wayRequests || w.bytes >= wayBytes || w.open >= egress.DefaultMaxPerCall
}

type wayKey struct{ tenant, upstream string }

// ways are the ways that are open. All methods are safe for concurrent use.
type ways struct {
	gate    *egress.Gate
	silence time.Duration

	mu     sync.Mutex
	open   map[wayKey]*way // guarded by mu; those that take requests
	closed bool            // guarded by mu
	ending []*way          // guarded by mu; they take no more, and have some under way
}

func newWays(gate *egress.Gate, silence time.Duration) *ways {
	return &ways{gate: gate, silence: silence, open: map[wayKey]*way{}}
}

var errClosed = errors.New("proxy: closed")

// take returns a way for one request with a body of so many bytes. Leave it.
func (s *ways) take(tenant string, to Upstream, bytes int) (*way, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	now := time.Now()
	for key, w := range s.open {
		worn := w.worn(now)
		switch {
		case w.open == 0 && (worn || now.Sub(w.left) > wayIdle):
			delete(s.open, key)
			go func() { _ = w.session.Close() }()
		case worn:
			delete(s.open, key)
			s.ending = append(s.ending, w)
		}
	}
	key := wayKey{tenant, to.Name}
	w := s.open[key]
	if w == nil {
		policy, err := egress.Endpoint(to.URL, nil)
		if err != nil {
			return nil, err
		}
		policy.AnswerTime = s.silence + time.Minute // whoever asks is cut off before
		session, err := s.gate.Session(egress.Caller{Tenant: tenant, Agent: Caller, Tool: Caller + ":" + to.Name}, policy)
		if err != nil {
			return nil, err
		}
		w = &way{session: session, key: key, born: now}
		s.open[key] = w
	}
	w.requests++
	w.bytes += bytes
	w.open++
	return w, nil
}

// leave ends a request.
func (s *ways) leave(w *way) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.open--
	w.left = time.Now()
	if w.open > 0 || s.open[w.key] == w {
		return
	}
	for i := range s.ending {
		if s.ending[i] == w {
			s.ending = append(s.ending[:i], s.ending[i+1:]...)
			go func() { _ = w.session.Close() }()
			return
		}
	}
}

// close closes all ways, with what is under way.
func (s *ways) close() error {
	s.mu.Lock()
	all := s.ending
	for _, w := range s.open {
		all = append(all, w)
	}
	s.open, s.ending, s.closed = nil, nil, true
	s.mu.Unlock()
	var errs []error
	for _, w := range all {
		errs = append(errs, w.session.Close())
	}
	return errors.Join(errs...)
}
