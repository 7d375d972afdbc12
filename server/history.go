package server

import (
	"cmp"
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/page"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// ConfigureSession changes how a session's prompts are made.
func (s *contextService) ConfigureSession(ctx context.Context, r *loombridgev1.ConfigureSessionRequest) (*loombridgev1.ConfigureSessionResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	var config session.Config
	if change, content := changeOf(r); change == nil {
		config, err = s.log.Config(ctx, scope, r.GetSessionId())
	} else {
		config, err = s.log.Configure(ctx, scope, r.GetSessionId(), change, r.GetRequestId(), content)
	}
	if err != nil {
		return nil, err
	}
	return convert.Configured(config), nil
}

// changeOf is what a request does to a session's settings, and the digest of it
// apart from another one with its id. There is none when it sets nothing.
func changeOf(r *loombridgev1.ConfigureSessionRequest) (change func(session.Config) (session.Config, error), content []byte) {
	set := convert.Config(r.GetHistory())
	set.Model, set.MaxTokens, set.Prompt = r.GetModel(), int(r.GetMaxTokens()), convert.PromptSettings(r.GetPrompt())
	if set == (session.Config{}) && !r.GetReset_() {
		return nil, nil
	}
	change = func(c session.Config) (session.Config, error) {
		if err := set.Prompt.Check("prompt"); err != nil {
			return c, err
		}
		if r.GetReset_() {
			c = session.Config{}
		}
		return set.Over(c), nil
	}
	plain := proto.CloneOf(r)
	plain.RequestId = ""
	// The request was decoded from these fields, so they can be encoded.
	content, _ = proto.MarshalOptions{Deterministic: true}.Marshal(plain)
	return change, content
}

// EndSession says that a session is over.
func (s *contextService) EndSession(ctx context.Context, r *loombridgev1.EndSessionRequest) (*loombridgev1.EndSessionResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	last, err := s.log.End(ctx, scope, r.GetSessionId())
	if err != nil {
		return nil, err
	}
	out := &loombridgev1.EndSessionResponse{LastPosition: int64(last)}
	if r.Reward != nil {
		_, err = s.lessons.Learn(ctx, scope, r.GetSessionId(), r.GetReward(), r.GetTaskType())
	}
	return out, err
}

// CompactHistory folds what may be folded, or renders the history as text.
func (s *contextService) CompactHistory(ctx context.Context, r *loombridgev1.CompactHistoryRequest) (*loombridgev1.CompactHistoryResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	compaction, err := s.assembler.Compact(ctx, convert.CompactRequest(scope, r))
	if err != nil {
		return nil, err
	}
	if !r.GetDryRun() {
		s.metrics.Folded(compaction.Batch)
	}
	return convert.Compaction(compaction), nil
}

// Undo takes back the last batch of folds.
func (s *contextService) Undo(ctx context.Context, r *loombridgev1.UndoRequest) (*loombridgev1.UndoResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	undone, err := s.log.Undo(ctx, scope, r.GetSessionId(), uint64(r.GetBatch()), r.GetRequestId())
	if err != nil {
		return nil, err
	}
	return &loombridgev1.UndoResponse{Refs: session.RefRuns(undone.Refs)}, nil
}

// ReportUsage says what a provider counted for a prompt, or that it refused one.
func (s *contextService) ReportUsage(ctx context.Context, r *loombridgev1.ReportUsageRequest) (*loombridgev1.ReportUsageResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	if r.GetOverflow() {
		level, err := s.assembler.ReportOverflow(ctx, scope, r.GetSessionId(), r.GetTurnId())
		if err != nil {
			return nil, err
		}
		return &loombridgev1.ReportUsageResponse{Level: convert.PressureLevel(level)}, nil
	}
	learned, err := s.assembler.ReportUsage(ctx, assemble.UsageReport{
		Scope: scope, SessionID: r.GetSessionId(), PromptID: r.GetPromptId(),
		Usage: tokens.Usage{
			Prompt: int(r.GetPromptTokens()), Completion: int(r.GetCompletionTokens()), Reasoning: int(r.GetReasoningTokens()),
		},
		Cached: int(r.GetCachedTokens()),
	})
	if err != nil {
		return nil, err
	}
	return &loombridgev1.ReportUsageResponse{
		Ratio: learned.Ratio, MissedTokens: convert.Int32(learned.Missed),
	}, nil
}

// defaultListed is how many entries or sessions a page has without a page size.
const defaultListed = 100

// ListSessions returns a page of an agent's sessions.
func (s *contextService) ListSessions(ctx context.Context, r *loombridgev1.ListSessionsRequest) (*loombridgev1.ListSessionsResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	after, _ := page.Sessions.Parse(r.GetPageToken(), session.MaxSessionIDBytes)
	return convert.SessionPage(s.conversations.Sessions(ctx, scope, after, r.GetIncludeClosed()), cmp.Or(int(r.GetPageSize()), defaultListed))
}

// ListConversation returns a page of what was said and done in a session.
func (s *contextService) ListConversation(ctx context.Context, r *loombridgev1.ListConversationRequest) (*loombridgev1.ListConversationResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	if r.GetTaskId() != "" {
		found, err := s.tasks.Find(ctx, scope, r.GetTaskId())
		if err != nil {
			return nil, err
		}
		return convert.FoundTask(found, convert.AsText(ctx)), nil
	}
	newestFirst := r.GetOrder() == loombridgev1.ConversationOrder_CONVERSATION_ORDER_NEWEST_FIRST
	from, _ := page.ParseConversationToken(r.GetPageToken(), newestFirst)
	items := s.conversations.Items(ctx, scope, r.GetSessionId(), newestFirst, from)
	size := cmp.Or(int(r.GetPageSize()), defaultListed)
	return convert.ConversationPage(items, size, s.limits.MaxSendBytes, newestFirst, convert.AsText(ctx))
}

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
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	diff, err := s.assembler.Diff(ctx, scope, r.GetSessionId(), r.GetFromPromptId(), r.GetToPromptId())
	if err != nil {
		return nil, err
	}
	return convert.PromptDiff(diff), nil
}

// FindInPrompts finds a text in the prompts of a session.
func (s *contextService) FindInPrompts(ctx context.Context, r *loombridgev1.FindInPromptsRequest) (*loombridgev1.FindInPromptsResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	found, err := s.assembler.Find(ctx, scope, r.GetSessionId(), r.GetText())
	if err != nil {
		return nil, err
	}
	return convert.FoundInPrompts(&found), nil
}
