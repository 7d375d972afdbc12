package server

import (
	"context"

	"github.com/loom-bridge/loom-bridge/bridge/tiers"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/context/transfer"
	"github.com/loom-bridge/loom-bridge/context/window"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/observe"
	"github.com/loom-bridge/loom-bridge/server/page"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// Log is what the handlers need of the sessions' log.
type Log interface {
	AppendMessages(ctx context.Context, scope kv.Scope, sessionID string, messages []session.Message, requestID string) ([]uint64, error)
	Step(ctx context.Context, scope kv.Scope, number uint64) (session.Entry, error)
	Steps(ctx context.Context, scope kv.Scope, sessionID string, after uint64, limit int) ([]session.Entry, error)
	LastSteps(ctx context.Context, scope kv.Scope, sessionID string, n int) ([]session.Entry, error)
	Config(ctx context.Context, scope kv.Scope, sessionID string) (session.Config, error)
	Configure(ctx context.Context, scope kv.Scope, sessionID string, change func(session.Config) (session.Config, error), requestID string, content []byte) (session.Config, error)
	Working(ctx context.Context, scope kv.Scope, sessionID string) (working.Working, error)
	UpdateWorking(ctx context.Context, scope kv.Scope, sessionID string, u session.WorkingUpdate) (working.Working, error)
	End(ctx context.Context, scope kv.Scope, sessionID string) (last uint64, err error)
	Ended(ctx context.Context, scope kv.Scope, sessionID string) (bool, error)
	Sprint(ctx context.Context, scope kv.Scope, sessionID string) (int, error)
	Snapshot(ctx context.Context, scope kv.Scope, sessionID string, sprint int) (working.Snapshot, error)
	Snapshots(ctx context.Context, scope kv.Scope, sessionID string, after, limit int) ([]working.Snapshot, error)
	Undo(ctx context.Context, scope kv.Scope, sessionID string, batch uint64, requestID string) (session.Undone, error)
}

// Tokens is what the handlers need of the token counter.
type Tokens interface {
	Count(model, text string) (tokens.Count, error)
}

// Assembler is what the handlers need of the prompt builder.
type Assembler interface {
	Assemble(ctx context.Context, r assemble.Request) (assemble.Prompt, error)
	Past(ctx context.Context, scope kv.Scope, sessionID string, r assemble.PastRequest) (assemble.Prompt, assemble.Format, error)
	Diff(ctx context.Context, scope kv.Scope, sessionID, from, to string) (assemble.Diff, error)
	Compact(ctx context.Context, r assemble.CompactRequest) (assemble.Compaction, error)
	Conclude(ctx context.Context, r assemble.ConcludeRequest) (assemble.Concluded, error)
	ReportUsage(ctx context.Context, r assemble.UsageReport) (assemble.UsageLearned, error)
	Renew(ctx context.Context, r assemble.RenewRequest) (assemble.Renewed, error)
	ReportOverflow(ctx context.Context, scope kv.Scope, sessionID, turnID string) (window.Level, error)
	Figures(ctx context.Context, scope kv.Scope, sessionID string) (working.Figures, error)
	CountMessages(model string, messages []session.Message) (tokens.Count, error)
}

var (
	_ Log       = (*session.Log)(nil)
	_ Tokens    = (*tokens.Counter)(nil)
	_ Assembler = (*assemble.Assembler)(nil)
)

type contextService struct {
	loombridgev1.UnimplementedContextServiceServer
	log           Log
	memory        Memory
	blobs         Blobs
	reads         Reads
	tokens        Tokens
	assembler     Assembler
	tools         Tools
	hand          Hand
	children      Children
	tasks         Tasks
	conversations Conversations
	mover         *transfer.Mover
	lessons       Lessons
	signals       topics.Signals
	limits        Limits
	metrics       *observe.Metrics
}

// AppendMessages adds messages to a session's log.
func (s *contextService) AppendMessages(ctx context.Context, r *loombridgev1.AppendMessagesRequest) (*loombridgev1.AppendMessagesResponse, error) {
	scope, err := agentScope(ctx, r, validate.AppendMessagesRequest)
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
	scope, err := agentScope(ctx, r, validate.RecordStepRequest)
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
	scope, err := agentScope(ctx, r, validate.ListStepsRequest)
	if err != nil {
		return nil, err
	}
	if r.GetPageSize() == 0 {
		last, err := s.log.LastSteps(ctx, scope, r.GetSessionId(), recentSteps)
		if err != nil {
			return nil, err
		}
		return &loombridgev1.ListStepsResponse{Steps: convert.Steps(last, r.GetJsonForm())}, nil
	}
	after, _ := page.ParseToken(r.GetPageToken())
	// One more than asked for reports whether there is a next page.
	found, err := s.log.Steps(ctx, scope, r.GetSessionId(), after, min(int(r.GetPageSize())+1, session.MaxListed))
	if err != nil {
		return nil, err
	}
	return convert.StepPage(found, int(r.GetPageSize()), s.limits.MaxSendBytes, r.GetJsonForm()), nil
}

// GetStep returns one step.
func (s *contextService) GetStep(ctx context.Context, r *loombridgev1.GetStepRequest) (*loombridgev1.GetStepResponse, error) {
	scope, err := agentScope(ctx, r, validate.GetStepRequest)
	if err != nil {
		return nil, err
	}
	number, _ := step.ParseID(r.GetStepId())
	entry, err := s.log.Step(ctx, scope, number)
	if err != nil {
		return nil, err
	}
	return &loombridgev1.GetStepResponse{Step: convert.Step(*entry.Step, entry.Position, r.GetJsonForm())}, nil
}

// Assemble builds the prompt of a session.
func (s *contextService) Assemble(ctx context.Context, r *loombridgev1.AssembleRequest) (*loombridgev1.AssembleResponse, error) {
	scope, err := agentScope(ctx, r, validate.AssembleRequest)
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
func (s *contextService) CountTokens(ctx context.Context, r *loombridgev1.CountTokensRequest) (*loombridgev1.CountTokensResponse, error) {
	if err := validate.CountTokensRequest(r); err != nil {
		return nil, err
	}
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
	return &loombridgev1.CountTokensResponse{Count: convert.TokenCount(count)}, nil
}

// CompressResult shortens one result of a tool.
func (s *contextService) CompressResult(ctx context.Context, r *loombridgev1.CompressResultRequest) (*loombridgev1.CompressResultResponse, error) {
	scope, err := agentScope(ctx, r, validate.CompressResultRequest)
	if err != nil {
		return nil, err
	}
	answer, err := s.hand.Compress(ctx, convert.CompressRequest(scope, r))
	if err != nil {
		return nil, err
	}
	return convert.Compressed(answer), nil
}

// Tasks is what the handlers need of the tiers of tasks.
type Tasks interface {
	// Find returns a task of any session, by its id or the ref of its summary, and
	// where it is.
	Find(ctx context.Context, scope kv.Scope, id string) (tiers.Found, error)
	// Add adds a task, or the result of one that is there.
	Add(ctx context.Context, scope kv.Scope, task session.Task) (session.Task, error)
}

var _ Tasks = (*tiers.Tiers)(nil)

// GetTask returns one task.
func (s *contextService) GetTask(ctx context.Context, r *loombridgev1.GetTaskRequest) (*loombridgev1.GetTaskResponse, error) {
	scope, err := agentScope(ctx, r, validate.GetTaskRequest)
	if err != nil {
		return nil, err
	}
	found, err := s.tasks.Find(ctx, scope, r.GetTaskId())
	if err != nil {
		return nil, err
	}
	out := &loombridgev1.GetTaskResponse{
		Task: convert.Task(found.Task, r.GetJsonForm()), SessionId: found.Task.SessionID,
	}
	for _, tier := range found.Tiers {
		out.Tiers = append(out.Tiers, convert.Int32(tier))
	}
	return out, nil
}
