// Package span marks a part of a call that a trace shows with a beginning and an end, such as
// a source of a prompt, a tool that runs, or a commit.
//
// Where no trace is recorded it costs a look into the context. It decides nothing about
// traces: what begins and exports them is in the server.
package span

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Scope is the name of the instrumentation that makes the spans.
const Scope = "github.com/loom-bridge/loom-bridge"

// Start begins a part of what ctx belongs to, named by what it does and, unless empty, what of.
// The function ends it, and says whether it failed; it must be called once. Of an error a trace has no text, as it may quote what an
// agent said.
func Start(ctx context.Context, does, of string) (context.Context, func(err error)) {
	whole := trace.SpanFromContext(ctx)
	if !whole.IsRecording() {
		return ctx, unrecorded
	}
	name := does
	if of != "" {
		name += " " + of
	}
	ctx, part := whole.TracerProvider().Tracer(Scope).Start(ctx, name)
	return ctx, func(err error) {
		if err != nil {
			part.SetStatus(codes.Error, "")
		}
		part.End()
	}
}

func unrecorded(error) {}
