package convert

import (
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/context/compress"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// CompressRequest is the result of a tool that is to be compressed.
func CompressRequest(scope kv.Scope, r *loombridgev1.CompressResultRequest) hand.CompressRequest {
	return hand.CompressRequest{
		Scope: scope, SessionID: r.GetSessionId(), CallID: r.GetToolCallId(),
		Result: compress.Result{
			Content: r.GetContent(), Tool: r.GetToolName(), Kind: compress.Strategy(r.GetResultKind()), Hint: hintOf(r.GetHint()),
			Failed: r.GetFailed(), Threshold: int(r.GetThresholdChars()), Path: r.GetPath(), ExitCode: int(r.GetExitCode()),
			IsCompressed: r.GetCompressed(),
		},
	}
}

func hintOf(h loombridgev1.CompressHint) compress.Hint {
	switch h {
	case loombridgev1.CompressHint_COMPRESS_HINT_SKIP:
		return compress.HintSkip
	case loombridgev1.CompressHint_COMPRESS_HINT_FORCE:
		return compress.HintForce
	case loombridgev1.CompressHint_COMPRESS_HINT_SEARCH:
		return compress.HintSearch
	}
	return compress.HintNormal
}

// Compressed is the compressed result, with the blob that has the whole one.
func Compressed(a hand.CompressAnswer) *loombridgev1.CompressResultResponse {
	out := &loombridgev1.CompressResultResponse{
		Content: utf8Text(a.Text), Compressed: a.IsCompressed, Strategy: string(a.Strategy),
	}
	if a.Blob != nil {
		out.Blob = BlobInfo(*a.Blob)
	}
	return out
}
