package tracing

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
)

const (
	// gatherSpans are handed on together. A queue that OTEL_BSP_MAX_QUEUE_SIZE makes shorter
	// drops some of them.
	gatherSpans = 32
	// gatherFor is how long fewer wait.
	gatherFor = 500 * time.Millisecond
)

// gathered hands spans on to the processor that exports them, many at once: that one wakes
// another thread for each span, which takes longer than all else a span costs.
type gathered struct {
	trace.SpanProcessor

	mu    sync.Mutex
	spans []trace.ReadOnlySpan // guarded by mu
	timer *time.Timer          // runs while there are some; guarded by mu
}

func gather(to trace.SpanProcessor) *gathered {
	g := &gathered{SpanProcessor: to}
	g.timer = time.AfterFunc(gatherFor, g.handOn)
	return g
}

// OnEnd takes a span.
func (g *gathered) OnEnd(span trace.ReadOnlySpan) {
	g.mu.Lock()
	g.spans = append(g.spans, span)
	n := len(g.spans)
	if n == 1 {
		g.timer.Reset(gatherFor)
	}
	g.mu.Unlock()
	if n >= gatherSpans {
		g.handOn()
	}
}

func (g *gathered) handOn() {
	g.mu.Lock()
	spans := g.spans
	g.spans = nil
	g.mu.Unlock()
	for _, span := range spans {
		g.SpanProcessor.OnEnd(span)
	}
}

// ForceFlush exports what has ended.
func (g *gathered) ForceFlush(ctx context.Context) error {
	g.handOn()
	return g.SpanProcessor.ForceFlush(ctx)
}

// Shutdown exports what has ended, and ends the export.
func (g *gathered) Shutdown(ctx context.Context) error {
	g.timer.Stop()
	g.handOn()
	return g.SpanProcessor.Shutdown(ctx)
}
