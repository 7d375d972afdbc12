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
			Content: r.GetContent(), Tool: r.GetToolName(), Kind: compress.Strategy(r.GetResultKind()), Hint: hints[r.GetHint()],
			Failed: r.GetFailed(), Threshold: int(r.GetThresholdChars()), Path: r.GetPath(), ExitCode: int(r.GetExitCode()),
			IsCompressed: r.GetCompressed(),
		},
	}
}

// hints are those that are not normal.
var hints = map[loombridgev1.CompressHint]compress.Hint{
	loombridgev1.CompressHint_COMPRESS_HINT_SKIP:   compress.HintSkip,
	loombridgev1.CompressHint_COMPRESS_HINT_FORCE:  compress.HintForce,
	loombridgev1.CompressHint_COMPRESS_HINT_SEARCH: compress.HintSearch,
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
