package events

import (
	"context"
	"sync/atomic"
	"time"
)

// pending is a volatile event that an emitter waits to put into a queue.
type pending struct {
	entry
	by *waiter
}

// fan is the spreading of one emitter's events. Every subscription gets its
// part at once or queues it as pending; only then does the emitter wait.
type fan struct {
	waiter *waiter
	full   []*Subscription
}

// waiter is an emitter that waits for room.
type waiter struct {
	left atomic.Int64  // what is pending, and one until the emitter waits
	done chan struct{} // closed when nothing is left
}

// join counts one more event that waits for room in s.
func (f *fan) join(s *Subscription) *waiter {
	if f.waiter == nil {
		f.waiter = &waiter{done: make(chan struct{})}
		f.waiter.left.Store(1)
	}
	f.waiter.left.Add(1)
	if n := len(f.full); n == 0 || f.full[n-1] != s {
		f.full = append(f.full, s)
	}
	return f.waiter
}

func (w *waiter) finish() {
	if w.left.Add(-1) == 0 {
		close(w.done)
	}
}

// await waits until all that is pending found room. A subscription that stays
// full ends; when ctx ends it misses the events instead.
func (b *Bus) await(ctx context.Context, f *fan) {
	w := f.waiter
	if w == nil {
		return
	}
	w.finish()
	timer := time.NewTimer(b.maxEmitWait)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-ctx.Done():
		for _, s := range f.full {
			s.giveUp(w)
		}
	case <-timer.C:
		for _, s := range f.full {
			if s.giveUp(w) {
				s.end(ErrSlowSubscriber)
			}
		}
	}
}

// giveUp drops what an emitter still waits to put here; false for nothing.
func (s *Subscription) giveUp(w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.waiting)
	s.keepWaiting(func(p pending) bool { return p.by != w })
	lost := before - len(s.waiting)
	s.dropped += int64(lost)
	return lost > 0
}

// keepWaiting drops what keep refuses of what is pending.
func (s *Subscription) keepWaiting(keep func(pending) bool) {
	kept := s.waiting[:0]
	for _, p := range s.waiting {
		if keep(p) {
			kept = append(kept, p)
			continue
		}
		p.count.queued(-1)
		p.count.lost(1)
		p.by.finish()
	}
	clear(s.waiting[len(kept):])
	s.waiting = kept
}

// letIn moves what is pending to the queue while there is room.
func (s *Subscription) letIn() {
	n := 0
	for ; n < len(s.waiting) && s.hasRoom(s.waiting[n].entry); n++ {
		p := s.waiting[n]
		p.count.queued(-1)
		s.enqueue(p.entry)
		p.by.finish()
		s.waiting[n] = pending{}
	}
	if s.waiting = s.waiting[n:]; len(s.waiting) == 0 {
		s.waiting = nil
	}
}
