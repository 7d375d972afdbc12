package observe

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// Keys of log lines about calls. They name no payload and no credential.
const (
	keyMethod   = "method"
	keyCode     = "code"
	KeyReason   = "reason"
	keyDuration = "duration"
	KeyAgent    = "agent"
	keyPeer     = "peer"
	keyTrace    = "trace_id"
	KeyCause    = "cause"
	// KeyUnlogged counts the calls like this one that were not logged.
	KeyUnlogged = "calls_not_logged"
)

// slow is the duration from which a unary call is worth a line.
const slow = time.Second

// Observer logs calls: faults of the server as errors with their cause, slow
// calls as warnings, refused ones as information, all others for debugging
// only, since a busy server must not spend its time on unread lines.
// It counts them all.
type Observer struct {
	// Log takes a line for each call that is worth one.
	Log *slog.Logger
	// Metrics counts the calls; nil counts none.
	Metrics *Metrics
	// Outcomes counts the calls of tools; nil counts none.
	Outcomes *Outcomes
	// Contents adds texts to the spans of calls; nil adds none.
	Contents *Contents
	// OwnTool reports whether a tool is the server's and not an agent's.
	OwnTool ToolNamer
}

var _ interceptors.ServerReportable = Observer{}

// ServerReporter is called at the start of each call.
func (o Observer) ServerReporter(ctx context.Context, call interceptors.CallMeta) (interceptors.Reporter, context.Context) {
	return &callReport{Observer: o, ctx: ctx, call: call}, ctx
}

type callReport struct {
	interceptors.NoopReporter
	Observer
	ctx  context.Context // of the call, and lives no longer
	call interceptors.CallMeta
	// agent is who calls, once a message has said so. A stream may end while it
	// still receives.
	agent atomic.Pointer[string]
}

// PostMsgReceive takes the caller's name from the first message of a stream.
func (r *callReport) PostMsgReceive(message any, err error, _ time.Duration) {
	if err != nil || r.agent.Load() != nil {
		return
	}
	name := AgentOf(message)
	r.agent.Store(&name)
}

// AgentOf is the agent that a message names; empty for none.
func AgentOf(message any) string {
	switch m := message.(type) {
	case *loombridgev1.AttachRequest:
		return m.GetHello().GetAgentId()
	case *loomv1pb.ClientEvent:
		return m.GetAck().GetMessageId()
	case interface{ GetAgentId() string }:
		return m.GetAgentId()
	}
	return ""
}

// PostMsgSend counts by the answer of a unary call.
func (r *callReport) PostMsgSend(message any, err error, _ time.Duration) {
	if err == nil && r.call.Typ == interceptors.Unary {
		spanned(r.ctx, r.Contents, r.call.ReqOrNil, message)
		r.Metrics.answered(r.call.ReqOrNil, message, r.OwnTool)
		r.Outcomes.answered(message)
	}
}

// PostCall counts the end of the call, and logs it.
func (r *callReport) PostCall(err error, took time.Duration) {
	if err != nil {
		spanned(r.ctx, r.Contents, r.call.ReqOrNil, nil)
		failed(r.ctx, err)
		r.Metrics.Refuse(err)
		r.Metrics.toolRefused(r.call.ReqOrNil, err, r.OwnTool)
		r.Outcomes.refused(r.call.ReqOrNil, err)
	}
	r.log(err, took)
}

// log logs the end of the call.
func (r *callReport) log(err error, took time.Duration) {
	level := r.level(err, took)
	if !r.Log.Enabled(r.ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String(keyMethod, r.call.FullMethod()),
		slog.String(keyCode, status.Code(err).String()),
		slog.Duration(keyDuration, took),
	}
	if reason := reasonOf(err); reason != "" {
		attrs = append(attrs, slog.String(KeyReason, reason))
	}
	agent := AgentOf(r.call.ReqOrNil)
	if said := r.agent.Load(); said != nil {
		agent = *said
	}
	if agent != "" {
		attrs = append(attrs, slog.String(KeyAgent, validate.Printable(agent)))
	}
	if from, ok := peer.FromContext(r.ctx); ok {
		attrs = append(attrs, slog.String(keyPeer, from.Addr.String()))
	}
	if trace := traceOf(r.ctx); trace != "" {
		attrs = append(attrs, slog.String(keyTrace, trace))
	}
	if level >= slog.LevelError {
		attrs = append(attrs, slog.String(KeyCause, err.Error()))
	}
	r.Log.LogAttrs(r.ctx, level, "call", attrs...)
}

// traceParent is a caller's place in a trace, as the W3C writes it: version, trace, span
// and flags.
var traceParent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}`)

// traceOf is the trace that a call says it belongs to; empty for none.
func traceOf(ctx context.Context) string {
	for _, value := range metadata.ValueFromIncomingContext(ctx, "traceparent") {
		if found := traceParent.FindStringSubmatch(value); found != nil && strings.Trim(found[1], "0") != "" {
			return found[1]
		}
	}
	return ""
}

func (r *callReport) level(err error, took time.Duration) slog.Level {
	failure, ok := errors.AsType[*CallError](err)
	switch {
	case ok && failure.Hidden:
		return slog.LevelError
	case r.call.Typ == interceptors.Unary && took >= slow:
		return slog.LevelWarn
	case err != nil && status.Code(err) != codes.Canceled:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

func reasonOf(err error) string {
	failure, ok := errors.AsType[*CallError](err)
	if !ok {
		return ""
	}
	for _, detail := range failure.Status.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}
