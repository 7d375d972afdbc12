package server

import (
	"cmp"
	"context"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// past answers with a prompt that was sent before.
func (s *contextService) past(ctx context.Context, scope kv.Scope, r *loombridgev1.AssembleRequest) (*loombridgev1.AssembleResponse, error) {
	asked := assemble.PastRequest{PromptID: r.GetAsOfPromptId(), Step: r.GetAsOfStepId()}
	if asked.PromptID == "" {
		number, _ := step.ParseID(asked.Step)
		entry, err := s.log.Step(ctx, scope, number)
		if err != nil {
			return nil, err
		}
		if id := cmp.Or(r.GetSessionId(), session.DefaultSession); entry.Step.SessionID != id {
			return nil, validate.Refuse("as_of_step_id", "is a step of another session")
		}
		asked.Position = entry.Position
	}
	prompt, format, err := s.assembler.Past(ctx, scope, r.GetSessionId(), asked)
	if err != nil {
		return nil, err
	}
	return convert.Prompt(prompt, format), nil
}

// DiffPrompts compares two prompts of a session.
func (s *contextService) DiffPrompts(ctx context.Context, r *loombridgev1.DiffPromptsRequest) (*loombridgev1.DiffPromptsResponse, error) {
	scope, err := agentScope(ctx, r, validate.DiffPromptsRequest)
	if err != nil {
		return nil, err
	}
	diff, err := s.assembler.Diff(ctx, scope, r.GetSessionId(), r.GetFromPromptId(), r.GetToPromptId())
	if err != nil {
		return nil, err
	}
	return convert.PromptDiff(diff), nil
}
