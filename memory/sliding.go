package memory

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

const (
	// slideSteps: a record that is read moves its expiry only when that gains
	// this part of its span, so that one that is read all the time is not
	// written all the time.
	slideSteps = 10
	// maxSliding bounds the records that wait to have their expiry moved; one
	// more is moved when it is read the next time.
	maxSliding = 4096
)

// slide is a record that was read and has its expiry moved.
type slide struct {
	scope kv.Scope
	id    string
}

// slider holds the records whose expiry is to be moved, each once.
type slider struct {
	queue chan slide

	mu      sync.Mutex // guards waiting
	waiting map[slide]struct{}
}

func (s *slider) add(w slide) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.waiting[w]; ok {
		return
	}
	select {
	case s.queue <- w:
		s.waiting[w] = struct{}{}
	default:
	}
}

func (s *slider) taken(w slide) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, w)
}

// touched notes that records were read. It does not wait.
func (s *Store) touched(scope kv.Scope, rs ...record.Record) {
	for i := range rs {
		if r := &rs[i]; r.SlidingTTL > 0 && slidesAt(r, s.now()) {
			s.slider.add(slide{scope, r.ID})
		}
	}
}

// slidesAt tells whether reading the record then moves its expiry.
func slidesAt(r *record.Record, now time.Time) bool {
	gain := now.Add(r.SlidingTTL).Sub(r.ExpireTime)
	return r.SlidingTTL > 0 && !r.ExpiredAt(now) && gain > 0 && gain >= r.SlidingTTL/slideSteps
}

// slideRead moves the expiry of records that were read, until ctx ends.
func (s *Store) slideRead(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case w := <-s.slider.queue:
			s.slider.taken(w)
			if err := s.slide(ctx, w); err != nil && ctx.Err() == nil && !errors.Is(err, ErrNotFound) {
				s.logger.ErrorContext(ctx, "memory: expiry not moved", "scope", w.scope.String(), "id", w.id, "error", err)
			}
		}
	}
}

// slide moves the expiry of one record.
func (s *Store) slide(ctx context.Context, w slide) error {
	now := record.StoredTime(s.now())
	staging := &Staging{store: s, scope: w.scope, expires: true, run: func(ctx context.Context, e *edit) error {
		old, stored, err := e.named(ctx, w.id, "", 0, now)
		if err != nil || !slidesAt(old, now) {
			return err
		}
		next, err := s.redraft(stored, *old, func(r *record.Record) error {
			r.ExpireTime = record.StoredTime(now.Add(r.SlidingTTL))
			return nil
		})
		if err != nil {
			return err
		}
		return e.replace(ctx, old, next, true)
	}}
	return staging.alone(ctx, true)
}
