package kv

import (
	"context"
	"maps"
	"sync"
)

// Bar refuses what writes to a scope, in any keyspace, with an error until it is lifted:
// calls of this writer alone, already waiting ones among them. A commit that is staged
// may still be on its way; Drain waits for it. Calls with a context of PastBars go on.
func (w *Writer) Bar(scope Scope, why error) {
	w.changeBars(func(bars map[Scope]error) { bars[scope] = why })
}

// LiftBar ends a Bar.
func (w *Writer) LiftBar(scope Scope) {
	w.changeBars(func(bars map[Scope]error) { delete(bars, scope) })
}

func (w *Writer) changeBars(change func(map[Scope]error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	bars := make(map[Scope]error)
	if before := w.bars.Load(); before != nil {
		maps.Copy(bars, *before)
	}
	if change(bars); len(bars) == 0 {
		w.bars.Store(nil)
		return
	}
	w.bars.Store(&bars)
}

type pastBars struct{}

// PastBars returns ctx as the context of the caller that has put a bar up.
func PastBars(ctx context.Context) context.Context { return context.WithValue(ctx, pastBars{}, true) }

// barred is the error of a bar that a request meets.
func (w *Writer) barred(ctx context.Context, req *Request) error {
	bars := w.bars.Load()
	if bars == nil || ctx.Value(pastBars{}) != nil {
		return nil
	}
	for _, refs := range [][]Ref{req.Refs, req.Blind} {
		for _, ref := range refs {
			if why := (*bars)[ref.Scope]; why != nil {
				return why
			}
		}
	}
	return nil
}

// generation are the calls that began between two drains.
type generation struct{ running sync.WaitGroup }

// Drain waits for the calls that are in flight.
func (w *Writer) Drain(ctx context.Context) error {
	w.mu.Lock()
	before := w.current
	w.current = new(generation)
	w.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		before.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
