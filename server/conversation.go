package server

import (
	"cmp"
	"context"
	"iter"

	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/conversation"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/page"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// defaultListed is how many entries or sessions a page has without a page size.
const defaultListed = 100

// Conversations is what the handlers need to read back what was said and done.
type Conversations interface {
	Sessions(ctx context.Context, scope kv.Scope, after string, closed bool) iter.Seq2[session.Summary, error]
	Items(ctx context.Context, scope kv.Scope, sessionID string, newestFirst bool, from conversation.Place) iter.Seq2[conversation.Item, error]
}

// Lessons is what makes playbooks of sessions that went well.
type Lessons interface {
	Learn(ctx context.Context, scope kv.Scope, sessionID string, reward float64, taskType string) (id string, err error)
}

var _ Conversations = (*conversation.Reader)(nil)

// ListSessions returns a page of an agent's sessions.
func (s *contextService) ListSessions(ctx context.Context, r *loombridgev1.ListSessionsRequest) (*loombridgev1.ListSessionsResponse, error) {
	scope, err := agentScope(ctx, r, validate.ListSessionsRequest)
	if err != nil {
		return nil, err
	}
	after, _ := page.ParseSessionToken(r.GetPageToken())
	return convert.SessionPage(s.conversations.Sessions(ctx, scope, after, r.GetIncludeClosed()), cmp.Or(int(r.GetPageSize()), defaultListed))
}

// ListConversation returns a page of what was said and done in a session.
func (s *contextService) ListConversation(ctx context.Context, r *loombridgev1.ListConversationRequest) (*loombridgev1.ListConversationResponse, error) {
	scope, err := agentScope(ctx, r, validate.ListConversationRequest)
	if err != nil {
		return nil, err
	}
	newestFirst := r.GetOrder() == loombridgev1.ConversationOrder_CONVERSATION_ORDER_NEWEST_FIRST
	from, _ := page.ParseConversationToken(r.GetPageToken(), newestFirst)
	items := s.conversations.Items(ctx, scope, r.GetSessionId(), newestFirst, from)
	size := cmp.Or(int(r.GetPageSize()), defaultListed)
	return convert.ConversationPage(items, size, s.limits.MaxSendBytes, newestFirst, r.GetJsonForm())
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
