package loomv1

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
)

// MaxItems bounds the items of each repeated field and map of a request: far more than
// agents send.
const MaxItems = 1 << 14

// Fields of a ClientEvent that may be large, and of what they hold.
const (
	fieldPublish      = 1
	fieldToolResult   = 4
	fieldToolResultID = 1
)

// fieldOversize of a Publish says why it was not decoded. No proto uses the number. An
// agent that sets the field itself gets its text back as the error.
const fieldOversize = protowire.MaxValidNumber - 1

// maxCallIDBytes bounds the id of a call in an answer: ids of the directory are shorter.
const maxCallIDBytes = 1 << 10

// Oversized returns what replaces a message of an agent's stream that is too large to be
// decoded, so that the stream can go on: a publish that will be refused, or a tool result
// that is an error. Nil: the message is neither. problem completes the sentence
// "event …".
func Oversized(raw []byte, problem string) *loomv1pb.ClientEvent {
	var message *loomv1pb.ClientEvent
	for len(raw) > 0 {
		number, value, rest := nextField(raw)
		switch {
		case number == 0:
			return nil
		case value == nil:
		case number == fieldPublish:
			message = oversizedPublish(problem)
		case number == fieldToolResult:
			message = oversizedResult(value, problem)
		}
		raw = rest
	}
	return message
}

// nextField cuts the first field off a message; number 0 means that there is none. The
// value is nil unless the field holds bytes.
func nextField(raw []byte) (number protowire.Number, value, rest []byte) {
	number, kind, n := protowire.ConsumeTag(raw)
	if n < 0 {
		return 0, nil, nil
	}
	size := protowire.ConsumeFieldValue(number, kind, raw[n:])
	if size < 0 {
		return 0, nil, nil
	}
	if kind == protowire.BytesType {
		value, _ = protowire.ConsumeBytes(raw[n:])
	}
	return number, value, raw[n+size:]
}

func oversizedPublish(problem string) *loomv1pb.ClientEvent {
	publish := &loomv1pb.Publish{}
	mark := protowire.AppendTag(nil, fieldOversize, protowire.BytesType)
	publish.ProtoReflect().SetUnknown(protowire.AppendString(mark, "event "+problem))
	return &loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_Publish{Publish: publish}}
}

// oversizeOf returns why a publish was not decoded; nil if it was.
func oversizeOf(p *loomv1pb.Publish) *refusal {
	number, text, _ := nextField(p.ProtoReflect().GetUnknown())
	if number != fieldOversize {
		return nil
	}
	return &refusal{codeResourceExhausted, clip(string(text))}
}

func oversizedResult(raw []byte, problem string) *loomv1pb.ClientEvent {
	result := resultRefused(problem)
	for len(raw) > 0 {
		number, value, rest := nextField(raw)
		if number == fieldToolResultID && value != nil && len(value) <= maxCallIDBytes {
			result.Id = string(value)
		}
		raw = rest
	}
	return &loomv1pb.ClientEvent{Msg: &loomv1pb.ClientEvent_ToolResult{ToolResult: result}}
}

func resultRefused(problem string) *loomv1pb.ToolResult {
	return executionError(prefixExecution + "result " + problem)
}

// TooLarge is the problem of a message over the limit of bytes.
func TooLarge(size, limit int) string {
	return fmt.Sprintf("of %d bytes exceeds the limit of %d", size, limit)
}
