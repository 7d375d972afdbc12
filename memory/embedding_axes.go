package memory

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/embed/axis"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// axes are those of a store's embedder, made in the background when they are wanted first.
type axes struct {
	wanted chan struct{}
	known  chan struct{} // is closed when they are made, or the embedder can make none
	made   atomic.Pointer[axis.Axes]
}

// makeAxes waits until axes are wanted and makes them. While the embedder fails it tries
// again.
func (e *embeddings) makeAxes(ctx context.Context) {
	select {
	case <-e.axes.wanted:
	case <-ctx.Done():
		return
	}
	for ctx.Err() == nil {
		made, err := axis.New(ctx, e.embedder)
		if err == nil || errors.Is(err, axis.ErrUnknown) {
			e.axes.made.Store(made)
			close(e.axes.known)
			return
		}
		e.report(ctx, "learn what tells of a change, trying again in "+retryAfter.String(), err)
		kv.Sleep(ctx, retryAfter)
	}
}

// axesOf returns the axes of the embedder; nil where they are not made yet. Whoever wants
// them first waits for them as long as for the vector of a query.
func (e *embeddings) axesOf(ctx context.Context) *axis.Axes {
	select {
	case <-e.axes.known:
		return e.axes.made.Load()
	default:
	}
	select {
	case e.axes.wanted <- struct{}{}:
		patience := time.NewTimer(e.timeout)
		defer patience.Stop()
		select {
		case <-e.axes.known:
		case <-patience.C:
		case <-ctx.Done():
		}
	default:
	}
	return e.axes.made.Load()
}
