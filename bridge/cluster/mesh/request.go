package mesh

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Request asks one peer and waits for its answer, until ctx ends, which cancels it at the peer.
// Errors: ErrNotSent, ErrTooLarge and ErrBusy, when nothing happened there; ErrLost, when
// something may have; a *FailedError, which the peer's handler returned; the error of ctx.
func (m *Mesh) Request(ctx context.Context, to Peer, topic string, payload []byte) ([]byte, error) {
	if !m.Here(to) {
		return nil, fmt.Errorf("%w: %v", ErrNotSent, to)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q, err := m.asked.enter(to, m.opts.MaxAsking)
	if err != nil {
		return nil, err
	}
	defer m.asked.leave(q)
	msg := &message{kind: kindRequest, topic: topic, id: q.id, payload: payload}
	if deadline, ok := ctx.Deadline(); ok {
		msg.wait = max(1, time.Until(deadline))
	}
	if err := m.send(to, msg); err != nil {
		return nil, err
	}
	late := time.NewTimer(takenWithin + time.Duration(len(payload))*time.Second/slowestSecond)
	defer late.Stop()
	for taken := q.taken; ; {
		select {
		case r := <-q.answer:
			return r.payload, r.err
		case <-taken:
			taken = nil
			late.Stop()
		case <-late.C:
			m.reply(to, &message{kind: kindCancel, id: q.id})
			return nil, fmt.Errorf("%w: %v did not say that it has the request", ErrLost, to)
		case <-ctx.Done():
			m.reply(to, &message{kind: kindCancel, id: q.id})
			return nil, ctx.Err()
		}
	}
}

// asked are the requests of this bridge that wait.
type asked struct {
	mu      sync.Mutex // guards the fields below
	closed  error
	last    uint64
	waiting map[uint64]*question
}

// question is a request that waits for its answer.
type question struct {
	to     Peer
	id     uint64
	taken  chan struct{} // closed when the peer has it
	answer chan reply    // has room for one
	told   bool          // guarded by asked.mu: taken is closed
}

type reply struct {
	payload []byte
	err     error
}

func (a *asked) enter(to Peer, most int) (*question, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed != nil:
		return nil, a.closed
	case len(a.waiting) >= most:
		return nil, fmt.Errorf("%w: %d of this bridge", ErrBusy, most)
	}
	a.last++
	q := &question{to: to, id: a.last, taken: make(chan struct{}), answer: make(chan reply, 1)}
	a.waiting[q.id] = q
	return q, nil
}

func (a *asked) leave(q *question) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, q.id)
}

// taken notes that a peer has a request.
func (a *asked) taken(from Peer, id uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if q := a.waiting[id]; q != nil && q.to == from && !q.told {
		q.told = true
		close(q.taken)
	}
}

// settle answers a request that was made of that peer.
func (a *asked) settle(from Peer, id uint64, r reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if q := a.waiting[id]; q != nil && q.to == from {
		delete(a.waiting, id)
		q.answer <- r
	}
}

// end fails the requests that match.
func (a *asked) end(match func(*question) bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if errors.Is(err, ErrClosed) {
		a.closed = err
	}
	for id, q := range a.waiting {
		if match(q) {
			delete(a.waiting, id)
			q.answer <- reply{err: err}
		}
	}
}

// servedKey names a request of a peer.
type servedKey struct {
	from Peer
	id   uint64
}

// serving are the requests of peers that run.
type serving struct {
	mu      sync.Mutex // guards the fields below
	running map[servedKey]context.CancelFunc
	all     sync.WaitGroup
	closed  bool
}

// errNobodyWaits ends a request whose caller has gone or given up.
var errNobodyWaits = errors.New("mesh: no request waits for this answer")

func (s *serving) begin(ctx context.Context, key servedKey, wait time.Duration, most int) (context.Context, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, twice := s.running[key]; twice || s.closed || len(s.running) >= most || wait < 0 {
		return nil, false
	}
	ctx, cancel := context.WithCancelCause(ctx)
	release := func() { cancel(errNobodyWaits) }
	if wait > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, wait)
		release = func() { cancel(errNobodyWaits); stop() }
	}
	s.running[key] = release
	s.all.Add(1)
	return ctx, true
}

func (s *serving) done(key servedKey) {
	s.mu.Lock()
	release := s.running[key]
	delete(s.running, key)
	s.mu.Unlock()
	release()
	s.all.Done()
}

// end cancels the requests that match.
func (s *serving) end(match func(servedKey) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, cancel := range s.running {
		if match(key) {
			cancel()
		}
	}
}

func (s *serving) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running)
}

func (s *serving) wait() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.all.Wait()
}
