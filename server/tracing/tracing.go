// Package tracing makes traces of calls, and exports them by OTLP as OpenTelemetry's environment
// variables say.
package tracing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc/filters"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"google.golang.org/grpc/stats"
)

// Service is the name of the service in traces, unless OTEL_SERVICE_NAME gives another one.
const Service = "loom-bridge"

// stopTime bounds how long the end waits for a collector to take the last spans.
const stopTime = 3 * time.Second

// unreachableEvery bounds how often a collector that takes no spans is logged.
const unreachableEvery = time.Minute

// capture is the conventions' own variable for whether spans have contents.
const capture = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

// contentBatch is how many spans with contents are exported at once: a collector takes 4 MiB.
const contentBatch = 64

// Traces are made until Stop.
type Traces struct {
	provider *trace.TracerProvider
	logger   *slog.Logger
	contents bool
}

// Handed makes traces whose spans a processor takes, and nothing else.
func Handed(to trace.SpanProcessor) *Traces {
	return &Traces{provider: trace.NewTracerProvider(trace.WithSpanProcessor(to))}
}

// Open begins to export, and hands spans to further processors. The variables are those of OpenTelemetry: OTEL_EXPORTER_OTLP_ENDPOINT,
// OTEL_EXPORTER_OTLP_PROTOCOL (grpc, the default here, or http/protobuf), OTEL_SERVICE_NAME,
// OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER and their kind, and those for traces alone.
// OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT asks for contents in spans: SPAN_ONLY,
// SPAN_AND_EVENT and true do, NO_CONTENT, EVENT_ONLY and false, the default, don't.
// Spans that wait for a collector are bounded (OTEL_BSP_MAX_QUEUE_SIZE, 2,048), and further
// ones are dropped: no call waits for it.
func Open(ctx context.Context, version string, logger *slog.Logger, also ...trace.SpanProcessor) (*Traces, error) {
	contents, err := captures(os.Getenv(capture))
	if err != nil {
		return nil, err
	}
	exporter, err := newExporter(ctx, cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), "grpc"))
	if err != nil {
		return nil, err
	}
	about, err := resource.New(ctx, resource.WithAttributes(semconv.ServiceName(Service), semconv.ServiceVersion(version)), resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("tracing: %w", err), exporter.Shutdown(ctx))
	}
	otel.SetErrorHandler(seldom(logger))
	var batch []trace.BatchSpanProcessorOption
	if contents && os.Getenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE") == "" {
		batch = append(batch, trace.WithMaxExportBatchSize(contentBatch))
	}
	options := []trace.TracerProviderOption{trace.WithResource(about)}
	for _, to := range append([]trace.SpanProcessor{gather(trace.NewBatchSpanProcessor(exporter, batch...))}, also...) {
		options = append(options, trace.WithSpanProcessor(to))
	}
	return &Traces{trace.NewTracerProvider(options...), logger, contents}, nil
}

func captures(value string) (bool, error) {
	switch strings.ToUpper(value) {
	case "SPAN_ONLY", "SPAN_AND_EVENT", "TRUE":
		return true, nil
	case "", "NO_CONTENT", "EVENT_ONLY", "FALSE":
		return false, nil
	}
	return false, fmt.Errorf("tracing: %s %q: give NO_CONTENT, SPAN_ONLY, EVENT_ONLY, SPAN_AND_EVENT, true or false", capture, value)
}

// Contents reports whether spans are to have what was said, as the variable says. False for no
// traces.
func (t *Traces) Contents() bool { return t != nil && t.contents }

func newExporter(ctx context.Context, protocol string) (*otlptrace.Exporter, error) {
	switch protocol {
	case "grpc":
		return otlptracegrpc.New(ctx)
	case "http/protobuf":
		return otlptracehttp.New(ctx)
	}
	return nil, fmt.Errorf("tracing: OTEL_EXPORTER_OTLP_PROTOCOL %q: give grpc or http/protobuf", protocol)
}

// Handler makes a span of each call but those of health checks, below the caller's where the
// call has a `traceparent`. Nil for no traces.
func (t *Traces) Handler() stats.Handler {
	if t == nil {
		return nil
	}
	return otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(t.provider), otelgrpc.WithMeterProvider(noop.NewMeterProvider()),
		otelgrpc.WithPropagators(propagation.TraceContext{}), otelgrpc.WithFilter(filters.Not(filters.HealthCheck())))
}

// Stop exports the last spans, if the collector takes them within three seconds. That it does
// not is logged: it is no failure of the server.
func (t *Traces) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.logger.Warn("the last traces are lost", "error", err)
	}
	return nil
}
