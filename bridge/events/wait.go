package events

import (
	"context"
	"slices"
	"sync/atomic"
	"time"
)

// pending is a volatile event that an emitter waits to put into a queue.
type pending struct {
	queueItem
	by *waitingEmitter
}

// fan is the spreading of one emitter's events. Every subscription gets its
// part at once or queues it as pending; only then does the emitter wait.
type fan struct {
	waiter *waitingEmitter
	full   []fullReader
}

// fullReader is a subscription that is waited for, and until when.
type fullReader struct {
	sub   *Subscription
	until time.Time
}

// waitingEmitter is an emitter that waits for room.
type waitingEmitter struct {
	left atomic.Int64  // what is pending, and one until the emitter waits
	done chan struct{} // closed when nothing is left
}

// join counts one more event that waits for room in s.
func (f *fan) join(s *Subscription, until time.Time) *waitingEmitter {
	if f.waiter == nil {
		f.waiter = &waitingEmitter{done: make(chan struct{})}
		f.waiter.left.Store(1)
	}
	f.waiter.left.Add(1)
	if n := len(f.full); n == 0 || f.full[n-1].sub != s {
		f.full = append(f.full, fullReader{s, until})
	}
	return f.waiter
}

func (w *waitingEmitter) finish() {
	if w.left.Add(-1) == 0 {
		close(w.done)
	}
}

// await waits until all that is pending found room. A subscription that has made
// emitters wait for long enough ends; when ctx ends it misses the events instead.
func (b *Bus) await(ctx context.Context, f *fan) {
	w := f.waiter
	if w == nil {
		return
	}
	w.finish()
	slices.SortFunc(f.full, func(a, b fullReader) int { return a.until.Compare(b.until) })
	for _, r := range f.full {
		timer := time.NewTimer(time.Until(r.until))
		select {
		case <-w.done:
			timer.Stop()
			return
		case <-ctx.Done():
			timer.Stop()
			for _, r := range f.full {
				r.sub.giveUp(w)
			}
			return
		case <-timer.C:
			if r.sub.giveUp(w) {
				r.sub.end(ErrSlowSubscriber)
			}
		}
	}
}

// endWait counts how long emitters have waited when none do any more.
func (s *Subscription) endWait() {
	if len(s.waiting) == 0 {
		s.waiting = nil
		s.waited += time.Since(s.waitBegan)
	}
}

// giveUp drops what an emitter still waits to put here; false for nothing.
func (s *Subscription) giveUp(w *waitingEmitter) bool {
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
	if len(s.waiting) == 0 {
		return
	}
	kept := s.waiting[:0]
	for _, p := range s.waiting {
		if keep(p) {
			kept = append(kept, p)
			continue
		}
		p.queued.release()
		p.count.queued(-1)
		p.count.lost(1)
		p.by.finish()
	}
	clear(s.waiting[len(kept):])
	s.waiting = kept
	s.endWait()
}

// letIn moves what is pending to the queue while there is room.
func (s *Subscription) letIn() {
	if len(s.waiting) == 0 {
		return
	}
	n := 0
	for ; n < len(s.waiting) && s.hasRoom(s.waiting[n].queueItem); n++ {
		p := s.waiting[n]
		p.count.queued(-1)
		s.enqueue(p.queueItem)
		p.by.finish()
		s.waiting[n] = pending{}
	}
	s.waiting = s.waiting[n:]
	s.endWait()
}
