package validate

import (
	"fmt"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/media"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	// maxContentBlocks bounds the content blocks of one result.
	maxContentBlocks = 256
	// maxMediaTypeBytes bounds a media type.
	maxMediaTypeBytes = 128
	// maxURIBytes bounds the address of a resource.
	maxURIBytes = 4096
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
	c.content(prefix+"output_content.", r.GetOutputContent())
	if r.GetRefused() && r.GetSuccess() {
		c.add(prefix+"refused", "needs success = false")
	}
	c.text(prefix+"error_message", r.GetErrorMessage(), maxThoughtBytes)
	c.name(prefix+"session_id", r.GetSessionId(), session.MaxSessionIDBytes)
	c.text(prefix+"thought", r.GetThought(), maxThoughtBytes)
	c.name(prefix+"turn_id", r.GetTurnId(), MaxIDBytes)
	c.name(prefix+"call_id", r.GetCallId(), MaxIDBytes)
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

// content checks the number of blocks before anything else.
func (c *checker) content(prefix string, content *loombridgev1.ResultContent) {
	if len(content.GetBlocks()) > maxContentBlocks {
		c.count(prefix+"blocks", len(content.GetBlocks()), maxContentBlocks)
		return
	}
	for i, block := range content.GetBlocks() {
		inner := fmt.Sprintf("%sblocks[%d].", prefix, i)
		switch kind := block.GetBlock().(type) {
		case *loombridgev1.ContentBlock_Text:
			c.text(inner+"text", kind.Text, hand.MaxOutputBytes)
		case *loombridgev1.ContentBlock_Image:
			c.resultBytes(inner+"image.", kind.Image)
		case *loombridgev1.ContentBlock_Audio:
			c.resultBytes(inner+"audio.", kind.Audio)
		case *loombridgev1.ContentBlock_Resource:
			c.required(inner+"resource.uri", kind.Resource.GetUri(), maxURIBytes)
			c.mediaType(inner+"resource.media_type", kind.Resource.GetMediaType())
			c.text(inner+"resource.text", kind.Resource.GetText(), hand.MaxOutputBytes)
			c.bytes(inner+"resource.data", len(kind.Resource.GetData()), hand.MaxOutputBytes)
		default:
			c.add(inner+"block", "is required")
		}
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
