package server

import (
	"context"

	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/recall"
	"github.com/loom-bridge/loom-bridge/bridge/tiers"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/conversation"
	"github.com/loom-bridge/loom-bridge/context/readback"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/observe"
	"github.com/loom-bridge/loom-bridge/server/page"
)

type contextService struct {
	loombridgev1.UnimplementedSessionServiceServer
	loombridgev1.UnimplementedPromptServiceServer
	loombridgev1.UnimplementedBlobServiceServer
	loombridgev1.UnimplementedAgentServiceServer
	log           *session.Log
	memory        Memory
	blobs         *blob.Store
	reads         *readback.Reader
	tokens        *tokens.Counter
	assembler     *assemble.Assembler
	hand          *hand.Hand
	children      *children.Spawner
	tasks         *tiers.Tiers
	conversations *conversation.Reader
	lessons       *recall.Drafts
	signals       topics.Signals
	limits        Limits
	metrics       *observe.Metrics
}

// AppendMessages adds messages to a session's log.
func (s *contextService) AppendMessages(ctx context.Context, r *loombridgev1.AppendMessagesRequest) (*loombridgev1.AppendMessagesResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	positions, err := s.log.AppendMessages(ctx, scope, r.GetSessionId(), convert.Messages(r.GetMessages()), r.GetRequestId())
	if err != nil {
		return nil, err
	}
	out := &loombridgev1.AppendMessagesResponse{Positions: make([]int64, len(positions))}
	for i, p := range positions {
		out.Positions[i] = int64(p)
	}
	return out, nil
}

// RecordStep adds a step for a tool that the caller ran itself.
func (s *contextService) RecordStep(ctx context.Context, r *loombridgev1.RecordStepRequest) (*loombridgev1.RecordStepResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	report, err := convert.Report(scope, r)
	if err != nil {
		return nil, err
	}
	answer, err := s.hand.Record(ctx, report)
	if err != nil {
		return nil, err
	}
	return convert.Recorded(answer), nil
}

// ListSteps returns a page of a session's steps, or its last five.
func (s *contextService) ListSteps(ctx context.Context, r *loombridgev1.ListStepsRequest) (*loombridgev1.ListStepsResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	if r.GetPageSize() == 0 {
		last, err := s.log.LastSteps(ctx, scope, r.GetSessionId(), recentSteps)
		if err != nil {
			return nil, err
		}
		return &loombridgev1.ListStepsResponse{Steps: convert.Steps(last, convert.AsText(ctx))}, nil
	}
	after, _ := page.ParseToken(r.GetPageToken())
	// One more than asked for reports whether there is a next page.
	found, err := s.log.Steps(ctx, scope, r.GetSessionId(), after, min(int(r.GetPageSize())+1, session.MaxListed))
	if err != nil {
		return nil, err
	}
	return convert.StepPage(found, int(r.GetPageSize()), s.limits.MaxSendBytes, convert.AsText(ctx)), nil
}

// GetStep returns one step.
func (s *contextService) GetStep(ctx context.Context, r *loombridgev1.GetStepRequest) (*loombridgev1.Step, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	number, _ := step.ParseID(r.GetStepId())
	entry, err := s.log.Step(ctx, scope, number)
	if err != nil {
		return nil, err
	}
	return convert.Step(*entry.Step, entry.Position, convert.AsText(ctx)), nil
}

// Assemble builds the prompt of a session.
func (s *contextService) Assemble(ctx context.Context, r *loombridgev1.AssembleRequest) (*loombridgev1.AssembleResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	if r.GetAsOf() != nil {
		return s.past(ctx, scope, r)
	}
	request := convert.AssembleRequest(scope, r, s.limits.MaxSendBytes)
	prompt, err := s.assembler.Assemble(ctx, request)
	if err != nil {
		return nil, err
	}
	if !r.GetDryRun() {
		s.metrics.Folded(prompt.Receipt.Batch)
		s.metrics.Asked(prompt.Receipt.NewCalls, prompt.Receipt.NewFaults)
	}
	return convert.Prompt(prompt, request.Format), nil
}

// CountTokens counts a text, or messages, as a model would.
func (s *contextService) CountTokens(ctx context.Context, r *loombridgev1.CountTokensRequest) (*loombridgev1.TokenCount, error) {
	if _, err := auth.AgentScope(ctx, r.GetAgentId()); err != nil {
		return nil, err
	}
	var count tokens.Count
	var err error
	if messages := r.GetMessages(); len(messages) > 0 {
		count, err = s.assembler.CountMessages(r.GetModel(), convert.Messages(messages))
	} else {
		count, err = s.tokens.Count(r.GetModel(), r.GetText())
	}
	if err != nil {
		return nil, err
	}
	return convert.TokenCount(count), nil
}

// CompressResult shortens one result of a tool.
func (s *contextService) CompressResult(ctx context.Context, r *loombridgev1.CompressResultRequest) (*loombridgev1.CompressResultResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	answer, err := s.hand.Compress(ctx, convert.CompressRequest(scope, r))
	if err != nil {
		return nil, err
	}
	return convert.Compressed(answer), nil
}
