package tracing

import (
	"context"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/sdk/trace"
)

// taken is a processor that says which spans it got.
type taken struct {
	trace.SpanProcessor
	names chan string
}

func (p taken) OnStart(context.Context, trace.ReadWriteSpan) {}
func (p taken) OnEnd(span trace.ReadOnlySpan)                { p.names <- span.Name() }
func (p taken) Shutdown(context.Context) error               { return nil }

// Spans are handed on many at once, and before long where there are few; those that wait at
// the end are not lost.
func TestSpansAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time goes on where nothing else does
		to := taken{names: make(chan string, 2*gatherSpans)}
		provider := trace.NewTracerProvider(trace.WithSpanProcessor(gather(to)))
		end := func(name string) {
			_, span := provider.Tracer("").Start(t.Context(), name)
			span.End()
		}
		for range gatherSpans {
			end("first")
		}
		if n := len(to.names); n != gatherSpans {
			t.Fatalf("%d of %d spans were handed on", n, gatherSpans)
		}
		end("alone")
		for range gatherSpans {
			<-to.names
		}
		if name := <-to.names; name != "alone" {
			t.Fatalf("%q was handed on", name)
		}
		end("last")
		if err := provider.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if name := <-to.names; name != "last" {
			t.Fatalf("%q was handed on at the end", name)
		}
	})
}
