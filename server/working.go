package server

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/loom-bridge/loom-bridge/bridge/recall"
	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/page"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// UpdateWorking changes what an agent is at in a session.
func (s *contextService) UpdateWorking(ctx context.Context, r *loombridgev1.UpdateWorkingRequest) (*loombridgev1.Working, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	config, err := s.log.Config(ctx, scope, r.GetSessionId())
	if err != nil {
		return nil, err
	}
	var w working.Working
	if change := convert.WorkingChange(r); change.Empty() {
		w, err = s.log.Working(ctx, scope, r.GetSessionId())
	} else {
		w, err = s.updateWorking(ctx, scope, r, config, change)
	}
	if err != nil {
		return nil, err
	}
	figures, err := s.assembler.Figures(ctx, scope, r.GetSessionId())
	if err != nil {
		return nil, err
	}
	count := s.countFor(config.Model)
	out := convert.Working(w, w.Skills(settings.FirstActive(config.Skills())), figures)
	out.Tokens = convert.Int32(count(w.Text(figures, true, count)))
	return out, nil
}

// countFor counts tokens of a model. What can't be counted is too long for any prompt.
func (s *contextService) countFor(model string) func(string) int {
	return func(text string) int {
		n, err := s.tokens.Count(model, text)
		if err != nil {
			return math.MaxInt32
		}
		return n.Tokens
	}
}

func (s *contextService) updateWorking(ctx context.Context, scope kv.Scope, r *loombridgev1.UpdateWorkingRequest, config session.Config, change working.Change) (working.Working, error) {
	var known []string
	undeclared := func(name string) bool {
		return !slices.ContainsFunc(config.Skills(), func(s settings.Skill) bool { return s.Name == name })
	}
	if slices.ContainsFunc(r.GetActivate(), undeclared) || slices.ContainsFunc(r.GetDeactivate(), undeclared) {
		recorded, err := recall.SkillsOf(ctx, s.memory, scope)
		if err != nil {
			return working.Working{}, fmt.Errorf("read skills: %w", err)
		}
		for i := range recorded {
			known = append(known, recorded[i].Name)
		}
	}
	return s.signals.Update(ctx, scope, r.GetSessionId(), session.WorkingUpdate{
		Change: change, Known: known, RequestID: r.GetRequestId(), Count: s.countFor(config.Model),
	})
}

// Renew begins a session's window anew.
func (s *contextService) Renew(ctx context.Context, r *loombridgev1.RenewRequest) (*loombridgev1.RenewResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	got, err := s.assembler.Renew(ctx, assemble.RenewRequest{
		Scope: scope, SessionID: r.GetSessionId(), TurnID: r.GetTurnId(), Goal: r.GetGoal(), RequestID: r.GetRequestId(),
	})
	if err != nil {
		return nil, err
	}
	s.metrics.Folded(got.Batch)
	out := &loombridgev1.RenewResponse{Renewed: got.Batch != nil}
	if got.Sprint > 0 {
		out.Snapshot = convert.Snapshot(&got.Snapshot)
	}
	return out, nil
}

// ListSnapshots returns a page of a session's snapshots.
func (s *contextService) ListSnapshots(ctx context.Context, r *loombridgev1.ListSnapshotsRequest) (*loombridgev1.ListSnapshotsResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	if r.GetSprint() != 0 || r.GetLast() {
		return s.oneSnapshot(ctx, scope, r)
	}
	after, _ := page.ParseToken(r.GetPageToken())
	size := cmp.Or(int(r.GetPageSize()), validate.DefaultSnapshots)
	found, err := s.log.Snapshots(ctx, scope, r.GetSessionId(), int(min(after, math.MaxInt32)), size)
	if err != nil {
		return nil, err
	}
	return convert.SnapshotPage(found, size, s.limits.MaxSendBytes), nil
}

// oneSnapshot answers a snapshot that is named by its number, or as the last one.
func (s *contextService) oneSnapshot(ctx context.Context, scope kv.Scope, r *loombridgev1.ListSnapshotsRequest) (*loombridgev1.ListSnapshotsResponse, error) {
	sprint := int(r.GetSprint())
	if r.GetLast() {
		var err error
		if sprint, err = s.log.Sprint(ctx, scope, r.GetSessionId()); err != nil {
			return nil, err
		}
	}
	found, err := s.log.Snapshot(ctx, scope, r.GetSessionId(), sprint)
	if err != nil {
		return nil, err
	}
	return &loombridgev1.ListSnapshotsResponse{Snapshots: []*loombridgev1.Snapshot{convert.Snapshot(&found)}}, nil
}
