package loomv1

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/memory/plans"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
)

// memoryService serves the plans, executions and lines of sessions.
type memoryService struct {
	loomv1pb.UnimplementedMemoryServiceServer
	Deps
}

// SavePlan keeps a plan.
func (s *memoryService) SavePlan(ctx context.Context, req *loomv1pb.SavePlanRequest) (*loomv1pb.SavePlanResponse, error) {
	const operation = "save plan"
	tenant, err := s.tenantOf(ctx, req.GetSessionId())
	if err != nil {
		return nil, err
	}
	if req.GetPlan() == nil {
		return nil, status.Errorf(codes.Internal, "Failed to %s: Plan is required", operation)
	}
	if err := s.Plans.SavePlan(ctx, tenant, req.GetSessionId(), planOf(req.GetPlan())); err != nil {
		return nil, s.failed(ctx, operation, err)
	}
	return &loomv1pb.SavePlanResponse{Success: true, PlanHash: req.GetPlan().GetPlanHash()}, nil
}

// GetRecentPlans returns the plans saved last.
func (s *memoryService) GetRecentPlans(ctx context.Context, req *loomv1pb.GetRecentPlansRequest) (*loomv1pb.GetRecentPlansResponse, error) {
	tenant, err := s.Tenant(ctx)
	if err != nil {
		return nil, err
	}
	plans, err := s.Plans.RecentPlans(ctx, tenant, req.GetSessionId(), req.GetSymbol(), int(req.GetLimit()))
	if err != nil {
		return nil, s.failed(ctx, "get recent plans", err)
	}
	return sized(s.Deps, &loomv1pb.GetRecentPlansResponse{Plans: convertAll(plans, planRecord), Success: true})
}

// CheckDuplicate looks for a plan with the same symbol and action.
func (s *memoryService) CheckDuplicate(ctx context.Context, req *loomv1pb.CheckDuplicateRequest) (*loomv1pb.CheckDuplicateResponse, error) {
	tenant, err := s.Tenant(ctx)
	if err != nil {
		return nil, err
	}
	if req.GetPlan() == nil {
		return &loomv1pb.CheckDuplicateResponse{}, nil
	}
	plan, apart, found, err := s.Plans.FindDuplicate(ctx, tenant, req.GetSessionId(), planOf(req.GetPlan()), int(req.GetTimeWindowSec()))
	if err != nil {
		return nil, s.failed(ctx, "check duplicate", err)
	}
	if !found {
		return &loomv1pb.CheckDuplicateResponse{}, nil
	}
	return sized(s.Deps, &loomv1pb.CheckDuplicateResponse{
		IsDuplicate: true, DuplicatePlan: planRecord(plan), TimeSinceDuplicateMs: apart.Milliseconds(),
	})
}

// MarkExecuted notes that a plan was carried out.
func (s *memoryService) MarkExecuted(ctx context.Context, req *loomv1pb.MarkExecutedRequest) (*loomv1pb.MarkExecutedResponse, error) {
	tenant, err := s.tenantOf(ctx, req.GetSessionId())
	if err != nil {
		return nil, err
	}
	if err := s.Plans.MarkExecuted(ctx, tenant, req.GetSessionId(), req.GetPlanHash(), executionOf(req.GetExecution())); err != nil {
		return nil, s.failed(ctx, "mark executed", err)
	}
	return &loomv1pb.MarkExecutedResponse{Success: true}, nil
}

// CheckExecuted says what came of a plan.
func (s *memoryService) CheckExecuted(ctx context.Context, req *loomv1pb.CheckExecutedRequest) (*loomv1pb.CheckExecutedResponse, error) {
	tenant, err := s.Tenant(ctx)
	if err != nil {
		return nil, err
	}
	execution, found, err := s.Plans.FindExecution(ctx, tenant, req.GetSessionId(), req.GetPlanHash())
	if err != nil {
		return nil, s.failed(ctx, "check executed", err)
	}
	if !found {
		return &loomv1pb.CheckExecutedResponse{}, nil
	}
	return sized(s.Deps, &loomv1pb.CheckExecutedResponse{IsExecuted: true, Execution: executionRecord(execution)})
}

// GetExecutionStats counts what came of the plans.
func (s *memoryService) GetExecutionStats(ctx context.Context, req *loomv1pb.GetExecutionStatsRequest) (*loomv1pb.GetExecutionStatsResponse, error) {
	tenant, err := s.Tenant(ctx)
	if err != nil {
		return nil, err
	}
	stats, err := s.Plans.Stats(ctx, tenant, req.GetSessionId(), req.GetSymbol())
	if err != nil {
		return nil, s.failed(ctx, "get execution stats", err)
	}
	return sized(s.Deps, &loomv1pb.GetExecutionStatsResponse{
		TotalExecutions:      int32(stats.Total),
		SuccessfulExecutions: int32(stats.Successful),
		FailedExecutions:     int32(stats.Failed),
		WinRate:              stats.WinRate,
		RecentExecutions:     convertAll(stats.Recent, executionRecord),
	})
}

// AppendEvent notes an event as a line. Its payload and all metadata are not
// kept.
func (s *memoryService) AppendEvent(ctx context.Context, req *loomv1pb.MemoryWriteRequest) (*loomv1pb.MemoryWriteResponse, error) {
	tenant, err := s.tenantOf(ctx, req.GetSessionId())
	if err != nil {
		return nil, err
	}
	e := req.GetEvent()
	if e == nil {
		return nil, status.Error(codes.InvalidArgument, "Event is required")
	}
	if err := s.Plans.AppendLine(ctx, tenant, req.GetSessionId(), e.GetTimestampMs(), e.GetType(), e.GetSource()); err != nil {
		return nil, s.failed(ctx, "append event", err)
	}
	return &loomv1pb.MemoryWriteResponse{Success: true}, nil
}

// Retrieve finds noted lines by a part of their text.
func (s *memoryService) Retrieve(ctx context.Context, req *loomv1pb.MemoryRetrieveRequest) (*loomv1pb.MemoryRetrieveResponse, error) {
	tenant, err := s.Tenant(ctx)
	if err != nil {
		return nil, err
	}
	lines, err := s.Plans.Retrieve(ctx, tenant, req.GetSessionId(), req.GetQuery(), int(req.GetK()))
	if err != nil {
		return nil, s.failed(ctx, "retrieve", err)
	}
	return sized(s.Deps, &loomv1pb.MemoryRetrieveResponse{Results: lines, Success: true})
}

// SummarizeEpisode gives the oldest lines of a session.
func (s *memoryService) SummarizeEpisode(ctx context.Context, req *loomv1pb.MemorySummarizeRequest) (*loomv1pb.MemorySummarizeResponse, error) {
	tenant, err := s.Tenant(ctx)
	if err != nil {
		return nil, err
	}
	summary, events, err := s.Plans.Summarize(ctx, tenant, req.GetSessionId())
	if err != nil {
		return nil, s.failed(ctx, "summarize episode", err)
	}
	return sized(s.Deps, &loomv1pb.MemorySummarizeResponse{Summary: summary, EventCount: int32(events), Success: true})
}

// failed ends a call that the store of plans did not answer. What is too large is the
// caller's to change, so it is answered.
func (s *memoryService) failed(ctx context.Context, operation string, err error) error {
	if over := new(plans.SizeError); errors.As(err, &over) {
		return status.Errorf(codes.ResourceExhausted, "Failed to %s: %s of %d bytes exceeds the limit of %d", operation, over.What, over.Size, over.Limit)
	}
	return s.fault(ctx, operation, err)
}

func convertAll[From, To any](all []From, convert func(From) To) []To {
	converted := make([]To, len(all))
	for i, one := range all {
		converted[i] = convert(one)
	}
	return converted
}

func planOf(p *loomv1pb.PlanRecord) plans.Plan {
	return plans.Plan{
		TimestampMillis: p.GetTimestampMs(),
		Symbol:          p.GetSymbol(),
		Action:          p.GetAction(),
		Confidence:      p.GetConfidence(),
		Reasoning:       p.GetReasoning(),
		Hash:            p.GetPlanHash(),
		Method:          p.GetMethod(),
		Metadata:        p.GetMetadata(),
	}
}

func planRecord(p plans.Plan) *loomv1pb.PlanRecord {
	return &loomv1pb.PlanRecord{
		TimestampMs: p.TimestampMillis,
		Symbol:      p.Symbol,
		Action:      p.Action,
		Confidence:  p.Confidence,
		Reasoning:   p.Reasoning,
		PlanHash:    p.Hash,
		Method:      p.Method,
		Metadata:    p.Metadata,
	}
}

// executionOf returns nil for none.
func executionOf(e *loomv1pb.ExecutionRecord) *plans.Execution {
	if e == nil {
		return nil
	}
	return &plans.Execution{
		TimestampMillis: e.GetTimestampMs(),
		PlanHash:        e.GetPlanHash(),
		Symbol:          e.GetSymbol(),
		Action:          e.GetAction(),
		Confidence:      e.GetConfidence(),
		Status:          e.GetStatus(),
		Executed:        e.GetExecuted(),
		OrderID:         e.GetOrderId(),
		OrderSizeUSDT:   e.GetOrderSizeUsdt(),
		ErrorMessage:    e.GetErrorMessage(),
	}
}

func executionRecord(e plans.Execution) *loomv1pb.ExecutionRecord {
	return &loomv1pb.ExecutionRecord{
		TimestampMs:   e.TimestampMillis,
		PlanHash:      e.PlanHash,
		Symbol:        e.Symbol,
		Action:        e.Action,
		Confidence:    e.Confidence,
		Status:        e.Status,
		Executed:      e.Executed,
		OrderId:       e.OrderID,
		OrderSizeUsdt: e.OrderSizeUSDT,
		ErrorMessage:  e.ErrorMessage,
	}
}
