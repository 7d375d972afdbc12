package convert

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/media"
	"github.com/loom-bridge/loom-bridge/context/step"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// anyObject is the schema of a tool that gives none.
const anyObject = `{"type":"object"}`

// Registration is what the directory keeps of a hello.
func Registration(hello *loombridgev1.AttachHello) (agents.Registration, error) {
	r := agents.Registration{
		Exclusive: true,
		Topics:    make([]string, len(hello.GetTopics())), Tools: make([]agents.ProvidedTool, len(hello.GetTools())),
		Metadata: maps.Clone(hello.GetMetadata()), Capabilities: slices.Clone(hello.GetCapabilities()), Parent: hello.GetParentId(),
	}
	for i, topic := range hello.GetTopics() {
		r.Topics[i] = topic.GetTopic()
	}
	var schemas tools.Schemas
	for i, tool := range hello.GetTools() {
		schema, err := schemaOf(validate.Item("tools", i)+".", tool, &schemas)
		if err != nil {
			return agents.Registration{}, err
		}
		r.Tools[i] = agents.ProvidedTool{
			Name: tool.GetName(), Description: tool.GetDescription(), Schema: schema,
			Level: int(tool.GetLevel()), RequiresApproval: tool.GetRequiresApproval(),
		}
	}
	return r, nil
}

// schemaOf is the text of a tool's schema. One that is broken would break the
// prompts of all agents that see the tool.
func schemaOf(field string, tool *loombridgev1.ToolDescriptor, schemas *tools.Schemas) (string, error) {
	text := tool.GetParametersSchemaJson()
	if text == "" {
		return anyObject, nil
	}
	if err := schemas.Check(json.RawMessage(text)); err != nil {
		return "", validate.Refuse(field+"parameters_schema_json", err.Error())
	}
	return text, nil
}

// Interval is how often an agent says that it is alive.
func Interval(hello *loombridgev1.AttachHello) time.Duration {
	return cmp.Or(spanOf(hello.GetHeartbeatInterval()), validate.DefaultHeartbeat)
}

// AttachToolCall is a call as the agent gets it.
func AttachToolCall(c agents.PushedCall, asText bool) *loombridgev1.AttachToolCall {
	out := &loombridgev1.AttachToolCall{CallId: c.ID, Name: c.Name, CallerId: c.CallerID, Headers: c.Headers}
	if !c.Deadline.IsZero() {
		out.Timeout = durationpb.New(max(time.Until(c.Deadline), 0))
	}
	if arguments, ok := pleasantStruct(json.RawMessage(c.Arguments), asText); ok {
		out.ArgumentsForm = &loombridgev1.AttachToolCall_Arguments{Arguments: arguments}
	} else {
		out.ArgumentsForm = &loombridgev1.AttachToolCall_ArgumentsJson{ArgumentsJson: c.Arguments}
	}
	return out
}

// ToolResult is what the agent answered to a call. An output that is no JSON
// fails the call.
func ToolResult(r *loombridgev1.AttachToolResult) agents.ToolResult {
	if !r.GetSuccess() {
		return agents.Failure(toolCodeOf(r.GetErrorCode()), r.GetErrorMessage())
	}
	switch output := r.GetOutputForm().(type) {
	case *loombridgev1.AttachToolResult_OutputText:
		return agents.ToolResult{Status: agents.ResultOK, Output: output.OutputText, Form: step.FormText}
	case *loombridgev1.AttachToolResult_Output:
		if text, isText := output.Output.GetKind().(*structpb.Value_StringValue); isText {
			return agents.ToolResult{Status: agents.ResultOK, Output: text.StringValue, Form: step.FormText}
		}
	case *loombridgev1.AttachToolResult_OutputBytes:
		if mediaType := output.OutputBytes.GetMediaType(); mediaType != "" && !media.IsType(mediaType) {
			return agents.Failure(tools.Failed, "the agent's answer has no media type")
		}
		return agents.ToolResult{
			Status: agents.ResultOK, Output: string(output.OutputBytes.GetData()), Form: step.FormBytes,
			MediaType: output.OutputBytes.GetMediaType(),
		}
	}
	text, err := eitherJSON("output", r.GetOutputJson(), r.GetOutput() != nil, r.GetOutput())
	switch {
	case err != nil, len(text) > 0 && !json.Valid(text):
		return agents.Failure(tools.Failed, "the agent's answer is not JSON")
	case len(text) == 0:
		text = json.RawMessage("null")
	}
	return agents.ToolResult{Status: agents.ResultOK, Output: string(text)}
}

// TooLarge fails a call that can't be passed on.
func TooLarge(size, limit int) agents.ToolResult {
	return agents.Failure(tools.TooLarge, fmt.Sprintf("the call of %d bytes exceeds %d", size, limit))
}

// toolCodeOf is the inverse of errorCodeOf. A failure always has a code.
func toolCodeOf(code loombridgev1.ToolErrorCode) tools.Code {
	for _, known := range []tools.Code{tools.NotFound, tools.PermissionDenied, tools.TooLarge, tools.Timeout, tools.OutcomeUnknown, tools.InvalidArguments, tools.ProviderAway} {
		if errorCodeOf(known) == code {
			return known
		}
	}
	return tools.Failed
}
