package observe

import (
	"strings"

	grpcprom "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/context/assemble/fold"
	"github.com/loom-bridge/loom-bridge/context/window"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Names used in place of tool names, which callers choose: the number of time series stays
// bounded.
const (
	toolOfAgent = "agent"   // one that an agent provides
	toolUnknown = "unknown" // none that there is
)

// Metrics are the figures about calls. Several servers of a process may share
// them. Nil counts nothing; all methods are safe for concurrent use.
type Metrics struct {
	GRPC *grpcprom.ServerMetrics

	tools        *prometheus.CounterVec
	refused      *prometheus.CounterVec
	prompts      prometheus.Counter
	promptTokens prometheus.Histogram

	pressure   prometheus.Histogram
	levels     *prometheus.CounterVec
	interrupts prometheus.Counter

	foldBatches *prometheus.CounterVec
	foldRefs    prometheus.Counter
	foldSaved   prometheus.Counter
	calls       prometheus.Counter
	faults      prometheus.Counter
}

// NewMetrics makes the figures and registers them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	auto := promauto.With(registerer)
	counter := func(name, help string) prometheus.Counter {
		return auto.NewCounter(prometheus.CounterOpts{Name: "loom_bridge_" + name, Help: help})
	}
	by := func(name, help string, labels ...string) *prometheus.CounterVec {
		return auto.NewCounterVec(prometheus.CounterOpts{Name: "loom_bridge_" + name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return auto.NewHistogram(prometheus.HistogramOpts{Name: "loom_bridge_" + name, Help: help, Buckets: buckets})
	}
	m := &Metrics{
		GRPC:         grpcprom.NewServerMetrics(grpcprom.WithServerHandlingTimeHistogram(grpcprom.WithHistogramBuckets(handlingBuckets))),
		tools:        by("tool_calls_total", "Tool calls, by tool and outcome. The tools of agents are counted as one, `agent`; names that no tool has as `unknown`.", "tool", "outcome"),
		refused:      by("refused_total", "Calls and streams that ended with an error, by its reason.", "reason"),
		prompts:      counter("prompts_total", "Prompts that were assembled."),
		promptTokens: histogram("prompt_tokens", "Tokens of the prompts that were assembled.", prometheus.ExponentialBuckets(firstPromptBucket, 2, promptBuckets)),
		pressure:     histogram("prompt_pressure", "The share of its window that each assembled prompt takes.", []float64{.1, .2, .3, .4, .5, .6, .7, .8, .9, .95, 1}),
		levels:       by("pressure_levels_total", "Levels of pressure that shortened a history, by level; renewal is a window that began anew.", "level"),
		interrupts:   counter("interrupts_total", "Urgent signals that agents were told of at once."),
		foldBatches:  by("fold_batches_total", "Batches of folds that were stored, by reason.", "reason"),
		foldRefs:     counter("folded_entries_total", "Steps and messages that were folded."),
		foldSaved:    counter("folded_tokens_total", "Tokens that prompts take less after each batch of folds."),
		calls:        counter("context_calls_total", "Calls of tools that prompts were made behind."),
		faults:       counter("context_faults_total", "Calls among them that asked again for what had been folded away."),
	}
	registerer.MustRegister(m.GRPC)
	return m
}

// Unary counts and times calls; a figure leads to a trace of it, where there is one.
func (m *Metrics) Unary() grpc.UnaryServerInterceptor {
	return m.GRPC.UnaryServerInterceptor(grpcprom.WithExemplarFromContext(exemplar))
}

// Stream is Unary for streams.
func (m *Metrics) Stream() grpc.StreamServerInterceptor {
	return m.GRPC.StreamServerInterceptor(grpcprom.WithExemplarFromContext(exemplar))
}

// handlingBuckets bound how long calls take, in seconds: most take less than the 5 ms at which
// Prometheus begins.
var handlingBuckets = append([]float64{.0005, .001, .0025}, prometheus.DefBuckets...)

// The buckets of prompts go from 256 tokens to a million.
const (
	firstPromptBucket = 256
	promptBuckets     = 13
)

// Asked adds calls that were made since the prompt before, and how many of them asked for
// what had been folded away.
func (m *Metrics) Asked(calls, faults int64) {
	if m != nil {
		m.calls.Add(float64(calls))
		m.faults.Add(float64(faults))
	}
}

// Folded adds a batch that was stored; nil is none.
func (m *Metrics) Folded(b *fold.Batch) {
	if m == nil || b == nil {
		return
	}
	m.foldBatches.WithLabelValues(b.Reason.String()).Inc()
	if b.Level != window.None {
		m.levels.WithLabelValues(b.Level.String()).Inc()
	}
	m.foldRefs.Add(float64(len(b.Refs)))
	m.foldSaved.Add(float64(max(b.Before-b.After, 0)))
}

// Interrupted counts an urgent signal that an agent was notified of.
func (m *Metrics) Interrupted() {
	if m != nil {
		m.interrupts.Inc()
	}
}

// Refuse counts a call that ended with an error.
func (m *Metrics) Refuse(err error) {
	if m == nil || err == nil || status.Code(err) == codes.Canceled {
		return
	}
	reason := reasonOf(err)
	if reason == "" { // of gRPC itself, such as an unknown method
		reason = status.Code(err).String()
	}
	m.refused.WithLabelValues(reason).Inc()
}

// ToolNamer returns the name of the server's own tool that a caller means.
type ToolNamer func(name string) (string, bool)

// answered counts by the answer of a call.
func (m *Metrics) answered(request, answer any, own ToolNamer) {
	if m == nil {
		return
	}
	switch a := answer.(type) {
	case *loombridgev1.ToolResponse:
		m.toolCalled(request, nativeOutcome(a), own)
	case *loomv1pb.ToolResult:
		m.toolCalled(request, loomOutcome(a), own)
	case *loombridgev1.AssembleResponse:
		m.prompts.Inc()
		m.promptTokens.Observe(float64(a.GetTokens().GetTokens()))
		m.pressure.Observe(a.GetReceipt().GetPressure())
	}
}

// toolRefused counts a call of a tool that ended with an error: nothing ran.
func (m *Metrics) toolRefused(request any, err error, own ToolNamer) {
	if _, ok := request.(*loombridgev1.ToolRequest); m == nil || !ok {
		return
	}
	m.toolCalled(request, refusedOutcome(err), own)
}

// refusedOutcome is how a call ended that did not run.
func refusedOutcome(err error) string {
	if reasonOf(err) == ReasonName(loombridgev1.ErrorReason_ERROR_REASON_TOOL_NOT_FOUND) {
		return outcomeNotFound
	}
	return "refused"
}

func (m *Metrics) toolCalled(request any, outcome string, own ToolNamer) {
	call, ok := request.(interface{ GetName() string })
	if !ok {
		return
	}
	tool, ok := own(call.GetName())
	switch {
	case ok:
	case outcome == outcomeNotFound:
		tool = toolUnknown
	default:
		tool = toolOfAgent
	}
	m.tools.WithLabelValues(tool, outcome).Inc()
}

const outcomeNotFound = "not_found"

// nativeOutcome is how a call ended, such as ok or timeout.
func nativeOutcome(a *loombridgev1.ToolResponse) string {
	if a.GetSuccess() {
		return "ok"
	}
	return outcomeName(loombridgev1.ToolErrorCode_name[int32(a.GetErrorCode())], "TOOL_ERROR_CODE_")
}

// loomOutcome is how a call of loom.v1 ended.
func loomOutcome(a *loomv1pb.ToolResult) string {
	return outcomeName(loomv1pb.ToolStatus_name[int32(a.GetStatus())], "TOOL_")
}

// outcomeName is an enum's value in lower case. An agent may answer with one that
// are unknown: all of those are one.
func outcomeName(value, prefix string) string {
	if value == "" {
		return "other"
	}
	return strings.ToLower(strings.TrimPrefix(value, prefix))
}
