package server

import (
	"context"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/context/compress"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// CompressResult shortens one result of a tool.
func (s *contextService) CompressResult(ctx context.Context, r *loombridgev1.CompressResultRequest) (*loombridgev1.CompressResultResponse, error) {
	if err := validate.CompressResultRequest(r); err != nil {
		return nil, err
	}
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	answer, err := s.hand.Compress(ctx, resultToCompress(scope, r))
	if err != nil {
		return nil, err
	}
	return compressedOf(answer), nil
}

func resultToCompress(scope kv.Scope, r *loombridgev1.CompressResultRequest) hand.CompressRequest {
	return hand.CompressRequest{
		Scope: scope, SessionID: r.GetSessionId(), CallID: r.GetToolCallId(),
		Result: compress.Result{
			Content: r.GetContent(), Tool: r.GetToolName(), Kind: compress.Strategy(r.GetResultKind()), Hint: hintOf(r.GetHint()),
			Failed: r.GetFailed(), Threshold: int(r.GetThresholdChars()), Path: r.GetPath(), ExitCode: int(r.GetExitCode()),
			Shortened: r.GetCompressed(),
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

func compressedOf(a hand.CompressAnswer) *loombridgev1.CompressResultResponse {
	out := &loombridgev1.CompressResultResponse{
		Content: utf8Text(a.Text), Compressed: a.Shortened, Strategy: string(a.Strategy), OriginalChars: int64(a.Chars),
	}
	if a.Blob != nil {
		out.Blob = blobInfoOf(*a.Blob)
	}
	return out
}
