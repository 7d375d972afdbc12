package observe

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// Attributes of OpenTelemetry's conventions for generative AI, in development as of its
// version 1.41. What they have no name for begins with `loom_bridge.`. What was said, saved,
// asked or returned is added by Contents alone.
const (
	genAIOperation    = attribute.Key("gen_ai.operation.name")
	genAIAgent        = attribute.Key("gen_ai.agent.id")
	genAIConversation = attribute.Key("gen_ai.conversation.id")
	genAITool         = attribute.Key("gen_ai.tool.name")
	genAIMemories     = attribute.Key("gen_ai.memory.record.count")
	genAIMemory       = attribute.Key("gen_ai.memory.record.id")
	genAIModel        = attribute.Key("gen_ai.request.model")
	messagingTopic    = attribute.Key("messaging.destination.name")
	errorType         = attribute.Key("error.type")
)

// described are the name and the attributes of a call's span; no name leaves that of gRPC.
type described struct {
	name string
	with []attribute.KeyValue
}

func (d *described) add(all ...attribute.KeyValue) { d.with = append(d.with, all...) }

// operation names the span by an operation of the conventions, and what it is done to.
func (d *described) operation(name, of string) {
	d.name = name
	d.add(genAIOperation.String(name))
	if of != "" {
		d.name += " " + validate.Printable(of)
	}
}

// spanned describes a call that was answered on its span.
func spanned(ctx context.Context, contents *Contents, request, answer any) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	var d described
	d.asked(request)
	d.answered(answer)
	contents.of(&d, request, answer)
	if d.name != "" {
		span.SetName(d.name)
	}
	span.SetAttributes(d.with...)
}

// failed says on the span of a call why it was refused.
func failed(ctx context.Context, err error) {
	span := trace.SpanFromContext(ctx)
	if err == nil || !span.IsRecording() {
		return
	}
	reason := reasonOf(err)
	if reason == "" && status.Code(err) != codes.OK {
		reason = status.Code(err).String()
	}
	span.SetAttributes(errorType.String(reason))
}

// asked takes what a request says.
func (d *described) asked(request any) {
	if agent := AgentOf(request); agent != "" {
		d.add(genAIAgent.String(validate.Printable(agent)))
	}
	if in, ok := request.(interface{ GetSessionId() string }); ok && in.GetSessionId() != "" {
		d.add(genAIConversation.String(validate.Printable(in.GetSessionId())))
	}
	switch r := request.(type) {
	case *loombridgev1.ToolRequest:
		d.tool(r.GetName())
	case *loomv1pb.ToolCall:
		d.tool(r.GetName())
	case *loombridgev1.MemorySaveRequest, *loombridgev1.BatchSaveRequest:
		d.operation("create_memory", "")
	case *loombridgev1.UpdateRecordRequest:
		d.operation("update_memory", "")
	case *loombridgev1.DeleteRecordsRequest:
		d.operation("delete_memory", "")
	case *loombridgev1.MemoryQueryRequest:
		d.operation("search_memory", "")
	case *loombridgev1.SpawnAgentRequest:
		d.operation("invoke_agent", r.GetChildId())
	case *loombridgev1.AssembleRequest:
		d.name = "assemble_prompt"
		if r.GetModel() != "" {
			d.add(genAIModel.String(validate.Printable(r.GetModel())))
		}
	case *loombridgev1.EmitRequest:
		d.name = "send"
		d.add(messagingTopic.String(validate.Printable(r.GetTopic())))
	}
}

func (d *described) tool(name string) {
	d.operation("execute_tool", name)
	d.add(genAITool.String(validate.Printable(name)))
}

// answered takes what an answer says, of a receipt its figures.
func (d *described) answered(answer any) {
	switch a := answer.(type) {
	case *loombridgev1.ToolResponse:
		d.outcome(nativeOutcome(a))
	case *loomv1pb.ToolResult:
		d.outcome(loomOutcome(a))
	case *loombridgev1.MemorySaveResponse:
		d.add(genAIMemory.String(a.GetId()), genAIMemories.Int(1))
	case *loombridgev1.BatchSaveResponse:
		d.add(genAIMemories.Int(len(a.GetSaved())))
	case *loombridgev1.MemoryQueryResponse:
		d.add(genAIMemories.Int(len(a.GetHits())))
	case *loombridgev1.AssembleResponse:
		d.prompt(a)
	}
}

func (d *described) outcome(outcome string) {
	d.add(attribute.String("loom_bridge.tool.outcome", outcome))
	if outcome != "ok" {
		d.add(errorType.String(outcome))
	}
}

func (d *described) prompt(a *loombridgev1.AssembleResponse) {
	r := a.GetReceipt()
	d.add(
		attribute.String("loom_bridge.prompt.id", r.GetPromptId()),
		attribute.Int64("loom_bridge.prompt.tokens", int64(a.GetTokens().GetTokens())),
		attribute.Int64("loom_bridge.prompt.expected_cached_tokens", int64(r.GetExpectedCachedTokens())),
		attribute.Float64("loom_bridge.prompt.cost", r.GetCost()),
		attribute.Float64("loom_bridge.prompt.append_only_cost", r.GetAppendOnlyCost()),
		attribute.Float64("loom_bridge.prompt.pressure", r.GetPressure()),
		attribute.Int("loom_bridge.prompt.folds", len(r.GetFolds())))
	for _, section := range r.GetSections() {
		d.add(attribute.Int64("loom_bridge.section."+validate.Printable(section.GetName())+".tokens", int64(section.GetTokens())))
	}
}

// exemplar is the trace that a figure of a call leads to; nil for none.
func exemplar(ctx context.Context) prometheus.Labels {
	if span := trace.SpanContextFromContext(ctx); span.IsSampled() {
		return prometheus.Labels{"trace_id": span.TraceID().String()}
	}
	return nil
}
