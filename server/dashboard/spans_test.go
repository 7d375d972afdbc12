package dashboard

import (
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/loom-bridge/loom-bridge/server/auth"
)

// TestSpansAreBounded: of a flood the last ones are kept, each tenant's for it alone; what is of no
// tenant is nobody's, and a text is cut.
func TestSpansAreBounded(t *testing.T) {
	t.Parallel()
	kept := new(Spans)
	tracer := trace.NewTracerProvider(trace.WithSpanProcessor(kept)).Tracer("")
	for i := range 2*maxSpans + 100 {
		_, span := tracer.Start(t.Context(), fmt.Sprint("n", i))
		if i%2 == 0 {
			span.SetAttributes(auth.TenantKey.String("a"), attribute.String("long", strings.Repeat("é", maxValueChars+1)))
		} else if i%3 == 0 {
			span.SetAttributes(auth.TenantKey.String("b"))
		}
		span.End()
	}
	of, total := kept.since("a", 0)
	others, _ := kept.since("b", 0)
	none, _ := kept.since("", 0)
	if total < maxSpans || len(of)+len(others) != maxSpans || len(of) < len(others) || len(none) > 0 {
		t.Fatalf("%d and %d spans are kept, and %d of no tenant; %d ended", len(of), len(others), len(none), total)
	}
	if last := of[len(of)-1].Name(); last != fmt.Sprint("n", 2*maxSpans+98) {
		t.Errorf("the newest one is %s", last)
	}
	if more, _ := kept.since("a", total); len(more) > 0 {
		t.Errorf("%d came since", len(more))
	}
	if shown := (&Handler{}).spansOf(of[:1])[0]; shown.Attributes["long"] != strings.Repeat("é", maxValueChars) || shown.ParentSpanID != nil || shown.Status != "unset" || shown.ErrorMessage != nil {
		t.Errorf("shown is %.80v", shown)
	}
}
