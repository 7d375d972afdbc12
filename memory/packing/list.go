package packing

import (
	"context"
	"sync"
	"time"
)

// MaxWaiting bounds what waits for the background. One more waits until it is added again.
const MaxWaiting = 4096

// Waiting holds what waits for a goroutine, such as scopes, each once.
type Waiting[T comparable] struct {
	queue chan T

	mu      sync.Mutex // guards the fields below
	waiting map[T]struct{}
	dropped bool // one could not be added
}

// NewList returns an empty list.
func NewList[T comparable]() *Waiting[T] {
	return &Waiting[T]{queue: make(chan T, MaxWaiting), waiting: make(map[T]struct{})}
}

// Add lets one wait, unless it does or too many do.
func (w *Waiting[T]) Add(one T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.waiting[one]; ok {
		return
	}
	select {
	case w.queue <- one:
		w.waiting[one] = struct{}{}
	default:
		w.dropped = true
	}
}

// AddAfter lets one wait after a pause, as if it waited already.
func (w *Waiting[T]) AddAfter(one T, pause time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.waiting[one]; ok {
		return
	}
	if len(w.waiting) >= MaxWaiting {
		w.dropped = true
		return
	}
	w.waiting[one] = struct{}{}
	time.AfterFunc(pause, func() {
		w.mu.Lock()
		delete(w.waiting, one)
		w.mu.Unlock()
		w.Add(one)
	})
}

// Missed reports whether the list is empty and has had no room for some since it was asked last.
func (w *Waiting[T]) Missed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.dropped || len(w.waiting) > 0 {
		return false
	}
	w.dropped = false
	return true
}

// Run does the work until ctx ends.
func (w *Waiting[T]) Run(ctx context.Context, work func(context.Context, T)) {
	for {
		select {
		case <-ctx.Done():
			return
		case one := <-w.queue:
			w.mu.Lock()
			delete(w.waiting, one)
			w.mu.Unlock()
			work(ctx, one)
		}
	}
}

// Claims are pieces of work that one caller does and others wait for. The zero value is ready.
type Claims[T comparable] struct {
	mu   sync.Mutex
	held map[T]chan struct{} // guarded by mu; closed when the work is done
}

// Claim makes the caller the one who does some work and calls release behind it. Where another
// does, release is nil, and done is closed when that is over.
func (c *Claims[T]) Claim(work T) (done <-chan struct{}, release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if held := c.held[work]; held != nil {
		return held, nil
	}
	if c.held == nil {
		c.held = make(map[T]chan struct{})
	}
	own := make(chan struct{})
	c.held[work] = own
	return own, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.held, work)
		close(own)
	}
}
