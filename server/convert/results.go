package convert

import (
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Report is a call that the caller ran itself, with its result.
func Report(scope kv.Scope, r *loombridgev1.RecordStepRequest) (hand.Recorded, error) {
	args, err := eitherJSON("arguments", r.GetArgumentsJson(), r.GetArguments() != nil, structpb.NewStructValue(r.GetArguments()))
	if err != nil {
		return hand.Recorded{}, err
	}
	output, err := resultOf(r)
	if err != nil {
		return hand.Recorded{}, err
	}
	task, err := taskOf(r.GetTask())
	if err != nil {
		return hand.Recorded{}, err
	}
	return hand.Recorded{
		Task: task,
		Request: hand.Request{
			Scope: scope, SessionID: r.GetSessionId(), Name: r.GetToolName(), Args: args,
			Thought: r.GetThought(), TurnID: r.GetTurnId(), CallID: r.GetCallId(), RequestID: r.GetRequestId(),
			Pinned: r.GetPinned(),
		},
		Output: output, Failed: !r.GetSuccess(), ErrorMessage: r.GetErrorMessage(), Refused: r.GetRefused(),
	}, nil
}

// resultOf is the result of a report, byte for byte. The oneof distinguishes an empty
// result from none.
func resultOf(r *loombridgev1.RecordStepRequest) (step.Original, error) {
	switch output := r.GetOutputForm().(type) {
	case *loombridgev1.RecordStepRequest_Output:
		if s, isText := output.Output.GetKind().(*structpb.Value_StringValue); isText {
			return step.Original{Form: step.FormText, Data: text.Bytes(s.StringValue)}, nil
		}
		data, err := jsonOf("output", output.Output)
		return step.Original{Form: step.FormJSON, Data: data}, err
	case *loombridgev1.RecordStepRequest_OutputJson:
		if output.OutputJson == "" {
			return step.Original{Form: step.FormNone}, nil
		}
		return step.Original{Form: step.FormJSON, Data: text.Bytes(output.OutputJson)}, nil
	case *loombridgev1.RecordStepRequest_OutputText:
		return step.Original{Form: step.FormText, Data: text.Bytes(output.OutputText)}, nil
	case *loombridgev1.RecordStepRequest_OutputBytes:
		return step.Original{Form: step.FormBytes, Data: output.OutputBytes.GetData(), MediaType: output.OutputBytes.GetMediaType()}, nil
	}
	return step.Original{Form: step.FormNone}, nil
}

func formOf(f step.Form) loombridgev1.ResultForm { return loombridgev1.ResultForm(f) }

// BlobView is the form in which a result is read.
func BlobView(f loombridgev1.BlobForm) step.ResultView { return step.ResultView(f) }

// Recorded converts the answer to a report.
func Recorded(a hand.Answer) *loombridgev1.RecordStepResponse {
	out := &loombridgev1.RecordStepResponse{
		Step:        Step(*a.Step, a.Position, false),
		Observation: utf8Text(a.Observation),
		TaskId:      a.TaskID, Replayed: a.Replayed, OutputCollected: a.Collected, Redacted: a.Redacted,
	}
	if a.Blob != nil {
		out.OutputBlob = BlobInfo(*a.Blob)
	}
	return out
}
