package validate

import (
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/media"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	// maxMediaTypeBytes bounds a media type.
	maxMediaTypeBytes = 128
)

// RecordStepRequest checks what SessionService.RecordStep is asked.
func RecordStepRequest(r *loombridgev1.RecordStepRequest) error {
	var c checker
	c.recordStep("", r)
	if r.GetOutputUpload() != nil {
		c.add("output_upload", "belongs to UploadStep")
	}
	return c.err()
}

func (c *checker) recordStep(prefix string, r *loombridgev1.RecordStepRequest) {
	c.requiredName(prefix+"agent_id", r.GetAgentId(), kv.MaxOwnerBytes)
	c.requiredName(prefix+"tool_name", r.GetToolName(), tools.MaxNameBytes)
	c.text(prefix+"arguments_json", r.GetArgumentsJson(), tools.MaxArgumentsBytes)
	c.text(prefix+"output_json", r.GetOutputJson(), hand.MaxOutputBytes)
	c.text(prefix+"output_text", r.GetOutputText(), hand.MaxOutputBytes)
	c.resultBytes(prefix+"output_bytes.", r.GetOutputBytes())
	if r.GetRefused() && r.GetSuccess() {
		c.add(prefix+"refused", "needs success = false")
	}
	c.text(prefix+"error_message", r.GetErrorMessage(), maxThoughtBytes)
	c.name(prefix+"session_id", r.GetSessionId(), session.MaxSessionIDBytes)
	c.text(prefix+"thought", r.GetThought(), maxThoughtBytes)
	c.name(prefix+"turn_id", r.GetTurnId(), MaxIDBytes)
	c.name(prefix+"call_id", r.GetCallId(), session.MaxCallIDBytes)
	c.name(prefix+"request_id", r.GetRequestId(), MaxIDBytes)
	c.task(prefix+"task.", r.GetTask())
}

func (c *checker) resultBytes(prefix string, b *loombridgev1.ResultBytes) {
	c.bytes(prefix+"data", len(b.GetData()), hand.MaxOutputBytes)
	c.mediaType(prefix+"media_type", b.GetMediaType())
}

func (c *checker) mediaType(field, text string) {
	if text != "" && !media.IsType(text) {
		c.add(field, "is not a media type, such as `image/png`, of at most %d bytes", maxMediaTypeBytes)
	}
}

// UploadStepRequest checks the first message of an upload.
func UploadStepRequest(r *loombridgev1.UploadStepRequest) error {
	var c checker
	if r.GetStep() == nil {
		c.add("step", "is required in the first message")
		return c.err()
	}
	c.recordStep("step.", r.GetStep())
	upload := r.GetStep().GetOutputUpload()
	switch upload.GetForm() {
	case loombridgev1.ResultForm_RESULT_FORM_JSON, loombridgev1.ResultForm_RESULT_FORM_TEXT, loombridgev1.ResultForm_RESULT_FORM_BYTES:
	default:
		c.add("step.output_upload.form", "must be RESULT_FORM_JSON, RESULT_FORM_TEXT or RESULT_FORM_BYTES")
	}
	c.mediaType("step.output_upload.media_type", upload.GetMediaType())
	return c.err()
}
