package packing

import (
	"context"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// MaxWaiting bounds the scopes that wait for the background. One more
// waits for its next save.
const MaxWaiting = 4096

// Waiting holds scopes that wait for a goroutine, each once.
type Waiting struct {
	scopes chan kv.Scope

	mu      sync.Mutex // guards the fields below
	waiting map[kv.Scope]struct{}
	dropped bool // a scope could not be added
}

// NewList returns an empty list.
func NewList() *Waiting {
	return &Waiting{scopes: make(chan kv.Scope, MaxWaiting), waiting: make(map[kv.Scope]struct{})}
}

// Add lets a scope wait, unless it does or too many do.
func (w *Waiting) Add(scope kv.Scope) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.waiting[scope]; ok {
		return
	}
	select {
	case w.scopes <- scope:
		w.waiting[scope] = struct{}{}
	default:
		w.dropped = true
	}
}

// AddAfter lets a scope wait after a pause, as one that waits already.
func (w *Waiting) AddAfter(scope kv.Scope, pause time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.waiting[scope]; ok {
		return
	}
	if len(w.waiting) >= MaxWaiting {
		w.dropped = true
		return
	}
	w.waiting[scope] = struct{}{}
	time.AfterFunc(pause, func() {
		w.mu.Lock()
		delete(w.waiting, scope)
		w.mu.Unlock()
		w.Add(scope)
	})
}

// Missed reports whether the list is empty and has had no room for some scope
// since it was asked last.
func (w *Waiting) Missed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.dropped || len(w.waiting) > 0 {
		return false
	}
	w.dropped = false
	return true
}

// Run does the work until ctx ends.
func (w *Waiting) Run(ctx context.Context, work func(context.Context, kv.Scope)) {
	for {
		select {
		case <-ctx.Done():
			return
		case scope := <-w.scopes:
			w.mu.Lock()
			delete(w.waiting, scope)
			w.mu.Unlock()
			work(ctx, scope)
		}
	}
}
